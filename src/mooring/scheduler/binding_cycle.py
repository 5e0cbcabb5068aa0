"""The binding cycle: what happens to a pod between the choice of its node and its binding.

    PreBindPreFlight → WaitOnPermit → PreBind → Bind → PostBind

It runs beside the scheduling cycles of other pods.
"""

from __future__ import annotations

import logging

from mooring.errors import ApiError, InvariantError
from mooring.framework.api import Event, PodStatusPatch
from mooring.framework.status import SKIP, SUCCESS, Code, Status, failure
from mooring.objects.pod import Pod
from mooring.scheduler.attempt import Attempt, Phase
from mooring.scheduler.diagnosis import node_refusal
from mooring.scheduler.failure import Failures
from mooring.scheduler.parts import Parts
from mooring.scheduler.writes import PodStatusWrite, Writes, write_status

_LOG = logging.getLogger("mooring.scheduler")


class BindingCycle:
    def __init__(self, parts: Parts, failures: Failures) -> None:
        self._parts = parts
        self._deps = parts.deps
        self._failures = failures

    async def run(self, attempt: Attempt) -> None:
        """Bind the pod, or fail."""
        try:
            status = await self._bind(attempt)
            if status.ok:
                await self._bound(attempt)
            else:
                self._failures.fail(attempt, status)
        except InvariantError:
            raise
        except Exception as error:
            self._failures.crash(attempt, error)

    async def _bind(self, attempt: Attempt) -> Status:
        framework, state, pod = attempt.framework, attempt.state, attempt.pod
        node_name = attempt.node_name
        pre_flight = framework.run_pre_bind_pre_flights(state, pod, node_name)
        if pre_flight is not SKIP and not pre_flight.ok:
            return pre_flight
        if pre_flight.ok or framework.waiting_pods.get(pod.uid) is not None:
            # What comes may take long: others, and a scheduler after this one, should know the plan.
            nomination = PodStatusWrite(pod, PodStatusPatch(nominated_node_name=node_name))
            await write_status(nomination, self._deps.writer)
        status = await framework.wait_on_permit(pod)
        if not status.ok:
            return node_refusal(status) if status.rejected else status
        # From here on a failure is not undone by any event: the pod is retried after a backoff.
        self._parts.queue.done(pod.uid)
        pre_bind = framework.run_pre_bind(state, pod, node_name)
        if pre_flight is not SKIP and pre_flight.ok:
            # There is something to wait for, so a more important pod may come along meanwhile.
            pre_bind = self._parts.pods_in_pre_bind.run(pod.uid, pre_bind)
        status = await pre_bind
        if status is not SUCCESS and not status.ok:
            return status
        if self._parts.extenders.any:
            by_extender = await self._bind_by_extender(pod, node_name)
            if by_extender is not None:
                return by_extender
        status = await framework.run_bind(state, pod, node_name)
        if status.code == Code.SKIP:
            _LOG.error("every Bind plugin skipped pod %s", pod.key)
        return status

    async def _bind_by_extender(self, pod: Pod, node_name: str) -> Status | None:
        """None if no extender does it."""
        if self._deps.before_bind_by_extender is not None:
            await self._deps.before_bind_by_extender(pod)
        status = await self._parts.extenders.bind(pod, node_name, self._deps.run_beside)
        if status is not None and status.ok and self._deps.on_bound_by_extender is not None:
            try:
                await self._deps.on_bound_by_extender(pod, node_name)
            except ApiError as error:
                return failure(error)
        return status

    async def _bound(self, attempt: Attempt) -> None:
        framework, state, pod = attempt.framework, attempt.state, attempt.pod
        metrics = self._deps.metrics
        attempt.phase = Phase.BOUND
        self._parts.binding.pop(pod.uid, None)
        metrics.attempt("scheduled", framework.profile_name, metrics.timer() - attempt.started)
        self._parts.carry_out(Writes((_scheduled(pod, framework.profile_name),), attempt))
        await framework.run_post_bind(state, pod, attempt.node_name)
        if state.pods_to_activate:
            self._parts.queue.activate(state.pods_to_activate)


def _scheduled(pod: Pod, profile: str) -> Event:
    return Event(
        regarding=pod,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {pod.key} to {pod.node_name}",
        reporting_controller=profile,
    )
