"""`preemptionMode: Enabled`: evictions are judged by the zones on which containers run, as upstream does."""

import pytest
from msgspec.structs import replace

from mooring.objects.meta import ObjectMeta
from mooring.objects.node import Node, NodeStatus
from mooring.plugin import Code, CycleState, unschedulable
from mooring_policies.node_resource_topology import NodeResourceTopology, NodeResourceTopologyMatch
from mooring_policies.node_resource_topology.eviction import NotPossible, without_pods
from mooring_policies.node_resource_topology.fingerprint import fingerprint
from mooring_policies.node_resource_topology.objects import Attribute, Zone, ZoneResource
from mooring_policies.node_resource_topology.placement import (
    METADATA,
    VECTOR,
    container_hash,
    read_placement,
)
from policies.tests.world import World
from tests.makers import make_container, make_pod, quantity, resources

DEVICE_A, DEVICE_B = "example-device.com/deviceA", "example-device.com/deviceB"
SINGLE = Attribute(name="topologyManagerPolicy", value="single-numa-node")


def zone(number, vector=None, **amounts):
    """Each resource as (allocatable, available)."""
    return Zone(
        name=f"node-{number}",
        type="Node",
        resources=[
            ZoneResource(
                name=name.replace("device_", "example-device.com/device"),
                allocatable=quantity(allocatable),
                available=quantity(available),
            )
            for name, (allocatable, available) in amounts.items()
        ],
        attributes=[] if vector is None else [Attribute(name=VECTOR, value=vector)],
    )


def topology(*zones, metadata="", name="n", attributes=()):
    written = [SINGLE, *attributes]
    if metadata:
        written.append(Attribute(name=METADATA, value=f"npv0v001::ve=leb89::{metadata}"))
    return NodeResourceTopology(
        api_version="topology.node.k8s.io/v1alpha2",
        kind="NodeResourceTopology",
        metadata=ObjectMeta(name=name),
        attributes=written,
        zones=list(zones),
    )


def guaranteed(name, *container_names, namespace="default", **more):
    asked = {"cpu": 4, "memory": "1Gi"}
    containers = [
        make_container(each, requests=asked, limits=asked) for each in container_names or ("c",)
    ]
    return make_pod(name, namespace=namespace, containers=containers, **more)


# Where containers run


def test_the_hash_of_a_container_is_that_of_the_agents():
    empty, filled = make_pod("", namespace=""), make_pod("pod", namespace="ns")

    assert container_hash(empty, "") == 11145182160106660097
    assert container_hash(filled, "cnt") == 9468815510407277218


PLACED = [
    guaranteed("pod-0", "container-0", namespace="ns-0"),
    guaranteed("pod-1", "container-1", "container-2", namespace="ns-0"),
    make_pod("pod-2", namespace="ns-1"),
]


def zones_of(placement, pod):
    return [placement.get(container_hash(pod, each.name)) for each in pod.spec.containers]


def test_an_object_says_on_which_zone_each_container_runs():
    """One container is listed for zone 0; the others are on the busiest zone."""
    written = topology(zone(0, "!"), zone(1), metadata="cc=3::nn=2::bn=1")

    placement = read_placement(written, PLACED)

    assert [zones_of(placement, pod) for pod in PLACED[:2]] == [[1], [0, 1]]


def test_without_lists_all_containers_are_on_the_busiest_zone():
    placement = read_placement(topology(zone(0), zone(1), metadata="cc=2::nn=2::bn=1"), PLACED[1:])

    assert zones_of(placement, PLACED[0]) == [None]
    assert zones_of(placement, PLACED[1]) == [1, 1]


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(topology(zone(0)), id="no metadata"),
        pytest.param(topology(zone(0), metadata="cc=5::nn=2::bn=1"), id="another count"),
        pytest.param(
            topology(zone(0, "!"), metadata="cc=3::nn=2::bn=0"), id="a list of the busiest"
        ),
        pytest.param(
            topology(zone(0, "%"), metadata="cc=3::nn=2::bn=1"), id="a position past the end"
        ),
        pytest.param(
            topology(zone(0, "!"), zone(1, "!"), metadata="cc=3::nn=3::bn=2"), id="a position twice"
        ),
        pytest.param(topology(zone(0, "~"), metadata="cc=3::nn=2::bn=1"), id="half a number"),
        pytest.param(topology(zone(0, "é"), metadata="cc=3::nn=2::bn=1"), id="no digit"),
        pytest.param(topology(zone(5, "!"), metadata="cc=3::nn=2::bn=1"), id="a zone too many"),
        pytest.param(topology(zone(0), metadata="cc=abc::nn=2::bn=0"), id="no number"),
        pytest.param(topology(zone(0), metadata="cc3::nn=2::bn=0"), id="no value"),
        pytest.param(topology(zone(0), metadata="cc=3::nn=2::xx=0"), id="an unknown field"),
        pytest.param(topology(zone(0), metadata="cc=3::nn=2::bn=2"), id="no such busiest zone"),
        pytest.param(
            replace(
                topology(zone(0, "!"), metadata="cc=3::nn=2::bn=1"),
                attributes=[
                    Attribute(name="topologyManagerPolicy", value="best-effort"),
                    Attribute(name=METADATA, value="npv0v001::ve=leb89::cc=3::nn=2::bn=1"),
                ],
            ),
            id="another policy",
        ),
    ],
)
def test_an_object_that_does_not_fit_the_pods_says_nothing(written):
    assert read_placement(written, PLACED) == {}


@pytest.mark.parametrize(
    ("vector", "expected"),
    [
        ("!", 0),
        ("e", 63),
        ("f!", 64),
        ("~e", 1663),
        ("gf!", 1664),
    ],
)
def test_positions_have_one_two_or_three_digits(vector, expected):
    count = 1700
    pod = guaranteed("p", *(f"c{i}" for i in range(count)))
    written = topology(zone(0, vector), metadata=f"cc={count}::nn=2::bn=1")

    placement = read_placement(written, [pod])

    assert [placement[each] for each in sorted(placement)].index(0) == expected


# What zones have without some pods


WRITTEN = topology(
    zone(0, cpu=(10, 1), memory=("500Mi", "100Mi"), device_A=(8, 1)),
    zone(1, cpu=(10, 1), memory=("500Mi", "100Mi"), device_B=(8, 2)),
)


def container(name, cpu=None, devices=(), limit=None):
    requests = {**({"cpu": cpu, "memory": "100Mi"} if cpu else {}), **dict(devices)}
    limits = {**requests, **({"cpu": limit, "memory": "200Mi"} if limit else {})}
    return make_container(name, requests=requests, limits=limits)


BURSTABLE = make_pod(
    "pod-0",
    namespace="ns-a",
    containers=[
        container("cnt-0", 1, {DEVICE_A: 1}, limit=2),
        container("cnt-1", 1, {DEVICE_A: 2}, limit=2),
        container("cnt-2", 1, limit=2),
        container("cnt-3", 1, {DEVICE_A: 1}, limit=2),
    ],
)
BEST_EFFORT = make_pod(
    "pod-1", namespace="ns-b", containers=[container("cnt-0", devices={DEVICE_B: 3})]
)
GUARANTEED = make_pod("pod-2", namespace="ns-b", containers=[container("cnt-0", 2, {DEVICE_B: 3})])
PLACEMENT = {
    **{container_hash(BURSTABLE, f"cnt-{i}"): 0 for i in (0, 1, 3)},
    container_hash(BEST_EFFORT, "cnt-0"): 1,
    container_hash(GUARANTEED, "cnt-0"): 1,
}


def test_only_what_pods_have_for_themselves_becomes_free():
    """Devices of every pod; CPUs and memory of the Guaranteed one alone."""
    without = without_pods(WRITTEN, [BURSTABLE, BEST_EFFORT, GUARANTEED], PLACEMENT)

    assert [
        {each.name: each.available.value for each in zone.resources} for zone in without.zones
    ] == [
        {"cpu": 1, "memory": 100 << 20, DEVICE_A: 5},
        {"cpu": 3, "memory": 200 << 20, DEVICE_B: 8},
    ]


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        pytest.param(
            make_pod("pod-0", namespace="ns-a", containers=[make_container("cnt-0")]),
            "no resources to add, cannot process eviction simulation",
            id="nothing of its own",
        ),
        pytest.param(
            replace(GUARANTEED, metadata=ObjectMeta(name="newpod", namespace="ns-a")),
            "no resources to add, cannot process eviction simulation",
            id="not in the object",
        ),
        pytest.param(
            make_pod(
                "pod-0", namespace="ns-a", containers=[container("cnt-0", 15, {DEVICE_A: 20})]
            ),
            "resource release request exceeds NUMA allocatable",
            id="more than there is",
        ),
    ],
)
def test_evictions_that_do_not_fit_the_object_are_refused(pod, problem):
    with pytest.raises(NotPossible, match=problem):
        without_pods(WRITTEN, [pod], PLACEMENT)


# The plugin

VICTIM = guaranteed("victim", node="n", phase="Running", priority=0)
PREEMPTOR = guaranteed("preemptor", priority=100)
NO_CONTAINER = unschedulable("cannot align container")


def full(*, located=True):
    """Zone 0 has no CPU left, as the victim runs there; zone 1 has two."""
    counts_the_victim = Attribute(name="nodeTopologyPodsFingerprint", value=fingerprint([VICTIM]))
    return topology(
        zone(0, cpu=(4, 0), memory=("8Gi", "7Gi")),
        zone(1, cpu=(4, 2), memory=("8Gi", "8Gi")),
        metadata="cc=1::nn=2::bn=0" if located else "",
        attributes=[counts_the_victim],
    )


def node():
    # More than the zones have: only the zones keep the preemptor from the node.
    has = resources({"cpu": 16, "memory": "16Gi", "pods": 110})
    return Node(
        api_version="v1",
        kind="Node",
        metadata=ObjectMeta(name="n"),
        status=NodeStatus(allocatable=has, capacity=has),
    )


def world(*objects, mode="Enabled", located=True, **args):
    args = {"cacheResyncPeriodSeconds": 5, "preemptionMode": mode} | args
    return World(
        NodeResourceTopologyMatch, node(), full(located=located), VICTIM, *objects, args=args
    )


def verdict(it, pod, *evicted, prepared=True):
    state, info = CycleState(), it.snapshot.get("n")
    if prepared:
        it.policy.pre_filter(state, pod, it.snapshot)
    for each in evicted:
        assert it.policy.remove_pod(state, pod, each, info) is None
    return it.policy.filter(state, pod, info)


def test_without_evictions_a_full_zone_is_full():
    assert verdict(world(), PREEMPTOR) == NO_CONTAINER
    assert verdict(world(mode="Disabled"), PREEMPTOR, VICTIM) == NO_CONTAINER


def test_what_an_evicted_pod_held_on_its_zone_is_free():
    assert verdict(world(), PREEMPTOR, VICTIM) is None


def test_a_pod_that_comes_back_holds_its_zone_again():
    it, state = world(), CycleState()
    info = it.snapshot.get("n")
    it.policy.pre_filter(state, PREEMPTOR, it.snapshot)
    it.policy.remove_pod(state, PREEMPTOR, VICTIM, info)
    it.policy.add_pod(state, PREEMPTOR, VICTIM, info)

    assert it.policy.filter(state, PREEMPTOR, info) == NO_CONTAINER


def test_an_object_without_places_of_containers_judges_evictions_as_none():
    assert verdict(world(located=False), PREEMPTOR, VICTIM) == NO_CONTAINER


@pytest.mark.parametrize("args", [{"cacheResyncPeriodSeconds": 0}, {"discardReservedNodes": True}])
def test_only_the_cache_that_counts_reserved_pods_knows_the_zones_of_containers(args):
    assert verdict(world(**args), PREEMPTOR, VICTIM) == NO_CONTAINER


def test_an_eviction_that_frees_nothing_says_so():
    other = guaranteed("victim2", namespace="ns-2")

    assert verdict(world(), PREEMPTOR, other) == unschedulable(
        "eviction simulation in NRT is not possible:no resources to add, cannot process eviction simulation"
    )


def test_an_eviction_that_frees_too_little_does_not_help():
    asked = {"cpu": 8, "memory": "1Gi"}
    large = make_pod("l", containers=[make_container("c", requests=asked, limits=asked)])

    assert verdict(world(), large, VICTIM) == NO_CONTAINER


def test_an_eviction_without_pre_filter_is_an_error():
    it = world()
    info = it.snapshot.get("n")

    for change in (it.policy.remove_pod, it.policy.add_pod):
        assert change(CycleState(), PREEMPTOR, VICTIM, info).code == Code.ERROR


@pytest.mark.parametrize(
    ("mode", "located", "priority", "is_evicted"),
    [
        pytest.param("Enabled", True, 100, True, id="enabled"),
        pytest.param("Disabled", True, 100, False, id="disabled"),
        pytest.param("Enabled", False, 100, False, id="places of containers are not known"),
        pytest.param("Enabled", True, 0, False, id="of equal priority"),
        pytest.param("Enabled", True, -1, False, id="of lower priority"),
    ],
)
def test_a_pod_of_higher_priority_gets_the_zone_of_another(mode, located, priority, is_evicted):
    preemptor = replace(PREEMPTOR, spec=replace(PREEMPTOR.spec, priority=priority))
    it = world(preemptor, mode=mode, located=located)

    it.schedule_all()

    assert (it.scheduler.nominated_pods("n") != []) == is_evicted
