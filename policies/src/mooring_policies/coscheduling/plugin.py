"""The plugin: the order of groups in the queue, and when the pods of a group may go on."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.objects.pod import Pod
from mooring.objects.quantity import Quantity
from mooring.objects.requests import PODS
from mooring.plugin import (
    SUCCESS,
    Action,
    ClusterEvent,
    CycleState,
    EventResource,
    EventWithHint,
    Handle,
    NodeStatuses,
    PostFilterResult,
    QueuedPod,
    Snapshot,
    Status,
    unresolvable,
    unschedulable,
    wait,
)
from mooring_policies.arguments import PluginArgs, problem, read_args, refuse
from mooring_policies.coscheduling.expiring import ExpiringKeys
from mooring_policies.coscheduling.members import Members
from mooring_policies.coscheduling.objects import POD_GROUPS, PodGroup, group_key
from mooring_policies.coscheduling.resources import gap_text, missing_resources

#: Users read these texts in Events; they are upstream's, verbatim.
NO_GROUP = unschedulable("can not find pod group")
GROUP_NOT_FOUND = unschedulable("PodGroup not found")
REJECTED_OPTIMISTICALLY = "optimistic rejection in PostFilter"
REJECTED_WITH_SIBLING = "rejection in Unreserve"

_PERMITTED_S = 3.0
_BACKED_OFF_S = 10.0
_DEFAULT_WAIT_S = 60.0


class CoschedulingArgs(PluginArgs, frozen=True):
    #: For how long a pod waits for the others of its group, unless the group says it.
    permit_waiting_time_seconds: int = 60
    #: For how long a group that was rejected is not tried again.
    pod_group_backoff_seconds: int = 0
    #: The share of missing pods, in percent of minMember, up to which a failure does not reject the group.
    pod_group_reject_percentage: int = 10

    def __post_init__(self) -> None:
        problems = []
        if self.permit_waiting_time_seconds < 0:
            path, value = "permitWaitingTimeSeconds", self.permit_waiting_time_seconds
            problems.append(problem(path, value, "must be greater than 0"))
        if self.pod_group_backoff_seconds < 0:
            path, value = "podGroupBackoffSeconds", self.pod_group_backoff_seconds
            problems.append(problem(path, value, "must be greater than 0"))
        if not 0 <= self.pod_group_reject_percentage <= 100:
            path, value = "podGroupRejectPercentage", self.pod_group_reject_percentage
            problems.append(problem(path, value, "must be between 0 and 100"))
        refuse(problems)


class Coscheduling:
    name = "Coscheduling"
    kinds = (POD_GROUPS,)
    Args = CoschedulingArgs

    def __init__(self, args: object, handle: Handle) -> None:
        self._args = read_args(args, CoschedulingArgs)
        self._handle = handle
        self._members = Members(handle.observed_pods)
        #: The groups that the cluster has enough resources for, as far as is known.
        self._permitted = ExpiringKeys(handle.clock, _PERMITTED_S)
        #: The groups that are not tried for a while.
        self._backed_off = ExpiringKeys(handle.clock, _BACKED_OFF_S)
        #: Group → when it last failed: it then queues behind the groups that have come since.
        self._failed_at: dict[str, float] = {}

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            EventWithHint(ClusterEvent(EventResource.POD, Action.ADD)),
            EventWithHint(ClusterEvent(POD_GROUPS.event_resource, Action.ADD | Action.UPDATE)),
        )

    # The queue

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        """By priority, then by the age of the group or pod, then by name."""
        if a.pod.priority != b.pod.priority:
            return a.pod.priority > b.pod.priority
        first, second = self._queued_at(a), self._queued_at(b)
        return a.pod.key < b.pod.key if first == second else first < second

    def _queued_at(self, queued: QueuedPod) -> float:
        attempted = queued.initial_attempt_timestamp
        own = queued.timestamp if attempted is None else attempted
        key = group_key(queued.pod)
        if not key:
            return own
        if key in self._failed_at:
            return self._failed_at[key]
        group = self._group(key)
        if group is None:
            return own
        created = group.metadata.creation_timestamp
        return float("-inf") if created is None else created.timestamp()

    # The scheduling cycle

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        refusal = self._refusal(pod, snapshot)
        # Preemption cannot help a group that is not complete.
        return unresolvable(refusal) if refusal else SUCCESS

    def _refusal(self, pod: Pod, snapshot: Snapshot) -> str:
        """Why the pod's group cannot be scheduled; "" if it may be."""
        key = group_key(pod)
        group = self._group(key)
        if group is None:
            return ""
        if key in self._backed_off:
            return f"podGroup {key} failed recently"
        pods, least = self._members.of(key), group.spec.min_member
        if len(pods) < least:
            return (
                f"pre-filter pod {pod.name} cannot find enough sibling pods, "
                f"current pods number: {len(pods)}, minMember of group: {least}"
            )
        gated = sum(1 for each in pods if each.spec.scheduling_gates)
        if least - len(pods) + gated > 0:
            return (
                f"pre-filter pod {pod.name} cannot proceed due to gated pods in the same PodGroup"
            )
        if group.spec.min_resources is None or key in self._permitted:
            return ""
        wanted = {**group.spec.min_resources, PODS: Quantity(least)}
        missing = missing_resources(snapshot, wanted, key)
        if missing:
            return f"resource gap: {gap_text(missing)}"
        self._permitted.add(key, self._args.permit_waiting_time_seconds)
        return ""

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeStatuses
    ) -> tuple[PostFilterResult, Status]:
        """If a pod fits nowhere, reject its whole group, unless only few pods are missing."""
        key = group_key(pod)
        group = self._group(key)
        if group is None:
            return PostFilterResult(), NO_GROUP
        least, assigned = group.spec.min_member, self._members.assigned(key)
        if assigned >= least:
            return PostFilterResult(), unschedulable()
        if (least - assigned) / least <= self._args.pod_group_reject_percentage / 100.0:
            return PostFilterResult(), unschedulable()
        self._reject_waiting(key, REJECTED_OPTIMISTICALLY)
        backoff_s = self._args.pod_group_backoff_seconds
        if backoff_s and len(self._members.of(key)) >= least:
            self._backed_off.add(key, backoff_s)
        self._note_failure(key)
        return PostFilterResult(), unschedulable(
            f"PodGroup {key} gets rejected due to Pod {pod.name} is unschedulable even after PostFilter"
        )

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        pass

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        """Wait until minMember pods of the group have a node."""
        key = group_key(pod)
        if not key:
            return SUCCESS, 0.0
        group = self._group(key)
        if group is None:
            return GROUP_NOT_FOUND, 0.0
        self._members.assign(pod)
        assigned = self._members.assigned(key)
        if assigned < group.spec.min_member:
            # The first pod of the group calls the others; each of them doing so would be wasted work.
            # At the moment of a failure it does not: in virtual time, attempts take none, and a group
            # that does not fit would be tried for ever.
            if assigned == 1 and self._failed_at.get(key) != self._handle.clock.now():
                self._activate_siblings(state, pod)
            return wait(), self._wait_s(group)
        self._failed_at.pop(key, None)
        for waiting in self._handle.waiting_pods():
            if group_key(waiting.pod) == key:
                waiting.allow(self.name)
        return SUCCESS, 0.0

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """If one pod of a group times out or fails, the others go back as well."""
        key = group_key(pod)
        if self._group(key) is None:
            return
        self._members.release(pod)
        self._reject_waiting(key, REJECTED_WITH_SIBLING)
        self._note_failure(key)

    # Steps

    def _group(self, key: str) -> PodGroup | None:
        return self._handle.cluster.listers.get(PodGroup, key) if key else None

    def _activate_siblings(self, state: CycleState, pod: Pod) -> None:
        siblings = (each for each in self._members.of(group_key(pod)) if each.uid != pod.uid)
        state.pods_to_activate.update((each.key, each) for each in siblings)

    def _wait_s(self, group: PodGroup) -> float:
        if group.spec.schedule_timeout_seconds:
            return float(group.spec.schedule_timeout_seconds)
        if group.spec.schedule_timeout_seconds == 0:
            return float(self._args.permit_waiting_time_seconds)
        return self._args.permit_waiting_time_seconds or _DEFAULT_WAIT_S

    def _reject_waiting(self, key: str, message: str) -> None:
        for waiting in self._handle.waiting_pods():
            if group_key(waiting.pod) == key:
                waiting.reject(self.name, message)

    def _note_failure(self, key: str) -> None:
        self._permitted.discard(key)
        self._failed_at[key] = self._handle.clock.now()
