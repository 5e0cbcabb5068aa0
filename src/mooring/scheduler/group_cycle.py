"""The cycle of a pod group: all its members that wait, from the queue to their nodes.

    pop a member → take the others from the queue → find nodes for all (`group_algorithm`)
        │ fits             → assume, Reserve, Permit and bind each member that has a node
        │ does not fit     → preemption for the whole group → all members back to the queue
        └ then             → the group's condition

It stands beside the cycle of a single pod (`scheduling_cycle`) and takes the same steps. It runs only if the
gate GenericWorkload is on.
"""

from __future__ import annotations

from dataclasses import replace

from mooring.cluster.pod_groups import NoGroupError, PodGroupStates
from mooring.errors import InvariantError, MooringError
from mooring.framework.interface import CLEAR_NOMINATION, GroupPreemptionPlugin, Nomination
from mooring.framework.status import Code, Status, failure, unschedulable
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.failure import Failures
from mooring.scheduler.group_algorithm import GroupAlgorithm
from mooring.scheduler.group_conditions import GroupConditions
from mooring.scheduler.group_questions import PREEMPTION
from mooring.scheduler.parts import Parts
from mooring.scheduler.pod_group import (
    UNSCHEDULABLE,
    GroupResult,
    MemberResult,
    QueuedGroup,
)
from mooring.scheduler.scheduling_cycle import SchedulingCycle
from mooring.scheduler.writes import Writes

#: The reference's texts.
_TWO_PROFILES = (
    "all pods in a single pod group should have the same .spec.schedulerName set,"
    ' got: "{}" and "{}"'
)
_NO_PREEMPTION = unschedulable(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
_CONSTRAINED = unschedulable(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


class GroupCycle:
    def __init__(self, parts: Parts, scheduling_cycle: SchedulingCycle, failures: Failures) -> None:
        assert parts.cluster.pod_groups is not None, "the gate GenericWorkload is off"
        self._parts = parts
        self._groups: PodGroupStates = parts.cluster.pod_groups
        self._cycle = scheduling_cycle
        self._failures = failures
        self._algorithm = GroupAlgorithm(parts, scheduling_cycle)
        self._conditions = GroupConditions(parts)
        self._preempts = parts.gates.enabled("WorkloadAwarePreemption")

    def run(self, popped: QueuedPodInfo) -> None:
        """Make an attempt at the group of a pod that was popped."""
        try:
            members = self._take_members(popped)
        except NoGroupError as error:
            text = f"error while retrieving pod group state: {error}"
            self._fail_alone(popped, failure(MooringError(text)), nominating=None)
            return
        problem = _different_profiles(members)
        if problem is not None:
            for queued in members:
                self._fail_alone(queued, problem)
            return
        framework = self._parts.frameworks[popped.pod.scheduler_name]
        left = []
        for queued in members:
            if self._cycle.to_be_skipped(framework, queued.pod):
                self._parts.queue.done(queued.uid)
            else:
                left.append(queued)
        if left:
            search = self._parts.searches[framework.profile_name].without_refusals()
            self._run(QueuedGroup(framework, search, left))

    def _take_members(self, popped: QueuedPodInfo) -> list[QueuedPodInfo]:
        """All members that wait: by priority, then by the time of the first attempt.

        Gated members stay in the queue. Raises NoGroupError.
        """
        members = [popped]
        for pod in list(self._groups.get(popped.pod.group_key).waiting.values()):
            if pod.key != popped.key:
                queued = self._parts.queue.pop_specific(pod)
                if queued is not None:
                    members.append(queued)
        return sorted(members, key=QueuedGroup.order)

    def _run(self, group: QueuedGroup) -> None:
        metrics = self._parts.deps.metrics
        started = metrics.timer()
        self._groups.begin(group.pods)
        try:
            result = self._algorithm.run(group)
            metrics.group_algorithm_duration(metrics.timer() - started)
            if self._preempts and result.status.code == Code.UNSCHEDULABLE:
                self._preempt(group, result)
        except (InvariantError, KeyboardInterrupt):
            raise
        except BaseException as error:
            for queued in group.members:
                self._groups.end(queued.pod)
                self._failures.crash(self._cycle.attempt(group.framework, queued), error)
            return
        tried = len(result.members)
        for index, queued in enumerate(group.members):
            if index < tried:
                member = result.members[index]
            else:
                attempt = self._cycle.attempt(group.framework, queued)
                member = MemberResult(attempt, result.status, nominating=None)
            self._act(result, member)
            self._groups.end(queued.pod)
        profile = group.framework.profile_name
        metrics.group_attempt(_outcome(result), profile, metrics.timer() - started)
        self._parts.carry_out(Writes(tuple(self._conditions.tell(group.info.key, result.status))))

    def _preempt(self, group: QueuedGroup, result: GroupResult) -> None:
        """Make room for the whole group, if evictions help; the result says so."""
        status = self._preemption_status(group)
        if status.ok:
            result.waiting_on_preemption = True
        elif status.code == Code.ERROR:
            result.status = status
        else:
            reasons = (*result.status.reasons, status.message)
            result.status = replace(result.status, reasons=reasons)

    def _preemption_status(self, group: QueuedGroup) -> Status:
        call = group.framework.plugins.get(PREEMPTION)
        if call is None or not isinstance(call.plugin, GroupPreemptionPlugin):
            return _NO_PREEMPTION
        info = group.info
        known = self._parts.cluster.listers.get(PodGroup, info.key)
        if known is None:
            text = f'podgroup.scheduling.k8s.io "{info.name}" not found'
            return failure(MooringError(f"failed to get pod group object: {text}"))
        if known.topology_key is not None:
            return _CONSTRAINED
        return call.plugin.preempt_for_group(
            known, group.pods, lambda: self._algorithm.run(group, post_filters=False).status
        )

    # What becomes of each member

    def _act(self, result: GroupResult, member: MemberResult) -> None:
        """Bind the member, or put it back into the queue."""
        try:
            if member.status.ok and result.status.ok:
                self._cycle.bind_to(member.attempt, member.node_name)
            else:
                status, nominating = _failure_of(result, member)
                if nominating is None and self._is_held_in_vain(result, member.attempt.queued.pod):
                    nominating = CLEAR_NOMINATION
                self._failures.fail(member.attempt, status, nominating)
        except InvariantError:
            raise
        except Exception as error:
            self._failures.crash(member.attempt, error)

    def _is_held_in_vain(self, result: GroupResult, pod: Pod) -> bool:
        """Whether a refused member has a node held for it on which no room is being made.

        A scheduler that died between two binds leaves such nominations. The reference lets them stand as
        long as the gang is refused, and keeps other pods from the place.
        """
        info = self._parts.cluster.infos.get(pod.nominated_node_name)
        return (
            info is not None
            and not result.waiting_on_preemption
            and not any(other.terminating for other in info.pods.values())
        )

    def _fail_alone(
        self,
        queued: QueuedPodInfo,
        status: Status,
        nominating: Nomination | None = CLEAR_NOMINATION,
    ) -> None:
        framework = self._parts.frameworks[queued.pod.scheduler_name]
        self._failures.fail(self._cycle.attempt(framework, queued), status, nominating)


def _outcome(result: GroupResult) -> str:
    """What metrics call it."""
    if result.status.ok:
        return "scheduled"
    if not result.status.rejected:
        return "error"
    return "waiting_on_preemption" if result.waiting_on_preemption else "unschedulable"


def _failure_of(result: GroupResult, member: MemberResult) -> tuple[Status, Nomination | None]:
    """Why a member has to wait, and the node that is held for it meanwhile."""
    if result.status.code == Code.ERROR:
        own = member.status if member.status.code == Code.ERROR else result.status
        return own, CLEAR_NOMINATION
    if member.status.ok and result.waiting_on_preemption:
        return result.status, Nomination(member.node_name)
    if member.status.ok or (member.needs_preemption and not result.waiting_on_preemption):
        assert member.permit is not None
        return replace(UNSCHEDULABLE, reasons=(member.permit.message,)), CLEAR_NOMINATION
    return member.status, member.nominating


def _different_profiles(members: list[QueuedPodInfo]) -> Status | None:
    first = members[0].pod.scheduler_name
    for queued in members:
        if queued.pod.scheduler_name != first:
            text = _TWO_PROFILES.format(queued.pod.scheduler_name, first)
            return failure(MooringError(text))
    return None
