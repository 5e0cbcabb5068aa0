"""MakeRoom: a pod that fits nowhere may take the place of one scratch pod, whatever their priorities.

PostFilter is called when no node fits. A dry run asks all filters about a copy of a node without the scratch
pod; nothing changes before one of them says yes.
"""

from __future__ import annotations

from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Code,
    CycleState,
    Handle,
    NodeInfo,
    NodeStatuses,
    Nomination,
    PostFilterResult,
    Status,
    unschedulable,
)

NO_ROOM = unschedulable("no scratch pod is in the way")


def is_scratch(pod: Pod) -> bool:
    return pod.labels.get("kind") == "scratch"


class MakeRoom:
    name = "MakeRoom"

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult | None, Status]:
        if is_scratch(pod):
            return None, NO_ROOM
        # Where evicting a pod may help at all.
        for node in statuses.nodes_with(Code.UNSCHEDULABLE):
            victim = self._victim(state, pod, node)
            if victim is not None:
                self._handle.spawn(self._handle.writer.delete_pod(victim))
                return PostFilterResult(Nomination(node.name)), SUCCESS
        return None, NO_ROOM

    def _victim(self, state: CycleState, pod: Pod, node: NodeInfo) -> Pod | None:
        """The first scratch pod without which the pod fits on the node."""
        for candidate in filter(is_scratch, node.pods.values()):
            trial = self._handle.dry_run(state, pod).on_node(node)
            trial.remove(candidate)
            if trial.filter().ok:
                return candidate
        return None
