"""The scheduler: one pod after another, from the queue to its node.

    pop → PreFilter → Filter → (PostFilter) → PreScore → Score → Normalize → pick
        → assume → Reserve → Permit ‖ WaitOnPermit → PreBind → Bind → PostBind

It never opens a socket, never reads a clock and never sleeps: a driver (`sim`, `live`) feeds it what happens
in the cluster through `EventHandlers`, calls `schedule_one` while there is work, and carries out its writes.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

from mooring.cluster.cache import CacheError, Cluster
from mooring.config.extenders import with_ignored_resources
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.config.gates import DEFAULT_GATES, FeatureGates
from mooring.config.types import KubeSchedulerConfiguration, SchedulerProfile
from mooring.errors import (
    ApiError,
    ConfigError,
    ExtenderError,
    InvariantError,
    NotFound,
    PluginError,
)
from mooring.framework.api import ApiWriter, Event, PodStatusPatch
from mooring.framework.clock import Clock
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import EventWithHint
from mooring.framework.interface import CLEAR_NOMINATION, NominatingInfo, QueueSortPlugin
from mooring.framework.status import Code, Status, failure
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_class import PodClasses
from mooring.queue.metrics import QueueMetrics
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.scheduling_queue import SchedulingQueue
from mooring.runtime.build import build_frameworks
from mooring.runtime.evaluations import Evaluations
from mooring.runtime.framework import Framework
from mooring.runtime.handle import PluginHandle, Spawn
from mooring.runtime.metrics import Metrics
from mooring.runtime.nominator import Nominator
from mooring.runtime.plugin_calls import PluginFailure
from mooring.runtime.pods_in_pre_bind import PodsInPreBind
from mooring.runtime.registry import Registry
from mooring.runtime.waiting_pods import WaitingPods
from mooring.scheduler import failure as failures
from mooring.scheduler.binding_cycle import (
    ASSIGNED_POD_DELETE,
    Attempt,
    binding_cycle,
    refusal,
    scheduled_event,
)
from mooring.scheduler.choosing import TieBreak, first_by_name
from mooring.scheduler.diagnosis import FitError
from mooring.scheduler.extenders import (
    EXTENDER,
    EXTENDER_EVENTS,
    Aside,
    Extenders,
    Transport,
    at_once,
)
from mooring.scheduler.refusals import Refusals
from mooring.scheduler.scheduling_cycle import (
    Decision,
    NodeSearch,
    NoNodesError,
    SearchStart,
)
from mooring.scheduler.shared_conditions import SharedConditions

#: One attempt in ten has its plugins timed one by one.
_SAMPLED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Everything a scheduler is given: nothing is read from anywhere else."""

    clock: Clock
    writer: ApiWriter
    spawn: Spawn
    registry: Registry
    metrics: Metrics
    #: Where status patches are made; None: where everything else is.
    spawn_patch: Spawn | None = None
    tie_break: TieBreak = first_by_name
    #: What the queue reports to; None if nobody listens.
    queue_metrics: QueueMetrics | None = None
    #: Whether plugins' answers are kept for pods that are alike; the decisions are the same either way.
    keep_answers: bool = True
    #: Whether one pod is tried for all that are alike; the placements are the same either way.
    one_for_all: bool = True
    #: How often the pods that another one is tried for are told why they wait; 0: with each attempt.
    repeat_conditions_after_s: float = 0.0
    seed: int = 0
    #: Those that the configuration was loaded with.
    gates: FeatureGates = DEFAULT_GATES
    #: Told of every attempt's decision before anything is done about it.
    on_decision: Callable[[Decision], None] | None = None
    #: Told of an attempt that ended by an unexpected exception; its pod is tried again.
    on_crash: Callable[[str], None] | None = None
    #: Called when there is something for `schedule_one` to do.
    on_ready: Callable[[], None] | None = None
    #: How to reach extenders; without any, none is needed.
    transport: Transport | None = None
    #: Where to wait for an extender that binds a pod.
    aside: Aside = at_once
    #: Told of a pod that an extender says it has bound; None if the API server tells it anyway.
    on_bound_by_extender: Callable[[Pod, str], Awaitable[None]] | None = None


class Scheduler:
    """All profiles over one queue and one cluster."""

    def __init__(self, config: KubeSchedulerConfiguration, around: Surroundings) -> None:
        """Raises ConfigError if the configuration's plugins or extenders cannot be built."""
        self.config = config = with_ignored_resources(config)
        self.around = around
        self.log = logging.getLogger("mooring.scheduler")
        self.metrics = around.metrics
        self.writer = around.writer
        self.spawn = around.spawn
        self.spawn_patch = around.spawn_patch or around.spawn
        #: The attempts that have assumed their pod and not ended yet, by UID of the pod.
        self.binding: dict[str, Attempt] = {}
        self.cluster = Cluster()
        #: Every pod as the API server last showed it, by `namespace/name`.
        self.observed_pods: dict[str, Pod] = {}
        self.nominator = Nominator(self.observed_pods.get)
        self.waiting_pods = WaitingPods(around.clock)
        self.pods_in_pre_bind = PodsInPreBind()
        self.extenders = Extenders.build(config, around.transport)
        self.frameworks = build_frameworks(
            config, around.registry, self._make_handle, around.metrics
        )
        self._classes = PodClasses()
        self._start = SearchStart()
        self.searches = {
            profile.scheduler_name: self._make_search(profile) for profile in config.profiles
        }
        self.queue = self._make_queue()
        self.shared_conditions = SharedConditions(self, around.repeat_conditions_after_s)
        self._sampling = random.Random(around.seed)

    # The scheduling cycle

    def schedule_one(self) -> bool:
        """Take the next pod and place it, or find out why not; whether there was one."""
        queued = self.queue.pop()
        if queued is None:
            return False
        self.try_pod(queued)
        return True

    def try_pod(self, queued: QueuedPodInfo) -> None:
        """Make an attempt at a pod that was popped."""
        pod = queued.pod
        framework = self.frameworks.get(pod.scheduler_name)
        if framework is None:
            self.log.error("no profile is called %s: pod %s", pod.scheduler_name, pod.key)
            self.queue.done(pod.uid)
        elif self._to_be_skipped(framework, pod):
            self.queue.done(pod.uid)
        else:
            try:
                self._attempt(framework, queued)
            except InvariantError:
                raise
            except Exception as error:
                self.recover(framework, queued, error)

    def _to_be_skipped(self, framework: Framework, pod: Pod) -> bool:
        if pod.terminating:
            self.writer.record_event(
                Event(
                    regarding=pod,
                    type="Warning",
                    reason="FailedScheduling",
                    action="Scheduling",
                    note=f"skip schedule deleting pod: {pod.key}",
                    reporting_controller=framework.profile_name,
                )
            )
            return True
        return self.cluster.is_assumed(pod)

    def _attempt(self, framework: Framework, queued: QueuedPodInfo) -> None:
        started = self.metrics.timer()
        state = CycleState(record_plugin_metrics=self._sampling.random() < _SAMPLED_SHARE)
        node_name = self._find_node(framework, state, queued, started)
        self.metrics.algorithm_duration(self.metrics.timer() - started)
        if node_name is None:
            return
        attempt = self._assume(framework, state, queued, node_name, started)
        if attempt is None:
            return
        status = framework.run_reserve(state, attempt.assumed, node_name)
        if status.ok:
            status = framework.run_permit(state, attempt.assumed, node_name)
        if not status.ok and status.code != Code.WAIT:
            self._fail_reserved(attempt, status)
            return
        if state.pods_to_activate:
            self.queue.activate(state.pods_to_activate)
            state.pods_to_activate.clear()
        self.spawn(binding_cycle(self, attempt))

    def _find_node(
        self, framework: Framework, state: CycleState, queued: QueuedPodInfo, started: float
    ) -> str | None:
        """The chosen node; None if there is none, and the failure has been handled."""
        pod = queued.pod
        search = self.searches[framework.profile_name]
        try:
            snapshot = self.cluster.snapshot()
            decision = search.schedule_pod(framework, state, pod, snapshot)
        except NoNodesError as error:
            status = Status(Code.UNRESOLVABLE, error=error)
            self.handle_failure(framework, queued, status, started)
            return None
        except PluginFailure as error:
            self.handle_failure(framework, queued, error.as_status(), started)
            return None
        except (ExtenderError, InvariantError) as error:
            self.handle_failure(framework, queued, failure(error), started)
            return None
        if self.around.on_decision is not None:
            self.around.on_decision(decision)
        if decision.node_name is None:
            self._fits_nowhere(framework, state, queued, decision, started)
        return decision.node_name

    def _fits_nowhere(
        self,
        framework: Framework,
        state: CycleState,
        queued: QueuedPodInfo,
        decision: Decision,
        started: float,
    ) -> None:
        """Unschedulable, whatever PostFilter does: at best it makes room for a later attempt."""
        if framework.points[Point.POST_FILTER]:
            self.metrics.preemption_attempt()
        if decision.conclusion is not None:
            self.handle_failure(framework, queued, decision.conclusion, started)
            return
        nominating, message = run_post_filter(framework, state, decision)
        decision.diagnosis.post_filter_message = message
        status = Status(Code.UNSCHEDULABLE, error=FitError(decision.diagnosis))
        refusals = self.searches[framework.profile_name].refusals
        if refusals is not None and (nominating is None or not nominating.node_name):
            refusals.conclude(decision, status)
        self.handle_failure(framework, queued, status, started, nominating)

    def _assume(
        self,
        framework: Framework,
        state: CycleState,
        queued: QueuedPodInfo,
        node_name: str,
        started: float,
    ) -> Attempt | None:
        assumed = queued.pod.placed_on(node_name)
        try:
            self.cluster.assume_pod(assumed)
        except CacheError as error:
            self.handle_failure(framework, queued, failure(error), started)
            return None
        self.nominator.delete(assumed)
        attempt = self.binding[assumed.uid] = Attempt(framework, state, queued, assumed, started)
        return attempt

    def _fail_reserved(self, attempt: Attempt, status: Status) -> None:
        self.binding.pop(attempt.assumed.uid, None)
        attempt.framework.run_unreserve(attempt.state, attempt.assumed, attempt.node_name)
        try:
            self.cluster.forget_pod(attempt.assumed)
        except CacheError as error:
            self.log.error("%s", error)
        said = refusal(status) if status.rejected else status
        self.handle_failure(attempt.framework, attempt.queued, said, attempt.started)

    # What both cycles use

    def recover(self, framework: Framework, queued: QueuedPodInfo, error: Exception) -> None:
        """Undo what an attempt left behind that ended unexpectedly, and try the pod again.

        Raises InvariantError if that fails, too.
        """
        self.log.error("scheduling %s ended unexpectedly", queued.key, exc_info=error)
        if self.around.on_crash is not None:
            self.around.on_crash(f"scheduling {queued.key} ended unexpectedly: {error!r}")
        try:
            attempt = self.binding.pop(queued.uid, None)
            if attempt is not None:
                framework.run_unreserve(attempt.state, attempt.assumed, attempt.node_name)
                if self.cluster.is_assumed(attempt.assumed):
                    self.cluster.forget_pod(attempt.assumed)
                    self.queue.move_all(ASSIGNED_POD_DELETE, attempt.assumed, None)
            self.handle_failure(framework, queued, failure(error), self.metrics.timer())
        except Exception as again:
            self.log.exception("pod %s could not be put back", queued.key)
            raise InvariantError(f"pod {queued.key} is lost to the queue: {again!r}") from again

    def handle_failure(
        self,
        framework: Framework,
        queued: QueuedPodInfo,
        status: Status,
        started: float,
        nominating: NominatingInfo = CLEAR_NOMINATION,
    ) -> None:
        failures.handle_failure(self, framework, queued, status, started, nominating)

    def record_scheduled(self, attempt: Attempt) -> None:
        profile = attempt.framework.profile_name
        self.writer.record_event(scheduled_event(profile, attempt.assumed))
        self.metrics.attempt("scheduled", profile, self.metrics.timer() - attempt.started)

    def tell_condition(
        self, pod: Pod, condition: PodCondition, nominating: NominatingInfo = None
    ) -> None:
        """Write why a pod waits into its status, unless it already says so."""
        patch = failures.status_patch(pod, condition, nominating)
        if patch is not None:
            self.spawn_patch(self.patch_status(pod, patch))

    async def patch_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        """A failure is only logged: the next attempt writes again."""
        try:
            await self.writer.patch_pod_status(pod, patch)
        except NotFound as error:
            self.log.debug("patching the status of %s, which is gone: %s", pod.key, error)
        except ApiError as error:
            self.log.warning("patching the status of %s: %s", pod.key, error)

    def close(self) -> None:
        self.queue.close()
        for name, framework in self.frameworks.items():
            for problem in framework.close():
                self.log.error("framework %s failed to close: %s", name, problem)

    def validate(self) -> None:
        """Raise InvariantError unless everything that is kept equals what a rebuild gives; for tests."""
        self.cluster.validate()
        self.queue.validate()
        snapshot = self.cluster.snapshot()
        for search in self.searches.values():
            if search.evaluations is not None and len(snapshot):
                search.evaluations.validate(snapshot)

    # Being built

    def _make_handle(self, profile_name: str) -> PluginHandle:
        return PluginHandle(
            profile_name=profile_name,
            cluster=self.cluster,
            clock=self.around.clock,
            writer=self.around.writer,
            nominator=self.nominator,
            waiting=self.waiting_pods,
            pods_in_pre_bind=self.pods_in_pre_bind,
            observed_pod=self.observed_pods.get,
            spawn=self.around.spawn,
            activate=self._activate,
            metrics=self.metrics,
            gates=self.around.gates,
            extenders=tuple(self.extenders),
        )

    def _make_search(self, profile: SchedulerProfile) -> NodeSearch:
        framework, tie_break = self.frameworks[profile.scheduler_name], self.around.tie_break
        percentage = self.config.percentage_for(profile)
        keeps = self.around.keep_answers
        # Nobody knows what an extender's answers depend on; and which nodes a sample has, on its start.
        remembers = keeps and not len(self.extenders) and not percentage
        return NodeSearch(
            tie_break,
            Evaluations(framework, self.cluster, tie_break.keys) if keeps else None,
            Refusals(framework, self.cluster, self._classes) if remembers else None,
            percentage,
            self._start,
            self.extenders,
        )

    def _events_to_register(self, framework: Framework) -> list[tuple[str, EventWithHint]]:
        """Extenders cannot say what they wait for, so they hear of everything."""
        of_extenders = EXTENDER_EVENTS if len(self.extenders) else ()
        try:
            of_plugins = framework.events_to_register()
        except PluginError as error:
            where = f"creating profile for scheduler name {framework.profile_name}"
            raise ConfigError([f"{where}: {error}"]) from error
        return [*of_plugins, *((EXTENDER, event) for event in of_extenders)]

    def _activate(self, pods: Mapping[str, Pod]) -> None:
        self.queue.activate(pods)

    def _class_of(self, pod: Pod) -> int | None:
        """The class of a pod that may be tried for others; None if it speaks for itself alone."""
        search = self.searches.get(pod.scheduler_name)
        if search is None or search.refusals is None or not search.refusals.may_remember:
            return None
        if self.nominator.nominated_node(pod.uid) is not None:
            return None
        return self._classes.of(pod)

    def _make_queue(self) -> SchedulingQueue:
        """One queue for all profiles, sorted as the first one says."""
        first = self.frameworks[self.config.profiles[0].scheduler_name]
        (queue_sort,) = first.points[Point.QUEUE_SORT]
        return SchedulingQueue(
            clock=self.around.clock,
            queue_sort=cast(QueueSortPlugin, queue_sort.plugin),
            pre_enqueue={
                name: [
                    (call.name, call.pre_enqueue)
                    for call in framework.points[Point.PRE_ENQUEUE]
                    if call.pre_enqueue is not None
                ]
                for name, framework in self.frameworks.items()
            },
            hints={
                name: [
                    (registered.event, plugin, registered.hint)
                    for plugin, registered in self._events_to_register(framework)
                ]
                for name, framework in self.frameworks.items()
            },
            nominator=self.nominator,
            class_of=self._class_of if self.around.one_for_all else None,
            initial_backoff_s=self.config.pod_initial_backoff_seconds,
            max_backoff_s=self.config.pod_max_backoff_seconds,
            metrics=self.around.queue_metrics,
            on_ready=self.around.on_ready,
        )


def run_post_filter(
    framework: Framework, state: CycleState, decision: Decision
) -> tuple[NominatingInfo, str]:
    """What PostFilter nominates the pod to, and what it says."""
    if not framework.points[Point.POST_FILTER]:
        return CLEAR_NOMINATION, ""
    result, status = framework.run_post_filters(state, decision.pod, decision.diagnosis)
    decision.post_filter = result
    return (result.nomination if result is not None else None), status.message
