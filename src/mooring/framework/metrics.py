"""Metrics of plugins: what a plugin counts about itself.

A plugin asks its handle for a metric once, by name, and reports to it. A live scheduler shows the metrics
on `/metrics`, a simulation has them as data (`PluginMetrics.to_data`).

    self._waits = handle.metrics.counter("quota_waits_total", "Pods that waited.", "team")
    ...
    self._waits.inc("blue")
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

from mooring.errors import PluginError

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
#: Metrics of the scheduler itself.
_RESERVED = ("scheduler_", "mooring_", "leader_election_")
#: Bounds in seconds that suit most durations.
DEFAULT_BOUNDS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)

Labels = tuple[str, ...]


class Metric:
    """A name, a text for users, and a value for each combination of labels."""

    #: The word of Prometheus.
    kind = ""

    def __init__(self, name: str, text: str, labels: Labels) -> None:
        self.name = name
        self.text = text
        #: The names of the labels. Values are given in this order.
        self.labels = labels

    def _check(self, values: Labels) -> None:
        if len(values) != len(self.labels):
            raise PluginError(
                f"metric {self.name}: {len(values)} label values for the labels {self.labels}"
            )

    def to_data(self) -> dict[str, Any]:
        rows = [
            {"labels": dict(zip(self.labels, values, strict=True)), "value": value}
            for values, value in self.rows()
        ]
        return {"name": self.name, "kind": self.kind, "help": self.text, "values": rows}

    def rows(self) -> Iterator[tuple[Labels, Any]]:
        """Label values, and what was reported for them: a copy, as another thread may read it."""
        raise NotImplementedError


class Counter(Metric):
    """A number that only grows."""

    kind = "counter"

    def __init__(self, name: str, text: str, labels: Labels) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, float] = {}

    def inc(self, *labels: str, by: float = 1) -> None:
        self._check(labels)
        if by < 0:
            raise PluginError(f"metric {self.name}: a counter cannot go down")
        self._values[labels] = self._values.get(labels, 0) + by

    def rows(self) -> Iterator[tuple[Labels, Any]]:
        return iter(list(self._values.items()))


class Gauge(Metric):
    """A number that is set."""

    kind = "gauge"

    def __init__(self, name: str, text: str, labels: Labels) -> None:
        super().__init__(name, text, labels)
        self._values: dict[Labels, float] = {}

    def set(self, value: float, *labels: str) -> None:
        self._check(labels)
        self._values[labels] = value

    def rows(self) -> Iterator[tuple[Labels, Any]]:
        return iter(list(self._values.items()))


class Histogram(Metric):
    """How many values were at most as large as each bound, and their sum."""

    kind = "histogram"

    def __init__(self, name: str, text: str, labels: Labels, bounds: Sequence[float]) -> None:
        super().__init__(name, text, labels)
        self.bounds = tuple(sorted(bounds))
        #: Label values → how many values fell below each bound and above the one before; the last counts
        #: those above all bounds.
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *labels: str) -> None:
        self._check(labels)
        counts = self._counts.setdefault(labels, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self._sums[labels] = self._sums.get(labels, 0.0) + value

    def rows(self) -> Iterator[tuple[Labels, Any]]:
        for labels, counts in list(self._counts.items()):
            upto = [sum(counts[: i + 1]) for i in range(len(self.bounds))]
            buckets = dict(zip(map(str, self.bounds), upto, strict=True))
            yield (
                labels,
                {"buckets": buckets, "count": sum(counts), "sum": self._sums[labels]},
            )


M = TypeVar("M", bound=Metric)


class PluginMetrics:
    """The metrics of all plugins of a scheduler, by name."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def counter(self, name: str, text: str, *labels: str) -> Counter:
        """Its name ends in `_total`."""
        if not name.endswith("_total"):
            raise PluginError(f"metric {name!r}: the name of a counter ends in _total")
        return self._keep(Counter(name, text, labels))

    def gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return self._keep(Gauge(name, text, labels))

    def histogram(
        self, name: str, text: str, *labels: str, bounds: Sequence[float] = DEFAULT_BOUNDS
    ) -> Histogram:
        return self._keep(Histogram(name, text, labels, bounds))

    def _keep(self, metric: M) -> M:
        """Plugins of several profiles that name the same metric share it. Raises PluginError."""
        name = metric.name
        if not _NAME.fullmatch(name) or name.startswith(_RESERVED):
            raise PluginError(
                f"metric {name!r}: a name has letters, digits and underscores,"
                f" and does not begin with {', '.join(_RESERVED)}"
            )
        known = self._metrics.setdefault(name, metric)
        if type(known) is not type(metric) or known.labels != metric.labels:
            raise PluginError(
                f"metric {name!r} exists as a {known.kind} with the labels {known.labels}"
            )
        return known

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics.values())

    def __len__(self) -> int:
        return len(self._metrics)

    def to_data(self) -> list[dict[str, Any]]:
        """One entry a metric, with a value for each combination of labels that was reported."""
        return [metric.to_data() for metric in self]


class PreemptionMetrics(Protocol):
    """The metrics of the reference that a plugin feeds which evicts pods."""

    def timer(self) -> float:
        """Seconds of a clock that only durations are taken from."""
        ...

    def preemption_victims(self, count: int) -> None:
        """So many pods are to leave for one."""
        ...

    def evicted(self, result: str, seconds: float) -> None:
        """The victims of a preemption have been sent away: `success`, or `error` if not all were."""
        ...
