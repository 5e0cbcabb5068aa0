"""What becomes of a pod whose attempt failed: back to which queue, told what, marked how.

FitError with plugins            → unschedulable, until an event they registered for
  … and something helpful happened meanwhile → backoff (or active, if a pending plugin says so)
Error, or nobody to blame        → error backoff
gone, bound, or another pod now  → nowhere
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mooring.framework.api import Event, PodStatusPatch
from mooring.framework.interface import CLEAR_NOMINATION, NominatingInfo
from mooring.framework.status import Code, Status
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.well_known import POD_SCHEDULED
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.runtime.framework import Framework
from mooring.scheduler.diagnosis import FitError, NodeRefusal

if TYPE_CHECKING:
    from mooring.scheduler.scheduler import Scheduler

#: The longest note of an Event, in bytes.
_LONGEST_NOTE = 1024
_CUT = " ..."


def handle_failure(
    scheduler: Scheduler,
    framework: Framework,
    queued: QueuedPodInfo,
    status: Status,
    started: float,
    nominating: NominatingInfo = CLEAR_NOMINATION,
) -> None:
    reason = "Unschedulable" if status.rejected else "SchedulerError"
    result = "unschedulable" if status.rejected else "error"
    scheduler.metrics.attempt(result, framework.profile_name, scheduler.metrics.timer() - started)
    _remember_plugins(queued, status)
    pod = queued.pod
    known = scheduler.observed_pods.get(pod.key)
    if known is not None and not known.node_name:
        if known.uid != pod.uid:
            scheduler.queue.done(pod.uid)
            return
        queued.pod = pod = known
        fits_nowhere = isinstance(status.error, FitError)
        nominated = nominating is None or bool(nominating.node_name)
        if nominated:
            # What it waits for is its own affair.
            queued.pod_class = None
        scheduler.queue.add_unschedulable_if_not_present(queued, for_class=fits_nowhere)
    else:
        scheduler.queue.done(pod.uid)
    scheduler.nominator.add(pod, nominating)
    if not (status.rejected or status.code == Code.ERROR):
        # Every Bind plugin skipped the pod: there is nothing that it could be told.
        return
    message = status.message
    if status is not queued.reported_status or not scheduler.around.repeat_conditions_after_s:
        # A refusal that still holds is told again only where that costs nothing, as in a simulation.
        queued.reported_status = status
        scheduler.writer.record_event(
            Event(
                regarding=pod,
                type="Warning",
                reason="FailedScheduling",
                action="Scheduling",
                note=cut_note(message),
                reporting_controller=framework.profile_name,
            )
        )
    condition = PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason,
        message=message,
        observed_generation=pod.metadata.generation,
    )
    if known is not None:
        # A pod that is gone has no status to write to.
        scheduler.tell_condition(pod, condition, nominating)
        scheduler.shared_conditions.rejected(queued, condition)


def status_patch(
    pod: Pod, condition: PodCondition, nominating: NominatingInfo
) -> PodStatusPatch | None:
    """None if the pod already says all this."""
    known = pod.condition(condition.type)
    same = known is not None and (known.status, known.reason, known.message) == (
        condition.status,
        condition.reason,
        condition.message,
    )
    nominated = None
    if nominating is not None and nominating.node_name != pod.nominated_node_name:
        nominated = nominating.node_name
    if same and nominated is None:
        return None
    return PodStatusPatch(None if same else condition, nominated)


def cut_note(message: str) -> str:
    encoded = message.encode()
    if len(encoded) <= _LONGEST_NOTE:
        return message
    return encoded[: _LONGEST_NOTE - len(_CUT)].decode(errors="ignore") + _CUT


def _remember_plugins(queued: QueuedPodInfo, status: Status) -> None:
    queued.unschedulable_plugins = set()
    queued.pending_plugins = set()
    error = status.error
    if isinstance(error, FitError):
        queued.unschedulable_plugins = set(error.diagnosis.unschedulable_plugins)
        queued.pending_plugins = set(error.diagnosis.pending_plugins)
    elif isinstance(error, NodeRefusal):
        # A pod whose wait was ended from outside is blamed on a plugin without a name: no hint
        # matches it, only events that concern every pod.
        queued.unschedulable_plugins = {status.plugin}
        if status.code == Code.PENDING:
            queued.pending_plugins = {status.plugin}
