"""Feature gates of devices: what the allocator does without them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.devices.allocator import AllocationError
from mooring.devices.features import DeviceFeatures
from mooring.devices.refusals import DeviceRefusal
from mooring.devices.selectors import SelectorCompileError, SelectorRuntimeError, compile_selector
from mooring.objects.devices import Device, DeviceAttribute, DeviceConstraint, DeviceTaint
from tests.devices.device_makers import (
    find,
    make_allocator,
    make_claim,
    make_device,
    make_held,
    make_request,
    make_slice,
    make_subrequest,
)
from tests.makers import make_node

NODE = make_node("n1")
NO_TAINTS = DeviceFeatures(device_taints=False)
NO_PARTITIONS = DeviceFeatures(partitionable_devices=False)
NO_SHARES = DeviceFeatures(consumable_capacity=False)
NO_CONDITIONS = DeviceFeatures(binding_conditions=False)
STABLE = DeviceFeatures(consumable_capacity=False, binding_conditions=False)
ONE = make_claim(make_request())
ALL = make_claim(make_request(mode="All"))


def test_without_device_taints_tainted_devices_are_taken():
    slices = [make_slice(make_device("x", taints=[DeviceTaint(key="k", effect="NoSchedule")]))]

    assert find(slices, ONE, node=NODE) is None
    assert find(slices, ONE, node=NODE, features=NO_TAINTS) == ["r=p/x"]


def test_without_partitionable_devices_nothing_that_consumes_counters_is_taken():
    slices = [
        make_slice(name="counters", slices=2, counters={"memory": "80Gi"}),
        make_slice(make_device("part", counters={"memory": "40Gi"}), "whole", name="s", slices=2),
    ]
    refusals = []

    assert find(slices, ONE, node=NODE) == ["r=p/part"]
    assert find(slices, ONE, node=NODE, features=NO_PARTITIONS, refusals=refusals) == ["r=p/whole"]
    assert [each.reason for each in refusals if isinstance(each, DeviceRefusal)] == ["feature gate"]
    # The device is one of all devices, so not all can be had.
    assert find(slices, ALL, node=NODE, features=NO_PARTITIONS) is None


def test_without_partitionable_devices_a_wrong_counter_makes_no_pool_invalid():
    slices = [make_slice(make_device("part", counters={"unknown": "1"}), "whole")]

    assert find(slices, ONE, node=NODE, features=NO_PARTITIONS) == ["r=p/whole"]


@pytest.mark.parametrize("per_device", [True, False])
def test_without_partitionable_devices_slices_that_leave_nodes_to_devices_are_passed_over(
    per_device,
):
    mine = make_slice(make_device("x", node="n1"), name="mine", slices=2, per_device=True)
    mine = replace(mine, spec=replace(mine.spec, per_device_node_selection=per_device))
    slices = [mine, make_slice("y", name="other", slices=2)]

    # The pool is complete all the same: it has both of its slices.
    assert find(slices, ALL, node=NODE, features=NO_PARTITIONS) == ["r=p/y"]


def test_without_consumable_capacity_devices_are_not_shared_and_amounts_not_compared():
    shared = make_device("x", multiple=True, capacity={"memory": "10Gi"})
    two = [make_claim(make_request(), name=name) for name in ("c", "d")]
    allocator = make_allocator([make_slice(shared)], features=NO_SHARES)

    (allocation,) = allocator.allocate(NODE, two[:1]) or []

    (result,) = allocation.devices.results
    assert (result.device, result.share_id, result.consumed_capacity) == ("x", None, {})
    assert allocator.allocate(NODE, two) is None


def test_without_consumable_capacity_a_share_of_earlier_times_blocks_the_device():
    shared = make_slice(make_device("x", multiple=True, capacity={"memory": "10Gi"}))
    held = [make_claim(name="other", holds=[make_held("x", share="1", consumed={"memory": "1Gi"})])]
    asks = make_claim(make_request(capacity={"memory": "1Gi"}))

    assert find([shared], asks, node=NODE, allocated=held) == ["r=p/x"]
    assert find([shared], ONE, node=NODE, allocated=held, features=NO_SHARES) is None


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        pytest.param(make_request(capacity={"memory": "1Gi"}), "request r", id="a request"),
        pytest.param(
            replace(
                make_request(),
                exactly=None,
                first_available=[
                    make_subrequest("missing", device_class="none"),
                    make_subrequest("part", capacity={"memory": "1Gi"}),
                ],
            ),
            "subrequest part",
            id="an alternative, before other mistakes",
        ),
    ],
)
def test_without_consumable_capacity_requested_capacity_is_an_error(request_, text):
    slices = [make_slice(make_device("x", capacity={"memory": "10Gi"}))]

    with pytest.raises(AllocationError) as error:
        find(slices, make_claim(request_), node=NODE, features=NO_SHARES)

    assert str(error.value) == (
        f"claim ns/c, {text}: has capacity requests, "
        "but the DRAConsumableCapacity feature is disabled"
    )


def test_without_binding_conditions_devices_that_have_some_are_not_selected():
    slices = [make_slice(make_device("x", conditions=["ready"]), "y")]

    assert find(slices, ONE, node=NODE) == ["r=p/x"]
    assert find(slices, ONE, node=NODE, features=NO_CONDITIONS) == ["r=p/y"]
    assert find(slices, ALL, node=NODE, features=NO_CONDITIONS) == ["r=p/y"]


def test_the_stable_allocator_passes_over_what_it_does_not_know():
    bound = make_device("x", binds_to_node=True, capacity={"memory": "1Gi"})
    slices = [make_slice(bound, all_nodes=True)]
    asks = make_claim(make_request(capacity={"memory": "5Gi"}))

    (allocation,) = make_allocator(slices, features=STABLE).allocate(NODE, [asks]) or []

    assert allocation.devices.results[0].device == "x"
    assert allocation.node_selector is None


def test_the_stable_allocator_has_no_distinct_attribute():
    claim = make_claim(make_request(), constraints=[DeviceConstraint(distinct_attribute="d/a")])
    slices = [make_slice(make_device("x", attributes={"a": 1}))]

    assert find(slices, claim, node=NODE, features=NO_SHARES) == ["r=p/x"]
    with pytest.raises(AllocationError, match="claim ns/c, constraint #0: empty constraint"):
        find(slices, claim, node=NODE, features=STABLE)


@pytest.mark.parametrize(
    ("attribute", "expression", "selected"),
    [
        (DeviceAttribute(ints=[1, 2]), "{a}.includes(2)", True),
        (DeviceAttribute(strings=["a"]), "{a}.exists(x, x == 'b')", False),
        (DeviceAttribute(bools=[True]), "{a}[0]", True),
        (DeviceAttribute(versions=["1.2.0"]), "{a}.all(v, v.isGreaterThan(semver('1.0.0')))", True),
        (DeviceAttribute(boolean=True), "{a}", True),
    ],
)
def test_with_list_attributes_selectors_can_use_lists(attribute, expression, selected):
    expression = expression.format(a="device.attributes['d'].a")
    device = Device(name="x", attributes={"a": attribute})
    selector = compile_selector(expression, list_attributes=True)

    assert selector.matches("d", device) is selected


def test_without_list_attributes_a_list_is_an_error():
    device = Device(name="x", attributes={"a": DeviceAttribute(ints=[1])})

    with pytest.raises(SelectorRuntimeError, match="attribute a: unsupported attribute value"):
        compile_selector("device.driver == 'd'").matches("d", device)
    with pytest.raises(SelectorCompileError):
        compile_selector("device.attributes['d'].a.exists(x, x == 1)")
    wrong = Device(name="x", attributes={"a": DeviceAttribute(versions=["v1"])})
    with pytest.raises(SelectorRuntimeError, match="parse semantic version"):
        compile_selector("true", list_attributes=True).matches("d", wrong)
