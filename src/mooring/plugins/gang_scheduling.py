"""GangScheduling: pods of a gang are tried when enough of them exist, and bound when enough have a node."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.plugin import (
    SUCCESS,
    Action,
    CycleState,
    EventWithHint,
    Handle,
    Hint,
    MooringError,
    Status,
    failure,
    on_add_or_update,
    unresolvable,
    wait,
)
from mooring.plugin.groups import NoGroupError, PodGroupStates

#: How long a pod that has a node waits for the rest of its gang.
LONGEST_WAIT_S = 5 * 60.0

#: Users read these texts. They are the reference's, verbatim.
NO_GROUP = 'waiting for pods\'s pod group "{}" to appear in scheduling queue'
TOO_FEW_PODS = unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
TOO_FEW_SCHEDULED = wait("waiting for minCount pods from a gang to be scheduled")


class GangScheduling:
    name = "GangScheduling"

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        self._listers = handle.cluster.listers
        # Without the gate GenericWorkload no group has a pod.
        self._states = handle.cluster.pod_groups or PodGroupStates()

    def pre_enqueue(self, pod: Pod) -> Status:
        group_ref = pod.spec.scheduling_group
        if group_ref is None:
            return SUCCESS
        group = self._group(pod)
        if group is None:
            return unresolvable(NO_GROUP.format(group_ref.pod_group_name))
        try:
            return SUCCESS if self._states.has_minimum(group) else TOO_FEW_PODS
        except NoGroupError as error:
            return failure(error)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status | tuple[Status, float]:
        """Wait until minCount pods have a node, then let all of them go.

        Within the group's cycle the nodes are proposals; the cycle asks again before it binds.
        """
        group_ref = pod.spec.scheduling_group
        if group_ref is None:
            return SUCCESS
        group = self._group(pod)
        if group is None:
            name = group_ref.pod_group_name
            raise MooringError(
                f"failed to get podGroup {pod.group_key}:"
                f' podgroup.scheduling.k8s.io "{name}" not found'
            )
        if group.min_count is None:
            return SUCCESS
        gang = self._states.get(group.key)
        if gang.scheduled_count < group.min_count:
            if gang.waiting:
                # Members in the cycle are left out: a member that fails backs off in any case.
                self._handle.activate({other.key: other for other in gang.waiting.values()})
            return TOO_FEW_SCHEDULED, LONGEST_WAIT_S
        for waiting in self._handle.waiting_pods():
            if waiting.pod.uid in gang.assumed:
                waiting.allow(self.name)
        return SUCCESS

    def events_to_register(self) -> Sequence[EventWithHint]:
        """A pod's group never changes, so neither pods nor groups matter when they are updated."""
        return (
            on_add_or_update(Pod, Action.ADD, _after_pod_added),
            on_add_or_update(PodGroup, Action.ADD, _after_group_added),
        )

    def _group(self, pod: Pod) -> PodGroup | None:
        return self._listers.get(PodGroup, pod.group_key)


def _after_pod_added(pod: Pod, old: Pod | None, new: Pod) -> Hint:
    same = new.group_key and new.group_key == pod.group_key
    return Hint.QUEUE if same else Hint.SKIP


def _after_group_added(pod: Pod, old: PodGroup | None, new: PodGroup) -> Hint:
    return Hint.QUEUE if new.key == pod.group_key else Hint.SKIP
