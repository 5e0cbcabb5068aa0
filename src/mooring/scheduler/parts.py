"""What the steps of an engine share, built from a configuration: the cluster, the queue, the profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from mooring.cluster.cache import Cluster
from mooring.cluster.observed_pods import ObservedPodsBook
from mooring.config.extenders import with_ignored_resources
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.config.gates import device_features
from mooring.config.types import KubeSchedulerConfiguration, SchedulerProfile
from mooring.errors import ConfigError, PluginError
from mooring.framework.events import EventWithHint
from mooring.framework.interface import QueueSortPlugin
from mooring.framework.metrics import PluginMetrics
from mooring.objects.pod import Pod
from mooring.objects.pod_class import PodClasses
from mooring.queue.scheduling_queue import SchedulingQueue
from mooring.runtime.build import build_frameworks
from mooring.runtime.evaluations import Evaluations
from mooring.runtime.framework import Framework
from mooring.runtime.handle import PluginHandle
from mooring.runtime.nominator import Nominator
from mooring.runtime.pods_in_pre_bind import PodsInPreBind
from mooring.runtime.waiting_pods import WaitingPods
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.extenders import EXTENDER, EXTENDER_EVENTS, Extenders
from mooring.scheduler.node_search import NodeSearch, SearchStart
from mooring.scheduler.refusals import Refusals
from mooring.scheduler.writes import Writes


class Parts:
    def __init__(self, config: KubeSchedulerConfiguration, deps: Dependencies) -> None:
        """Raises ConfigError if the configuration's plugins or extenders cannot be built."""
        self.config = config = with_ignored_resources(config)
        self.deps = deps
        self.gates = config.gates
        #: Whether pods of a group are scheduled together.
        self.schedules_groups = self.gates.enabled("GenericWorkload")
        self.cluster = Cluster(
            has_pod_groups=self.schedules_groups,
            has_taint_rules=self.gates.enabled("DRADeviceTaintRules"),
            groups_own_claims=self.gates.enabled("DRAWorkloadResourceClaims"),
            devices_serve_resources=self.gates.enabled("DRAExtendedResource"),
            device_features=device_features(self.gates),
        )
        #: Every pod as the API server last showed it, by `namespace/name`.
        self.observed_pods = ObservedPodsBook()
        #: The attempts that have assumed their pod and not ended yet, by UID of the pod.
        self.binding: dict[str, Attempt] = {}
        #: Given the pods whose binding fails, once another engine took over; None until then.
        self.hand_over: Callable[[Pod], None] | None = None
        self.nominator = Nominator(self.observed_pods.get)
        self.waiting_pods = WaitingPods(deps.clock)
        self.pods_in_pre_bind = PodsInPreBind()
        self.extenders = Extenders.build(config, deps.transport)
        #: What plugins count about themselves.
        self.plugin_metrics = PluginMetrics()
        deps.metrics.show_plugin_metrics(self.plugin_metrics)
        self.frameworks = build_frameworks(config, deps.registry, self._make_handle, deps.metrics)
        self._classes = PodClasses()
        self.search_start = SearchStart()
        #: How each profile looks for nodes, by its name.
        self.searches = {
            profile.scheduler_name: self._make_search(profile) for profile in config.profiles
        }
        self.queue = self._make_queue()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """See `Engine.trial`."""
        with self.cluster.trial(), self.nominator.trial():
            yield

    def carry_out(self, writes: Writes) -> None:
        """Give the driver what has to be written."""
        if self.deps.carry_out is not None:
            self.deps.carry_out(writes)

    def _make_handle(self, profile_name: str) -> PluginHandle:
        return PluginHandle(
            profile_name=profile_name,
            books=self.cluster,
            clock=self.deps.clock,
            writer=self.deps.writer,
            nominator=self.nominator,
            waiting=self.waiting_pods,
            pods_in_pre_bind=self.pods_in_pre_bind,
            observed_pods=self.observed_pods,
            spawn=self.deps.spawn,
            activate=self._activate,
            preemption_metrics=self.deps.metrics,
            metrics=self.plugin_metrics,
            gates=self.gates,
            extenders=tuple(self.extenders),
            expected_pods=self.deps.expected_pods,
        )

    def _activate(self, pods: Mapping[str, Pod]) -> None:
        self.queue.activate(pods)

    def _make_search(self, profile: SchedulerProfile) -> NodeSearch:
        framework, tie_break = self.frameworks[profile.scheduler_name], self.deps.tie_break
        percentage = self.config.percentage_for(profile)
        keeps = self.deps.keep_answers
        # What an extender's answers depend on is not known. A sample depends on where it starts.
        remembers = keeps and not len(self.extenders) and not percentage
        return NodeSearch(
            tie_break,
            Evaluations(framework, self.cluster, tie_break.keys) if keeps else None,
            Refusals(framework, self.cluster, self._classes) if remembers else None,
            percentage,
            self.search_start,
            self.extenders,
        )

    def _make_queue(self) -> SchedulingQueue:
        """One queue for all profiles, sorted as the first one says."""
        first = self.frameworks[self.config.profiles[0].scheduler_name]
        (queue_sort,) = first.points[Point.QUEUE_SORT]
        return SchedulingQueue(
            clock=self.deps.clock,
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
            class_of=self._class_of if self.deps.one_for_all else None,
            initial_backoff_s=self.config.pod_initial_backoff_seconds,
            max_backoff_s=self.config.pod_max_backoff_seconds,
            groups_back_off=self.schedules_groups,
            metrics=self.deps.queue_metrics,
            on_ready=self.deps.on_ready,
            gates_first={
                name: frozenset(
                    call.name for call in framework.points[Point.PRE_ENQUEUE] if call.gates_first
                )
                for name, framework in self.frameworks.items()
            },
        )

    def _events_to_register(self, framework: Framework) -> list[tuple[str, EventWithHint]]:
        """Extenders cannot say what they wait for, so every event may help their pods."""
        of_extenders = EXTENDER_EVENTS if len(self.extenders) else ()
        try:
            of_plugins = framework.events_to_register()
        except PluginError as error:
            where = f"creating profile for scheduler name {framework.profile_name}"
            raise ConfigError([f"{where}: {error}"]) from error
        return [*of_plugins, *((EXTENDER, event) for event in of_extenders)]

    def _class_of(self, pod: Pod) -> int | None:
        """The class of a pod that may be tried for others; None if it is tried for itself alone."""
        search = self.searches.get(pod.scheduler_name)
        if search is None or search.refusals is None or not search.refusals.may_remember:
            return None
        if self.nominator.nominated_node(pod.uid) is not None:
            return None
        if self.schedules_groups and pod.spec.scheduling_group is not None:
            return None
        return self._classes.of(pod)
