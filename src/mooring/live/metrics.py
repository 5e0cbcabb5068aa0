"""The scheduler's metrics as Prometheus reads them: names, labels and buckets of kube-scheduler.

Existing dashboards and alerts work as they are. Which metrics of the reference are not fed, and why, is said
in docs/operations.md. The registry belongs to the instance: two schedulers in one process do not mix their
figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.live import write_metrics
from mooring.live.accumulators import Counter, Gauge, Histogram, exponential
from mooring.live.write_metrics import WriteMetrics
from mooring.queue import metrics as queue_metrics
from mooring.queue.metrics import QueueMetrics
from mooring.queue.scheduling_queue import QueueCounts
from mooring.runtime.metrics import Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Attempts beyond these are counted together.
_MOST_ATTEMPTS = 15

#: The points at which the reference counts how often each plugin was asked.
_COUNTED_POINTS = ("PreFilter", "Filter", "PreScore", "Score")

_PREFIX = "scheduler_"

C = TypeVar("C", bound=Collector)


@dataclass(frozen=True, slots=True)
class CacheSizes:
    nodes: int
    pods: int
    assumed_pods: int


class LiveMetrics(Metrics, QueueMetrics, WriteMetrics):
    """What the framework, the queue and the driver report, kept for `/metrics`."""

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        self.registry = CollectorRegistry()
        # Straight from the callable, as it is asked several times for each pod.
        self.timer = timer  # type: ignore[method-assign]
        self._attempts = self._counter(
            "schedule_attempts_total", "Number of attempts to schedule pods.", "result", "profile"
        )
        self._attempt_s = self._histogram(
            "scheduling_attempt_duration_seconds",
            "Scheduling attempt latency in seconds (scheduling algorithm + binding).",
            exponential(0.001, 2, 15),
            "result",
            "profile",
        )
        self._event_handling_s = self._histogram(
            "event_handling_duration_seconds",
            "Event handling latency in seconds.",
            exponential(0.0001, 2, 12),
            "event",
        )
        self._pending = self._gauge("pending_pods", "Number of pending pods.", "queue")
        self._inflight = self._gauge(
            "inflight_events", "Number of events kept for the pods in flight.", "event"
        )
        self._tasks = self._gauge("goroutines", "Number of running tasks.", "operation")
        self._sli_s = self._histogram(
            "pod_scheduling_sli_duration_seconds",
            "E2e latency for a pod being scheduled, from its first attempt.",
            exponential(0.01, 2, 20),
            "attempts",
        )
        self._pod_attempts = self._histogram(
            "pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            exponential(1, 2, 5),
        )
        self._point_s = self._histogram(
            "framework_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            exponential(0.0001, 2, 12),
            "extension_point",
            "status",
            "profile",
        )
        self._plugin_s = self._histogram(
            "plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            exponential(0.00001, 1.5, 20),
            "plugin",
            "extension_point",
            "status",
        )
        self._hint_s = self._histogram(
            "queueing_hint_execution_duration_seconds",
            "Latency for running a queueing hint function of a plugin.",
            exponential(0.00001, 1.5, 20),
            "plugin",
            "event",
            "hint",
        )
        self._incoming = self._counter(
            "queue_incoming_pods_total",
            "Number of pods added to scheduling queues by event and queue type.",
            "queue",
            "event",
        )
        self._permit_s = self._histogram(
            "permit_wait_duration_seconds",
            "Duration of waiting on permit.",
            exponential(0.001, 2, 15),
            "result",
        )
        self._cache = self._gauge(
            "cache_size", "Number of nodes, pods, and assumed pods in the cache.", "type"
        )
        self._unschedulable = self._gauge(
            "unschedulable_pods",
            "Number of unschedulable pods broken down by plugin name.",
            "plugin",
            "profile",
        )
        self._algorithm_s = self._histogram(
            "scheduling_algorithm_duration_seconds",
            "Scheduling algorithm latency in seconds.",
            exponential(0.001, 2, 15),
        )
        self._victims = self._histogram(
            "preemption_victims",
            "Number of selected preemption victims.",
            exponential(1, 2, 7),
        )
        self._preemptions = self._counter(
            "preemption_attempts_total", "Total preemption attempts in the cluster till now."
        )
        self._evictions = self._counter(
            "preemption_goroutines_execution_total",
            "Number of preemption tasks executed.",
            "result",
        )
        self._eviction_s = self._histogram(
            "preemption_goroutines_duration_seconds",
            "Duration of the tasks that evict the victims of a preemption.",
            exponential(0.01, 2, 20),
            "result",
        )
        self._evaluations = _Evaluations(f"{_PREFIX}plugin_evaluation_total")
        self.registry.register(self._evaluations)
        self._leader = self._kept(
            Gauge(
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease.",
                "name",
            )
        )
        self._writes_waiting = self._kept(
            Gauge("mooring_writes_waiting", "Writes that wait to be sent, by kind.", "kind")
        )
        self._write_wait_s = self._kept(
            Histogram(
                "mooring_write_wait_seconds",
                "How long writes waited before they were sent, by kind.",
                exponential(0.001, 2, 18),
                "kind",
            )
        )
        self._superseded = self._kept(
            Counter(
                "mooring_writes_superseded_total",
                "Writes that were not sent, as a newer one, a bind or the end of the pod came first.",
                "kind",
            )
        )
        self._dropped = self._kept(
            Counter(
                "mooring_writes_dropped_total",
                "Writes that were not made: too many waited, or the API server did not take them.",
                "kind",
            )
        )
        self._crashes = self._kept(
            Counter(
                "mooring_task_failures_total",
                "Tasks and event handlers that ended by an unexpected exception.",
            )
        )
        self._reloads = self._kept(
            Counter(
                "mooring_config_reloads_total", "Attempts to reload the configuration.", "result"
            )
        )
        for kind in write_metrics.KINDS.values():
            self._writes_waiting.set(0, kind)
        for queue in ("active", "backoff", "unschedulable", "gated"):
            self._pending.set(0, queue)

    def exposition(self) -> bytes:
        """May be called from any thread."""
        return generate_latest(self.registry)

    # runtime.metrics.Metrics

    def plugin_duration(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self._plugin_s.observe(seconds, plugin, point, status)

    def point_duration(self, point: str, status: str, profile: str, seconds: float) -> None:
        self._point_s.observe(seconds, point, status, profile)

    def attempt(self, result: str, profile: str, seconds: float) -> None:
        self._attempts.add(1, result, profile)
        self._attempt_s.observe(seconds, result, profile)

    def algorithm_duration(self, seconds: float) -> None:
        self._algorithm_s.observe(seconds)

    def permit_wait(self, result: str, seconds: float) -> None:
        self._permit_s.observe(seconds, result)

    def preemption_attempt(self) -> None:
        self._preemptions.add(1)

    def preemption_victims(self, count: int) -> None:
        self._victims.observe(count)

    def evicted(self, result: str, seconds: float) -> None:
        self._evictions.add(1, result)
        self._eviction_s.observe(seconds, result)

    def evaluations_of(self, plugin: str, profile: str) -> dict[str, int]:
        return self._evaluations.of(plugin, profile)

    # queue.metrics.QueueMetrics

    def queue_incoming_pods(self, queue: str, event: str) -> None:
        self._incoming.add(1, queue, event)

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        self._unschedulable.add(change, plugin, profile)

    def inflight_events(self, event: str, change: int) -> None:
        self._inflight.add(change, event)

    def queueing_hint_duration(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self._hint_s.observe(seconds, plugin, event, hint)

    def pre_enqueue_duration(self, profile: str, seconds: float) -> None:
        self._point_s.observe(seconds, "PreEnqueue", "Success", profile)

    def pre_enqueue_plugin_duration(self, plugin: str, status: str, seconds: float) -> None:
        self._plugin_s.observe(seconds, plugin, "PreEnqueue", status)

    # live.write_metrics.WriteMetrics

    def write_waits(self, kind: str, change: int) -> None:
        self._writes_waiting.add(change, kind)

    def write_waited(self, kind: str, seconds: float) -> None:
        self._write_wait_s.observe(seconds, kind)

    def write_superseded(self, kind: str) -> None:
        self._superseded.add(1, kind)

    def write_dropped(self, kind: str, count: int = 1) -> None:
        if count:
            self._dropped.add(count, kind)

    # What the driver reports

    def event_handled(self, event: str, seconds: float) -> None:
        self._event_handling_s.observe(seconds, event)

    def pod_scheduled(self, attempts: int, sli_s: float | None) -> None:
        """A pod was bound at this attempt, so long after its first one began."""
        self._pod_attempts.observe(attempts)
        if sli_s is not None:
            label = str(attempts) if attempts < _MOST_ATTEMPTS else f"{_MOST_ATTEMPTS}+"
            self._sli_s.observe(sli_s, label)

    def sizes(self, queue: QueueCounts, cache: CacheSizes, binding: int) -> None:
        """How much there is of everything; told once a second."""
        self._pending.set(queue.active, queue_metrics.ACTIVE)
        self._pending.set(queue.backoff, queue_metrics.BACKOFF)
        self._pending.set(queue.unschedulable, queue_metrics.UNSCHEDULABLE)
        self._pending.set(queue.gated, queue_metrics.GATED)
        self._cache.set(cache.nodes, "nodes")
        self._cache.set(cache.pods, "pods")
        self._cache.set(cache.assumed_pods, "assumed_pods")
        self._tasks.set(binding, "binding")

    def queue_replaced(self) -> None:
        """Counts kept by ups and downs begin anew with the queue that they describe."""
        self._inflight.clear()
        self._unschedulable.clear()

    def leading(self, lease: str, leads: bool) -> None:
        self._leader.set(int(leads), lease)

    def task_failed(self) -> None:
        self._crashes.add(1)

    def reloaded(self, result: str) -> None:
        self._reloads.add(1, result)

    # Being built

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return self._kept(Counter(_PREFIX + name, text, *labels))

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return self._kept(Gauge(_PREFIX + name, text, *labels))

    def _histogram(
        self, name: str, text: str, bounds: tuple[float, ...], *labels: str
    ) -> Histogram:
        return self._kept(Histogram(_PREFIX + name, text, bounds, *labels))

    def _kept(self, metric: C) -> C:
        self.registry.register(metric)
        return metric


class _Evaluations(Collector):
    """How often each plugin was asked, once for all nodes; the plugins' callers count by themselves."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._counts: dict[tuple[str, str], dict[str, int]] = {}

    def of(self, plugin: str, profile: str) -> dict[str, int]:
        return self._counts.setdefault((plugin, profile), {})

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            self._name,
            "Number of attempts to schedule pods by each plugin and the extension point.",
            labels=("plugin", "extension_point", "profile"),
        )
        for (plugin, profile), counts in list(self._counts.items()):
            for point in _COUNTED_POINTS:
                if point in counts:
                    family.add_metric((plugin, point, profile), counts[point])
        yield family
