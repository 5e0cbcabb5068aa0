"""The scheduler's metrics as Prometheus reads them: names, labels and buckets of kube-scheduler.

Existing dashboards and alerts work as they are. Which metrics of the reference are not fed, and why, is said
in docs/operations.md. The registry belongs to the instance: two schedulers in one process do not mix their
figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar, cast

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring.framework.metrics import PluginMetrics
from mooring.live import write_metrics
from mooring.live.accumulators import Counter, Gauge, Histogram, exponential
from mooring.live.plugin_metrics import PluginMetricsCollector
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

_Kind = TypeVar("_Kind", bound=Collector)


@dataclass(frozen=True, slots=True)
class CacheSizes:
    nodes: int
    pods: int
    assumed_pods: int


class _Evaluations(Collector):
    """How often each plugin was asked, once for all nodes; the plugins' callers count by themselves."""

    def __init__(self, name: str, text: str, *labels: str) -> None:
        self._new_family = partial(CounterMetricFamily, name, text, labels=labels)
        self._counts: dict[tuple[str, str], dict[str, int]] = {}

    def of(self, plugin: str, profile: str) -> dict[str, int]:
        return self._counts.setdefault((plugin, profile), {})

    def collect(self) -> Iterator[Metric]:
        family = self._new_family()
        for (plugin, profile), counts in list(self._counts.items()):
            for point in _COUNTED_POINTS:
                if point in counts:
                    family.add_metric((plugin, point, profile), counts[point])
        yield family


@dataclass(frozen=True, slots=True)
class _Row:
    """A metric in the table below, from which each scheduler makes a collector of its own."""

    kind: Callable[..., Collector]
    #: The name of the metric, with its labels in braces.
    series: str
    text: str
    bounds: tuple[Sequence[float], ...]

    def collector(self) -> Collector:
        name, _, labels = self.series.rstrip("}").partition("{")
        return self.kind(name, self.text, *self.bounds, *filter(None, labels.split(",")))


def _row(kind: Callable[..., _Kind], series: str, text: str, *bounds: Sequence[float]) -> _Kind:
    """For type checkers, the collector that takes the place of the row."""
    return cast(_Kind, _Row(kind, series, text, bounds))


def _counter(series: str, text: str) -> Counter:
    return _row(Counter, series, text)


def _gauge(series: str, text: str) -> Gauge:
    return _row(Gauge, series, text)


def _histogram(series: str, text: str, buckets: tuple[float, float, int]) -> Histogram:
    """The buckets: the first bound, how many times larger each next one is, and how many they are."""
    return _row(Histogram, series, text, exponential(*buckets))


class LiveMetrics(Metrics, QueueMetrics, WriteMetrics):
    """What the framework, the queue and the driver report, kept for `/metrics`."""

    _attempts = _counter(
        "scheduler_schedule_attempts_total{result,profile}", "Number of attempts to schedule pods."
    )
    _attempt_s = _histogram(
        "scheduler_scheduling_attempt_duration_seconds{result,profile}",
        "Scheduling attempt latency in seconds (scheduling algorithm + binding).",
        (0.001, 2, 15),
    )
    _event_handling_s = _histogram(
        "scheduler_event_handling_duration_seconds{event}",
        "Event handling latency in seconds.",
        (0.0001, 2, 12),
    )
    _pending = _gauge("scheduler_pending_pods{queue}", "Number of pending pods.")
    _inflight = _gauge(
        "scheduler_inflight_events{event}", "Number of events kept for the pods in flight."
    )
    _tasks = _gauge("scheduler_goroutines{operation}", "Number of running tasks.")
    _sli_s = _histogram(
        "scheduler_pod_scheduling_sli_duration_seconds{attempts}",
        "E2e latency for a pod being scheduled, from its first attempt.",
        (0.01, 2, 20),
    )
    _pod_attempts = _histogram(
        "scheduler_pod_scheduling_attempts",
        "Number of attempts to successfully schedule a pod.",
        (1, 2, 5),
    )
    _point_s = _histogram(
        "scheduler_framework_extension_point_duration_seconds{extension_point,status,profile}",
        "Latency for running all plugins of a specific extension point.",
        (0.0001, 2, 12),
    )
    _plugin_s = _histogram(
        "scheduler_plugin_execution_duration_seconds{plugin,extension_point,status}",
        "Duration for running a plugin at a specific extension point.",
        (0.00001, 1.5, 20),
    )
    _hint_s = _histogram(
        "scheduler_queueing_hint_execution_duration_seconds{plugin,event,hint}",
        "Latency for running a queueing hint function of a plugin.",
        (0.00001, 1.5, 20),
    )
    _incoming = _counter(
        "scheduler_queue_incoming_pods_total{queue,event}",
        "Number of pods added to scheduling queues by event and queue type.",
    )
    _permit_s = _histogram(
        "scheduler_permit_wait_duration_seconds{result}",
        "Duration of waiting on permit.",
        (0.001, 2, 15),
    )
    _cache = _gauge(
        "scheduler_cache_size{type}", "Number of nodes, pods, and assumed pods in the cache."
    )
    _unschedulable = _gauge(
        "scheduler_unschedulable_pods{plugin,profile}",
        "Number of unschedulable pods broken down by plugin name.",
    )
    _algorithm_s = _histogram(
        "scheduler_scheduling_algorithm_duration_seconds",
        "Scheduling algorithm latency in seconds.",
        (0.001, 2, 15),
    )
    _group_attempts = _counter(
        "scheduler_podgroup_schedule_attempts_total{result,profile}",
        "Number of attempts to schedule pod groups.",
    )
    _group_attempt_s = _histogram(
        "scheduler_podgroup_scheduling_attempt_duration_seconds{result,profile}",
        "Pod group scheduling attempt latency in seconds.",
        (0.001, 2, 15),
    )
    _group_algorithm_s = _histogram(
        "scheduler_podgroup_scheduling_algorithm_duration_seconds",
        "Pod group scheduling algorithm latency in seconds.",
        (0.001, 2, 15),
    )
    _victims = _histogram(
        "scheduler_preemption_victims", "Number of selected preemption victims.", (1, 2, 7)
    )
    _preemptions = _counter(
        "scheduler_preemption_attempts_total", "Total preemption attempts in the cluster till now."
    )
    _evictions = _counter(
        "scheduler_preemption_goroutines_execution_total{result}",
        "Number of preemption tasks executed.",
    )
    _eviction_s = _histogram(
        "scheduler_preemption_goroutines_duration_seconds{result}",
        "Duration of the tasks that evict the victims of a preemption.",
        (0.01, 2, 20),
    )
    _evaluations = _row(
        _Evaluations,
        "scheduler_plugin_evaluation_total{plugin,extension_point,profile}",
        "Number of attempts to schedule pods by each plugin and the extension point.",
    )
    _leader = _gauge(
        "leader_election_master_status{name}",
        "Gauge of if the reporting system is master of the relevant lease.",
    )
    _writes_waiting = _gauge(
        "mooring_writes_waiting{kind}", "Writes that wait to be sent, by kind."
    )
    _write_wait_s = _histogram(
        "mooring_write_wait_seconds{kind}",
        "How long writes waited before they were sent, by kind.",
        (0.001, 2, 18),
    )
    _superseded = _counter(
        "mooring_writes_superseded_total{kind}",
        "Writes that were not sent, as a newer one, a bind or the end of the pod came first.",
    )
    _dropped = _counter(
        "mooring_writes_dropped_total{kind}",
        "Writes that were not made: too many waited, or the API server did not take them.",
    )
    _crashes = _counter(
        "mooring_task_failures_total",
        "Tasks and event handlers that ended by an unexpected exception.",
    )
    _reloads = _counter(
        "mooring_config_reloads_total{result}", "Attempts to reload the configuration."
    )

    _repairs = _counter(
        "mooring_self_check_repairs_total{what}",
        "Differences that the self-check has found and repaired; anything but 0 is a bug.",
    )

    _oscillations = _counter(
        "mooring_oscillations_total",
        "Workloads whose pods were bound and deleted again and again; the log names them.",
    )

    def __init__(self, timer: Callable[[], float] = time.perf_counter) -> None:
        self.registry = CollectorRegistry()
        for attribute, row in vars(LiveMetrics).items():
            if isinstance(row, _Row):
                collector = row.collector()
                setattr(self, attribute, collector)
                self.registry.register(collector)
        self._of_plugins = PluginMetricsCollector()
        self.registry.register(self._of_plugins)
        # Straight from the callable, as it is asked several times for each pod.
        self.timer = timer  # type: ignore[method-assign]
        for kind in write_metrics.KINDS.values():
            self._writes_waiting.set(0, kind)
        for what in ("books", "watch"):
            self._repairs.add(0, what)
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

    def group_attempt(self, result: str, profile: str, seconds: float) -> None:
        self._group_attempts.add(1, result, profile)
        self._group_attempt_s.observe(seconds, result, profile)

    def group_algorithm_duration(self, seconds: float) -> None:
        self._group_algorithm_s.observe(seconds)

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

    def show_plugin_metrics(self, metrics: PluginMetrics) -> None:
        self._of_plugins.shown = metrics

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
        """Counts kept by ups and downs begin again with the queue that they describe."""
        self._inflight.clear()
        self._unschedulable.clear()

    def leading(self, lease: str, leads: bool) -> None:
        self._leader.set(int(leads), lease)

    def task_failed(self) -> None:
        self._crashes.add(1)

    def oscillates(self) -> None:
        """The pods of a workload are bound and deleted again and again."""
        self._oscillations.add(1)

    def repaired(self, what: str) -> None:
        """The self-check has repaired the `books`, or had a kind listed again (`watch`)."""
        self._repairs.add(1, what)

    def reloaded(self, result: str) -> None:
        self._reloads.add(1, result)
