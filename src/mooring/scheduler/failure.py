"""What becomes of a pod whose attempt failed: what is undone, back to which queue, told what, marked how.

Whatever phase the attempt is in, and whether a rule, an error or a crash ended it, `Failures.fail` does this:

    Unreserve in reverse order → forget the pod → wake the pods that the place may help → requeue → tell

FitError with plugins            → unschedulable, until an event they registered for
  … and something helpful happened meanwhile → backoff (or active, if a pending plugin says so)
Error, or no plugin refused it   → error backoff
gone, bound, or another pod now  → nowhere
"""

from __future__ import annotations

import logging
import weakref

from mooring.cluster.cache import CacheError
from mooring.errors import InvariantError
from mooring.framework.api import Event
from mooring.framework.events import ASSIGNED_POD_DELETE
from mooring.framework.interface import CLEAR_NOMINATION, NominatingInfo
from mooring.framework.status import Code, Status, failure
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.well_known import POD_SCHEDULED
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.attempt import Attempt, Phase
from mooring.scheduler.diagnosis import FitError, NodeRefusal
from mooring.scheduler.parts import Parts
from mooring.scheduler.pod_conditions import PodConditions
from mooring.scheduler.writes import Write, Writes

_LOG = logging.getLogger("mooring.scheduler")

#: The longest note of an Event, in bytes.
_LONGEST_NOTE = 1024
_CUT = " ..."


class Failures:
    """Ends the attempts that fail."""

    def __init__(self, parts: Parts, conditions: PodConditions) -> None:
        self._parts = parts
        self._deps = parts.deps
        self._conditions = conditions

    def fail(
        self, attempt: Attempt, status: Status, nominating: NominatingInfo = CLEAR_NOMINATION
    ) -> None:
        """Undo what the attempt has done, put its pod back, and tell why."""
        queue, pod = self._parts.queue, attempt.pod
        place_is_free = self._undo(attempt)
        if place_is_free and not status.rejected:
            # An internal error: every pod may try for the place, this one included.
            queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        writes = self._requeue(attempt, status, nominating)
        self._parts.carry_out(Writes(tuple(writes), attempt, status))
        if place_is_free and status.rejected:
            # The pod itself would only be rejected again.
            queue.move_all(
                ASSIGNED_POD_DELETE, pod, None, pre_check=lambda other: other.uid != pod.uid
            )
        if place_is_free and self._parts.hand_over is not None:
            self._parts.hand_over(pod)

    def crash(self, attempt: Attempt, error: BaseException) -> None:
        """An unexpected exception ended an attempt: its pod is tried again.

        Raises InvariantError if that fails, too.
        """
        key = attempt.queued.key
        _LOG.error("scheduling %s ended unexpectedly", key, exc_info=error)
        if self._deps.on_crash is not None:
            self._deps.on_crash(f"scheduling {key} ended unexpectedly: {error!r}")
        try:
            self.fail(attempt, failure(error))
        except Exception as again:
            _LOG.exception("pod %s could not be put back", key)
            raise InvariantError(f"pod {key} is lost to the queue: {again!r}") from again

    def _undo(self, attempt: Attempt) -> bool:
        """Give back what the attempt took; whether other pods may have been refused because of it."""
        phase = attempt.phase
        if phase in (Phase.ASSUMED, Phase.BINDING):
            attempt.framework.run_unreserve(attempt.state, attempt.pod, attempt.node_name)
            try:
                self._parts.cluster.forget_pod(attempt.pod)
            except CacheError as error:
                _LOG.error("%s", error)
                phase = Phase.FAILED
        attempt.phase = Phase.FAILED
        self._parts.binding.pop(attempt.pod.uid, None)
        # Until the binding cycle begins, no other pod is tried.
        return phase is Phase.BINDING

    def _requeue(self, attempt: Attempt, status: Status, nominating: NominatingInfo) -> list[Write]:
        """Put the pod back; what has to be written about it."""
        parts, metrics, queued = self._parts, self._deps.metrics, attempt.queued
        profile = attempt.framework.profile_name
        result = "unschedulable" if status.rejected else "error"
        metrics.attempt(result, profile, metrics.timer() - attempt.started)
        _remember_plugins(queued, status)
        queued.given_up = attempt.node_name
        pod = queued.pod
        known = parts.observed_pods.get(pod.key)
        if known is not None and not known.node_name:
            if known.uid != pod.uid:
                parts.queue.done(pod.uid)
                return []
            pod = known
            parts.queue.follow(queued, pod)
            if nominating is None or nominating.node_name:
                # It waits for its own node: it is not tried for other pods.
                queued.pod_class = None
            if parts.schedules_groups:
                queued.waits_out = status.rejected and pod.spec.scheduling_group is not None
            fits_nowhere = isinstance(status.error, FitError)
            parts.queue.add_unschedulable_if_not_present(queued, for_class=fits_nowhere)
        else:
            parts.queue.done(pod.uid)
        parts.nominator.add(pod, nominating)
        if not (status.rejected or status.code == Code.ERROR):
            # Every Bind plugin skipped the pod: there is nothing that it could be told.
            return []
        writes = self._event(attempt, pod, status)
        if known is not None:
            # A pod that is gone has no status to write to.
            condition = _condition(pod, status)
            writes += self._conditions.tell(pod, condition, nominating)
            writes += self._conditions.rejected(queued, condition)
        return writes

    def _event(self, attempt: Attempt, pod: Pod, status: Status) -> list[Write]:
        queued, refusal = attempt.queued, status.error
        if isinstance(refusal, FitError):
            known = queued.reported is not None and queued.reported() is refusal
            if known and self._deps.repeat_conditions_after_s:
                # A refusal that still holds is told again only where that costs nothing, as in a simulation.
                return []
            queued.reported = weakref.ref(refusal)
        else:
            queued.reported = None
        return [failed_scheduling(pod, status.message, attempt.framework.profile_name)]


def failed_scheduling(pod: Pod, message: str, profile: str) -> Event:
    return Event(
        regarding=pod,
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=cut_note(message),
        reporting_controller=profile,
    )


def cut_note(message: str) -> str:
    encoded = message.encode()
    if len(encoded) <= _LONGEST_NOTE:
        return message
    return encoded[: _LONGEST_NOTE - len(_CUT)].decode(errors="ignore") + _CUT


def _condition(pod: Pod, status: Status) -> PodCondition:
    return PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason="Unschedulable" if status.rejected else "SchedulerError",
        message=status.message,
        observed_generation=pod.metadata.generation,
    )


def _remember_plugins(queued: QueuedPodInfo, status: Status) -> None:
    queued.clear_rejectors()
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
