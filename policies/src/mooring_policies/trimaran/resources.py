"""What pods ask for, and how the load of a node compares with what it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mooring.objects.node import Node
from mooring.objects.pod import Container, Pod
from mooring.objects.quantity import ZERO, Quantity
from mooring.objects.requests import CPU as CPU_NAME
from mooring.objects.requests import MEMORY as MEMORY_NAME
from mooring_policies.trimaran.load import CPU, Metric, average_and_deviation

_MEGA = 1.0 / 1024.0 / 1024.0


@dataclass(frozen=True, slots=True)
class CpuAndMemory:
    """Thousandths of a core, and bytes."""

    cpu: int = 0
    memory: int = 0

    def at_least(self, other: CpuAndMemory) -> CpuAndMemory:
        return CpuAndMemory(max(self.cpu, other.cpu), max(self.memory, other.memory))


def requests_of(pod: Pod) -> CpuAndMemory:
    return _effective(pod, _requests)


def limits_of(pod: Pod) -> CpuAndMemory:
    return _effective(pod, _limits)


def _requests(container: Container) -> Mapping[str, Quantity]:
    return container.resources.requests


def _limits(container: Container) -> Mapping[str, Quantity]:
    return container.resources.limits


def _effective(pod: Pod, of: Callable[[Container], Mapping[str, Quantity]]) -> CpuAndMemory:
    """All containers, at least each init container, and the overhead."""
    containers = [of(each) for each in pod.spec.containers]
    cpu = sum(each.get(CPU_NAME, ZERO).milli_value for each in containers)
    memory = sum(each.get(MEMORY_NAME, ZERO).value for each in containers)
    for container in pod.spec.init_containers:
        cpu = max(cpu, of(container).get(CPU_NAME, ZERO).milli_value)
        memory = max(memory, of(container).get(MEMORY_NAME, ZERO).value)
    overhead = pod.spec.overhead
    return CpuAndMemory(
        cpu + overhead.get(CPU_NAME, ZERO).milli_value,
        memory + overhead.get(MEMORY_NAME, ZERO).value,
    )


@dataclass(frozen=True, slots=True)
class ResourceStats:
    """The use of one resource of a node: thousandths of a core, or mebibytes."""

    used_average: float
    used_deviation: float
    requested: float
    capacity: float

    @property
    def mean_and_deviation(self) -> tuple[float, float]:
        """With the request, as parts of the capacity between 0 and 1."""
        if self.capacity <= 0:
            return 0.0, 0.0
        mean = (self.used_average + self.requested) / self.capacity
        return _between_0_and_1(mean), _between_0_and_1(self.used_deviation / self.capacity)


def stats_of(
    metrics: Sequence[Metric], node: Node, request: CpuAndMemory, resource: str
) -> ResourceStats | None:
    """None if there is no metric of the resource."""
    found = average_and_deviation(metrics, resource)
    if found is None:
        return None
    average, deviation = found
    allocatable = node.status.allocatable
    if resource == CPU:
        capacity = float(allocatable.get(CPU_NAME, ZERO).milli_value)
        requested = float(request.cpu)
    else:
        capacity = float(allocatable.get(MEMORY_NAME, ZERO).value) * _MEGA
        requested = float(request.memory) * _MEGA
    return ResourceStats(average * capacity / 100, deviation * capacity / 100, requested, capacity)


def rounded(number: float) -> int:
    """To the nearest integer; halves away from zero."""
    whole = math.trunc(number)
    return whole + int(math.copysign(1, number)) if abs(number - whole) >= 0.5 else whole


def _between_0_and_1(number: float) -> float:
    return max(min(number, 1.0), 0.0)
