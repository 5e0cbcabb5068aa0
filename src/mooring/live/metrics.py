"""The scheduler's metrics as Prometheus reads them: names, labels and buckets of kube-scheduler.

Existing dashboards and alerts work as they are. Which metrics of the reference are not fed, and why, is said
in docs/operations.md.

Looking up a labelled series costs three times what counting in it does, so every series is looked up once
and kept. The registry belongs to the instance: two schedulers in one process do not mix their figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from mooring.framework.metrics import Metrics
from mooring.queue import metrics as queue_metrics
from mooring.queue.metrics import QueueMetrics
from mooring.queue.scheduling_queue import QueueCounts

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: Attempts beyond these are counted together.
_MOST_ATTEMPTS = 15

_PREFIX = "scheduler_"

M = TypeVar("M", bound=MetricWrapperBase)


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**i for i in range(count))


class Series:
    """A metric with labels, whose series are looked up once each."""

    __slots__ = ("_known", "_metric")

    def __init__(self, metric: MetricWrapperBase) -> None:
        self._metric = metric
        self._known: dict[tuple[str, ...], MetricWrapperBase] = {}

    def of(self, *labels: str) -> MetricWrapperBase:
        found = self._known.get(labels)
        if found is None:
            found = self._known[labels] = self._metric.labels(*labels)
        return found

    def observe(self, seconds: float, *labels: str) -> None:
        self.of(*labels).observe(seconds)  # type: ignore[attr-defined]

    def add(self, change: float, *labels: str) -> None:
        self.of(*labels).inc(change)  # type: ignore[attr-defined]

    def set(self, value: float, *labels: str) -> None:
        self.of(*labels).set(value)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class CacheSizes:
    nodes: int
    pods: int
    assumed_pods: int


class LiveMetrics(Metrics, QueueMetrics):
    """What the framework, the queue and the driver report, kept for `/metrics`."""

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        # The reference has no `_created` series, and dashboards would only trip over them.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
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
        self._pod_attempts = Histogram(
            f"{_PREFIX}pod_scheduling_attempts",
            "Number of attempts to successfully schedule a pod.",
            buckets=exponential(1, 2, 5),
            registry=self.registry,
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
        self._leader = Gauge(
            "leader_election_master_status",
            "Gauge of if the reporting system is master of the relevant lease.",
            ["name"],
            registry=self.registry,
        )
        self._dropped_events = Counter(
            "mooring_dropped_events_total",
            "Events that were not written, as too many waited.",
            registry=self.registry,
        )
        self._crashes = Counter(
            "mooring_task_failures_total",
            "Tasks and event handlers that ended by an unexpected exception.",
            registry=self.registry,
        )
        self._reloads = Series(
            Counter(
                "mooring_config_reloads_total",
                "Attempts to reload the configuration.",
                ["result"],
                registry=self.registry,
            )
        )
        self._dropped = 0
        for queue in ("active", "backoff", "unschedulable", "gated"):
            self._pending.set(0, queue)

    def exposition(self) -> bytes:
        """May be called from any thread."""
        return generate_latest(self.registry)

    # framework.metrics.Metrics

    def plugin_duration(self, plugin: str, point: str, status: str, seconds: float) -> None:
        self._plugin_s.observe(seconds, plugin, point, status)

    def point_duration(self, point: str, status: str, profile: str, seconds: float) -> None:
        self._point_s.observe(seconds, point, status, profile)

    def attempt(self, result: str, profile: str, seconds: float) -> None:
        self._attempts.add(1, result, profile)
        self._attempt_s.observe(seconds, result, profile)

    def permit_wait(self, result: str, seconds: float) -> None:
        self._permit_s.observe(seconds, result)

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
        for gauge in (self._inflight, self._unschedulable):
            for series in gauge._known.values():
                series.set(0)  # type: ignore[attr-defined]

    def leading(self, lease: str, leads: bool) -> None:
        self._leader.labels(lease).set(int(leads))

    def dropped_events(self, total: int) -> None:
        self._dropped_events.inc(max(0, total - self._dropped))
        self._dropped = max(total, self._dropped)

    def task_failed(self) -> None:
        self._crashes.inc()

    def reloaded(self, result: str) -> None:
        self._reloads.add(1, result)

    # Being built

    def _counter(self, name: str, text: str, *labels: str) -> Series:
        return Series(Counter(_PREFIX + name, text, labels, registry=self.registry))

    def _gauge(self, name: str, text: str, *labels: str) -> Series:
        return Series(Gauge(_PREFIX + name, text, labels, registry=self.registry))

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Series:
        return Series(
            Histogram(_PREFIX + name, text, labels, buckets=buckets, registry=self.registry)
        )
