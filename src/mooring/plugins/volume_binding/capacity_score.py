"""Scores for how full a node's storage would be (with the gate StorageCapacityScoring)."""

from __future__ import annotations

from collections.abc import Iterator

from mooring.objects.claims import requested_storage, storage_capacity
from mooring.objects.quantity import wrap_int64
from mooring.plugin import Ints
from mooring.plugins.resource_scoring import MAX_UTILIZATION, tdiv
from mooring.plugins.volume_binding.search import PodVolumes


def capacity_score(volumes: PodVolumes, curve: Ints) -> int:
    """The mean, over the classes of the pod's volumes, of what the curve gives for each.

    ``curve[requested * 100 / capacity]``, or the end of the curve if the capacity is 0 or less than
    requested; the mean is rounded half up. Volumes to provision count only if none is bound, and
    only if their storage pool is known.

    curve
        ``int64[101]``: a score for every utilization in percent.
    """
    requested: dict[str, int] = {}
    capacities: dict[str, int] = {}
    for class_name, request, capacity in _static(volumes):
        requested[class_name] = requested.get(class_name, 0) + request
        capacities[class_name] = capacities.get(class_name, 0) + capacity
    if not volumes.static:
        for class_name, request, capacity in _provisioned(volumes):
            requested[class_name] = requested.get(class_name, 0) + request
            # Not a sum: all volumes of the class come from one pool.
            capacities[class_name] = capacity
    if not requested:
        return 0
    total = sum(
        int(curve[_utilization(requested[class_name], capacities[class_name])])
        for class_name in requested
    )
    return (2 * total + len(requested)) // (2 * len(requested))


def _static(volumes: PodVolumes) -> Iterator[tuple[str, int, int]]:
    for claim, volume in volumes.static:
        request, capacity = requested_storage(claim).value, storage_capacity(volume).value
        yield volume.spec.storage_class_name, request, capacity


def _provisioned(volumes: PodVolumes) -> Iterator[tuple[str, int, int]]:
    for claim in volumes.provisions:
        pool = volumes.pools.get(claim.key)
        if pool is not None:
            capacity = 0 if pool.capacity is None else pool.capacity.value
            yield claim.spec.storage_class_name or "", requested_storage(claim).value, capacity


def _utilization(requested: int, capacity: int) -> int:
    if capacity == 0 or requested > capacity:
        return MAX_UTILIZATION
    percent = tdiv(wrap_int64(requested * MAX_UTILIZATION), capacity)
    return max(0, min(percent, MAX_UTILIZATION))
