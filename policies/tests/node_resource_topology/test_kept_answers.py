"""Answers that are kept from pod to pod are those that asking each time gives."""

import random

import pytest

from mooring_policies.node_resource_topology import NodeResourceTopologyMatch
from policies.tests.node_resource_topology.test_node_resource_topology import node_of, topology
from policies.tests.world import World
from tests.makers import make_pod

STRATEGIES = ["LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes"]
POLICIES = ["SingleNUMANodePodLevel", "SingleNUMANodeContainerLevel", "BestEffortPodLevel"]


def drawn(rng):
    """Nodes with topologies, then a list of things that happen."""
    written = [
        topology(
            f"n{i}",
            rng.choice(POLICIES),
            *({"cpu": rng.randint(1, 8), "memory": f"{rng.randint(1, 8)}Gi"} for _ in range(2)),
        )
        for i in range(rng.randint(2, 6))
    ]
    pods = []
    for i in range(30):
        asked = {"cpu": rng.randint(1, 4), "memory": f"{rng.randint(1, 3)}Gi"}
        limits = asked if rng.random() < 0.7 else {}
        pods.append(make_pod(f"p{i:02}", requests=asked, limits=limits))
    return written, pods


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("args", [{}, {"cacheResyncPeriodSeconds": 5}])
def test_pods_go_to_the_same_nodes_with_and_without_kept_answers(seed, args):
    rng = random.Random(seed)
    written, pods = drawn(rng)
    settings = {**args, "scoringStrategy": {"type": rng.choice(STRATEGIES)}}
    found = []
    for keeps in (True, False):
        it = World(
            NodeResourceTopologyMatch,
            *map(node_of, written),
            *written,
            args=settings,
            keep_answers=keeps,
        )
        placed = []
        for number, pod in enumerate(pods):
            it.add(pod)
            placed.append(dict(it.schedule_all()))
            if number % 7 == 6:
                changed = written[number % len(written)]
                it.scheduler.updated(changed, changed)
        found.append(placed)

    assert found[0] == found[1]
