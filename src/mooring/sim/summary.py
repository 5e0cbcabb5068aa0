"""Totals over the facts of a run, for each pod. They do not depend on what the journal keeps."""

from __future__ import annotations

from dataclasses import dataclass, field

from mooring.scheduler.journal import Bound, ClaimBound, Decided, Fact, FactKind, Preempted

_PLACED = FactKind.PLACED
_ARRIVALS = frozenset((FactKind.QUEUED, FactKind.GATED, FactKind.IGNORED))
_ENDS = frozenset((FactKind.FINISHED, FactKind.PREEMPTED, FactKind.DELETED))
_NO_PROGRESS = frozenset((FactKind.FAILED, FactKind.NOMINATED, FactKind.WAITING, FactKind.EVENT))
#: Facts that change the cluster in another way than by placing a pod.
_MORE_THAN_PLACING = _ENDS | {FactKind.NOMINATED, FactKind.WAITING, FactKind.CLAIM_BOUND}


@dataclass(slots=True)
class PlacedPod:
    """A pod's time on the node that the scheduler bound it to."""

    bound: Bound
    #: finished, preempted or deleted; None while the pod is on its node.
    ended: FactKind | None = None
    ended_s: float | None = None


@dataclass(slots=True)
class PodRecord:
    """The attempts of a pod."""

    #: When it arrived without a node; 0.0 if it had a node from the start.
    arrived_s: float = 0.0
    #: The number of scheduling attempts.
    attempts: int = 0
    #: The message of the last failed attempt; None if none failed.
    last_failure: str | None = None


@dataclass(slots=True)
class RunSummary:
    """Totals over all facts so far."""

    #: By UID.
    records: dict[str, PodRecord] = field(default_factory=dict)
    #: By UID, in the order of binding; a pod is bound once.
    placements: dict[str, PlacedPod] = field(default_factory=dict)
    finished: list[Fact] = field(default_factory=list)
    preempted: list[Preempted] = field(default_factory=list)
    bound_claims: list[ClaimBound] = field(default_factory=list)
    #: The number of pods that had a node from the start.
    already_placed: int = 0
    decisions: int = 0
    last_decision: Decided | None = None
    #: Whether the run has only placed pods, and every placed pod is still on its node.
    only_placing: bool = True
    #: The time of the last fact, and of the last fact that is more than a failed attempt.
    last_s: float = 0.0
    last_progress_s: float = 0.0
    #: The number of decisions since then.
    decisions_in_vain: int = 0

    def of(self, uid: str) -> PodRecord:
        """The record of the pod; an empty one if it has none."""
        return self.records.get(uid) or PodRecord()

    def add(self, fact: Fact) -> None:
        """The most frequent kinds come first: this runs several times for each pod."""
        if isinstance(fact, Decided):
            self._record(fact).attempts = fact.number
            self.decisions += 1
            self.decisions_in_vain += 1
            self.last_decision = fact
            return
        what = fact.what
        if what is _PLACED:
            self.already_placed += fact.uid not in self.placements
            return
        self.last_s = fact.at_s
        if what not in _NO_PROGRESS:
            self.last_progress_s = fact.at_s
            self.decisions_in_vain = 0
        if isinstance(fact, Bound):
            self.placements[fact.uid] = PlacedPod(fact)
        elif what in _ARRIVALS:
            self._record(fact).arrived_s = fact.at_s
        elif what is FactKind.FAILED:
            self._record(fact).last_failure = fact.message
        elif what in _MORE_THAN_PLACING:
            self.only_placing = False
            self._changed(fact)

    def _record(self, fact: Fact) -> PodRecord:
        return self.records.get(fact.uid) or self.records.setdefault(fact.uid, PodRecord())

    def _changed(self, fact: Fact) -> None:
        if isinstance(fact, Preempted):
            self.preempted.append(fact)
        elif isinstance(fact, ClaimBound):
            self.bound_claims.append(fact)
        elif fact.what is FactKind.FINISHED:
            self.finished.append(fact)
        placed = self.placements.get(fact.uid)
        if placed is not None and placed.ended is None and fact.what in _ENDS:
            placed.ended, placed.ended_s = fact.what, fact.at_s
