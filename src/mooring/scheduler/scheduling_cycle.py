"""The scheduling cycle: one pod, from the queue to its node.

    PreFilter → Filter → (PostFilter) → PreScore → Score → Normalize → pick → assume → Reserve → Permit

One pod goes through it at a time. What comes after is the binding cycle.
"""

from __future__ import annotations

import logging
import random

from mooring.cluster.cache import CacheError
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import ExtenderError, InvariantError
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import CLEAR_NOMINATION, NominatingInfo
from mooring.framework.status import Code, Status, failure
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import PluginFailure
from mooring.scheduler.attempt import Attempt, Phase
from mooring.scheduler.binding_cycle import BindingCycle
from mooring.scheduler.decision import Decision, NoNodesError
from mooring.scheduler.diagnosis import FitError, node_refusal
from mooring.scheduler.failure import Failures, failed_scheduling
from mooring.scheduler.parts import Parts

_LOG = logging.getLogger("mooring.scheduler")

#: One attempt in ten has its plugins timed one by one.
_SAMPLED_SHARE = 0.1


class SchedulingCycle:
    def __init__(self, parts: Parts, binding_cycle: BindingCycle, failures: Failures) -> None:
        self._parts = parts
        self._deps = parts.deps
        self._binding_cycle = binding_cycle
        self._failures = failures
        self._sampling = random.Random(parts.deps.seed)

    def run(self, queued: QueuedPodInfo) -> None:
        """Make an attempt at a pod that was popped."""
        pod = queued.pod
        framework = self._parts.frameworks.get(pod.scheduler_name)
        if framework is None:
            _LOG.error("no profile is called %s: pod %s", pod.scheduler_name, pod.key)
            self._parts.queue.done(pod.uid)
        elif self._to_be_skipped(framework, pod):
            self._parts.queue.done(pod.uid)
        else:
            state = CycleState(record_plugin_metrics=self._sampling.random() < _SAMPLED_SHARE)
            attempt = Attempt(framework, queued, pod, state, self._deps.metrics.timer())
            try:
                self._place(attempt)
            except InvariantError:
                raise
            except Exception as error:
                self._failures.crash(attempt, error)

    def _to_be_skipped(self, framework: Framework, pod: Pod) -> bool:
        if pod.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._deps.writer.record_event(failed_scheduling(pod, note, framework.profile_name))
            return True
        return self._parts.cluster.is_assumed(pod)

    def _place(self, attempt: Attempt) -> None:
        metrics, state = self._deps.metrics, attempt.state
        node_name = self._find_node(attempt)
        metrics.algorithm_duration(metrics.timer() - attempt.started)
        if node_name is None or not self._assume(attempt, node_name):
            return
        status = attempt.framework.run_reserve(state, attempt.pod, node_name)
        if status.ok:
            status = attempt.framework.run_permit(state, attempt.pod, node_name)
        if not status.ok and status.code != Code.WAIT:
            self._failures.fail(attempt, node_refusal(status) if status.rejected else status)
            return
        if state.pods_to_activate:
            self._parts.queue.activate(state.pods_to_activate)
            state.pods_to_activate.clear()
        attempt.phase = Phase.BINDING
        self._deps.spawn(self._binding_cycle.run(attempt))

    def _find_node(self, attempt: Attempt) -> str | None:
        """The chosen node; None if there is none, and the attempt has failed."""
        framework, pod = attempt.framework, attempt.pod
        search = self._parts.searches[framework.profile_name]
        try:
            snapshot = self._parts.cluster.snapshot()
            decision = search.schedule_pod(framework, attempt.state, pod, snapshot)
        except NoNodesError as error:
            self._failures.fail(attempt, Status(Code.UNRESOLVABLE, error=error))
            return None
        except PluginFailure as error:
            self._failures.fail(attempt, error.as_status())
            return None
        except (ExtenderError, InvariantError) as error:
            self._failures.fail(attempt, failure(error))
            return None
        if self._deps.on_decision is not None:
            self._deps.on_decision(attempt, decision)
        if decision.node_name is None:
            self._fits_nowhere(attempt, decision)
        return decision.node_name

    def _fits_nowhere(self, attempt: Attempt, decision: Decision) -> None:
        """Unschedulable, whatever PostFilter does: at best it makes room for a later attempt."""
        framework = attempt.framework
        if framework.points[Point.POST_FILTER]:
            self._deps.metrics.preemption_attempt()
        if decision.conclusion is not None:
            self._failures.fail(attempt, decision.conclusion)
            return
        nominating: NominatingInfo = CLEAR_NOMINATION
        if framework.points[Point.POST_FILTER]:
            result, said = framework.run_post_filters(
                attempt.state, decision.pod, decision.diagnosis
            )
            decision.post_filter = result
            decision.diagnosis.post_filter_message = said.message
            nominating = result.nomination if result is not None else None
        status = Status(Code.UNSCHEDULABLE, error=FitError(decision.diagnosis))
        refusals = self._parts.searches[framework.profile_name].refusals
        if refusals is not None and (nominating is None or not nominating.node_name):
            refusals.conclude(decision, status)
        self._failures.fail(attempt, status, nominating)

    def _assume(self, attempt: Attempt, node_name: str) -> bool:
        """Count the pod on its node; False if the attempt has failed."""
        assumed = attempt.pod.placed_on(node_name)
        try:
            self._parts.cluster.assume_pod(assumed)
        except CacheError as error:
            self._failures.fail(attempt, failure(error))
            return False
        attempt.pod, attempt.phase = assumed, Phase.ASSUMED
        self._parts.nominator.delete(assumed)
        self._parts.binding[assumed.uid] = attempt
        return True
