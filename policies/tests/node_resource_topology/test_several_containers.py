"""NodeResourceTopologyMatch aligns pods of several containers as upstream does: its tables and numbers."""

import pytest

from mooring.plugin import CycleState, unschedulable
from mooring_policies.node_resource_topology import NodeResourceTopologyMatch
from policies.tests.node_resource_topology.test_node_resource_topology import (
    CONTAINERS,
    HUGE,
    NIC,
    PODS,
    node_of,
    topology,
)
from policies.tests.world import World
from tests.makers import make_container, make_pod

ZONES = (
    {"cpu": 30, "memory": "60Gi", HUGE: "384Mi", NIC: 16},
    {"cpu": 32, "memory": "64Gi", HUGE: "512Mi", NIC: 32},
)
NO_POD = unschedulable("cannot align pod")
NO_CONTAINER = unschedulable("cannot align container")
NO_INIT = unschedulable("cannot align init container")


def verdict(policy, init, main):
    written = topology("host0", policy, *ZONES)
    it = World(NodeResourceTopologyMatch, node_of(written), written)
    init_containers, containers = (
        [make_container(f"c{i}", requests=each, limits=each) for i, each in enumerate(group)]
        for group in (init, main)
    )
    pod = make_pod("p", init_containers=init_containers, containers=containers)
    return it.policy.filter(CycleState(), pod, it.snapshot.get("host0"))


def of(cpu, memory, huge=None, nics=None):
    return {
        "cpu": cpu,
        "memory": memory,
        **({HUGE: huge} if huge else {}),
        **({NIC: nics} if nics else {}),
    }


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param(
            [of(2, "2Gi"), of(4, "8Gi"), of(26, "32Gi", "512Mi", 26)], None, id="fits on one zone"
        ),
        pytest.param(
            [of(2, "2Gi"), of(8, "8Gi"), of(26, "26Gi", "52Mi", 26)], NO_POD, id="too many CPUs"
        ),
        pytest.param(
            [of(2, "4Gi"), of(4, "16Gi"), of(26, "52Gi", "52Mi", 26)], NO_POD, id="too much memory"
        ),
        pytest.param(
            [of(2, "2Gi"), of(4, "8Gi"), of(26, "32Gi", "3328Mi", 26)],
            NO_POD,
            id="too many huge pages",
        ),
        pytest.param(
            [of(2, "2Gi"), of(4, "8Gi"), of(26, "26Gi", "52Mi", 52)], NO_POD, id="too many devices"
        ),
    ],
)
def test_all_containers_of_a_pod_share_one_zone(containers, expected):
    assert verdict(PODS, [], containers) == expected


@pytest.mark.parametrize(
    ("init", "containers", "expected"),
    [
        pytest.param([], [of(2, "4G")], None, id="one"),
        pytest.param([], [of(40, "4G")], NO_CONTAINER, id="too many CPUs"),
        pytest.param([], [of(2, "100G")], NO_CONTAINER, id="too much memory"),
        pytest.param([], [of(40, "100G")], NO_CONTAINER, id="too much of both"),
        pytest.param([], [of(20, "40G")] * 2, None, id="each on its zone"),
        pytest.param(
            [],
            [of(2, "6G", "500Mi", 16), of(2, "6G", "50Mi", 8)],
            None,
            id="huge pages and devices, each on its zone",
        ),
        pytest.param(
            [of(40, "40G")], [of(1, "4G")] * 2, NO_INIT, id="init container with too many CPUs"
        ),
        pytest.param(
            [of(4, "70G")], [of(1, "4G")] * 2, NO_INIT, id="init container with too much memory"
        ),
        pytest.param([of(4, "10G")], [of(20, "40G")] * 2, None, id="init container that fits"),
        pytest.param(
            [of(4, "10G")] * 3, [*[of(20, "40G")] * 2, of(6, "10G")], None, id="three of each"
        ),
        pytest.param(
            [of(30, "10G")] * 2,
            [*[of(20, "40G")] * 2, of(20, "6G")],
            NO_CONTAINER,
            id="the third does not fit",
        ),
        pytest.param(
            [of(30, "10G")] * 2,
            [of(35, "40G")],
            NO_CONTAINER,
            id="init containers fit, main does not",
        ),
        pytest.param([of(30, "10G")] * 2, [of(20, "40G")] * 2, None, id="large init containers"),
        pytest.param(
            [of(30, "10G")] * 3,
            [*[of(20, "40G")] * 2, of(2, "6G")],
            None,
            id="init containers have together more CPUs than there are",
        ),
        pytest.param(
            [of(3, "50G")] * 3,
            [*[of(20, "40G")] * 2, of(2, "6G")],
            None,
            id="init containers have together more memory than there is",
        ),
        pytest.param(
            [of(40, "50G"), of(3, "50G"), of(3, "50G")],
            [of(20, "40G"), of(2, "6G")],
            NO_INIT,
            id="the first init container does not fit",
        ),
        pytest.param(
            [of(20, "50G"), of(40, "50G"), of(3, "50G")],
            [of(20, "40G"), of(2, "6G")],
            NO_INIT,
            id="the second init container does not fit",
        ),
    ],
)
def test_each_container_has_a_zone_and_takes_from_it_what_it_asks_for(init, containers, expected):
    assert verdict(CONTAINERS, init, containers) == expected
