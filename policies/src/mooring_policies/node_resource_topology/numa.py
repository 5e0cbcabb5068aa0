"""NUMA zones of a node as the rules see them, and what pods ask of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mooring.objects.meta import ResourceList
from mooring.objects.pod import Container, Pod
from mooring.objects.quantity import Quantity
from mooring.objects.requests import CPU, MEMORY
from mooring_policies.node_resource_topology.objects import NodeResourceTopology, ZoneCost

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"

_MOST_IDS = 64
_NANOS = 10**9
_NAME = re.compile(r"node-([0-9]{1,9})", re.ASCII)
_HOST_LEVEL = ("ephemeral-storage", "storage")


@dataclass(frozen=True, slots=True)
class NumaNode:
    """One zone; `resources` changes while containers are tried one after the other."""

    id: int
    resources: ResourceList
    #: The id of each zone → its distance.
    costs: Mapping[int, int]


def numa_nodes(topology: NodeResourceTopology) -> list[NumaNode]:
    """The NUMA zones in the order of the object. Zones whose name has no number are left out."""
    return [
        NumaNode(number, {each.name: each.available for each in zone.resources}, _costs(zone.costs))
        for zone in topology.zones
        if zone.type == "Node" and (number := zone_id(zone.name)) is not None
    ]


def zone_id(name: str) -> int | None:
    """The number in `node-3`; None if there is none."""
    found = _NAME.fullmatch(name)
    if found is None or int(found[1]) >= _MOST_IDS:
        return None
    return int(found[1])


def _costs(costs: Sequence[ZoneCost]) -> dict[int, int]:
    numbered = ((zone_id(cost.name), cost.value) for cost in costs)
    return {number: value for number, value in numbered if number is not None}


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_host_level(name: str) -> bool:
    """Whether the resource need not belong to a zone."""
    return name in _HOST_LEVEL or not is_native(name)


def is_numa_affine(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def suffices(qos: str, name: str, asked: Quantity, available: Quantity) -> bool:
    """Only Guaranteed pods get CPUs and memory of one zone; others share them."""
    if qos != GUARANTEED and is_numa_affine(name):
        return True
    return not asked.exceeds(available)


def minus(a: Quantity, b: Quantity) -> Quantity:
    return a.plus(Quantity(-b.unscaled, b.scale, b.wide))


def pod_request(pod: Pod) -> ResourceList:
    """All containers, at least each init container, and the overhead."""
    total: ResourceList = {}
    for container in pod.spec.containers:
        for name, quantity in container.resources.requests.items():
            total[name] = total[name].plus(quantity) if name in total else quantity
    for container in pod.spec.init_containers:
        for name, quantity in container.resources.requests.items():
            if name not in total or quantity.exceeds(total[name]):
                total[name] = quantity
    for name, quantity in pod.spec.overhead.items():
        total[name] = total[name].plus(quantity) if name in total else quantity
    return total


def includes_devices(pod: Pod) -> bool:
    """Whether a container asks for a resource that Kubernetes itself does not know."""
    return any(
        not is_native(name)
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for name in container.resources.requests
    )


def resource_names(topology: NodeResourceTopology) -> frozenset[str]:
    """What the zones of a node have at all."""
    return frozenset(each.name for zone in topology.zones for each in zone.resources)


def has_exclusive_resources(pod: Pod, names: frozenset[str]) -> bool:
    return next(exclusive_containers(pod, names), None) is not None


def exclusive_containers(pod: Pod, names: frozenset[str]) -> Iterator[Container]:
    """The containers that go on running and have resources of a zone for themselves."""
    qos = qos_of(pod)
    sidecars = (each for each in pod.spec.init_containers if each.restartable)
    for container in (*sidecars, *pod.spec.containers):
        requests = container.resources.requests
        if any(is_exclusive(qos, name, requests[name], names) for name in requests):
            yield container


def is_exclusive(qos: str, name: str, quantity: Quantity, names: frozenset[str]) -> bool:
    """Devices of a zone; of a Guaranteed pod also whole CPUs, memory and huge pages."""
    if not is_native(name):
        return name in names
    if qos != GUARANTEED or quantity.unscaled <= 0 or not is_numa_affine(name):
        return False
    return name != CPU or quantity.nanos % _NANOS == 0


def qos_of(pod: Pod) -> str:
    """The QoS class, by the CPUs and memory of all containers."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    guaranteed = True
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for total, given in (
            (requests, container.resources.requests),
            (limits, container.resources.limits),
        ):
            for name in (CPU, MEMORY):
                if name in given and given[name].unscaled > 0:
                    total[name] = total.get(name, 0) + given[name].nanos
        own = container.resources.limits
        if not all(name in own and own[name].unscaled > 0 for name in (CPU, MEMORY)):
            guaranteed = False
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if guaranteed and requests == limits else BURSTABLE
