"""DynamicResources rule by rule, each with the smallest example.

`tests/devices/test_allocator_examples.py` has those that are about the allocator alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from mooring.config import FeatureGates
from mooring.devices.allocator import AllocationTimeout
from mooring.errors import MooringError, PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SKIP, SUCCESS, unresolvable, unschedulable
from mooring.objects.devices import (
    CLAIM_FINALIZER,
    AllocatedDeviceStatus,
    ConsumerReference,
    DeviceClaimConfig,
    DeviceCondition,
    DeviceRequest,
    ResourceClaim,
)
from mooring.objects.pod import Container, ContainerExtendedResourceRequest, ResourceRequirements
from tests.device_world import GPU, NS, claim, gpu_class, pod_with
from tests.devices.device_makers import (
    make_class,
    make_device,
    make_request,
    make_slice,
    make_subrequest,
)
from tests.makers import make_node, make_pod, resources

N1, N2 = make_node("n1"), make_node("n2")
POD = pod_with("c")
OTHER = pod_with("c", name="other")
NOT_HERE = unresolvable("resourceclaim not available on the node")
CLASS = make_class()


def test_a_pod_without_claims_is_skipped_and_has_nothing_to_deallocate(world_of):
    world, state = world_of(N1), CycleState()

    assert world.pre_filter(make_pod(), state) == SKIP
    assert world.post_filter(state, make_pod()) == unschedulable("no new claims to deallocate")


def test_a_pod_waits_for_the_claim_of_its_template(world_of):
    pod = pod_with(templates={"gpu": ""})

    assert world_of(N1).plugin.pre_enqueue(pod) == unresolvable(
        'pod "ns/pod": ResourceClaim not created yet'
    )


def test_a_pod_waits_while_its_claim_is_being_deleted(world_of):
    assert world_of(N1, claim(deleting=True)).plugin.pre_enqueue(POD) == unresolvable(
        'resourceclaim "c" is being deleted'
    )


def test_a_class_that_is_missing_leaves_nothing_to_deallocate(world_of):
    world, state = world_of(N1, claim()), CycleState()

    assert world.pre_filter(POD, state) == unresolvable(
        "request r: device class gpu does not exist"
    )
    assert world.post_filter(state, POD) == unschedulable("no new claims to deallocate")


def test_the_earlier_the_alternative_the_higher_the_score(world_of):
    """Of eight alternatives the first is worth 8 points, the second 7, the third 6; 8 becomes 100."""
    wanted = [make_subrequest(name, f'device.attributes["d"].kind == "{name}"') for name in "abc"]
    objects = [CLASS, claim("c", DeviceRequest(name="r", first_available=wanted))]
    for name, kind in (("n1", "a"), ("n2", "b"), ("n3", "c")):
        device = make_device("x", attributes={"kind": kind})
        objects += [make_node(name), make_slice(device, name=f"s-{name}", pool=name, node=name)]
    world = world_of(*objects)

    state, verdicts = world.filter(POD)
    scores = [
        world.plugin.score(state, POD, world.cluster.infos[name]) for name in ("n1", "n2", "n3")
    ]
    normalized = np.array([scores[0], scores[2]], np.int64)
    world.plugin.normalize_scores(state, POD, normalized)

    assert all(status.ok for status in verdicts.values())
    assert scores == [8, 7, 6]
    assert normalized.tolist() == [100, 75]


def test_without_the_gate_a_request_with_alternatives_is_refused(world_of):
    request = DeviceRequest(name="r", first_available=[make_subrequest("a")])
    world = world_of(N1, CLASS, make_slice("x"), claim("c", request))
    world.gates = FeatureGates({"DRAPrioritizedList": False})

    assert world.pre_filter(POD) == unresolvable(
        "resource claim ns/c, request r: has subrequests, but the DRAPrioritizedList feature is disabled"
    )


def test_an_idle_claim_that_is_elsewhere_is_deallocated(world_of):
    held = claim(holds=["x"], on="n2", finalizers=[CLAIM_FINALIZER])
    world = world_of(N1, CLASS, held)

    state, verdicts = world.filter(POD)

    assert verdicts == {"n1": NOT_HERE}
    assert world.post_filter(state, POD) == unschedulable("deallocation of ResourceClaim completed")
    world.settle()
    assert world.claims.writes == ["set_status c"]
    status = world.claim().status
    assert (status.allocation, status.reserved_for, status.devices) == (None, [], [])


def test_a_claim_that_another_pod_uses_is_left_alone(world_of):
    world = world_of(N1, CLASS, claim(holds=["x"], on="n2", reserved_for=[OTHER]))

    state, verdicts = world.filter(POD)

    assert verdicts == {"n1": NOT_HERE}
    assert world.post_filter(state, POD) == unschedulable("still not schedulable")
    world.settle()
    assert world.claims.writes == []


def test_a_claim_that_is_being_allocated_for_another_pod_is_waited_for(world_of):
    world = world_of(N1, CLASS, make_slice("x"), claim())
    state = world.reserve(OTHER)

    assert world.pre_filter(POD) == unresolvable(
        "resource claim ns/c is in the process of being allocated"
    )
    world.pre_bind(state, OTHER)
    assert world.pre_filter(POD) == SUCCESS


def test_binding_writes_the_finalizer_and_then_the_status(world_of):
    world = world_of(N1, CLASS, make_slice("x"), claim())

    state = world.reserve(POD)
    assert world.claims.writes == []
    world.pre_bind(state, POD)

    assert world.claims.writes == ["set_finalizers c", "set_status c"]
    stored = world.claim()
    assert stored.metadata.finalizers == [CLAIM_FINALIZER]
    assert stored.status.reserved_for == [
        ConsumerReference(resource="pods", name="pod", uid=POD.uid)
    ]
    allocation = stored.status.allocation
    assert allocation is not None
    assert [result.device for result in allocation.devices.results] == ["x"]
    assert allocation.allocation_timestamp is not None
    assert world.cluster.claims.in_flight(stored.uid) is None
    world.cluster.validate()


def test_after_a_failed_bind_the_reservation_goes_and_the_allocation_stays(world_of):
    world = world_of(N1, CLASS, make_slice("x"), claim())
    state = world.reserve(POD)
    world.pre_bind(state, POD)

    world.unreserve(state, POD)

    assert world.claims.writes[2:] == ["remove_reservation c"]
    status = world.claim().status
    assert status.reserved_for == []
    assert status.allocation is not None


def configs_of(world, pod=POD) -> list[tuple[str, list[str]]]:
    world.pre_bind(world.reserve(pod), pod)
    allocation = world.claim().status.allocation
    assert allocation is not None
    return [(each.source, each.requests) for each in allocation.devices.config]


def test_a_class_gives_its_configuration_once_for_all_of_its_requests(world_of):
    asked = claim("c", make_request("a"), make_request("b"))
    world = world_of(N1, make_class(configs=["d"]), make_slice("x", "y"), asked)

    assert configs_of(world) == [("FromClass", ["a", "b"])]


def test_a_claim_gives_its_configuration_for_each_request(world_of):
    asked = claim("c", make_request("a"), make_request("b"))
    config = DeviceClaimConfig(requests=["a", "b"])
    devices = replace(asked.spec.devices, config=[config])
    asked = replace(asked, spec=replace(asked.spec, devices=devices))
    world = world_of(N1, CLASS, make_slice("x", "y"), asked)

    assert configs_of(world) == [("FromClaim", ["a", "b"])] * 2


def asking(name: str, **requests: int) -> Container:
    amounts = {key.replace("gpu", GPU): value for key, value in requests.items()}
    return Container(name=name, resources=ResourceRequirements(requests=resources(amounts)))


def extended_claim(world) -> ResourceClaim:
    (found,) = world.cluster.listers.all(ResourceClaim)
    return found


def test_an_extended_resource_becomes_a_request_of_a_claim(world_of):
    pod = make_pod("pod", namespace=NS, containers=[asking("app", cpu=1, gpu=2)])
    world = world_of(N1, gpu_class(resource=GPU), make_slice("x", "y", "z"))

    world.pre_bind(world.reserve(pod), pod)

    assert world.claims.writes == [
        "create pod-extended-resources-",
        "set_finalizers pod-extended-resources-00001",
        "set_status pod-extended-resources-00001",
        "set_extended_resource_claim pod",
    ]
    stored = extended_claim(world)
    (request,) = stored.spec.devices.requests
    assert (request.name, request.exactly.count) == ("container-0-request-1", 2)
    assert world.claims.told.resource_claim_name == stored.name
    assert world.claims.told.request_mappings == [
        ContainerExtendedResourceRequest(
            container_name="app", resource_name=GPU, request_name="container-0-request-1"
        )
    ]


def test_an_init_container_uses_the_devices_of_a_later_one_and_asks_for_the_rest(world_of):
    pod = make_pod(
        "pod",
        namespace=NS,
        init_containers=[asking("init", gpu=2)],
        containers=[asking("app", gpu=1)],
    )
    world = world_of(N1, gpu_class(resource=GPU), make_slice("x", "y"))

    world.pre_bind(world.reserve(pod), pod)

    requests = extended_claim(world).spec.devices.requests
    assert [(each.name, each.exactly.count) for each in requests] == [
        ("container-0-request-0", 1),
        ("container-1-request-0", 1),
    ]
    assert [
        (each.container_name, each.request_name) for each in world.claims.told.request_mappings
    ] == [
        ("app", "container-1-request-0"),
        ("init", "container-1-request-0"),
        ("init", "container-0-request-0"),
    ]


def test_a_node_that_offers_the_resource_itself_needs_no_claim(world_of):
    pod = make_pod("pod", namespace=NS, requests={GPU: 2})
    world = world_of(make_node("n1", **{GPU: 4}), gpu_class(resource=GPU))

    world.pre_bind(world.reserve(pod), pod)

    assert world.claims.writes == []


def test_a_resource_that_nobody_serves_does_not_fit(world_of):
    pod = make_pod("pod", namespace=NS, requests={GPU: 1, "example.com/tpu": 1})
    world = world_of(N1, gpu_class(resource=GPU), make_slice("x"))

    _, verdicts = world.filter(pod)

    assert verdicts == {"n1": unresolvable("cannot fit resource")}


SLOW = make_slice(make_device("x", conditions=["ready"], failure_conditions=["broken"]))


def told_by_driver(world, kind: str, after_s: float, **more: str) -> None:
    """After a while, the driver gives the device a condition."""
    condition = DeviceCondition(type=kind, status="True", **more)

    def tell() -> None:
        stored = world.claim()
        device = AllocatedDeviceStatus(driver="d", pool="p", device="x", conditions=[condition])
        world.store.update(replace(stored, status=replace(stored.status, devices=[device])))

    world.loop.call_later(after_s, tell)


def test_binding_waits_until_the_device_is_ready(world_of):
    world = world_of(N1, CLASS, SLOW, claim())
    state = world.reserve(POD)
    told_by_driver(world, "ready", after_s=12)

    world.pre_bind(state, POD)

    assert world.clock.elapsed_s == 15, "it looks every five seconds"
    (event,) = world.events
    assert (event.type, event.reason, event.action, event.note) == (
        "Normal",
        "BindingConditionsPending",
        "Scheduling",
        "waiting for binding conditions for device on node n1",
    )


def test_a_device_that_fails_ends_the_attempt_and_is_given_back_by_the_next(world_of):
    world = world_of(N1, CLASS, SLOW, claim())
    state = world.reserve(POD)
    told_by_driver(world, "broken", after_s=1, reason="R", message="M")

    with pytest.raises(MooringError) as failed:
        world.pre_bind(state, POD)
    assert str(failed.value) == 'device binding failed: claim=c, reason=R, message="M"'
    world.unreserve(state, POD)

    state, verdicts = world.filter(POD)
    assert verdicts == {"n1": NOT_HERE}
    assert world.post_filter(state, POD) == unschedulable("deallocation of ResourceClaim completed")
    world.settle()
    assert world.claim().status.allocation is None


def test_a_device_that_does_not_get_ready_in_time_ends_the_attempt(world_of):
    world = world_of(N1, CLASS, SLOW, claim(), binding_timeout=60)
    state = world.reserve(POD)

    with pytest.raises(MooringError, match="device binding timeout: "):
        world.pre_bind(state, POD)
    assert world.clock.elapsed_s == 60
    world.unreserve(state, POD)
    world.loop.call_later(5, world.loop.stop)
    world.loop.run_forever()

    state, verdicts = world.filter(POD)
    assert verdicts == {"n1": NOT_HERE}
    assert world.post_filter(state, POD) == unschedulable("deallocation of ResourceClaim completed")


def test_a_search_that_takes_too_long_is_an_error(world_of):
    class NeverEnds:
        def allocate(self, node, claims, expired):
            assert not expired()
            clock.now = lambda: 11.0
            assert expired()
            raise AllocationTimeout

    class Clock:
        now = staticmethod(lambda: 0.0)

    world, clock = world_of(N1, CLASS, make_slice("x"), claim()), Clock()
    world.clock = clock
    state, snapshot = CycleState(), world.cluster.snapshot()
    world.plugin.pre_filter(state, POD, snapshot)
    state.read("DynamicResources", object).allocator = NeverEnds()

    with pytest.raises(PluginError, match=r"^node n1: timed out trying to allocate devices$"):
        world.plugin.filter(state, POD, snapshot.get("n1"))


def test_a_pool_that_contradicts_itself_rules_a_node_out(world_of):
    invalid = make_slice("x", "x")
    world = world_of(N1, CLASS, invalid, claim())

    _, verdicts = world.filter(POD)

    assert verdicts == {"n1": unresolvable("invalid resource pools were encountered")}
