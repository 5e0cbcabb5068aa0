"""Which pods have resources of a zone for themselves; reservations and objects: upstream's tables."""

import pytest
from msgspec.structs import replace

from mooring.plugin import CycleState, unschedulable
from mooring_policies.node_resource_topology import NodeResourceTopologyMatch
from mooring_policies.node_resource_topology.fingerprint import fingerprint
from mooring_policies.node_resource_topology.numa import has_exclusive_resources, includes_devices
from mooring_policies.node_resource_topology.objects import Attribute
from policies.tests.node_resource_topology.test_node_resource_topology import (
    CONTAINERS,
    node_of,
    topology,
)
from policies.tests.world import World
from tests.makers import make_container, make_pod

FPGA = "veryfast.io/fpga"
WHOLE, LARGE = {"cpu": 4, "memory": "2Gi"}, {"cpu": 8, "memory": "16Gi"}
MAIN, INIT, SIDECAR = "main", "init", "sidecar"


def pod_of(where, asked):
    one = make_container(
        "c", requests=asked, limits=asked, restart_policy="Always" if where == SIDECAR else ""
    )
    if where == MAIN:
        return make_pod("p", containers=[one])
    return make_pod("p", init_containers=[one], containers=[])


@pytest.mark.parametrize(
    ("where", "asked", "has_devices", "is_exclusive"),
    [
        (MAIN, WHOLE, False, True),
        (INIT, WHOLE, False, False),
        (SIDECAR, WHOLE, False, True),
        (MAIN, {FPGA: 1}, True, True),
        (INIT, {FPGA: 1}, True, False),
        (SIDECAR, {FPGA: 1}, True, True),
        (MAIN, {**LARGE, FPGA: 1}, True, True),
        (MAIN, {"cpu": 8, FPGA: 1}, True, True),
        (MAIN, {"cpu": 8}, False, False),
    ],
)
def test_whole_cpus_memory_and_devices_are_for_one_container(
    where, asked, has_devices, is_exclusive
):
    pod = pod_of(where, asked)

    assert includes_devices(pod) == has_devices
    assert has_exclusive_resources(pod, frozenset({"cpu", "memory", FPGA})) == is_exclusive


def test_a_pod_without_containers_has_nothing():
    pod = make_pod("p", containers=[])

    assert not includes_devices(pod)
    assert not has_exclusive_resources(pod, frozenset({FPGA}))


@pytest.mark.parametrize(
    ("asked", "names", "is_exclusive"),
    [
        pytest.param({FPGA: 1}, {FPGA}, True, id="a device of the zones"),
        pytest.param({FPGA: 1}, {"cpu", "memory"}, False, id="a device of the node only"),
        pytest.param({FPGA: 1}, set(), False, id="zones without resources"),
        pytest.param(WHOLE, set(), True, id="whole CPUs, whatever the zones say"),
    ],
)
def test_a_device_is_for_one_container_if_the_zones_have_it(asked, names, is_exclusive):
    assert has_exclusive_resources(pod_of(MAIN, asked), frozenset(names)) == is_exclusive


# Reservations

ZONE = {"cpu": 30, "memory": "60Gi"}
NODE1 = topology("node1", CONTAINERS, ZONE, ZONE)


def world(*objects):
    args = {"cacheResyncPeriodSeconds": 5}
    return World(NodeResourceTopologyMatch, node_of(NODE1), *objects, args=args)


def asks(cpu, name="p", **more):
    asked = {"cpu": cpu, "memory": "16Gi"}
    return make_pod(name, containers=[make_container("c", requests=asked, limits=asked)], **more)


def fits(it, cpu):
    verdict = it.policy.filter(CycleState(), asks(cpu), it.snapshot.get("node1"))
    assert verdict in (None, unschedulable("cannot align container"))
    return verdict is None


def counting(written, *pods):
    attribute = Attribute(name="nodeTopologyPodsFingerprint", value=fingerprint(pods))
    return replace(written, attributes=[attribute])


def test_a_reserved_pod_takes_from_every_zone_and_gives_back_what_it_took():
    it, pod = world(NODE1), asks(16, "reserved")

    it.policy.reserve(CycleState(), pod, "node1")
    assert fits(it, 14)
    assert not fits(it, 15)

    it.policy.unreserve(CycleState(), pod, "node1")
    assert fits(it, 30)
    assert not fits(it, 31)


def test_a_pod_that_was_never_reserved_gives_nothing_back():
    it = world(NODE1)

    it.policy.unreserve(CycleState(), asks(16), "node1")

    assert fits(it, 30)
    assert not fits(it, 31)


def test_a_node_without_an_object_reserves_nothing():
    it = world()
    it.policy.reserve(CycleState(), asks(16, "reserved"), "node1")

    it.add(NODE1)

    assert fits(it, 30)


def test_more_reservations_than_there_is_leave_nothing():
    it = world(NODE1)
    for i in range(3):
        it.policy.reserve(CycleState(), asks(16, f"r{i}"), "node1")

    assert not fits(it, 1)


def test_an_object_that_counts_the_running_pods_ends_their_reservations():
    it, pod = world(NODE1), asks(16, "reserved", node="node1", phase="Running")
    it.policy.reserve(CycleState(), pod, "node1")
    it.add(pod)
    agent_wrote = topology("node1", CONTAINERS, {"cpu": 14, "memory": "44Gi"}, ZONE)

    it.scheduler.updated(NODE1, counting(agent_wrote, pod))

    assert fits(it, 30)


def test_a_pod_that_is_reserved_while_an_object_is_not_taken_stays_reserved():
    it = world(NODE1)
    it.policy.reserve(CycleState(), asks(4, "first"), "node1")
    it.scheduler.updated(NODE1, counting(NODE1, make_pod("nobody")))

    it.policy.reserve(CycleState(), asks(6, "second"), "node1")

    assert fits(it, 20)
    assert not fits(it, 21)
