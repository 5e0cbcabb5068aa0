"""The metrics that plugins keep about themselves, for `/metrics`."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from mooring.framework import metrics
from mooring.framework.metrics import PluginMetrics


class PluginMetricsCollector(Collector):
    """Shows the metrics of the scheduler's plugins; a new configuration brings new ones."""

    def __init__(self) -> None:
        self.shown = PluginMetrics()

    def collect(self) -> Iterator[Metric]:
        return map(_family, list(self.shown))


def _family(metric: metrics.Metric) -> Metric:
    if isinstance(metric, metrics.Histogram):
        histogram = HistogramMetricFamily(metric.name, metric.text, labels=metric.labels)
        for labels, value in metric.rows():
            buckets = [*value["buckets"].items(), ("+Inf", value["count"])]
            histogram.add_metric(labels, buckets, value["sum"])
        return histogram
    numbers: CounterMetricFamily | GaugeMetricFamily
    if isinstance(metric, metrics.Counter):
        numbers = CounterMetricFamily(metric.name, metric.text, labels=metric.labels)
    else:
        numbers = GaugeMetricFamily(metric.name, metric.text, labels=metric.labels)
    for labels, value in metric.rows():
        numbers.add_metric(labels, value)
    return numbers
