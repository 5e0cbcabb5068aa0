"""The scheduling cycle: one pod, from the queue to its node.

    PreFilter → Filter → (PostFilter) → PreScore → Score → Normalize → pick → assume → Reserve → Permit

One pod goes through it at a time. What comes after is the binding cycle.
"""

from __future__ import annotations

import logging
import random

import msgspec

from mooring.cluster.cache import CacheError
from mooring.cluster.columns import Mask
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import ExtenderError, InvariantError
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import CLEAR_NOMINATION, NominatingInfo
from mooring.framework.status import SUCCESS, Code, Status, failure
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import PluginFailure
from mooring.scheduler.attempt import Attempt, Phase
from mooring.scheduler.binding_cycle import BindingCycle
from mooring.scheduler.decision import Decision, NoNodesError
from mooring.scheduler.dependencies import OnDecision
from mooring.scheduler.diagnosis import FitError, node_refusal
from mooring.scheduler.failure import Failures, failed_scheduling
from mooring.scheduler.node_search import NodeSearch
from mooring.scheduler.parts import Parts
from mooring.scheduler.writes import Writes

_LOG = logging.getLogger("mooring.scheduler")

#: One attempt in ten has its plugins timed one by one.
_SAMPLED_SHARE = 0.1


class Found(msgspec.Struct, frozen=True):
    """What the search for a node came to."""

    #: None if no node takes the pod; `status` says why.
    node_name: str | None = None
    status: Status = SUCCESS
    #: If there is no node: the nomination of the pod after this attempt.
    nominating: NominatingInfo = CLEAR_NOMINATION
    #: None if the search failed.
    decision: Decision | None = None


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
        elif self.to_be_skipped(framework, pod):
            self._parts.queue.done(pod.uid)
        else:
            attempt = self.attempt(framework, queued)
            try:
                self._place(attempt)
            except (InvariantError, KeyboardInterrupt):
                raise
            except BaseException as error:
                self._failures.crash(attempt, error)

    # The steps, which the cycle of a pod group takes too

    def to_be_skipped(self, framework: Framework, pod: Pod) -> bool:
        """Whether there is nothing to do for this pod any more."""
        if pod.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._parts.carry_out(Writes((failed_scheduling(pod, note, framework.profile_name),)))
            return True
        return self._parts.cluster.is_assumed(pod)

    def attempt(self, framework: Framework, queued: QueuedPodInfo) -> Attempt:
        sampled = framework.measures_plugins and self._sampling.random() < _SAMPLED_SHARE
        state = CycleState(record_plugin_metrics=sampled)
        return Attempt(framework, queued, queued.pod, state, self._deps.metrics.timer())

    def _place(self, attempt: Attempt) -> None:
        search = self._parts.searches[attempt.framework.profile_name]
        found = self.find_node(attempt, search, on_decision=self._deps.on_decision)
        metrics = self._deps.metrics
        metrics.algorithm_duration(metrics.timer() - attempt.started)
        if found.node_name is None:
            self._failures.fail(attempt, found.status, found.nominating)
        else:
            self.bind_to(attempt, found.node_name)

    def find_node(
        self,
        attempt: Attempt,
        search: NodeSearch,
        *,
        within: Mask | None = None,
        post_filters: bool = True,
        on_decision: OnDecision | None = None,
    ) -> Found:
        """Look for a node; if none fits, let PostFilter make room for a later attempt.

        `within` are the rows of a placement. Without `post_filters`, nothing is evicted.
        """
        framework = attempt.framework
        try:
            snapshot = self._parts.cluster.snapshot()
            decision = search.schedule_pod(framework, attempt.state, attempt.pod, snapshot, within)
        except NoNodesError as error:
            return Found(status=Status(Code.UNRESOLVABLE, error=error))
        except PluginFailure as error:
            return Found(status=error.as_status())
        except (ExtenderError, InvariantError) as error:
            return Found(status=failure(error))
        if on_decision is not None:
            on_decision(attempt, decision)
        if decision.node_name is None:
            return self._fits_nowhere(attempt, search, decision, post_filters=post_filters)
        return Found(decision.node_name, decision=decision)

    def _fits_nowhere(
        self, attempt: Attempt, search: NodeSearch, decision: Decision, *, post_filters: bool
    ) -> Found:
        """The result is Unschedulable even if PostFilter succeeds: it makes room for a later attempt."""
        framework = attempt.framework
        if not post_filters:
            status = Status(Code.UNSCHEDULABLE, error=FitError(decision.diagnosis))
            return Found(status=status, nominating=None, decision=decision)
        if framework.points[Point.POST_FILTER]:
            self._deps.metrics.preemption_attempt()
        if decision.conclusion is not None:
            return Found(status=decision.conclusion, decision=decision)
        nominating: NominatingInfo = CLEAR_NOMINATION
        if framework.points[Point.POST_FILTER]:
            result, said = framework.run_post_filters(
                attempt.state, decision.pod, decision.diagnosis
            )
            decision.post_filter = result
            decision.diagnosis.post_filter_message = said.message
            nominating = result.nomination if result is not None else None
        status = Status(Code.UNSCHEDULABLE, error=FitError(decision.diagnosis))
        if search.refusals is not None and (nominating is None or not nominating.node_name):
            search.refusals.conclude(decision, status)
        return Found(status=status, nominating=nominating, decision=decision)

    def bind_to(self, attempt: Attempt, node_name: str) -> None:
        """Assume → Reserve → Permit; then the binding cycle goes on beside other attempts."""
        state = attempt.state
        if not self._assume(attempt, node_name):
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
