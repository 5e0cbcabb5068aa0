"""Fewer faults and actors, while the failure stays: what is left is what it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tools.fuzz.world import Result, run_seed


def shrink(
    failed: Result, without: Iterable[str] = (), *, tell: Callable[[str], None] = lambda _: None
) -> tuple[list[str], Result]:
    """What the failure needs, and the smallest run that shows it.

    Any failure counts, as to leave something out moves what comes after it. Each thing is tried alone,
    until nothing more can go.
    """
    left_out = set(without)
    smallest = failed
    again = True
    while again:
        again = False
        for name in smallest.on:
            result = run_seed(failed.seed, failed.mode, without=left_out | {name})
            if result.violation:
                left_out.add(name)
                smallest = result
                again = True
                tell(f"without {name}: {result.violation.splitlines()[0][:150]}")
    return list(smallest.on), smallest
