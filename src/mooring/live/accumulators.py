"""Counters, gauges and histograms that cost next to nothing to feed.

The Prometheus library takes a lock for every bucket it passes; a pod is worth a dozen observations, so here
an observation is a bisection and two additions. One thread feeds them. The thread that answers `/metrics`
reads them meanwhile: every read is of a copy, so that at worst a sum is one observation ahead of its count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

Labels = tuple[str, ...]


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    return tuple(start * factor**i for i in range(count))


class _Numbers(Collector):
    """A number for each combination of labels."""

    _family: Any

    def __init__(self, name: str, text: str, *labels: str) -> None:
        self._name = name
        self._text = text
        self._labels = labels
        self._values: dict[Labels, float] = {}
        if not labels:
            self._values[()] = 0.0

    def add(self, change: float, *labels: str) -> None:
        values = self._values
        values[labels] = values.get(labels, 0.0) + change

    def collect(self) -> Iterator[Metric]:
        family = self._family(self._name, self._text, labels=self._labels)
        for labels, value in list(self._values.items()):
            family.add_metric(labels, value)
        yield family


class Counter(_Numbers):
    """Only ever goes up; its name ends in `_total`."""

    _family = CounterMetricFamily


class Gauge(_Numbers):
    """Goes up and down."""

    _family = GaugeMetricFamily

    def set(self, value: float, *labels: str) -> None:
        self._values[labels] = value

    def clear(self) -> None:
        """Every known series is 0 again."""
        self._values = dict.fromkeys(self._values, 0.0)


class Histogram(Collector):
    """How often values came, up to which bound."""

    def __init__(self, name: str, text: str, bounds: Sequence[float], *labels: str) -> None:
        self._name = name
        self._text = text
        self._bounds = tuple(bounds)
        self._texts = [*(str(float(bound)) for bound in bounds), "+Inf"]
        self._labels = labels
        self._series: dict[Labels, _Observations] = {}
        if not labels:
            self._new(())

    def observe(self, value: float, *labels: str) -> None:
        series = self._series.get(labels) or self._new(labels)
        series.counts[bisect_left(self._bounds, value)] += 1
        series.sum += value

    def _new(self, labels: Labels) -> _Observations:
        series = self._series[labels] = _Observations(len(self._texts))
        return series

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for labels, series in list(self._series.items()):
            up_to = accumulate(list(series.counts))
            family.add_metric(labels, list(zip(self._texts, up_to, strict=True)), series.sum)
        yield family


class _Observations:
    """One series of a histogram."""

    __slots__ = ("counts", "sum")

    def __init__(self, buckets: int) -> None:
        #: Values in each bucket alone, the last without a bound.
        self.counts = [0] * buckets
        self.sum = 0.0
