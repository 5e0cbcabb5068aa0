"""Refusals: what was found out about a pod that fits nowhere is kept for the pods of its class.

A backlog is mostly made of pods that are alike, and they are tried one after another in a cluster that
changes little. A refusal holds as long as nothing changes. Where every node was refused by plugins that look
at nothing but the node and its pods, it outlasts changes of other nodes: only the nodes that changed are
judged again, and only PostFilter is asked again. Anything else, and the pod is evaluated in full.

Plugins that do not say what they depend on may look at anything, a clock or a web service among it: in a
profile that has one at the points concerned, nothing is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mooring.cluster.cache import Cluster
from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends, PreFilterResult
from mooring.framework.status import Code, Status
from mooring.objects.pod import Pod
from mooring.objects.pod_class import PodClasses
from mooring.runtime import filtering
from mooring.runtime.filtering import NOT_ASKED, PASSED, FilterMatrix
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import Calls, PluginFailure
from mooring.scheduler.diagnosis import Diagnosis

if TYPE_CHECKING:
    from mooring.scheduler.scheduling_cycle import Decision

#: How many classes of pods are remembered; the one that was refused first is forgotten first.
MOST_REFUSALS = 1024

#: With more changed rows than this, evaluating all of them at once costs less.
_MOST_ROWS = 16
#: A matrix in which a larger share of the rows was judged again one by one is made again.
_LARGEST_SHARE = 0.25

_POINTS = (Point.PRE_FILTER, Point.FILTER, Point.POST_FILTER)

#: Positions in the logs of changes and the generation of the listed objects.
_Moment = tuple[int, int, int]


@dataclass(slots=True)
class _Refusal:
    decision: Decision
    #: What the PreFilter plugins left for the Filter plugins.
    state: CycleState
    moment: _Moment
    #: The Filter plugins that a changed node is to be judged by; None if all nodes are to be.
    row_filters: list[Calls] | None
    #: What the attempt came to once PostFilter had had its say; None as long as it has not.
    conclusion: Status | None = None
    #: Whether PostFilter said then that it would say the same again.
    repeats: bool = False


class Refusals:
    """Those of one profile."""

    def __init__(self, framework: Framework, cluster: Cluster, classes: PodClasses) -> None:
        self._framework = framework
        self._cluster = cluster
        self._classes = classes
        self._refusals: dict[int, _Refusal] = {}
        self.may_remember = all(
            call.depends_on is not None for point in _POINTS for call in framework.points[point]
        )

    def recall(
        self, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> tuple[Decision, Status | None] | None:
        """What holds of a pod of this class that fits nowhere, and what came of it if that is known."""
        if not self._refusals or self._framework.nominator.has_any:
            return None
        pod_class = self._classes.of(pod)
        known = self._refusals.get(pod_class) if pod_class is not None else None
        if known is None:
            return None
        if known.moment != self._moment() and not self._still_holds(known, pod, snapshot):
            del self._refusals[pod_class]  # type: ignore[arg-type]
            return None
        state.adopt(known.state)
        return known.decision, known.conclusion

    def keep(self, decision: Decision, state: CycleState) -> None:
        """A decision by which a pod fits nowhere."""
        pod_class = self._classes.of(decision.pod)
        if not self.may_remember or self._framework.nominator.has_any or pod_class is None:
            return
        self._refusals.pop(pod_class, None)
        if len(self._refusals) >= MOST_REFUSALS:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[pod_class] = _Refusal(
            decision, state, self._moment(), self._row_filters(decision)
        )

    def conclude(self, decision: Decision, conclusion: Status) -> None:
        """PostFilter did not help: what this pod is told is what the pods of its class are told."""
        pod_class = self._classes.of(decision.pod)
        known = self._refusals.get(pod_class) if pod_class is not None else None
        if known is not None and known.decision.diagnosis is decision.diagnosis:
            # It may be a copy, and knows what PostFilter has found out since.
            known.decision = decision
            known.conclusion = conclusion
            known.repeats = self._post_filters_repeat(decision.pod)

    def _moment(self) -> _Moment:
        cluster = self._cluster
        return (
            cluster.node_changes.position,
            cluster.usage_changes.position,
            cluster.listers.generation,
        )

    # Refusals by rows

    def _row_filters(self, decision: Decision) -> list[Calls] | None:
        """The plugins before the first one that looks beyond a node, if they refused every node."""
        matrix = decision.diagnosis.matrix
        if matrix is None or decision.pre_filter.node_names is not None:
            return None
        first: list[Calls] = []
        for call in self._framework.points[Point.FILTER]:
            assert call.depends_on is not None
            if call.depends_on(decision.pod) not in (Depends.NODE, Depends.USAGE):
                break
            first.append(call)
        names = {call.name for call in first}
        refusing = np.unique(matrix.refused_by[matrix.refused_by != NOT_ASKED]).tolist()
        by_rows = all(
            index != PASSED and index < len(matrix.plugins) and matrix.plugins[index] in names
            for index in refusing
        )
        return first if by_rows else None

    def _still_holds(self, known: _Refusal, pod: Pod, snapshot: Snapshot) -> bool:
        """Judge the nodes that changed; whether they still refuse the pod, as all others do."""
        matrix = known.decision.diagnosis.matrix
        if known.row_filters is None or matrix is None:
            return False
        rows = self._changed_rows(known, matrix, snapshot)
        if rows is None:
            return False
        try:
            if self._ends_in_pre_filter(known.state, pod, snapshot):
                return False
            statuses = {
                row: filtering.filter_node(
                    known.row_filters, known.state, pod, snapshot.at(row), snapshot
                )
                for row in rows
            }
        except PluginFailure:
            return False
        if any(status.ok for status in statuses.values()):
            return False
        changed = {row: s for row, s in statuses.items() if s != matrix.status(row)}
        if changed:
            known.decision = _with_refusals(known.decision, matrix, changed)
        moment = self._moment()
        # The listed objects, budgets for one, may matter to PostFilter.
        same_objects = moment[2] == known.moment[2]
        known.moment = moment
        if changed or not (known.repeats and same_objects and self._post_filters_repeat(pod)):
            known.conclusion = None
        return True

    def _post_filters_repeat(self, pod: Pod) -> bool:
        return all(
            call.post_filter_repeats is not None and call.post_filter_repeats(pod)
            for call in self._framework.points[Point.POST_FILTER]
        )

    def _changed_rows(
        self, known: _Refusal, matrix: FilterMatrix, snapshot: Snapshot
    ) -> list[int] | None:
        """None if too much has changed to tell."""
        node_position, usage_position, _ = known.moment
        nodes = self._cluster.node_changes.since(node_position)
        usage = self._cluster.usage_changes.since(usage_position)
        if nodes is None or usage is None:
            return None
        rows = list(dict.fromkeys((*nodes, *usage)))
        size = len(matrix.refused_by)
        judged = len(matrix.with_nominated) + len(rows)
        if len(rows) > _MOST_ROWS or judged > max(_MOST_ROWS, size * _LARGEST_SHARE):
            return None
        columns = snapshot.columns
        same = columns.size == size and all(
            columns.alive[row] and matrix.refused_by[row] != NOT_ASKED for row in rows
        )
        return rows if same else None

    def _ends_in_pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> bool:
        """Whether a PreFilter that looks beyond the nodes has something to say now."""
        tried = CycleState()
        tried.adopt(state)
        for call in self._framework.points[Point.PRE_FILTER]:
            assert call.depends_on is not None
            if call.depends_on(pod) in (Depends.NODE, Depends.USAGE):
                continue
            result = self._framework.pre_filter(call, tried, pod, snapshot)
            if isinstance(result, PreFilterResult) or result.code not in (Code.SUCCESS, Code.SKIP):
                return True
        return False


def _with_refusals(
    decision: Decision, matrix: FilterMatrix, statuses: dict[int, Status]
) -> Decision:
    """A copy in which some rows are refused for other reasons: who holds the decision keeps it."""
    changed = FilterMatrix(
        matrix.snapshot,
        matrix.plugins,
        matrix.verdicts,
        matrix.refused_by.copy(),
        dict(matrix.with_nominated),
    )
    for row, status in statuses.items():
        changed.refuse(row, status)
    diagnosis = Diagnosis(matrix.snapshot, changed, decision.diagnosis.absent)
    for status, _ in changed.refusals():
        diagnosis.blame(status)
    return replace(decision, diagnosis=diagnosis)
