"""TaintToleration: a pod stays off the nodes whose taints it does not tolerate.

Filter handles taints that refuse pods (`NoSchedule`, `NoExecute`). Score handles those that only
discourage (`PreferNoSchedule`): each untolerated taint lowers the score of the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.taints import Taint, Toleration, tolerated, untolerated
from mooring.plugin import (
    SUCCESS,
    Action,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Hint,
    Ints,
    NodeInfo,
    PluginError,
    Refusals,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    Suggestion,
    by_mask,
    on_add_or_update,
    unresolvable,
)
from mooring.plugin.changes import Tolerate, taint_text
from mooring.plugins.normalize import normalize_reversed

#: Users read this text in Events and in `kubectl describe`. It is the reference's, verbatim.
UNTOLERATED = unresolvable("node(s) had untolerated taint(s)")

_DISCOURAGES = "PreferNoSchedule"
_PRE_SCORE = "PreScoreTaintToleration"

_NODE_CHANGED = Action.ADD | Action.UPDATE_NODE_TAINT
_TOLERATIONS_CHANGED = Action.UPDATE_POD_TOLERATION


class TaintToleration:
    name = "TaintToleration"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("spec.tolerations",)
    normalizes_by_extremes = True

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """The rule for one node: the form to read."""
        return SUCCESS if _tolerates_all(pod, node.taints) else UNTOLERATED

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        """The same rule for many rows: judge each distinct set of taints once, then look it up."""
        passes = columns.taint_sets.judge(lambda taints: _tolerates_all(pod, taints), rows)
        return by_mask(passes, UNTOLERATED)

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Status:
        state.write(
            _PRE_SCORE, tuple(t for t in pod.spec.tolerations if t.effect in ("", _DISCOURAGES))
        )
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The number of untolerated PreferNoSchedule taints: fewer is better."""
        return _discouraging(node.taints, _kept_tolerations(state))

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        """The same for many rows: count each distinct set of taints once, then look it up."""
        tolerations = _kept_tolerations(state)
        taint_sets = columns.taint_sets
        counts = (_discouraging(taints, tolerations) for taints in taint_sets.values)
        return np.fromiter(counts, np.int64, len(taint_sets.values))[taint_sets.codes[rows]]

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> Status:
        normalize_reversed(scores)
        return SUCCESS

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            on_add_or_update(Node, _NODE_CHANGED, _after_node_change),
            on_add_or_update(Pod, _TOLERATIONS_CHANGED, _after_toleration_change),
        )

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        """The sets of taints that the pod does not tolerate, the most frequent first."""
        sets: Counter[tuple[str, ...]] = Counter()
        for node in refusals.snapshot:
            refusing = [
                taint
                for taint in node.taints
                if taint.refuses and not tolerated(taint, pod.spec.tolerations)
            ]
            if refusing:
                sets[tuple(sorted(taint_text(taint) for taint in refusing))] += 1
        for taints, _ in sets.most_common():
            yield Suggestion.fixed(Tolerate(taints))

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"v1.Pod.Spec.Tolerations": frozenset(pod.spec.tolerations)}


def _tolerates_all(pod: Pod, taints: Iterable[Taint]) -> bool:
    return untolerated(taints, pod.spec.tolerations) is None


def _kept_tolerations(state: CycleState) -> tuple[Toleration, ...]:
    kept = state.read(_PRE_SCORE, tuple)
    if kept is None:
        raise PluginError(f'failed to read "{_PRE_SCORE}" from cycleState: not found')
    return kept


def _discouraging(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    return sum(
        taint.effect == _DISCOURAGES and not tolerated(taint, tolerations) for taint in taints
    )


def _after_node_change(pod: Pod, old: Node | None, new: Node) -> Hint:
    """Queue the pod if it tolerates the node, and the node is new or had other taints."""
    was_intolerable = old is None or not _tolerates_all(pod, old.taints)
    return Hint.QUEUE if was_intolerable and _tolerates_all(pod, new.taints) else Hint.SKIP


def _after_toleration_change(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP
