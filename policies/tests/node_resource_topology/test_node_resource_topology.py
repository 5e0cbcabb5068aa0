"""NodeResourceTopologyMatch decides as the plugin of scheduler-plugins: its tables, with its numbers."""

import pytest
from msgspec.structs import replace

from mooring.objects.meta import ObjectMeta
from mooring.objects.node import Node, NodeStatus
from mooring.plugin import CycleState, unschedulable
from mooring_policies.node_resource_topology import NodeResourceTopology, NodeResourceTopologyMatch
from mooring_policies.node_resource_topology.fingerprint import fingerprint
from mooring_policies.node_resource_topology.numa import NumaNode, qos_of
from mooring_policies.node_resource_topology.objects import (
    Attribute,
    TopologyManager,
    Zone,
    ZoneCost,
    ZoneResource,
)
from mooring_policies.node_resource_topology.scoring import zones_needed
from policies.tests.world import World
from tests.makers import make_container, make_pod, quantity, resources

NIC, OLD_NIC, EXTENDED = "vendor/nic1", "vendor.com/old-nic-model", "namespace/extended"
HUGE = "hugepages-2Mi"
CONTAINERS, PODS = "SingleNUMANodeContainerLevel", "SingleNUMANodePodLevel"
NO_POD = unschedulable("cannot align pod")
NO_CONTAINER = unschedulable("cannot align container")


def topology(name, policy, *zones, names=("node-0", "node-1", "node-2", "node-3"), costs=()):
    return NodeResourceTopology(
        api_version="topology.node.k8s.io/v1alpha2",
        kind="NodeResourceTopology",
        metadata=ObjectMeta(name=name),
        topology_policies=[policy] if policy else [],
        zones=[
            Zone(
                name=names[i],
                type="Node",
                resources=[
                    ZoneResource(name=resource, available=quantity(amount))
                    for resource, amount in zone.items()
                ],
                costs=[ZoneCost(name=f"node-{j}", value=c) for j, c in enumerate(costs[i])]
                if costs
                else [],
            )
            for i, zone in enumerate(zones)
        ],
    )


def node_of(written, **more):
    """A node with what its zones have together, and more."""
    total = resources({"pods": 110, "ephemeral-storage": "1Gi"}, **more)
    for zone in written.zones:
        for each in zone.resources:
            held = total.get(each.name)
            total[each.name] = each.available if held is None else held.plus(each.available)
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name=written.name),
        status=NodeStatus(allocatable=total, capacity=total),
    )


TOPOLOGIES = [
    topology(
        "node1",
        CONTAINERS,
        {"cpu": 4, "memory": "8Gi", NIC: 10},
        {"cpu": 8, "memory": "8Gi", NIC: 10},
    ),
    topology(
        "node2",
        CONTAINERS,
        {"cpu": 2, "memory": "4Gi", HUGE: "128Mi", NIC: 5},
        {"cpu": 4, "memory": "4Gi", HUGE: "128Mi", NIC: 2},
    ),
    topology(
        "node3",
        PODS,
        {"cpu": 2, "memory": "4Gi", NIC: 5},
        {"cpu": 4, "memory": "4Gi", NIC: 2},
    ),
    topology(
        "badly-formed",
        PODS,
        {"cpu": 2, "memory": "4Gi", NIC: 5},
        {"cpu": 4, "memory": "4Gi", NIC: 2},
        names=("node-0", "node-75"),
    ),
    topology(
        "extended",
        CONTAINERS,
        {"cpu": 4, "memory": "8Gi", NIC: 10},
        {"cpu": 8, "memory": "8Gi", NIC: 10},
    ),
]
MORE = [{}, {OLD_NIC: 4}, {}, {}, {EXTENDED: 1}]
NODES = [node_of(each, **more) for each, more in zip(TOPOLOGIES, MORE, strict=True)]


def guaranteed(asked, count=1):
    """Requests that are also limits."""
    containers = [make_container(f"c{i}", requests=asked, limits=asked) for i in range(count)]
    return make_pod("p", containers=containers)


def burstable(asked):
    return make_pod("p", requests=asked)


@pytest.fixture(scope="module")
def known():
    return World(NodeResourceTopologyMatch, *NODES, *TOPOLOGIES)


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        (guaranteed({"cpu": 2, "memory": "2Gi", EXTENDED: 1, NIC: 3}), 4, None),
        (guaranteed({"cpu": 2, "memory": "2Gi", EXTENDED: 1}), 4, None),
        (make_pod("p", containers=[]), 0, None),
        (guaranteed({NIC: 5}), 2, None),
        (guaranteed({NIC: 20}), 2, NO_POD),
        (guaranteed({NIC: 5}), 1, None),
        (guaranteed({NIC: 20}), 0, NO_CONTAINER),
        (guaranteed({EXTENDED: 1, NIC: 10}), 4, None),
        (burstable({"cpu": 3, "memory": "3Gi", NIC: 11}), 1, NO_CONTAINER),
        (burstable({"cpu": 1, "memory": "1Gi", NIC: 6}), 2, NO_POD),
        (burstable({"cpu": 1, "memory": "1Gi", NIC: 5}), 2, None),
        (burstable({"cpu": 19, "memory": "5Gi", NIC: 5}), 2, None),
        (burstable({"cpu": 5, "memory": "5Gi", NIC: 5}), 1, None),
        (guaranteed({"cpu": 2, "memory": "2Gi"}), 0, None),
        (guaranteed({"cpu": 8, "memory": "8Gi"}), 0, None),
        (guaranteed({"cpu": 2, "memory": "2Gi", HUGE: 0, NIC: 3}), 0, None),
        (guaranteed({"cpu": 2, "memory": "2Gi", NIC: 3}), 1, None),
        (guaranteed({"cpu": 2, "memory": "2Gi", HUGE: "64Mi", NIC: 3}), 1, None),
        (guaranteed({"cpu": 4, NIC: 3}), 1, None),
        (guaranteed({"cpu": 4, NIC: 11}), 1, NO_CONTAINER),
        (guaranteed({"cpu": 2, NIC: 6}), 2, NO_POD),
        (guaranteed({"cpu": 20, NIC: 5}), 2, None),
        (guaranteed({"memory": "2Gi", NIC: 11}), 1, NO_CONTAINER),
        (guaranteed({"memory": "5Gi", NIC: 5}), 2, None),
        (guaranteed({EXTENDED: 1, "cpu": 4, NIC: 3}), 4, None),
        (guaranteed({"cpu": 2, "memory": "2Gi", HUGE: "256Mi", NIC: 3}), 1, NO_CONTAINER),
        (guaranteed({"cpu": 9, "memory": "1Gi", NIC: 3}), 0, NO_CONTAINER),
        (guaranteed({"cpu": 2, "memory": "1Gi", "vendor/notexistingnic": 0}), 0, None),
        (guaranteed({"cpu": 2, "memory": "1Gi", "vendor/notexistingnic": 1}), 0, NO_CONTAINER),
        (guaranteed({"cpu": 3, "memory": "1Gi"}, 3), 2, NO_POD),
        (guaranteed({"cpu": 1, "memory": "1Gi"}), 2, None),
        (guaranteed({"cpu": 2, "memory": "4Gi"}), 3, None),
        (guaranteed({"cpu": 1, "memory": "1Gi"}, 3), 2, None),
        (guaranteed({"cpu": 1, "memory": "1Gi"}, 3), 3, NO_POD),
        (guaranteed({"cpu": 2, "memory": "2Gi", HUGE: "64Mi", OLD_NIC: 3}), 1, None),
        (guaranteed({"cpu": 2, "memory": "2Gi", "ephemeral-storage": "100Mi"}), 1, None),
        # The first container takes zone 1, the second zone 0; there is none for the third.
        (guaranteed({"cpu": 4, "memory": "1Gi"}, 3), 0, None),
        (guaranteed({"cpu": 4, "memory": "1Gi"}, 4), 0, NO_CONTAINER),
    ],
)
def test_a_pod_fits_if_one_zone_has_all_that_it_or_each_container_asks_for(
    known, pod, node, expected
):
    info = known.snapshot.get(NODES[node].name)

    assert known.policy.filter(CycleState(), pod, info) == expected


@pytest.mark.parametrize(("always", "kind"), [(False, "init"), (True, "sidecar")])
def test_init_containers_are_aligned_too(known, always, kind):
    asked = {"cpu": 9, "memory": "1Gi"}
    first = make_container(
        "i", requests=asked, limits=asked, restart_policy="Always" if always else ""
    )
    small = {"cpu": 1, "memory": "1Gi"}
    pod = make_pod(
        "p",
        init_containers=[first],
        containers=[make_container("c", requests=small, limits=small)],
    )

    status = known.policy.filter(CycleState(), pod, known.snapshot.get("node1"))

    assert status == unschedulable(f"cannot align {kind} container")


def test_a_node_without_a_topology_or_with_another_policy_takes_every_pod():
    plain = node_of(topology("plain", "", {"cpu": 1, "memory": "1Gi"}))
    other = topology("other", "BestEffortPodLevel", {"cpu": 1, "memory": "1Gi"})
    it = World(NodeResourceTopologyMatch, plain, node_of(other), other)
    pod = guaranteed({"cpu": 9, "memory": "1Gi"})

    for name in ("plain", "other"):
        assert it.policy.filter(CycleState(), pod, it.snapshot.get(name)) is None


# Scores


def three(policy):
    return [
        topology("Node1", policy, *[{"cpu": 4, "memory": "500Mi"}] * 2),
        topology("Node2", policy, *[{"cpu": 2, "memory": "50Mi"}] * 2),
        topology("Node3", policy, *[{"cpu": 6, "memory": "60Mi"}] * 2),
    ]


def scores(strategy, policy, pod):
    written = three(policy)
    it = World(
        NodeResourceTopologyMatch,
        *map(node_of, written),
        *written,
        args={"scoringStrategy": {"type": strategy}},
    )
    return [it.policy.score(CycleState(), pod, it.snapshot.get(each.name)) for each in written]


@pytest.mark.parametrize(
    ("strategy", "best", "score"),
    [("MostAllocated", 1, 70), ("BalancedAllocation", 2, 100), ("LeastAllocated", 0, 73)],
)
def test_zones_are_scored_by_what_they_would_have_left(strategy, best, score):
    found = scores(strategy, CONTAINERS, guaranteed({"cpu": 2, "memory": 20 * 1024 * 1024}))

    assert max(found) == score
    assert found.index(score) == best


@pytest.mark.parametrize(
    ("strategy", "score"),
    [("MostAllocated", 27), ("LeastAllocated", 73), ("BalancedAllocation", 89)],
)
def test_nodes_without_an_object_score_nothing(strategy, score):
    written = three(CONTAINERS)
    it = World(
        NodeResourceTopologyMatch,
        *map(node_of, written),
        written[0],
        args={"scoringStrategy": {"type": strategy}},
    )
    pod = guaranteed({"cpu": 2, "memory": 20 * 1024 * 1024})

    found = [it.policy.score(CycleState(), pod, it.snapshot.get(each.name)) for each in written]

    assert found == [score, 0, 0]


def each(*cpus):
    containers = [
        make_container(
            f"c{i}",
            requests={"cpu": cpu, "memory": "50Mi"},
            limits={"cpu": cpu, "memory": "50Mi"},
        )
        for i, cpu in enumerate(cpus)
    ]
    return make_pod("p", containers=containers)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (each(2), [94, 94, 94]),
        (each(4), [94, 82, 94]),
        (each(6), [82, 0, 94]),
        (each(2, 2), [94, 94, 94]),
        (each(1, 3), [94, 82, 94]),
        (each(5, 3), [82, 0, 94]),
        (guaranteed({"non-numa-resource": 1}, 2), [100, 100, 100]),
    ],
)
def test_fewer_zones_score_higher(pod, expected):
    assert scores("LeastNUMANodes", "BestEffortContainerLevel", pod) == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (each(2, 2), [94, 82, 82]),
        (each(1, 3), [94, 82, 82]),
        (each(5, 3), [82, 0, 82]),
        (guaranteed({"non-numa-resource": 1}), [100, 100, 100]),
    ],
)
def test_fewer_zones_score_higher_for_a_whole_pod(pod, expected):
    assert scores("LeastNUMANodes", "BestEffortPodLevel", pod) == expected


NEAR_PAIRS = [[10, 12, 20, 20], [12, 10, 20, 20], [20, 20, 10, 12], [20, 20, 12, 10]]


def four(name, *gpus):
    zones = [{"cpu": 2, "memory": "50Mi", "gpu": gpu} for gpu in gpus]
    return topology(name, "BestEffortContainerLevel", *zones, costs=NEAR_PAIRS)


@pytest.mark.parametrize(("gpus", "expected"), [(1, [94, 94]), (2, [82, 76])])
def test_near_zones_score_higher_than_distant_ones(gpus, expected):
    written = [four("Node1", 1, 1, 0, 0), four("Node2", 1, 0, 1, 0)]
    it = World(
        NodeResourceTopologyMatch,
        *map(node_of, written),
        *written,
        args={"scoringStrategy": {"type": "LeastNUMANodes"}},
    )
    pod = guaranteed({"cpu": 2, "memory": "50Mi", "gpu": gpus})

    found = [it.policy.score(CycleState(), pod, it.snapshot.get(each.name)) for each in written]

    assert found == expected


def test_a_container_without_gpus_does_not_change_how_near_the_zones_are():
    written = [four("Node1", 1, 1, 0, 0), four("Node2", 1, 0, 1, 0)]
    it = World(
        NodeResourceTopologyMatch,
        *map(node_of, written),
        *written,
        args={"scoringStrategy": {"type": "LeastNUMANodes"}},
    )
    small = {"cpu": 2, "memory": "50Mi"}
    containers = [
        make_container(f"c{i}", requests=asked, limits=asked)
        for i, asked in enumerate(({**small, "gpu": 2}, small))
    ]
    pod = make_pod("p", containers=containers)

    found = [it.policy.score(CycleState(), pod, it.snapshot.get(each.name)) for each in written]

    assert found == [82, 76]


def test_other_pods_than_guaranteed_ones_score_all_nodes_alike():
    assert scores("LeastAllocated", CONTAINERS, burstable({"cpu": 1})) == [100, 100, 100]


def zones(*gpus, costs=None):
    near = costs or [[10, 12, 20, 20], [12, 10, 20, 20], [20, 20, 10, 12], [20, 20, 12, 10]]
    return [
        NumaNode(i, resources(gpu=gpu, cpu=4, memory="5Gi"), dict(enumerate(near[i])))
        for i, gpu in enumerate(gpus)
    ]


@pytest.mark.parametrize(
    ("asked", "among", "expected"),
    [
        ({"cpu": 2, "gpu": 2}, zones(1, 1, 0, 0), ([0, 1], True)),
        ({"cpu": 2, "gpu": 2}, zones(1, 0, 1, 0), ([0, 2], False)),
        ({"cpu": 2, "gpu": 3}, zones(1, 0, 1, 0), None),
        ({"cpu": 2}, zones(1, 0, 1, 0), ([0], True)),
    ],
)
def test_the_nearest_of_the_fewest_zones_are_chosen(asked, among, expected):
    assert zones_needed(resources(asked), "Guaranteed", among) == expected


#: The distances of eight zones that are not listed in the order of their ids.
EIGHT = {
    0: [10, 20, 40, 30, 20, 30, 50, 40],
    3: [30, 40, 20, 10, 30, 20, 40, 50],
    5: [30, 20, 50, 20, 50, 10, 50, 40],
    7: [40, 50, 30, 50, 20, 40, 30, 10],
    1: [20, 10, 30, 40, 50, 20, 40, 50],
    6: [50, 40, 20, 40, 30, 50, 10, 30],
    2: [40, 30, 10, 20, 40, 50, 20, 30],
    4: [20, 50, 40, 30, 10, 50, 30, 20],
}


@pytest.mark.parametrize(
    ("zones_with_memory", "expected"),
    [
        pytest.param(range(8), ([0, 1, 5], True), id="every zone"),
        pytest.param((0, 2, 4, 6), ([2, 4, 6], False), id="even zones only"),
    ],
)
def test_zones_that_are_not_in_order_are_found_by_their_ids(zones_with_memory, expected):
    among = [
        NumaNode(
            number,
            resources(
                {"gpu": 1, "cpu": 4}, **({"memory": "5Gi"} if number in zones_with_memory else {})
            ),
            dict(enumerate(costs)),
        )
        for number, costs in EIGHT.items()
    ]

    asked = resources({"cpu": 3, "memory": "2Gi", "gpu": 3})

    assert zones_needed(asked, "Guaranteed", among) == expected


def test_zones_may_have_ids_with_gaps():
    costs = {0: [10, 12, 20, 20], 2: [12, 10, 20, 20], 4: [20, 20, 10, 12], 6: [20, 20, 12, 10]}
    gpus = {0: 1, 2: 1, 4: 0, 6: 0}
    among = [
        NumaNode(
            number,
            resources({"gpu": gpus[number], "cpu": 4, "memory": "5Gi"}),
            dict(zip(costs, distances, strict=True)),
        )
        for number, distances in costs.items()
    ]

    asked = resources({"cpu": 2, "memory": "2Gi", "gpu": 2})

    assert zones_needed(asked, "Guaranteed", among) == ([0, 2], True)


# What the scheduler has given away


def counted(written, *pods, method=None):
    """The object, brought up to date by an agent that counts these pods."""
    attributes = [Attribute(name="nodeTopologyPodsFingerprint", value=fingerprint(pods))]
    if method:
        attributes.append(Attribute(name="nodeTopologyPodsFingerprintMethod", value=method))
    return replace(written, attributes=[*written.attributes, *attributes])


def cached(*objects, **cache):
    args = {"cacheResyncPeriodSeconds": 5, "cache": cache}
    return World(NodeResourceTopologyMatch, NODES[0], TOPOLOGIES[0], *objects, args=args)


def verdict(it, pod):
    return it.policy.filter(CycleState(), pod, it.snapshot.get("node1"))


LARGE = guaranteed({"cpu": 5, "memory": "1Gi"})


def on_node(name, phase="Running", **more):
    return make_pod(name, node="node1", phase=phase, **more)


def test_reserved_pods_count_against_every_zone_until_the_agent_has_counted_them():
    it = cached()
    assert verdict(it, LARGE) is None

    it.policy.reserve(CycleState(), LARGE, "node1")
    assert verdict(it, LARGE) == NO_CONTAINER

    # An object without a fingerprint, or with that of other pods, may be older than the reservation.
    it.scheduler.updated(TOPOLOGIES[0], TOPOLOGIES[0])
    assert verdict(it, LARGE) == NO_CONTAINER
    it.scheduler.updated(TOPOLOGIES[0], counted(TOPOLOGIES[0], LARGE))
    assert verdict(it, LARGE) == NO_CONTAINER

    it.add(on_node("p"))
    assert verdict(it, LARGE) is None


def test_a_pod_that_does_not_run_yet_stays_reserved():
    starting = on_node("p", phase="Pending", requests={"cpu": 5, "memory": "1Gi"})
    it = cached(counted(TOPOLOGIES[0]))
    it.policy.reserve(CycleState(), starting, "node1")
    it.add(starting)

    assert verdict(it, LARGE) == NO_CONTAINER


def test_what_a_pod_took_is_free_when_the_pod_is_gone():
    placed = on_node("p", requests={"cpu": 5, "memory": "1Gi"})
    it = cached()
    it.policy.reserve(CycleState(), placed, "node1")
    it.add(placed)
    assert verdict(it, LARGE) == NO_CONTAINER

    it.scheduler.deleted(placed)
    assert verdict(it, LARGE) is None


@pytest.mark.parametrize(
    ("detects", "limits", "is_reliable"),
    [
        ("All", {}, False),
        ("None", {}, True),
        ("OnlyExclusiveResources", {}, True),
        ("OnlyExclusiveResources", {"cpu": 1, "memory": "1Gi"}, False),
        ("OnlyExclusiveResources", {"cpu": "1500m"}, True),
    ],
)
def test_pods_of_other_schedulers_make_a_node_unreliable_until_they_are_counted(
    detects, limits, is_reliable
):
    foreign = on_node("f", requests=limits, limits=limits, scheduler="another")
    it = cached(foreign, foreignPodsDetect=detects)
    invalid = unschedulable("invalid node topology data")

    assert verdict(it, LARGE) == (None if is_reliable else invalid)

    it.scheduler.updated(TOPOLOGIES[0], counted(TOPOLOGIES[0], foreign))
    assert verdict(it, LARGE) is None


@pytest.mark.parametrize(
    ("resync", "method", "is_taken"),
    [
        ("Autodetect", "with-exclusive-resources", True),
        ("Autodetect", "all", False),
        ("Autodetect", None, False),
        ("OnlyExclusiveResources", None, True),
        ("All", "with-exclusive-resources", False),
    ],
)
def test_a_fingerprint_may_include_only_pods_with_resources_of_their_own(resync, method, is_taken):
    """The agent counts one of two pods: that with whole CPUs."""
    whole = {"cpu": 1, "memory": "1Gi"}
    exclusive, shared = on_node("e", requests=whole, limits=whole), on_node("s")
    it = cached(exclusive, shared, resyncMethod=resync)
    it.policy.reserve(CycleState(), LARGE, "node1")

    it.scheduler.updated(TOPOLOGIES[0], counted(TOPOLOGIES[0], exclusive, method=method))

    assert (verdict(it, LARGE) is None) == is_taken


@pytest.mark.parametrize(("scope", "is_taken"), [("All", True), ("OnlyResources", False)])
def test_another_policy_of_the_kubelet_counts_at_once(scope, is_taken):
    it = cached(resyncScope=scope)
    it.policy.reserve(CycleState(), LARGE, "node1")
    another = [Attribute(name="topologyManagerPolicy", value="best-effort")]

    it.scheduler.updated(TOPOLOGIES[0], replace(TOPOLOGIES[0], attributes=another))

    assert (verdict(it, LARGE) is None) == is_taken


def test_a_fingerprint_is_that_of_the_agents():
    """The sums were made by the library that the agents use."""
    pods = [
        make_pod("web-0", namespace="default"),
        make_pod("a-daemon-with-a-rather-long-name-x7k2p", namespace="kube-system"),
        make_pod("b", namespace="a-namespace-of-more-than-thirty-two-bytes-for-the-long-way"),
        make_pod("e", namespace="d"),
        make_pod("g", namespace="f"),
        make_pod("ü", namespace="é"),
    ]

    assert [fingerprint(pods[:count]) for count in (0, 1, 2, 6)] == [
        "pfp0v001ef46db3751d8e999",
        "pfp0v001d5676506abe7e28f",
        "pfp0v001088351770c50277d",
        "pfp0v00195028d91572187e5",
    ]
    assert fingerprint(reversed(pods)) == fingerprint(pods)


def test_nodes_with_reserved_pods_may_be_left_out():
    it = World(
        NodeResourceTopologyMatch, NODES[0], TOPOLOGIES[0], args={"discardReservedNodes": True}
    )
    pod, info = guaranteed({"cpu": 1, "memory": "1Gi"}), it.snapshot.get("node1")

    it.policy.reserve(CycleState(), pod, "node1")
    assert it.policy.filter(CycleState(), pod, info) == unschedulable("invalid node topology data")
    it.policy.post_bind(CycleState(), pod, "node1")
    assert it.policy.filter(CycleState(), pod, info) is None


@pytest.mark.parametrize(
    ("policies", "attributes", "expected"),
    [
        ([], {}, ("container", "none", 8)),
        ([PODS], {}, ("pod", "single-numa-node", 8)),
        ([PODS], {"topologyManagerScope": "container"}, ("container", "single-numa-node", 8)),
        (
            ["RestrictedContainerLevel"],
            {"topologyManagerPolicy": "best-effort"},
            ("container", "best-effort", 8),
        ),
        ([], {"topologyManagerMaxNUMANodes": "16"}, ("container", "none", 16)),
        ([], {"topologyManagerMaxNUMANodes": "65535"}, ("container", "none", 1024)),
        ([], {"topologyManagerMaxNUMANodes": "1"}, ("container", "none", 8)),
        (
            [],
            {"topologyManagerScope": "numa", "topologyManagerPolicy": "x"},
            ("container", "none", 8),
        ),
    ],
)
def test_attributes_go_before_policies(policies, attributes, expected):
    written = NodeResourceTopology(
        topology_policies=policies,
        attributes=[Attribute(name=name, value=value) for name, value in attributes.items()],
    )

    assert TopologyManager.of(written) == TopologyManager(*expected)


def test_the_qos_class_of_a_pod():
    assert qos_of(make_pod("p")) == "BestEffort"
    assert qos_of(guaranteed({"cpu": 1, "memory": 1})) == "Guaranteed"
    assert qos_of(guaranteed({"cpu": 1})) == "Burstable"
    assert qos_of(burstable({"cpu": 1, "memory": 1})) == "Burstable"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"scoringStrategy": {"type": "Best"}}, "invalid ScoringStrategyType"),
        ({"preemptionMode": "Sometimes"}, "invalid PreemptionMode"),
        ({"cache": {"resyncMethod": "Never"}}, "Never"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(args, problem):
    with pytest.raises(Exception, match=problem):
        World(NodeResourceTopologyMatch, args=args)
