"""Measures of devices by class: utilisation, imbalance and fragmentation, as for other resources.

Only devices of one node, which a claim has for itself, are counted. The allocator says whether a claim fits
on a node:

fragmentation of c     the share of the free devices of class c on nodes where a typical claim gets none:
                       Σ_claims Σ_nodes free(n, c) · [one more such claim does not fit on n]
                       /  (number of claims · Σ_nodes free(n, c))
                       over the claims that ask for devices of class c
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from mooring.cluster.cache import Cluster
from mooring.cluster.device_classes import DEVICE_CLASS_PREFIX
from mooring.cluster.device_usage import ClassUse, DeviceUsage
from mooring.devices.step_limit import after_steps_of
from mooring.errors import MooringError
from mooring.explain.devices import LONGEST_SEARCH_S, classes_of
from mooring.explain.measures import ResourceMeasures
from mooring.objects.devices import ResourceClaim, ResourceClaimStatus
from mooring.objects.meta import canonical_hook

#: Rarer kinds of claims are left out, and so is fragmentation on clusters with more nodes than this, to
#: limit the time.
_MOST_SHAPES = 10
_MOST_NODES = 1_000


def measure_devices(cluster: Cluster) -> tuple[ResourceMeasures, ...]:
    """None for a cluster without devices."""
    usage = DeviceUsage(cluster)
    if not usage.devices:
        return ()
    on_nodes = usage.by_node_and_class()
    nodes = sorted(name for name in on_nodes if name)
    classes = sorted({name for node in nodes for name, use in on_nodes[node].items() if use.whole})
    shapes = _shapes(cluster, nodes) if len(nodes) <= _MOST_NODES else []
    empty = ClassUse("")
    return tuple(
        _measured(
            name,
            np.array([on_nodes[node].get(name, empty).whole for node in nodes], np.int64),
            np.array([on_nodes[node].get(name, empty).whole_in_use for node in nodes], np.int64),
            np.array([on_nodes[node].get(name, empty).count("free") for node in nodes], np.int64),
            [shape for shape in shapes if name in shape.classes],
        )
        for name in classes
    )


@dataclass(frozen=True, slots=True)
class _Shape:
    """Claims that ask for the same."""

    classes: frozenset[str]
    #: How many there are.
    count: int
    #: bool[node]: whether one more would get its devices.
    fits: NDArray[np.bool_]


def _shapes(cluster: Cluster, nodes: list[str]) -> list[_Shape]:
    alike: dict[bytes, list[ResourceClaim]] = {}
    encoder = msgspec.json.Encoder(enc_hook=canonical_hook)
    for claim in cluster.claims.all():
        alike.setdefault(encoder.encode(claim.spec), []).append(claim)
    common = sorted(alike.values(), key=lambda claims: -len(claims))[:_MOST_SHAPES]
    return [
        _Shape(
            frozenset(classes_of(claims[0].spec)),
            len(claims),
            np.array([_fits(cluster, claims[0], node) for node in nodes], np.bool_),
        )
        for claims in common
    ]


def _fits(cluster: Cluster, claim: ResourceClaim, name: str) -> bool:
    """Whether the node has devices for one more claim like this."""
    node = cluster.infos[name].node
    another = replace(claim, status=ResourceClaimStatus())
    try:
        expired = after_steps_of(LONGEST_SEARCH_S)
        found = node and cluster.device_pools.allocator().allocate(node, [another], expired)
    except MooringError:
        return False
    return bool(found)


def _measured(
    name: str,
    offered: NDArray[np.int64],
    in_use: NDArray[np.int64],
    free: NDArray[np.int64],
    shapes: list[_Shape],
) -> ResourceMeasures:
    total, used = int(offered.sum()), int(in_use.sum())
    loads = in_use[offered > 0] / offered[offered > 0]
    claims = sum(shape.count for shape in shapes)
    fragmentation = None
    if claims and free.sum():
        unusable = sum(shape.count * int(free[~shape.fits].sum()) for shape in shapes)
        fragmentation = round(unusable / (claims * int(free.sum())), 4)
    return ResourceMeasures(
        resource=DEVICE_CLASS_PREFIX + name,
        requested=used,
        allocatable=total,
        utilisation=round(used / total, 4) if total else None,
        imbalance=round(float(loads.std()), 4) if len(loads) else None,
        fragmentation=fragmentation,
    )
