"""`preemptionMode: Enabled`: what the zones of a node would have without some of its pods."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.objects.meta import ResourceList
from mooring.objects.pod import Pod
from mooring_policies.node_resource_topology.numa import (
    GUARANTEED,
    includes_devices,
    is_exclusive,
    qos_of,
    resource_names,
    zone_id,
)
from mooring_policies.node_resource_topology.objects import NodeResourceTopology, Zone
from mooring_policies.node_resource_topology.placement import Placement, container_hash

NOTHING_TO_ADD = "no resources to add, cannot process eviction simulation"
TOO_MUCH = "resource release request exceeds NUMA allocatable"


class NotPossible(Exception):
    """The object and the evicted pods do not fit together; the text is upstream's."""


def without_pods(
    topology: NodeResourceTopology, pods: Iterable[Pod], placement: Placement
) -> NodeResourceTopology:
    """The object with what these pods have for themselves as available. Raises NotPossible."""
    freed = _freed(pods, placement, resource_names(topology))
    if not freed:
        raise NotPossible(NOTHING_TO_ADD)
    zones = [_with(zone, freed.get(zone_id(zone.name), {})) for zone in topology.zones]
    return replace(topology, zones=zones)


def _freed(
    pods: Iterable[Pod], placement: Placement, names: frozenset[str]
) -> dict[int | None, ResourceList]:
    """The id of a zone → what the pods have there for themselves."""
    freed: dict[int | None, ResourceList] = {}
    for pod in pods:
        qos = qos_of(pod)
        if qos != GUARANTEED and not includes_devices(pod):
            continue
        for container in pod.spec.containers:
            zone = placement.get(container_hash(pod, container.name))
            if zone is None:
                continue
            for name, quantity in container.resources.requests.items():
                if is_exclusive(qos, name, quantity, names):
                    held = freed.setdefault(zone, {})
                    held[name] = held[name].plus(quantity) if name in held else quantity
    return freed


def _with(zone: Zone, freed: ResourceList) -> Zone:
    resources = []
    for each in zone.resources:
        if each.name in freed:
            available = each.available.plus(freed[each.name])
            if available.exceeds(each.allocatable):
                raise NotPossible(TOO_MUCH)
            each = replace(each, available=available)
        resources.append(each)
    return replace(zone, resources=resources)
