"""Compare two runs, as `mooring compare` does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mooring.explain.compare import Comparison, Variant, compare, values_of
from mooring.scheduler.journal import DECISIONS
from mooring.web.run_spec import RunSpec

#: The number of differing decisions to explain.
_EXPLAINED = 5

#: Called with the number of attempts of both runs together.
OnProgress = Callable[[int], None]


def comparison_data(
    names: tuple[str, str], run_specs: tuple[RunSpec, RunSpec], on_progress: OnProgress
) -> dict[str, Any]:
    """The baseline first. Raises InputError and ConfigError."""
    both = _distinct(names)
    comparison = _compared(both, run_specs, on_progress)
    labels = {key: words for run in comparison.runs for key, words, _ in values_of(run)}
    return {**comparison.to_data(), "labels": labels}


def _compared(
    names: tuple[str, str], run_specs: tuple[RunSpec, RunSpec], on_progress: OnProgress
) -> Comparison:
    first, second = run_specs
    if first.objects == second.objects:
        # Equal objects were read separately. Share them, so that the comparison sees the same cluster.
        run_specs = first, replace(second, objects=first.objects)
    over_time = any(each.times is not None or each.until_s is not None for each in run_specs)
    attempts = 0

    def count(_: str, __: int) -> None:
        nonlocal attempts
        attempts += 1
        on_progress(attempts)

    variants = [
        Variant(name, replace(run_spec, keeps=DECISIONS))
        for name, run_spec in zip(names, run_specs, strict=True)
    ]
    return compare(variants, explained=0 if over_time else _EXPLAINED, on_progress=count)


def _distinct(names: tuple[str, str]) -> tuple[str, str]:
    first, second = names
    return (first, second) if first != second else (first, f"{second} (2)")
