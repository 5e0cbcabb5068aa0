"""NodeName: a pod that names its node runs there and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Action,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    NodeInfo,
    Rows,
    RowVerdicts,
    Status,
    by_mask,
    on_change,
    unresolvable,
)
from mooring.plugin.nodes import rows_named

ANOTHER_NODE = unresolvable("node(s) didn't match the requested node name")


class NodeName:
    name = "NodeName"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("node_name",)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS if pod.node_name in ("", node.name) else ANOTHER_NODE

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        if not pod.node_name:
            return by_mask(columns.alive[rows], ANOTHER_NODE)
        return by_mask(rows_named(pod.node_name, columns, rows), ANOTHER_NODE)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (on_change(Node, Action.ADD),)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"v1.Pod.Spec.NodeName": pod.node_name}
