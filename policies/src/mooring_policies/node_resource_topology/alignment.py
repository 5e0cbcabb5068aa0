"""Whether the containers of a pod fit into one NUMA zone each, or the pod into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mooring.objects.pod import Pod
from mooring.objects.quantity import Quantity
from mooring.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from mooring.plugin import Code, NodeInfo, Status, unschedulable
from mooring_policies.node_resource_topology.numa import (
    GUARANTEED,
    NumaNode,
    is_host_level,
    is_numa_affine,
    minus,
    pod_request,
    suffices,
)

#: Upstream's texts, verbatim.
CANNOT_ALIGN_POD = unschedulable("cannot align pod")
CANNOT_ALIGN_CONTAINER = unschedulable("cannot align container")
CANNOT_ALIGN_OTHER = "cannot align {} container"
INCONSISTENT = "inconsistent resource accounting"
EXCEEDS = 'resource "{}" request {} exceeds NUMA {} availability {}'

#: Every node has these, whatever its object says.
_ALWAYS_THERE = (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)
_ALL_ZONES = (1 << 64) - 1


def align_pod(pod: Pod, qos: str, node: NodeInfo, zones: Sequence[NumaNode]) -> Status | None:
    """None if one zone has all that the pod asks for."""
    found = zone_for(pod_request(pod), qos, node, zones)
    return CANNOT_ALIGN_POD if found is None else None


def align_containers(
    pod: Pod, qos: str, node: NodeInfo, zones: Sequence[NumaNode]
) -> Status | None:
    """None if for each container there is a zone with all that it asks for.

    What a container takes, the next one does not have. Init containers take nothing.
    """
    for container in pod.spec.init_containers:
        if zone_for(container.resources.requests, qos, node, zones) is None:
            kind = "sidecar" if container.restartable else "init"
            return unschedulable(CANNOT_ALIGN_OTHER.format(kind))
    for container in pod.spec.containers:
        zone = zone_for(container.resources.requests, qos, node, zones)
        if zone is None:
            return CANNOT_ALIGN_CONTAINER
        if error := take(container.resources.requests, qos, zone, zones):
            return Status(Code.ERROR, (INCONSISTENT, error))
    return None


def zone_for(
    asked: Mapping[str, Quantity], qos: str, node: NodeInfo, zones: Sequence[NumaNode]
) -> int | None:
    """The lowest id of a zone that has all resources; None if there is none."""
    mask = _ALL_ZONES
    for name, quantity in asked.items():
        if not quantity.unscaled:
            continue
        if name not in node.allocatable and name not in _ALWAYS_THERE:
            return None
        having = [zone for zone in zones if name in zone.resources]
        if not having and is_host_level(name):
            continue
        fitting = 0
        for zone in having:
            if suffices(qos, name, quantity, zone.resources[name]):
                fitting |= 1 << zone.id
        mask &= fitting
        if not mask:
            return None
    return (mask & -mask).bit_length() - 1


def take(asked: Mapping[str, Quantity], qos: str, zone_id: int, zones: Sequence[NumaNode]) -> str:
    """Take the resources out of a zone; why that is not possible, or ""."""
    for zone in zones:
        if zone.id != zone_id:
            continue
        for name, quantity in asked.items():
            shared = qos != GUARANTEED and is_numa_affine(name)
            if shared or not quantity.unscaled or name not in zone.resources:
                continue
            available = zone.resources[name]
            left = minus(available, quantity)
            if left.unscaled < 0:
                return EXCEEDS.format(name, quantity.canonical, zone_id, available.canonical)
            zone.resources[name] = left
    return ""
