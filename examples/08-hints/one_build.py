"""OneBuild: a node runs one build at a time.

A build that finds no node waits. It is tried again when a build leaves a node, when a node is added, or when
it is no build any more: nothing else can help, and the hints say so.
"""

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
    Handle,
    Hint,
    NodeInfo,
    PodsColumn,
    Rows,
    RowVerdicts,
    Status,
    by_mask,
    on_add_or_update,
    on_update_or_delete,
    unschedulable,
)

COLUMN = "builds"
BUSY = unschedulable("node(s) run another build")


def is_build(pod: Pod) -> bool:
    return pod.labels.get("kind") == "build"


class OneBuild:
    name = "OneBuild"
    own_columns = (PodsColumn(COLUMN, of=is_build),)

    def __init__(self, args: object, handle: Handle) -> None:
        self._builds = handle.column(COLUMN)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return BUSY if is_build(pod) and self._builds.at(node) else SUCCESS

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        free = columns.own(COLUMN)[rows] == 0
        return by_mask(free | (not is_build(pod)), BUSY)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"build": is_build(pod)}

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            on_update_or_delete(Pod, Action.DELETE | Action.UPDATE_POD_LABEL, _after_pod_change),
            on_add_or_update(Node, Action.ADD, _after_node_added),
        )


def _after_pod_change(pod: Pod, old: Pod, new: Pod | None) -> Hint:
    """A build has left its node, or is no build any more."""
    left = is_build(old) and (new is None or not is_build(new))
    return Hint.QUEUE if left else Hint.SKIP


def _after_node_added(pod: Pod, old: Node | None, new: Node) -> Hint:
    return Hint.QUEUE
