"""What it costs a pod on one node to talk to the pods that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mooring_policies.network.objects import MEASURED, REGION, ZONE, Dependency, NetworkTopology

MAX_COST = 100
_SAME_ZONE = 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """A node, and where it is; region and zone may be empty."""

    node: str
    region: str
    zone: str


@dataclass(frozen=True, slots=True)
class Overhead:
    """How many dependencies are near enough from a node, how many are not, and what they cost together."""

    satisfied: int = 0
    violated: int = 0
    cost: int = 0


#: (the place of a placed pod, the dependency on it)
Need = tuple[Place, Dependency]


def costs_from(
    topology: NetworkTopology, weights_name: str, region: str, zone: str
) -> dict[tuple[str, str], int]:
    """(origin, destination) → cost, for the region and the zone of a node."""
    found: dict[tuple[str, str], int] = {}
    for weight in topology.spec.weights:
        if weight.name != weights_name:
            continue
        is_sorted = weights_name == MEASURED
        topologies = _in_order(weight.topologies, lambda each: each.topology_key, is_sorted)
        for key, origin in ((REGION, region), (ZONE, zone)):
            chosen = _search(topologies, key, lambda each: each.topology_key) if origin else None
            if chosen is None:
                continue
            origins = _in_order(chosen.origins, lambda each: each.origin, is_sorted)
            of_origin = _search(origins, origin, lambda each: each.origin)
            for cost in of_origin.all_costs if of_origin is not None else ():
                found[origin, cost.destination] = cost.network_cost
    return found


def _in_order(items: Sequence[T], key: Callable[[T], str], is_sorted: bool) -> Sequence[T]:
    return items if is_sorted else sorted(items, key=key)


def _search(items: Sequence[T], wanted: str, key: Callable[[T], str]) -> T | None:
    """By halves, as upstream: in a list that is not sorted it may miss an entry."""
    low, high = 0, len(items) - 1
    while low <= high:
        middle = (low + high) // 2
        found = key(items[middle])
        if found == wanted:
            return items[middle]
        if found < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return None


def overhead_at(
    place: Place, needs: Sequence[Need], costs: Mapping[tuple[str, str], int]
) -> Overhead:
    satisfied = violated = total = 0
    for other, dependency in needs:
        if other.node == place.node:
            satisfied += 1
        elif not other.region and not other.zone:
            violated += 1
            total += MAX_COST
        elif place.region == other.region and place.zone == other.zone:
            satisfied += 1
            total += _SAME_ZONE
        else:
            pair = (
                (place.zone, other.zone)
                if place.region == other.region
                else (place.region, other.region)
            )
            cost = costs.get(pair)
            total += MAX_COST if cost is None else cost
            # A cost that nobody wrote down neither satisfies nor violates.
            if cost is not None:
                near = cost <= dependency.max_network_cost
                satisfied += near
                violated += not near
    return Overhead(satisfied, violated, total)
