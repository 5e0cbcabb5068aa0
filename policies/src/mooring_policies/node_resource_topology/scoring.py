"""The strategies by which zones are scored for a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from mooring.objects.pod import Pod
from mooring.objects.quantity import ZERO, Quantity
from mooring.plugin import MAX_SCORE, MIN_SCORE
from mooring_policies.node_resource_topology.numa import NumaNode, minus, pod_request, suffices
from mooring_policies.node_resource_topology.objects import POD, TopologyManager

LEAST, MOST = "LeastAllocated", "MostAllocated"
BALANCED, LEAST_NUMA = "BalancedAllocation", "LeastNUMANodes"

Resources = Mapping[str, Quantity]
#: (what is asked for, what a zone has, weights) → score
Strategy = Callable[[Resources, Resources, Mapping[str, int]], int]

_FARTHEST = 255


def score_by_zones(
    pod: Pod,
    zones: Sequence[NumaNode],
    manager: TopologyManager,
    strategy: Strategy,
    weights: Mapping[str, int],
) -> int:
    """The score of the worst zone that has one, for the pod or on average over its containers."""
    if manager.scope == POD:
        return _worst(pod_request(pod), zones, strategy, weights)
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    scores = [_worst(each.resources.requests, zones, strategy, weights) for each in containers]
    return int(sum(scores) / len(scores)) if scores else 0


def _worst(
    asked: Resources, zones: Sequence[NumaNode], strategy: Strategy, weights: Mapping[str, int]
) -> int:
    lowest = 0
    for zone in zones:
        score = strategy(asked, zone.resources, weights)
        if lowest == 0 or (score != 0 and score < lowest):
            lowest = score
    return lowest


def least_allocated(asked: Resources, available: Resources, weights: Mapping[str, int]) -> int:
    return _weighted(asked, available, weights, lambda a, b: (b - a) * MAX_SCORE // b)


def most_allocated(asked: Resources, available: Resources, weights: Mapping[str, int]) -> int:
    return _weighted(asked, available, weights, lambda a, b: a * MAX_SCORE // b)


def _weighted(
    asked: Resources,
    available: Resources,
    weights: Mapping[str, int],
    share: Callable[[int, int], int],
) -> int:
    """In whole units: half a CPU counts as one."""
    total = weight_sum = 0
    for name, quantity in asked.items():
        weight = weights.get(name, 1)
        weight = weight if weight >= 1 else 1
        weight_sum += weight
        capacity = available.get(name, ZERO)
        if capacity.unscaled and not quantity.exceeds(capacity):
            total += share(quantity.value, capacity.value) * weight
    return total // weight_sum if weight_sum else 0


def balanced_allocation(asked: Resources, available: Resources, weights: Mapping[str, int]) -> int:
    """The less the used shares of the resources differ, the higher."""
    fractions = []
    for name, quantity in asked.items():
        capacity = available.get(name, ZERO).value
        fraction = quantity.value / capacity if capacity else 1.0
        if fraction > 1:
            return 0
        fractions.append(fraction)
    return int((1 - _variance(fractions)) * float(MAX_SCORE))


def _variance(values: Sequence[float]) -> float:
    """Of a sample. The second sum makes up for the rounding of the mean."""
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    squares = compensation = 0.0
    for value in values:
        squares += (value - mean) * (value - mean)
        compensation += value - mean
    return (squares - compensation * compensation / len(values)) / (len(values) - 1)


STRATEGIES: dict[str, Strategy] = {
    LEAST: least_allocated,
    MOST: most_allocated,
    BALANCED: balanced_allocation,
}


def least_numa_nodes(
    pod: Pod, qos: str, zones: Sequence[NumaNode], manager: TopologyManager
) -> int:
    """The fewer zones the pod or its containers need, and the nearer these are, the higher."""
    if manager.scope == POD:
        asked = pod_request(pod)
        if _has_none(zones, asked):
            return MAX_SCORE
        needed = zones_needed(asked, qos, zones)
        if needed is None:
            return MIN_SCORE
        return _by_count(len(needed[0]), is_nearest=needed[1], manager=manager)
    most, all_nearest = 0, True
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        requests = container.resources.requests
        if _has_none(zones, requests):
            continue
        needed = zones_needed(requests, qos, zones)
        if needed is None:
            return MIN_SCORE
        ids, is_nearest = needed
        all_nearest = all_nearest and is_nearest
        most = max(most, len(ids))
        _take_from(requests, zones, ids)
    return MAX_SCORE if most == 0 else _by_count(most, is_nearest=all_nearest, manager=manager)


def _by_count(count: int, *, is_nearest: bool, manager: TopologyManager) -> int:
    step = MAX_SCORE // manager.max_zones
    score = MAX_SCORE - count * step
    return score + step // 2 if is_nearest else score


def _has_none(zones: Sequence[NumaNode], asked: Resources) -> bool:
    """Whether no zone has any of the resources."""
    return not any(name in zone.resources for name in asked for zone in zones)


def zones_needed(
    asked: Resources, qos: str, zones: Sequence[NumaNode]
) -> tuple[list[int], bool] | None:
    """The ids of the fewest zones that have all resources together, and whether they are the nearest.

    None if all zones do not have enough.
    """
    for size in range(1, len(zones) + 1):
        sets = list(combinations(range(len(zones)), size))
        nearest = min(_FARTHEST, *(_distance(zones, each) for each in sets))
        best, best_distance = None, 256.0
        for each in sets:
            if not _suffice(asked, qos, [zones[index] for index in each]):
                continue
            distance = _distance(zones, each)
            if distance == nearest:
                return sorted(zones[index].id for index in each), True
            if distance < best_distance:
                best, best_distance = each, distance
        if best is not None:
            return sorted(zones[index].id for index in best), False
    return None


def _suffice(asked: Resources, qos: str, zones: Sequence[NumaNode]) -> bool:
    if not all(name in zone.resources for name in asked for zone in zones):
        return False
    for name, quantity in asked.items():
        together = ZERO
        for zone in zones:
            together = together.plus(zone.resources[name])
        if quantity.unscaled and not suffices(qos, name, quantity, together):
            return False
    return True


def _distance(zones: Sequence[NumaNode], chosen: Sequence[int]) -> float:
    """The mean over all pairs; a distance that nobody wrote down is the farthest."""
    total = sum(zones[a].costs.get(zones[b].id, _FARTHEST) for a in chosen for b in chosen)
    return total / (len(chosen) * len(chosen))


def _take_from(asked: Resources, zones: Sequence[NumaNode], ids: Sequence[int]) -> None:
    """Zone after zone. As upstream, the ids are taken for positions in the list."""
    for name, quantity in asked.items():
        rest = quantity
        for position in ids:
            if not rest.unscaled:
                break
            if position >= len(zones):
                continue
            held = zones[position].resources
            if name not in held:
                continue
            if held[name].exceeds(rest):
                held[name] = minus(held[name], rest)
                rest = ZERO
            else:
                rest = minus(rest, held[name])
                held[name] = ZERO
