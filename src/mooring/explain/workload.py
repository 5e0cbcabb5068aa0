"""Why the pods of a workload are where they are: how many share each fate, and the story of one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mooring.explain.explanation import Explainer, Explanation, pod_of
from mooring.explain.targets import Target
from mooring.sim.build_report import build_report


@dataclass(frozen=True, slots=True)
class PodState:
    """Where one pod is."""

    pod: str
    #: placed, or the state of a pending pod: unschedulable, gated, ignored …
    state: str
    node: str = ""
    #: Why it has no node.
    message: str = ""


@dataclass(frozen=True, slots=True)
class Fate:
    """Pods of the workload that fare alike: placed, or pending for the same reason."""

    state: str
    message: str
    pods: tuple[str, ...]
    #: Node → how many of the pods are there.
    nodes: dict[str, int]


@dataclass(frozen=True, slots=True)
class WorkloadExplanation:
    """The pods of a workload, and the explanation of one that stands for most of them."""

    workload: str
    pods: tuple[PodState, ...]
    example: Explanation

    @property
    def fits(self) -> bool:
        return all(each.state == "placed" for each in self.pods)

    @property
    def fates(self) -> list[Fate]:
        """The largest group first, but pods that are not placed before those that are."""
        groups: dict[tuple[str, str], list[PodState]] = {}
        for each in self.pods:
            groups.setdefault((each.state, each.message), []).append(each)
        fates = [
            Fate(
                state,
                message,
                tuple(each.pod for each in pods),
                dict(Counter(each.node for each in pods if each.node).most_common()),
            )
            for (state, message), pods in groups.items()
        ]
        return sorted(fates, key=lambda fate: (fate.state == "placed", -len(fate.pods)))

    def to_data(self) -> dict[str, Any]:
        return {
            "workload": self.workload,
            "fits": self.fits,
            "pods": [
                {
                    "pod": each.pod,
                    "state": each.state,
                    "node": each.node or None,
                    "message": each.message,
                }
                for each in self.pods
            ],
            "fates": [
                {
                    "state": fate.state,
                    "count": len(fate.pods),
                    "message": fate.message,
                    "nodes": fate.nodes,
                }
                for fate in self.fates
            ],
            "example": self.example.to_data(),
        }


def explain_workload(explainer: Explainer, target: Target) -> WorkloadExplanation:
    """Raises CannotAnswer, PluginFailure and ExtenderError."""
    states = tuple(_states(explainer, target.pods))
    return WorkloadExplanation(target.workload, states, explainer.explain(_example(states)))


def _states(explainer: Explainer, pods: Iterable[str]) -> Iterable[PodState]:
    if explainer.as_read:
        for key in pods:
            said = explainer.explain(key)
            state = "placed" if said.fits and said.state != "schedulable" else said.state
            yield PodState(key, state, said.node, said.message)
        return
    report = build_report(explainer.what_if.simulation)
    unplaced = {each.pod: each for each in report.unplaced}
    placed = {each.pod: each for each in report.placements}
    for key in pods:
        if key in unplaced:
            yield PodState(key, unplaced[key].state, "", unplaced[key].message)
        elif key in placed:
            ended = placed[key].state in ("preempted", "deleted")
            yield PodState(key, placed[key].state if ended else "placed", placed[key].node)
        else:
            yield PodState(key, "placed", pod_of(explainer.what_if, key).node_name)


def _example(states: Sequence[PodState]) -> str:
    """A pod with the most common reason to be pending; if all are placed, the first one."""
    reasons = Counter((each.state, each.message) for each in states if each.state != "placed")
    if not reasons:
        return states[0].pod
    ((wanted, _),) = reasons.most_common(1)
    return next(each.pod for each in states if (each.state, each.message) == wanted)
