"""Common machine types of cloud providers, and what of them is left for pods.

`instance_types.csv` has the types. What kubelet and system reserve follows the published formulas of EKS,
GKE and AKS:

    allocatable = capacity - reserved - eviction threshold

Memory is the nominal memory of the type: what the hypervisor keeps for itself is published nowhere.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from itertools import pairwise

_MI, _GI = 2**20, 2**30
#: All three providers evict pods when less memory than this is free.
_EVICTION_BYTES = 100 * _MI
#: Kubelet evicts pods when less than this share of the disk is free.
_DISK_EVICTION_PERCENT = 10
_AZURE_PREFIX = "standard_"
_MOST_SUGGESTIONS = 4


@dataclass(frozen=True, slots=True)
class InstanceType:
    """A machine type as its provider describes it."""

    provider: str
    name: str
    arch: str
    cpu_milli: int
    memory_bytes: int
    pods: int
    #: The extended resource of its accelerators, and how many it has.
    gpu_resource: str = ""
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Allocatable:
    """What pods can request."""

    cpu_milli: int
    memory_bytes: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class Provider:
    """How the managed Kubernetes of a provider sets up a node."""

    region: str
    #: The name of the n-th zone, from 0.
    zone: Callable[[int], str]
    #: The label by which its driver of network disks names the zone of a node.
    disk_zone_label: str
    #: The disk of a node by default.
    disk_bytes: int
    reserved_cpu_milli: Callable[[InstanceType], int]
    #: By type and the most pods of the node.
    reserved_memory_bytes: Callable[[InstanceType, int], int]
    reserved_disk_bytes: Callable[[int], int]


def allocatable(kind: InstanceType, *, pods: int, disk_bytes: int) -> Allocatable:
    """What is left of the type for pods, if the node takes at most so many."""
    provider = PROVIDERS[kind.provider]
    reserved_memory = provider.reserved_memory_bytes(kind, pods)
    reserved_disk = provider.reserved_disk_bytes(disk_bytes)
    evicted_disk = disk_bytes * _DISK_EVICTION_PERCENT // 100
    return Allocatable(
        cpu_milli=kind.cpu_milli - provider.reserved_cpu_milli(kind),
        memory_bytes=max(0, kind.memory_bytes - reserved_memory - _EVICTION_BYTES),
        disk_bytes=max(0, disk_bytes - reserved_disk - evicted_disk),
    )


def default_pods(kind: InstanceType) -> int:
    """The most pods of a node. EKS caps it at 110 below 30 vCPUs, and at 250 otherwise."""
    if kind.provider != "aws":
        return kind.pods
    return min(kind.pods, 110 if kind.cpu_milli < 30_000 else 250)


def find_instance_type(name: str) -> InstanceType | None:
    """By its name in any case; `Standard_` of Azure can be left out."""
    return _by_lower_name().get(_normalised(name))


def similar_instance_types(name: str) -> list[str]:
    known = _by_lower_name()
    close = get_close_matches(_normalised(name), known, n=_MOST_SUGGESTIONS)
    return [known[each].name for each in close]


@cache
def instance_types() -> tuple[InstanceType, ...]:
    text = (resources.files("mooring.objects") / "instance_types.csv").read_text("utf-8")
    return tuple(
        InstanceType(
            provider=row["provider"],
            name=row["name"],
            arch=row["arch"],
            cpu_milli=int(row["cpu"]) * 1000,
            memory_bytes=round(float(row["memory_gib"]) * _GI),
            pods=int(row["pods"]),
            gpu_resource=row["gpu_resource"],
            gpus=int(row["gpus"] or 0),
        )
        for row in csv.DictReader(text.splitlines())
    )


@cache
def _by_lower_name() -> Mapping[str, InstanceType]:
    return {_normalised(each.name): each for each in instance_types()}


def _normalised(name: str) -> str:
    return name.lower().removeprefix(_AZURE_PREFIX)


# What is reserved


def _shares(amount: int, *steps: tuple[int, float]) -> int:
    """Sum the shares of an amount: each step is a lower bound and the percentage above it."""
    bounds = [*steps, (amount, 0.0)]
    return round(
        sum(
            max(0, min(amount, upper) - lower) * percent / 100
            for (lower, percent), (upper, _) in pairwise(bounds)
        )
    )


def _cpu_by_cores(kind: InstanceType) -> int:
    """EKS and GKE: 6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of the others."""
    return _shares(kind.cpu_milli, (0, 6), (1000, 1), (2000, 0.5), (4000, 0.25))


def _gke_cpu(kind: InstanceType) -> int:
    """Machines that share a core reserve more than a core."""
    return 1060 if kind.name in ("e2-micro", "e2-small", "e2-medium") else _cpu_by_cores(kind)


def _eks_memory(kind: InstanceType, pods: int) -> int:
    """By the pods that its network interfaces allow: a lower maximum of the node changes nothing."""
    return (255 + 11 * kind.pods) * _MI


def _gke_memory(kind: InstanceType, pods: int) -> int:
    if kind.memory_bytes < _GI:
        return 255 * _MI
    return _shares(
        kind.memory_bytes, (0, 25), (4 * _GI, 20), (8 * _GI, 10), (16 * _GI, 6), (128 * _GI, 2)
    )


def _gke_disk(disk_bytes: int) -> int:
    return min(disk_bytes // 2, 6 * _GI + disk_bytes * 35 // 100, 100 * _GI)


#: Cores → millicores; between two sizes, in proportion.
_AKS_CPU = {1: 60, 2: 100, 4: 140, 8: 180, 16: 260, 32: 420, 64: 740}


def _aks_cpu(kind: InstanceType) -> int:
    cores = kind.cpu_milli // 1000
    if cores >= 64:
        # The table ends here; its last steps are 10 millicores per core.
        return 740 + (cores - 64) * 10
    for (low, least), (high, most) in pairwise(_AKS_CPU.items()):
        if low <= cores <= high:
            return least + (most - least) * (cores - low) // (high - low)
    return _AKS_CPU[1]


def _aks_memory(kind: InstanceType, pods: int) -> int:
    return min((20 * pods + 50) * 1_000_000, kind.memory_bytes // 4)


PROVIDERS: Mapping[str, Provider] = {
    "aws": Provider(
        region="us-east-1",
        zone=lambda n: f"us-east-1{chr(ord('a') + n)}",
        disk_zone_label="topology.ebs.csi.aws.com/zone",
        disk_bytes=20 * _GI,
        reserved_cpu_milli=_cpu_by_cores,
        reserved_memory_bytes=_eks_memory,
        reserved_disk_bytes=lambda disk_bytes: min(_GI, disk_bytes),
    ),
    "gcp": Provider(
        region="us-central1",
        zone=lambda n: f"us-central1-{chr(ord('a') + n)}",
        disk_zone_label="topology.gke.io/zone",
        disk_bytes=100 * _GI,
        reserved_cpu_milli=_gke_cpu,
        reserved_memory_bytes=_gke_memory,
        reserved_disk_bytes=_gke_disk,
    ),
    "azure": Provider(
        region="eastus",
        zone=lambda n: f"eastus-{n + 1}",
        disk_zone_label="topology.disk.csi.azure.com/zone",
        disk_bytes=128 * _GI,
        reserved_cpu_milli=_aks_cpu,
        reserved_memory_bytes=_aks_memory,
        reserved_disk_bytes=lambda disk_bytes: 0,
    ),
}
