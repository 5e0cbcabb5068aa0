"""Where every pod is at every moment of a run, as a list of changes that a browser can apply and undo.

A pod's *place* is the index of its node, `WAITING` while it has no node, or `ABSENT` before it arrives and
after it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from mooring.objects.pod import Pod
from mooring.scheduler.journal import TIMELINE, Fact, FactKind
from mooring.web.run_spec import RunSpec

WAITING, ABSENT = -1, -2


@dataclass(slots=True)
class Places:
    """The places of pods over a run, from its journal."""

    node_index: dict[str, int]
    #: Pod key → pod index, for every pod of the run.
    pod_index: dict[str, int]
    #: Pod index → place: before the first change, and at the end.
    start: list[int]
    places: list[int]
    #: The changes in order: the time, the pod, its new place.
    at_s: list[float] = field(default_factory=list)
    pods: list[int] = field(default_factory=list)
    moved_to: list[int] = field(default_factory=list)
    #: The timeline that users see, and the number of changes before each fact.
    timeline: list[Fact] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    #: Pod index → finished or deleted, for pods that ended.
    ended: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, facts: Iterable[Fact], run_spec: RunSpec) -> Places:
        nodes = {node.name: i for i, node in enumerate(run_spec.nodes)}
        pods = run_spec.pods
        if run_spec.times is not None:
            start = [ABSENT] * len(pods)
        else:
            start = [_place(pod, nodes) for pod in pods]
        places = cls(nodes, {pod.key: i for i, pod in enumerate(pods)}, start, list(start))
        places.follow(facts)
        return places

    def follow(self, facts: Iterable[Fact]) -> None:
        """What happened next."""
        for fact in facts:
            self._add(fact)

    def _add(self, fact: Fact) -> None:
        if fact.what in TIMELINE:
            self.timeline.append(fact)
            self.steps.append(len(self.at_s))
        match fact.what:
            case FactKind.QUEUED | FactKind.GATED | FactKind.IGNORED:
                self._move(fact, WAITING)
            case FactKind.PLACED:
                self._move(fact, self.node_index.get(fact.node, ABSENT))
            case FactKind.FINISHED | FactKind.DELETED:
                self._move(fact, ABSENT)
                self.ended.setdefault(self.pod_index[fact.pod], fact.what.value)

    def _move(self, fact: Fact, place: int) -> None:
        pod = self.pod_index[fact.pod]
        if self.places[pod] != place:
            self.places[pod] = place
            self.at_s.append(fact.at_s)
            self.pods.append(pod)
            self.moved_to.append(place)


def _place(pod: Pod, nodes: dict[str, int]) -> int:
    if pod.finished:
        return ABSENT
    return nodes.get(pod.node_name, ABSENT) if pod.node_name else WAITING
