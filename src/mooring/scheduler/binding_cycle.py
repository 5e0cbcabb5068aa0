"""The binding cycle: what happens to a pod between the choice of its node and its binding.

    PreBindPreFlight → WaitOnPermit → PreBind → Bind → PostBind

It runs beside the scheduling cycles of other pods. Whatever fails, everything that was assumed for the pod
is undone, in one place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mooring.cluster.cache import CacheError
from mooring.errors import ApiError, InvariantError
from mooring.framework.api import Event, PodStatusPatch
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource
from mooring.framework.status import Code, Status, failure
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.runtime.framework import Framework
from mooring.scheduler.diagnosis import NodeRefusal

if TYPE_CHECKING:
    from mooring.scheduler.scheduler import Scheduler

ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE)


@dataclass(slots=True)
class Attempt:
    """One attempt to place one pod, from the queue to its end."""

    framework: Framework
    state: CycleState
    queued: QueuedPodInfo
    #: The pod as it was assumed: with its node.
    assumed: Pod
    started: float

    @property
    def node_name(self) -> str:
        return self.assumed.node_name


async def binding_cycle(scheduler: Scheduler, attempt: Attempt) -> None:
    """Bind the pod, or undo everything and hand it to the failure handler."""
    try:
        await _bind_or_undo(scheduler, attempt)
    except InvariantError:
        raise
    except Exception as error:
        scheduler.recover(attempt.framework, attempt.queued, error)


async def _bind_or_undo(scheduler: Scheduler, attempt: Attempt) -> None:
    status = await _bind(scheduler, attempt)
    if not status.ok:
        fail_binding(scheduler, attempt, status)
    scheduler.binding.pop(attempt.assumed.uid, None)
    if not status.ok:
        return
    framework, pod, node_name = attempt.framework, attempt.assumed, attempt.node_name
    scheduler.record_scheduled(attempt)
    await framework.run_post_bind(attempt.state, pod, node_name)
    if attempt.state.pods_to_activate:
        scheduler.queue.activate(attempt.state.pods_to_activate)


async def _bind(scheduler: Scheduler, attempt: Attempt) -> Status:
    framework, state, pod = attempt.framework, attempt.state, attempt.assumed
    node_name = attempt.node_name
    pre_flight = framework.run_pre_bind_pre_flights(state, pod, node_name)
    if pre_flight.code not in (Code.SUCCESS, Code.SKIP):
        return pre_flight
    if pre_flight.ok or framework.waiting_pods.get(pod.uid) is not None:
        # What comes may take long: others, and a scheduler after this one, should know the plan.
        await scheduler.patch_status(pod, PodStatusPatch(nominated_node_name=node_name))
    status = await framework.wait_on_permit(pod)
    if not status.ok:
        return refusal(status) if status.rejected else status
    # From here on a failure is not undone by any event: the pod is retried after a backoff.
    scheduler.queue.done(pod.uid)
    pre_bind = framework.run_pre_bind(state, pod, node_name)
    if pre_flight.ok:
        # There is something to wait for, so somebody more important may come along meanwhile.
        pre_bind = scheduler.pods_in_pre_bind.run(pod.uid, pre_bind)
    status = await pre_bind
    if not status.ok:
        return status
    by_extender = await _bind_by_extender(scheduler, pod, node_name)
    if by_extender is not None:
        return by_extender
    status = await framework.run_bind(state, pod, node_name)
    if status.code == Code.SKIP:
        scheduler.log.error("every Bind plugin skipped pod %s", pod.key)
    return status


async def _bind_by_extender(scheduler: Scheduler, pod: Pod, node_name: str) -> Status | None:
    """None if no extender does it."""
    around = scheduler.around
    status = await scheduler.extenders.bind(pod, node_name, around.aside)
    if status is not None and status.ok and around.on_bound_by_extender is not None:
        try:
            await around.on_bound_by_extender(pod, node_name)
        except ApiError as error:
            return failure(error)
    return status


def refusal(status: Status) -> Status:
    """A rejection by Reserve or Permit, said as one of the only node that was left."""
    return Status(status.code, (), status.plugin, NodeRefusal(status))


def fail_binding(scheduler: Scheduler, attempt: Attempt, status: Status) -> None:
    """Undo the reservation and the assumption, wake who may profit, and requeue the pod."""
    framework, pod = attempt.framework, attempt.assumed
    framework.run_unreserve(attempt.state, pod, attempt.node_name)
    try:
        scheduler.cluster.forget_pod(pod)
        forgotten = True
    except CacheError as error:
        scheduler.log.error("%s", error)
        forgotten = False
    if forgotten and not status.rejected:
        # An internal error: everyone may try for the place, this pod included.
        scheduler.queue.move_all(ASSIGNED_POD_DELETE, pod, None)
    scheduler.handle_failure(attempt.framework, attempt.queued, status, attempt.started)
    if forgotten and status.rejected:
        # The pod itself would only be rejected again.
        scheduler.queue.move_all(
            ASSIGNED_POD_DELETE, pod, None, pre_check=lambda other: other.uid != pod.uid
        )


def scheduled_event(profile_name: str, pod: Pod) -> Event:
    return Event(
        regarding=pod,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {pod.key} to {pod.node_name}",
        reporting_controller=profile_name,
    )
