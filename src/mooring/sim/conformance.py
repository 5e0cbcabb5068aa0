"""Comparing what mooring decides with what the reference decided, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mooring.sim.golden import Case, read_cases, replay

#: Not for comparing, as the format says: the text of an error is for information.
_NOT_COMPARED = frozenset(("error",))


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not as expected."""

    case: str
    #: The pod that was attempted and its place in the case, or "" for the state at the end.
    pod: str
    position: int
    #: Where in the answer: `filter.node-1.reasons`.
    field: str
    expected: Any
    got: Any


@dataclass(slots=True)
class FileReport:
    """How a file of cases went."""

    area: str
    path: Path
    total: int = 0
    passed: int = 0
    attempts: int = 0
    #: The differences of the cases that did not pass, in order.
    differences: list[Difference] = field(default_factory=list)


def check_file(path: Path, progress: Callable[[int], None] | None = None) -> FileReport:
    """Replay every case of a file. Raises InputError if it cannot be read.

    `progress` is told how many cases are done.
    """
    report = FileReport(area=path.name.removesuffix(".gz").removesuffix(".jsonl"), path=path)
    for case in read_cases(path):
        differences = list(check_case(case))
        report.total += 1
        report.passed += not differences
        report.attempts += len(case.expect["results"])
        report.differences += differences
        if progress is not None:
            progress(report.total)
    return report


def check_case(case: Case) -> Iterator[Difference]:
    got = replay(case)
    pairs = zip(case.expect["results"], got["results"], strict=True)
    for position, (expected, answered) in enumerate(pairs):
        for where, wanted, had in _differences(expected, answered, ""):
            yield Difference(case.name, expected["pod"], position, where, wanted, had)
    for where, wanted, had in _differences(case.expect["final"], got["final"], "final"):
        yield Difference(case.name, "", len(case.expect["results"]), where, wanted, had)


def _differences(expected: Any, got: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    if expected == got:
        return
    if not (isinstance(expected, dict) and isinstance(got, dict)):
        yield where, expected, got
        return
    for key in dict.fromkeys((*expected, *got)):
        if not (where == "" and key in _NOT_COMPARED):
            inner = f"{where}.{key}" if where else key
            yield from _differences(expected.get(key), got.get(key), inner)
