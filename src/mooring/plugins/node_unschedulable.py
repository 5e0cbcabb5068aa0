"""NodeUnschedulable: a cordoned node takes only pods that tolerate the taint for cordoned nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.taints import tolerated
from mooring.objects.well_known import UNSCHEDULABLE_TAINT
from mooring.plugin import (
    SUCCESS,
    Action,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Hint,
    NodeInfo,
    Refusals,
    Rows,
    RowVerdicts,
    Status,
    Suggestion,
    by_mask,
    on_add_or_update,
    unresolvable,
)
from mooring.plugin.changes import Uncordon

CORDONED = unresolvable("node(s) were unschedulable")

#: The taint that `spec.unschedulable` stands for, even if the node does not have it.

_NODE_CHANGED = Action.ADD | Action.UPDATE_NODE_TAINT
_TOLERATIONS_CHANGED = Action.UPDATE_POD_TOLERATION


class NodeUnschedulable:
    name = "NodeUnschedulable"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("spec.tolerations",)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        assert node.node is not None
        if node.node.spec.unschedulable and not _tolerates_cordon(pod):
            return CORDONED
        return SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        if _tolerates_cordon(pod):
            return by_mask(columns.alive[rows], CORDONED)
        return by_mask(~columns.unschedulable[rows], CORDONED)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            on_add_or_update(Node, _NODE_CHANGED, _after_node_change),
            on_add_or_update(Pod, _TOLERATIONS_CHANGED, _after_toleration_change),
        )

    def suggest(self, pod: Pod, refusals: Refusals) -> Iterator[Suggestion]:
        nodes = (info.node for info in refusals.snapshot if info.node is not None)
        for name in sorted(node.name for node in nodes if node.spec.unschedulable):
            yield Suggestion.fixed(Uncordon(name))

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"v1.Pod.Spec.Tolerations": frozenset(pod.spec.tolerations)}


def _tolerates_cordon(pod: Pod) -> bool:
    return tolerated(UNSCHEDULABLE_TAINT, pod.spec.tolerations)


def _after_node_change(pod: Pod, old: Node | None, new: Node) -> Hint:
    """Queue the pod if a node without a cordon is added, or a node is uncordoned."""
    was_cordoned = old is None or old.spec.unschedulable
    return Hint.QUEUE if was_cordoned and not new.spec.unschedulable else Hint.SKIP


def _after_toleration_change(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    return Hint.QUEUE if new.uid == pod.uid and _tolerates_cordon(new) else Hint.SKIP
