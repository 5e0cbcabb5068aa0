"""What happens to pods, as facts in their order. Reports, timelines and pages are read from this one record.

A simulation writes every fact here (`sim.recorder`) and keeps the kinds that somebody asks for later. A live
scheduler runs for months, so it keeps only the latest facts.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.objects.storage import PersistentVolumeClaim
from mooring.scheduler.decision import Decision


class FactKind(StrEnum):
    """What happened. Users read these words in timelines."""

    QUEUED = "queued"
    GATED = "gated"
    IGNORED = "ignored"
    FAILED = "failed"
    NOMINATED = "nominated"
    WAITING = "waiting"
    BOUND = "bound"
    PREEMPTED = "preempted"
    TERMINATING = "terminating"
    FINISHED = "finished"
    DELETED = "deleted"
    CLAIM_BOUND = "claim-bound"
    #: Anything else that a plugin tells users by an Event.
    EVENT = "event"
    #: A node was looked for.
    DECIDED = "decided"
    #: The API shows the pod on a node, whether or not the scheduler bound it.
    PLACED = "placed"


NOTHING: AbstractSet[FactKind] = frozenset()
EVERYTHING: AbstractSet[FactKind] = frozenset(FactKind)
DECISIONS: AbstractSet[FactKind] = frozenset((FactKind.DECIDED,))
#: What users see of a run.
TIMELINE = EVERYTHING - {FactKind.DECIDED, FactKind.PLACED}


class Fact(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened to a pod.

    A struct: it is made eight times as fast as a frozen dataclass. Nothing that it holds leads back to it.
    """

    #: Seconds: since the simulation began, or since 1970 if the scheduler is a live one.
    at_s: float
    what: FactKind
    #: `namespace/name` of the pod; of the claim, if a claim was bound.
    pod: str
    uid: str
    #: "" if there is none.
    node: str = ""
    message: str = ""

    def to_data(self) -> dict[str, Any]:
        return {
            "atSeconds": self.at_s,
            "what": self.what.value,
            "pod": self.pod,
            "node": self.node,
            "message": self.message,
        }


class Decided(Fact, frozen=True, gc=False, kw_only=True):
    """An attempt that found its node, or found that no node fits."""

    #: The attempts at this pod so far, this one included.
    number: int
    #: How many nodes fit.
    feasible: int


class Bound(Fact, frozen=True, gc=False, kw_only=True):
    assumed: Pod


class Preempted(Fact, frozen=True, gc=False, kw_only=True):
    """A pod was evicted for a more important one."""

    victim: Pod
    #: None if the plugin did not say.
    preemptor: Pod | PodGroup | None
    #: Why on that node and no other; "" if the plugin did not say.
    why: str


class ClaimBound(Fact, frozen=True, gc=False, kw_only=True):
    claim: PersistentVolumeClaim


def decided(at_s: float, decision: Decision, number: int) -> Decided:
    """Call this inside `on_decision`: a decision is valid only there."""
    pod, node, fit = decision.pod, decision.node_name or "", decision.feasible_count
    return Decided(at_s, FactKind.DECIDED, pod.key, pod.uid, node, number=number, feasible=fit)


@dataclass(slots=True)
class Journal:
    """All facts of the kinds that it keeps."""

    keeps: AbstractSet[FactKind] = EVERYTHING
    facts: list[Fact] = field(default_factory=list)

    def add(self, fact: Fact) -> None:
        if fact.what in self.keeps:
            self.facts.append(fact)

    @property
    def timeline(self) -> tuple[Fact, ...] | None:
        """What users see; None if it was not kept."""
        if not self.keeps >= TIMELINE:
            return None
        return tuple(fact for fact in self.facts if fact.what in TIMELINE)

    @property
    def decisions(self) -> list[Decided]:
        return [fact for fact in self.facts if isinstance(fact, Decided)]


#: How much a live scheduler keeps: facts in all, and of each of the pods that something happened to last.
_MOST_FACTS, _MOST_PODS, _MOST_OF_A_POD = 10_000, 10_000, 10


@dataclass(slots=True)
class RecentFacts:
    """The latest facts. Each pod keeps some of its own, however much happens to others meanwhile."""

    facts: deque[Fact] = field(default_factory=lambda: deque(maxlen=_MOST_FACTS))
    #: By key of the pod; the pod of the latest fact is last.
    _of_pod: OrderedDict[str, list[Fact]] = field(default_factory=OrderedDict)

    def add(self, fact: Fact) -> None:
        self.facts.append(fact)
        of_pod = self._of_pod.setdefault(fact.pod, [])
        of_pod.append(fact)
        del of_pod[:-_MOST_OF_A_POD]
        self._of_pod.move_to_end(fact.pod)
        if len(self._of_pod) > _MOST_PODS:
            self._of_pod.popitem(last=False)

    def story(self, pod: str) -> list[Fact]:
        """What happened to a pod lately, the first first; the pod is named by its `namespace/name`."""
        return list(self._of_pod.get(pod, ()))
