"""The load of nodes, as load-watcher describes it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

CPU = "CPU"
MEMORY = "Memory"
AVERAGE = "AVG"
DEVIATION = "STD"
LATEST = "Latest"


class Metric(msgspec.Struct, frozen=True):
    """One number: the use of a resource, in percent of the node's capacity."""

    #: CPU or Memory.
    type: str = ""
    #: AVG, STD, Latest or nothing.
    operator: str = ""
    value: float = 0.0


class Window(msgspec.Struct, frozen=True):
    """When the load was measured, in seconds since the epoch."""

    start: int = 0
    end: int = 0


class HostMetrics(msgspec.Struct, frozen=True):
    metrics: tuple[Metric, ...] | None = None


class Data(msgspec.Struct, frozen=True):
    by_node: dict[str, HostMetrics] | None = msgspec.field(default=None, name="NodeMetricsMap")


class Load(msgspec.Struct, frozen=True):
    """The load of all nodes."""

    timestamp: int = 0
    window: Window = Window()
    data: Data = Data()

    def of(self, node_name: str) -> Sequence[Metric] | None:
        """None if nothing is known of the node."""
        found = (self.data.by_node or {}).get(node_name)
        return None if found is None else found.metrics


def average_and_deviation(metrics: Sequence[Metric], resource: str) -> tuple[float, float] | None:
    """In percent; None if there is no metric of the resource.

    An average goes before the latest value. Of several of one kind, the last one counts.
    """
    found, has_average = False, False
    average = deviation = 0.0
    for metric in metrics:
        if metric.type != resource:
            continue
        found = True
        if metric.operator == AVERAGE:
            average, has_average = metric.value, True
        elif metric.operator == DEVIATION:
            deviation = metric.value
        elif metric.operator in ("", LATEST) and not has_average:
            average = metric.value
    return (average, deviation) if found else None
