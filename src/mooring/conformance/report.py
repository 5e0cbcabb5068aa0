"""Comparing what mooring decides with what the reference decided, field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mooring.conformance.allocator import AllocatorCase, allocator_case, replay_allocations
from mooring.conformance.cel import CelCase, cel_case, cel_differences
from mooring.conformance.decisions import Case, decision_case, read_lines, replay
from mooring.conformance.pod_groups import (
    PodGroupsCase,
    as_told,
    in_order,
    pod_groups_case,
    replay_pod_groups,
)
from mooring.conformance.requeue import RequeueCase, replay_requeue, requeue_case
from mooring.errors import InputError

AnyCase = Case | RequeueCase | AllocatorCase | CelCase | PodGroupsCase

#: The replays in which a field differs.
BOTH, COLD, WARM = "both", "cold", "warm"

#: Not for comparing, as the format says: the text of an error is for information.
_NOT_COMPARED = frozenset(("error",))


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that is not as expected."""

    case: str
    #: Which answer of the case: `attempt 2, pod default/web`, `step 3`, `node n1`, `state at the end`.
    answer: str
    #: The pod that was attempted; "" for the state at the end and for a step.
    pod: str
    #: The place of the answer in the case, from 0.
    position: int
    #: Where in the answer: `filter.node-1.reasons`.
    field: str
    expected: Any
    got: Any
    #: BOTH, COLD or WARM; "" for a case that is replayed once.
    replay: str


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
    """Replay every case of a file. Raises InputError if it cannot be read or has none.

    `progress` is told how many cases are done.
    """
    report = FileReport(area=path.name.removesuffix(".gz").removesuffix(".jsonl"), path=path)
    for case in read_lines(path, _case):
        differences = list(check_case(case))
        report.total += 1
        report.passed += not differences
        report.attempts += _attempts(case)
        report.differences += differences
        if progress is not None:
            progress(report.total)
    if not report.total:
        raise InputError([f"{path}: holds no cases, so nothing was compared"])
    return report


def check_case(case: AnyCase) -> Iterator[Difference]:
    if isinstance(case, CelCase):
        return (Difference(case.name, "answer", "", 0, *each, "") for each in cel_differences(case))
    if isinstance(case, AllocatorCase):
        return _check_nodes(case)
    if isinstance(case, PodGroupsCase):
        return _check_states(case)
    return _check_steps(case) if isinstance(case, RequeueCase) else _check_decisions(case)


def _case(line: dict[str, Any]) -> AnyCase:
    """Which format a file has, its lines tell: whole runs have steps, those of groups also gates."""
    if "expr" in line:
        return cel_case(line)
    if "allocate" in line:
        return allocator_case(line)
    if "steps" not in line:
        return decision_case(line)
    return pod_groups_case(line) if "gates" in line else requeue_case(line)


def _attempts(case: AnyCase) -> int:
    if isinstance(case, CelCase):
        return 1
    if isinstance(case, AllocatorCase | PodGroupsCase):
        return len(case.expect)
    if isinstance(case, RequeueCase):
        return sum(len(step["attempts"]) for step in case.expect)
    return len(case.expect["results"])


def _check_decisions(case: Case) -> Iterator[Difference]:
    answers = replay(case)
    cold, warm = (
        list(_compare(case, got, name)) for got, name in zip(answers, (COLD, WARM), strict=True)
    )
    found = [
        replace(each, replay=BOTH) if replace(each, replay=WARM) in warm else each for each in cold
    ]
    found += [each for each in warm if replace(each, replay=COLD) not in cold]
    yield from sorted(found, key=lambda each: (each.position, each.replay))


def _compare(case: Case, got: dict[str, Any], name: str) -> Iterator[Difference]:
    pairs = zip(case.expect["results"], got["results"], strict=True)
    for position, (expected, answered) in enumerate(pairs):
        pod = expected["pod"]
        answer = f"attempt {position + 1}, pod {pod}"
        for where, wanted, had in _differences(expected, answered, ""):
            if where not in _NOT_COMPARED:
                yield Difference(case.name, answer, pod, position, where, wanted, had, name)
    position = len(case.expect["results"])
    for where, wanted, had in _differences(case.expect["final"], got["final"], "final"):
        yield Difference(case.name, "state at the end", "", position, where, wanted, had, name)


def _check_steps(case: RequeueCase) -> Iterator[Difference]:
    for position, (expected, seen) in enumerate(
        zip(case.expect, replay_requeue(case), strict=True)
    ):
        for where, wanted, had in _differences(expected, seen, ""):
            step = f"step {position + 1}"
            yield Difference(case.name, step, "", position, where, wanted, had, "")


def _check_nodes(case: AllocatorCase) -> Iterator[Difference]:
    got = replay_allocations(case)
    for position, name in enumerate(dict.fromkeys((*case.expect, *got))):
        for where, wanted, had in _differences(case.expect.get(name, {}), got.get(name, {}), ""):
            yield Difference(case.name, f"node {name}", "", position, where, wanted, had, "")


def _check_states(case: PodGroupsCase) -> Iterator[Difference]:
    for position, (expected, seen) in enumerate(
        zip(case.expect, replay_pod_groups(case), strict=True)
    ):
        for where, wanted, had in _differences(in_order(expected), as_told(expected, seen), ""):
            state = f"state {position + 1}"
            yield Difference(case.name, state, "", position, where, wanted, had, "")


def _differences(expected: Any, got: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    if expected == got:
        return
    if not (isinstance(expected, dict) and isinstance(got, dict)):
        yield where, expected, got
        return
    for key in dict.fromkeys((*expected, *got)):
        inner = f"{where}.{key}" if where else key
        yield from _differences(expected.get(key), got.get(key), inner)
