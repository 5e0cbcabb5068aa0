"""CapacityScheduling decides as the plugin of scheduler-plugins: its tables, with its numbers."""

from datetime import UTC, datetime

import pytest

from mooring.objects.meta import ObjectMeta
from mooring.plugin import SUCCESS, CycleState, unschedulable
from mooring.plugins.default_preemption.plugin import VICTIMS_TERMINATING
from mooring_policies.capacity_scheduling import CapacityScheduling, ElasticQuota
from mooring_policies.capacity_scheduling.objects import ElasticQuotaSpec
from mooring_policies.capacity_scheduling.preemption import Requests, waits_for_victims
from mooring_policies.capacity_scheduling.quotas import (
    GREATEST_MAX,
    LEAST_MIN,
    Quota,
    Quotas,
    exceeds,
    pod_request,
)
from policies.tests.world import World
from tests.makers import make_container, make_node, make_pod, resources

MID, HIGH = 100, 1000
START = datetime(2026, 1, 1, tzinfo=UTC)
NODE = make_node("node-a", cpu=None, memory=150, pods=110)


def memory(amount):
    return {"memory": amount}


def quota(namespace, *, least=None, most=None, name="eq"):
    return ElasticQuota(
        api_version="scheduling.x-k8s.io/v1alpha1",
        kind="ElasticQuota",
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=ElasticQuotaSpec(
            min=None if least is None else resources(least),
            max=None if most is None else resources(most),
        ),
    )


def pod(name, namespace="ns1", amount=50, *, priority=MID, node=None, **more):
    return make_pod(
        name, namespace=namespace, memory=amount, priority=priority, node=node, uid=name, **more
    )


def world(*objects):
    return World(CapacityScheduling, *objects, disabled=["DefaultPreemption"])


# PreFilter


@pytest.mark.parametrize(
    ("quotas", "used", "asked", "refusal"),
    [
        pytest.param({"ns1": (1000, 2000)}, {"ns1": 300}, ("ns1", 500), "", id="within the quota"),
        pytest.param(
            {"ns1": (1000, 2000)},
            {"ns1": 300},
            ("ns1", 1800),
            "Pod ns1/p is rejected in PreFilter because ElasticQuota ns1 is more than Max",
            id="above max",
        ),
        pytest.param(
            {"ns1": (1000, 2000), "ns2": (1000, 2000)},
            {"ns1": 1800, "ns2": 200},
            ("ns2", 500),
            "Pod ns2/p is rejected in PreFilter because total ElasticQuota used is more than min",
            id="all together above all minima",
        ),
        pytest.param({}, {}, ("ns2", 500), "", id="no quota"),
    ],
)
def test_a_pod_beyond_its_quota_or_beyond_all_quotas_is_rejected(quotas, used, asked, refusal):
    namespace, amount = asked
    it = world(
        make_node("n", memory=100_000),
        *(quota(ns, least=memory(lo), most=memory(hi)) for ns, (lo, hi) in quotas.items()),
        *(pod(f"used-{ns}", ns, amount, node="n") for ns, amount in used.items()),
    )

    status = it.policy.pre_filter(CycleState(), pod("p", namespace, amount), it.snapshot)

    assert status == (unschedulable(refusal) if refusal else SUCCESS)


# Preemption

OWN_PODS = [
    quota("ns1", least=memory(50), most=memory(200)),
    quota("ns2", least=memory(200), most=memory(200)),
]
BORROWED = [
    quota("ns1", least=memory(150), most=memory(200)),
    quota("ns2", least=memory(50), most=memory(200)),
]


def preempted(it, preemptor):
    it.scheduler.observed_pods[preemptor.key] = preemptor
    state = CycleState()
    search = it.scheduler.searches["default-scheduler"]
    decision = search.schedule_pod(it.framework, state, preemptor, it.snapshot)
    assert decision.node_name is None
    return it.policy.decide(state, preemptor, decision.diagnosis)


@pytest.mark.parametrize(
    ("quotas", "second_priority", "victims"),
    [
        pytest.param(OWN_PODS, MID, ["p1"], id="a pod of the own namespace"),
        pytest.param(BORROWED, HIGH, ["p3"], id="a pod of a namespace that borrowed"),
    ],
)
def test_the_pods_that_go_are_chosen_by_quota(quotas, second_priority, victims):
    it = world(
        NODE,
        *quotas,
        pod("p1", "ns1", node="node-a"),
        pod("p2", "ns2", node="node-a", priority=second_priority),
        pod("p3", "ns2", node="node-a"),
    )

    result, status = preempted(it, pod("p", "ns1", priority=HIGH))

    assert status.ok
    assert result.nomination.node_name == "node-a"
    assert [each.name for each in result.detail.victims] == victims


def test_without_quotas_a_pod_of_lower_priority_goes():
    it = world(NODE, *(pod(f"p{i}", f"ns{i}", node="node-a") for i in range(3)))

    result, status = preempted(it, pod("p", "ns1", priority=HIGH))

    assert status.ok
    assert len(result.detail.victims) == 1


def test_a_node_without_victims_says_so():
    it = world(NODE, *OWN_PODS, *(pod(f"p{i}", "ns2", node="node-a") for i in range(3)))

    _, status = preempted(it, pod("p", "ns1", priority=HIGH))

    assert status == unschedulable(
        "0/1 nodes are available: 1 No victims found on node node-a for preemptor pod p."
    )


def held(namespace, used):
    return Quota(namespace, memory(50), memory(150), memory(used))


@pytest.mark.parametrize(
    ("quotas", "going", "waits"),
    [
        pytest.param([held("ns1", 0)], "ns1", True, id="of the same namespace"),
        pytest.param([held("ns1", 0), held("ns2", 100)], "ns2", True, id="of a borrower"),
        pytest.param([held("ns1", 0), held("ns2", 10)], "ns2", False, id="of one within its min"),
        pytest.param([], "ns2", True, id="no quotas"),
        pytest.param([held("ns2", 100)], "ns2", False, id="a quota only there"),
    ],
)
def test_a_pod_waits_for_a_terminating_pod_whose_place_it_may_take(quotas, going, waits):
    preemptor = pod("p", "ns1", 0, priority=HIGH)
    there = [pod("t", going, node="node-a", deleting=START)]
    known = Quotas({each.namespace: each for each in quotas})

    assert waits_for_victims(preemptor, there, known, Requests({}, {}, {})) is waits


def test_a_pod_with_a_terminating_victim_does_not_preempt_again():
    it = world(NODE, *OWN_PODS, pod("t", "ns1", 150, node="node-a", deleting=START))

    _, status = preempted(it, pod("p", "ns1", priority=HIGH, nominated="node-a"))

    assert status == VICTIMS_TERMINATING


# What quotas use


def used_by(it, namespace="ns1"):
    return it.policy._quotas.get(namespace).used.get("memory", 0)


def test_reserved_and_bound_pods_count_once_until_they_are_gone():
    it = world(NODE, quota("ns1", least=memory(1000), most=memory(2000)))
    first, other = pod("p1", node="node-a"), pod("p2", "ns2", node="node-a")

    it.policy.reserve(CycleState(), first, "node-a")
    it.policy.reserve(CycleState(), other, "node-a")
    assert used_by(it) == 50
    it.add(first)
    assert used_by(it) == 50
    it.policy.unreserve(CycleState(), pod("p3"), "node-a")
    assert used_by(it) == 50
    it.scheduler.deleted(first)
    assert used_by(it) == 0


@pytest.mark.parametrize(
    ("written", "least", "most"),
    [
        (quota("ns1", least={"cpu": 1, "memory": 100}), (1000, 100), (GREATEST_MAX, GREATEST_MAX)),
        (quota("ns1", most={"cpu": 2, "memory": 300}), (LEAST_MIN, LEAST_MIN), (2000, 300)),
        (quota("ns1"), (LEAST_MIN, LEAST_MIN), (GREATEST_MAX, GREATEST_MAX)),
    ],
)
def test_a_bound_that_is_missing_is_none(written, least, most):
    kept = Quota.of(written)

    assert (kept.min["cpu"], kept.min["memory"]) == least
    assert (kept.max["cpu"], kept.max["memory"]) == most


def test_pods_count_when_a_quota_comes_and_go_on_counting_when_it_changes():
    it = world(NODE, pod("p1", node="node-a"))
    first = quota("ns1", least=memory(10), most=memory(20))
    it.add(first)
    assert used_by(it) == 50

    changed = quota("ns1", least=memory(30), most=memory(40))
    it.scheduler.updated(first, changed)
    assert it.policy._quotas.get("ns1").min == {"memory": 30}
    assert used_by(it) == 50

    it.add(quota("ns1", least=memory(1), most=memory(1), name="second"))
    assert it.policy._quotas.get("ns1").min == {"memory": 30}

    it.scheduler.deleted(changed)
    assert it.policy._quotas.get("ns1") is None


def test_a_pod_asks_for_its_containers_or_its_largest_init_container_and_overhead():
    asked = make_pod(
        "p",
        containers=[
            make_container(cpu="1500m", memory=1),
            make_container("d", cpu=1, memory=1, requests={"nvidia.com/gpu": 1}),
        ],
        init_containers=[make_container("i", cpu=2, memory=3)],
        overhead={"cpu": "250m"},
    )

    assert pod_request(asked) == {"cpu": 2750, "memory": 3, "nvidia.com/gpu": 1}


def test_of_other_resources_only_those_of_the_request_are_compared():
    bounds = {"cpu": 1000, "memory": 10}

    assert not exceeds({}, {"nvidia.com/gpu": 5}, bounds, LEAST_MIN)
    assert exceeds({"nvidia.com/gpu": 1}, {}, bounds, LEAST_MIN)
    assert not exceeds({"nvidia.com/gpu": 1}, {}, bounds, GREATEST_MAX)
    assert exceeds({"ephemeral-storage": 1}, {}, bounds, GREATEST_MAX)


def test_arguments_are_refused():
    with pytest.raises(Exception, match="takes no arguments"):
        World(CapacityScheduling, args={"x": 1}, disabled=["DefaultPreemption"])
