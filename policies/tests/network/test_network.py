"""NetworkOverhead and TopologicalSort decide as the plugins of scheduler-plugins: their tables."""

from types import SimpleNamespace

import numpy as np
import pytest

from mooring.objects.meta import ObjectMeta
from mooring.plugin import CycleState, unschedulable
from mooring_policies.network import AppGroup, NetworkOverhead, NetworkTopology, TopologicalSort
from mooring_policies.network.objects import (
    APP_GROUP_LABEL,
    REGION,
    WORKLOAD_LABEL,
    ZONE,
    AppGroupSpec,
    AppGroupStatus,
    AppGroupWorkload,
    Cost,
    Dependency,
    NetworkTopologySpec,
    OrderedWorkload,
    Origin,
    Topology,
    Weight,
    WorkloadInfo,
)
from policies.tests.world import World
from tests.makers import make_node, make_pod

PLACES = [("us-west-1", "Z1"), ("us-west-1", "Z2"), ("us-east-1", "Z3"), ("us-east-1", "Z4")]
NODES = [
    make_node(f"n-{2 * i + j + 1}", cpu=8, memory="16Gi", labels={REGION: region, ZONE: zone})
    for i, (region, zone) in enumerate(PLACES)
    for j in range(2)
]
ARGS = {"networkTopologyName": "nt-test"}


def info(selector):
    return WorkloadInfo(selector=selector)


def app_group(name, dependencies, order=()):
    """Workload → those that it depends on, with the largest cost."""
    return AppGroup(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=AppGroupSpec(
            workloads=[
                AppGroupWorkload(
                    workload=info(selector),
                    dependencies=[
                        Dependency(workload=info(other), max_network_cost=cost)
                        for other, cost in others.items()
                    ],
                )
                for selector, others in dependencies.items()
            ]
        ),
        status=AppGroupStatus(
            topology_order=[OrderedWorkload(workload=info(each), index=i) for each, i in order]
        ),
    )


def costs(key, pairs):
    return Topology(
        topology_key=key,
        origin_list=[
            Origin(origin=a, cost_list=[Cost(destination=b, network_cost=cost)])
            for a, b, cost in pairs
        ],
    )


BASIC = app_group("basic", {"p1": {"p2": 0}, "p2": {"p3": 0}, "p3": {}})
TOPOLOGY = NetworkTopology(
    metadata=ObjectMeta(name="nt-test", namespace="default"),
    spec=NetworkTopologySpec(
        weights=[
            Weight(
                name="UserDefined",
                topology_list=[
                    costs(
                        ZONE, [("Z4", "Z3", 10), ("Z3", "Z4", 10), ("Z2", "Z1", 5), ("Z1", "Z2", 5)]
                    ),
                    costs(REGION, [("us-west-1", "us-east-1", 20), ("us-east-1", "us-west-1", 20)]),
                ],
            )
        ]
    ),
)


def member(selector, node=None, group="basic"):
    labels = {APP_GROUP_LABEL: group, WORKLOAD_LABEL: selector} if group else {}
    name = f"{selector}-on-{node}" if node else selector
    return make_pod(name, labels=labels, node=node)


def world(*placed, group=BASIC):
    return World(NetworkOverhead, *NODES, group, TOPOLOGY, *placed, args=ARGS)


@pytest.mark.parametrize(
    ("selector", "before", "after"),
    [
        ("p1", [20, 20, 20, 20, 0, 1, 10, 10], [0, 0, 0, 0, 100, 95, 50, 50]),
        ("p2", [0, 1, 5, 5, 20, 20, 20, 20], [100, 95, 75, 75, 0, 0, 0, 0]),
        ("p3", [0] * 8, [0] * 8),
    ],
)
def test_a_node_near_the_pods_that_a_pod_depends_on_scores_high(selector, before, after):
    it = world(member("p1", "n-2"), member("p2", "n-5"), member("p3", "n-1"))
    pod, state = member(selector), CycleState()
    assert it.policy.pre_filter(state, pod, it.snapshot).ok

    scores = [it.policy.score(state, pod, it.snapshot.get(node.name)) for node in NODES]
    assert scores == before

    found = np.array(scores, np.int64)
    it.policy.normalize_scores(state, pod, found)
    assert found.tolist() == after


def too_far(node, satisfied, violated):
    return unschedulable(
        f"Node {node} does not meet several network requirements from Workload dependencies:"
        f" Satisfied: {satisfied} Violated: {violated}"
    )


@pytest.mark.parametrize(
    ("pod", "node", "expected"),
    [
        pytest.param(member("p1"), "n-1", too_far("n-1", 0, 1), id="another region"),
        pytest.param(member("p1"), "n-6", None, id="the same zone"),
        pytest.param(member("p2"), "n-5", too_far("n-5", 0, 1), id="another zone"),
        pytest.param(member("p2"), "n-7", None, id="the zone of the other"),
        pytest.param(member("p3"), "n-1", None, id="no dependencies"),
        pytest.param(member("p10", group=""), "n-1", None, id="in no group"),
        pytest.param(member("p1", group="missing"), "n-1", None, id="the group is missing"),
    ],
)
def test_a_node_too_far_from_most_dependencies_is_refused(pod, node, expected):
    it = world(member("p1", "n-2"), member("p2", "n-5"), member("p3", "n-8"))
    state = CycleState()
    assert it.policy.pre_filter(state, pod, it.snapshot).ok

    assert it.policy.filter(state, pod, it.snapshot.get(node)) == expected


def test_a_larger_cost_may_be_allowed():
    group = app_group("basic", {"p1": {"p2": 20}})
    it = world(member("p2", "n-5"), group=group)
    state = CycleState()
    it.policy.pre_filter(state, member("p1"), it.snapshot)

    assert it.policy.filter(state, member("p1"), it.snapshot.get("n-1")) is None


def test_pods_that_go_no_longer_count():
    it = world(member("p2", "n-5"))
    it.scheduler.deleted(member("p2", "n-5"))
    state = CycleState()
    it.policy.pre_filter(state, member("p1"), it.snapshot)

    assert it.policy.filter(state, member("p1"), it.snapshot.get("n-1")) is None


def test_the_example_of_upstream_is_read_with_its_names():
    written = Weight(
        name="UserDefined",
        cost_list=[
            Topology(
                topology_key=ZONE,
                origin_costs=[Origin(origin="z1", costs=[Cost(destination="z2", network_cost=5)])],
            )
        ],
    )

    assert written.topologies[0].origins[0].all_costs[0].network_cost == 5


# TopologicalSort


def queued(selector, group="basic", priority=None, at=0.0):
    labels = {APP_GROUP_LABEL: group, WORKLOAD_LABEL: selector}
    pod = make_pod(selector, labels=labels, priority=priority)
    return SimpleNamespace(pod=pod, timestamp=at, initial_attempt_timestamp=at)


@pytest.mark.parametrize("order", [(), (("p1", 1), ("p2", 2), ("p3", 3))])
def test_pods_of_a_group_queue_in_the_order_of_their_workloads(order):
    group = app_group("basic", {"p1": {"p2": 0}, "p2": {"p3": 0}, "p3": {}}, order)
    policy = World(TopologicalSort, group, sorts_queue=True).policy

    assert policy.less(queued("p1", priority=0), queued("p2", priority=9))
    assert not policy.less(queued("p3"), queued("p2"))
    assert policy.less(queued("p2"), queued("p2"))


def test_pods_of_different_groups_queue_by_priority_and_time():
    policy = World(TopologicalSort, BASIC, sorts_queue=True).policy

    assert policy.less(queued("p3", priority=9), queued("p1", "other", priority=1))
    assert policy.less(queued("p3", at=1), queued("p1", "other", at=2))
    assert not policy.less(queued("p3", at=2), queued("p1", "other", at=1))
