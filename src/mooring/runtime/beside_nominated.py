"""Which rows refuse a kind of pods beside the pods nominated to them, kept until something changes there.

While preemption makes room for many pods, many nodes are held. Between two attempts, few of them change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.cluster.cache import Cluster
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.runtime.framework import Framework
from mooring.runtime.question import Question


class BesideNominated:
    """For pods with one signature, and filters that see nothing but the row."""

    def __init__(self, framework: Framework, cluster: Cluster) -> None:
        self._framework = framework
        self._changes = cluster.changes.pods
        self._position = self._changes.position
        #: The filters that PreFilter skipped when this was found out.
        self._skipped: frozenset[str] = frozenset()
        #: Row → the nominated pods that counted, and why the row is refused; None if it is not.
        self._known: dict[int, tuple[Sequence[Pod], Status | None]] = {}
        #: Equal statuses are one object: they are counted by identity.
        self._statuses: dict[Status | None, Status | None] = {}

    def refused_rows(
        self, question: Question, nominated: Mapping[int, Sequence[Pod]]
    ) -> dict[int, Status]:
        """Row → why it is refused beside these pods. Raises PluginFailure."""
        self._catch_up(question)
        known, nothing = self._known, ((), None)
        unknown = {
            row: pods
            for row, pods in nominated.items()
            if (before := known.get(row, nothing)[0]) is not pods and not same_pods(before, pods)
        }
        if unknown:
            refused = self._framework.rows_refused_for_nominated(question, unknown)
            for row, pods in unknown.items():
                status = refused.get(row)
                known[row] = pods, self._statuses.setdefault(status, status)
        if len(known) > 2 * len(nominated):
            self._known = known = {row: known[row] for row in nominated}
        return {row: status for row in nominated if (status := known[row][1]) is not None}

    def _catch_up(self, question: Question) -> None:
        rows = self._changes.since(self._position)
        self._position = self._changes.position
        skipped = question.state.skip_filter
        if rows is None or skipped != self._skipped:
            self._known.clear()
            self._statuses.clear()
            self._skipped = skipped
        else:
            for row in rows:
                self._known.pop(row, None)


def same_pods(some: Sequence[Pod], others: Sequence[Pod]) -> bool:
    """Whether these are the same objects, in the same order."""
    return some is others or (
        len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
    )
