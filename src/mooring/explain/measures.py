"""Measures of a placement: utilisation, balance, fragmentation and spread.

All formulas use only the allocatable resources of nodes and the requests of pods:

utilisation of r       requested(r) / allocatable(r), over all nodes
imbalance of r         the standard deviation over the nodes of requested(r) / allocatable(r)
fragmentation of r     the share of the free r on nodes where a typical pod does not fit:
                       Σ_shapes w(s) · Σ_nodes free(n, r) · [s does not fit on n]  /  Σ_nodes free(n, r)
                       over the shapes s (distinct requests) of the pods that request r, weighted by the
                       number of their pods. 0: every pod fits on every node; 1: no pod fits anywhere.
zone skew              of a workload: its most pods in a zone minus its fewest pods in a zone

Fragmentation follows Weng et al., 'Beware of Fragmentation' (USENIX ATC 2023), for any resource. Only
requests decide whether a pod fits: taints and affinity are not fragmentation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.node_info import NodeInfo
from mooring.objects.pod import Pod
from mooring.objects.requests import CPU, MEMORY, PODS
from mooring.objects.well_known import ZONE

#: Rarer shapes are left out, to limit the time for clusters with many kinds of pods.
MOST_SHAPES = 100


@dataclass(frozen=True, slots=True)
class Shapes:
    """The distinct requests of pods, and how many pods have each."""

    #: The resources that pods request. `pods` is one of them: every pod requests one.
    resources: tuple[str, ...]
    #: int64[shape, resource].
    requests: NDArray[np.int64]
    #: float64[shape]: how many pods have it.
    weights: NDArray[np.float64]


def shapes_of(pods: Iterable[Pod]) -> Shapes:
    counts = Counter(
        tuple(sorted((name, amount) for name, amount in pod.requests.items() if amount))
        for pod in pods
    )
    common = counts.most_common(MOST_SHAPES)
    named = sorted({name for shape, _ in common for name, _ in shape})
    resources = tuple(dict.fromkeys((CPU, MEMORY, PODS, *named)))
    requests = np.zeros((len(common), len(resources)), np.int64)
    requests[:, resources.index(PODS)] = 1
    for i, (shape, _) in enumerate(common):
        for name, amount in shape:
            requests[i, resources.index(name)] = amount
    return Shapes(resources, requests, np.array([count for _, count in common], np.float64))


@dataclass(frozen=True, slots=True)
class ResourceMeasures:
    """One resource over all nodes; shares are 0..1, or None if no node has the resource."""

    resource: str
    requested: int
    allocatable: int
    utilisation: float | None
    #: The standard deviation of the nodes' utilisation.
    imbalance: float | None
    #: Also None if no pod requests the resource.
    fragmentation: float | None


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly the workloads with two or more placed pods are spread over zones and nodes."""

    workloads: int
    zones: int
    #: None without workloads, or with fewer than two zones.
    mean_zone_skew: float | None
    max_zone_skew: int | None
    #: The workload with the largest skew; "" if there is none.
    worst: str
    #: The mean over workloads of the largest share of its pods on one node.
    mean_node_share: float | None


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of a cluster."""

    nodes: int
    #: Nodes that hold a pod.
    nodes_in_use: int
    pods: int
    resources: tuple[ResourceMeasures, ...]
    spread: Spread

    def to_data(self) -> dict[str, Any]:
        return {
            "nodes": self.nodes,
            "nodesInUse": self.nodes_in_use,
            "pods": self.pods,
            "resources": {
                each.resource: {
                    "requested": each.requested,
                    "allocatable": each.allocatable,
                    "utilisation": each.utilisation,
                    "imbalance": each.imbalance,
                    "fragmentation": each.fragmentation,
                }
                for each in self.resources
            },
            "spread": {
                "workloads": self.spread.workloads,
                "zones": self.spread.zones,
                "meanZoneSkew": self.spread.mean_zone_skew,
                "maxZoneSkew": self.spread.max_zone_skew,
                "worst": self.spread.worst,
                "meanNodeShare": self.spread.mean_node_share,
            },
        }


def measure(
    infos: Iterable[NodeInfo], shapes: Shapes, devices: Sequence[ResourceMeasures] = ()
) -> Measures:
    """`devices` are the measures of classes of devices."""
    known = [info for info in infos if info.node is not None]
    return Measures(
        nodes=len(known),
        nodes_in_use=sum(1 for info in known if info.pods),
        pods=sum(len(info.pods) for info in known),
        resources=(*measure_resources(known, shapes), *devices),
        spread=measure_spread(known),
    )


def measure_resources(infos: Sequence[NodeInfo], shapes: Shapes) -> tuple[ResourceMeasures, ...]:
    resources = shapes.resources
    return measure_amounts(_allocatable(infos, resources), _requested(infos, resources), shapes)


def measure_amounts(
    allocatable: NDArray[np.int64], requested: NDArray[np.int64], shapes: Shapes
) -> tuple[ResourceMeasures, ...]:
    """From int64[resource, node] arrays, with the resources in the order of the shapes."""
    fragmentation = _fragmentation(np.maximum(allocatable - requested, 0), shapes)
    measures = []
    for i, resource in enumerate(shapes.resources):
        total = int(allocatable[i].sum())
        offered = allocatable[i] > 0
        loads = requested[i][offered] / allocatable[i][offered]
        measures.append(
            ResourceMeasures(
                resource=resource,
                requested=int(requested[i].sum()),
                allocatable=total,
                utilisation=_rounded(requested[i].sum() / total) if total else None,
                imbalance=_rounded(loads.std()) if len(loads) else None,
                fragmentation=fragmentation[i],
            )
        )
    return tuple(measures)


def measure_spread(infos: Sequence[NodeInfo]) -> Spread:
    zones = sorted({info.labels[ZONE] for info in infos if ZONE in info.labels})
    by_zone: dict[str, Counter[str]] = {}
    by_node: dict[str, Counter[str]] = {}
    for info in infos:
        for pod in info.pods.values():
            workload = workload_of(pod)
            if not workload:
                continue
            by_node.setdefault(workload, Counter())[info.name] += 1
            if ZONE in info.labels:
                by_zone.setdefault(workload, Counter())[info.labels[ZONE]] += 1
    measured = sorted(name for name, counts in by_node.items() if counts.total() > 1)
    skews = {
        name: _skew(by_zone.get(name, Counter()), zones) for name in measured if len(zones) > 1
    }
    worst = max(skews, key=lambda name: skews[name], default="")
    shares = [max(by_node[name].values()) / by_node[name].total() for name in measured]
    return Spread(
        workloads=len(measured),
        zones=len(zones),
        mean_zone_skew=_rounded(sum(skews.values()) / len(skews)) if skews else None,
        max_zone_skew=skews[worst] if skews else None,
        worst=worst,
        mean_node_share=_rounded(sum(shares) / len(shares)) if shares else None,
    )


def workload_of(pod: Pod) -> str:
    """`ReplicaSet shop/web-5d9`; "" for a pod without a controller, and for DaemonSet pods."""
    owner = pod.metadata.controller
    if owner is None or owner.kind == "DaemonSet":
        return ""
    return f"{owner.kind} {pod.namespace}/{owner.name}"


def _skew(counts: Mapping[str, int], zones: Sequence[str]) -> int:
    each = [counts.get(zone, 0) for zone in zones]
    return max(each) - min(each)


def _fragmentation(free: NDArray[np.int64], shapes: Shapes) -> list[float | None]:
    """By resource; `free` is int64[resource, node]."""
    asked = shapes.requests > 0
    # A shape fits even if a resource that it does not request is overcommitted.
    fits = np.ones((len(shapes.weights), free.shape[1]), bool)
    for i in range(len(shapes.resources)):
        fits &= (free[i][None, :] >= shapes.requests[:, i, None]) | ~asked[:, i, None]
    found: list[float | None] = []
    for i in range(len(shapes.resources)):
        weights = np.where(asked[:, i], shapes.weights, 0.0)
        total_free, total_weight = float(free[i].sum()), float(weights.sum())
        if not total_free or not total_weight:
            found.append(None)
            continue
        unusable = (~fits) @ free[i].astype(np.float64)
        found.append(_rounded(float(weights @ unusable) / (total_weight * total_free)))
    return found


def _allocatable(infos: Sequence[NodeInfo], resources: Sequence[str]) -> NDArray[np.int64]:
    """int64[resource, node]."""
    offered = [info.allocatable for info in infos]
    return _table(
        [
            [info.allowed_pods for info in infos]
            if resource == PODS
            else [amounts.get(resource, 0) for amounts in offered]
            for resource in resources
        ],
        len(infos),
    )


def _requested(infos: Sequence[NodeInfo], resources: Sequence[str]) -> NDArray[np.int64]:
    """int64[resource, node]."""
    requested = [info.requested for info in infos]
    return _table(
        [
            [len(info.pods.values()) for info in infos]
            if resource == PODS
            else [amounts.get(resource, 0) for amounts in requested]
            for resource in resources
        ],
        len(infos),
    )


def _table(rows: Sequence[Sequence[int]], nodes: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(len(rows), nodes)


def _rounded(share: float) -> float:
    return round(float(share), 4)
