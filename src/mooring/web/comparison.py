"""Compare two runs that have ended, without running anything again: the numbers of `mooring compare`.

Each run's worker gives what came of its run (`Outcome`). The first decisions that differ are made again only
if somebody asks why.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mooring.explain.compare import (
    ABSENT,
    OTHER,
    PENDING,
    Divergence,
    Side,
    divergence_data,
    side_of,
    values_of_report,
    where_pods_are,
)
from mooring.explain.past_decision import PastDecision, decide_again, past_decision, run_again
from mooring.explain.what_if import DecisionView
from mooring.scheduler.journal import Decided
from mooring.web.run import Run
from mooring.web.run_spec import RunSpec
from mooring.web.what_if import config_text
from mooring.web.workloads import folded_name, workload_name

#: The number of differing decisions to explain.
_EXPLAINED = 5
_MOST_WORKLOADS = 200


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run, as far as comparisons need it."""

    #: A key, words for it, the value.
    values: list[tuple[str, str, float | None]]
    #: Pod → the node where it is or ended, `pending`, or how it went.
    where: dict[str, str]
    #: Pod → its workload; "" for none.
    workloads: dict[str, str]
    #: Pending pod → state and message.
    pending: dict[str, tuple[str, str]]
    #: Pod → the node of its first decision, in the order of decisions; "" for none.
    choices: dict[str, str]
    config: str

    @classmethod
    def of(cls, run: Run) -> Outcome:
        decisions = run.simulation.journal.decisions
        choices: dict[str, str] = {}
        for decided in decisions:
            choices.setdefault(decided.pod, decided.node)
        return cls(
            values=values_of_report(run.report, run.measures, len(decisions)),
            where=where_pods_are(run.run_spec.objects, run.report),
            workloads={pod.key: workload_name(pod) for pod in run.pods},
            pending={each.pod: (each.state, each.message) for each in run.report.pending},
            choices=choices,
            config=config_text(run.run_spec),
        )


def comparison_data(names: tuple[str, str], outcomes: tuple[Outcome, Outcome]) -> dict[str, Any]:
    """The baseline first."""
    before, after = outcomes
    first, second = _distinct(names)
    moved = list(_moved(before, after))
    return {
        "baseline": first,
        "variants": [
            {
                "name": name,
                "values": {key: value for key, _, value in outcome.values},
                "pending": [
                    {"pod": pod, "state": state, "message": message}
                    for pod, (state, message) in outcome.pending.items()
                ],
            }
            for name, outcome in ((first, before), (second, after))
        ],
        "labels": {key: words for outcome in outcomes for key, words, _ in outcome.values},
        "differences": [
            {
                "variant": second,
                "moved": [
                    {"pod": pod, "baseline": old, "variant": new, "change": _change(old, new)}
                    for pod, old, new in moved
                ],
                "onlyPendingInBaseline": [
                    pod for pod in before.pending if pod not in after.pending
                ],
                "onlyPendingInVariant": [pod for pod in after.pending if pod not in before.pending],
            }
        ],
        "workloads": _by_workload(moved, before, after),
        "config": _config_difference(before.config, after.config, first, second),
        "firstDifference": next(iter(differing_pods(before, after)), None),
    }


def _distinct(names: tuple[str, str]) -> tuple[str, str]:
    first, second = names
    return (first, second) if first != second else (first, f"{second} (2)")


def _moved(before: Outcome, after: Outcome) -> Iterator[tuple[str, str, str]]:
    for pod in dict.fromkeys((*before.where, *after.where)):
        old, new = before.where.get(pod, ABSENT), after.where.get(pod, ABSENT)
        if old != new:
            yield pod, old, new


#: Of where a pod is: words that are no node.
_NO_NODE = frozenset((ABSENT, PENDING, OTHER, "preempted", "deleted"))


def _change(old: str, new: str) -> str:
    """better: it gets a node; worse: it loses one; moved: another node; other: it came or went."""
    if ABSENT in (old, new):
        return "other"
    if old in _NO_NODE and new in _NO_NODE:
        return "other"
    if old in _NO_NODE:
        return "better"
    return "worse" if new in _NO_NODE else "moved"


def _by_workload(
    moved: Iterable[tuple[str, str, str]], before: Outcome, after: Outcome
) -> list[dict[str, Any]]:
    """Workloads with pods that changed, the worst first."""
    rows: dict[str, dict[str, Any]] = {}
    for pod, old, new in moved:
        workload = folded_name(pod, after.workloads.get(pod) or before.workloads.get(pod) or "")
        row = rows.setdefault(
            workload, {"workload": workload, "better": 0, "worse": 0, "moved": 0, "other": 0}
        )
        row[_change(old, new)] += 1
    ordered = sorted(rows.values(), key=lambda row: (-row["worse"], -row["better"], -row["moved"]))
    return ordered[:_MOST_WORKLOADS]


def _config_difference(old: str, new: str, first: str, second: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), first, second, lineterm="", n=2
    )
    return "\n".join(lines)


# Why


def differing_pods(before: Outcome, after: Outcome) -> list[str]:
    """The pods whose first decision differs, in the order of the baseline."""
    both = (pod for pod in before.choices if pod in after.choices)
    return [pod for pod in both if before.choices[pod] != after.choices[pod]][:_EXPLAINED]


def first_choices(run: Run, pods: Iterable[str]) -> list[PastDecision]:
    """The first decision of each pod."""
    wanted = set(pods)
    found: dict[str, Decided] = {}
    for decided in run.simulation.journal.decisions:
        if decided.pod in wanted:
            found.setdefault(decided.pod, decided)
    return [past_decision(run.simulation, found[pod]) for pod in pods if pod in found]


def seen_choices(run_spec: RunSpec, pasts: list[PastDecision]) -> dict[str, DecisionView]:
    """Each decision in full, on the cluster of its moment. Raises DecidedOtherwise."""
    if all(past.before is not None for past in pasts):
        return {past.decided.pod: decide_again(run_spec, past) for past in pasts}
    seen = run_again(run_spec, [past.decided for past in pasts])
    return {decided.pod: view for decided, view in seen.items()}


def why_data(
    names: tuple[str, str], views: tuple[dict[str, DecisionView], dict[str, DecisionView]]
) -> list[dict[str, Any]]:
    """For each pod, how either side came to its choice."""
    before, after = views
    first, second = _distinct(names)
    data = []
    for place, (pod, view) in enumerate(before.items()):
        other = after.get(pod)
        if other is None:
            continue
        taken = {view.chosen or "", other.chosen or ""}
        sides: tuple[Side, Side] = side_of(first, view, taken), side_of(second, other, taken)
        data.append(divergence_data(Divergence(pod, place == 0, sides)))
    return data
