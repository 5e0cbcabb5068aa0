"""The allocator rule by rule, each with the smallest example."""

from __future__ import annotations

import pytest

from mooring.devices.allocator import (
    AllocationError,
    AllocationTimeout,
    NodeOnlyError,
)
from mooring.objects.devices import (
    DeviceClaimConfig,
    DeviceConstraint,
    DeviceRequest,
    DeviceTaint,
    DeviceToleration,
    OpaqueConfig,
)
from mooring.objects.quantity import parse_quantity
from tests.devices.device_makers import (
    find,
    make_allocator,
    make_capacity,
    make_claim,
    make_class,
    make_device,
    make_held,
    make_request,
    make_slice,
    make_subrequest,
    results,
)
from tests.makers import make_node

N1 = make_node("n1")
ONE = make_claim(make_request())
ALL = make_claim(make_request(mode="All", count=0))


def test_without_slices_there_is_no_solution():
    assert find([], ONE, node=N1) is None


def test_the_first_device_is_taken_and_the_claim_is_bound_to_the_node():
    (allocation,) = make_allocator([make_slice("x", "y")]).allocate(N1, [ONE])

    assert results([allocation]) == ["r=p/x"]
    (term,) = allocation.node_selector.node_selector_terms
    (field,) = term.match_fields
    assert (field.key, field.operator, field.values) == ("metadata.name", "In", ["n1"])


def test_a_device_that_a_later_request_needs_is_given_back():
    def at_least(amount):
        return f'device.capacity["d"].mem.compareTo(quantity("{amount}")) >= 0'

    claim = make_claim(make_request("a", at_least("1Gi")), make_request("b", at_least("2Gi")))
    slices = [
        make_slice(
            make_device("two", capacity={"mem": "2Gi"}), make_device("one", capacity={"mem": "1Gi"})
        )
    ]

    assert find(slices, claim, node=N1) == ["a=p/one", "b=p/two"]


def test_pools_are_tried_by_name():
    slices = [make_slice("x", name="s2", pool="p2"), make_slice("x", name="s1", pool="p1")]

    assert find(slices, ONE, node=N1) == ["r=p1/x"]


def test_pools_with_binding_conditions_are_tried_last():
    waiting = make_device("x", conditions=["ready"], failure_conditions=["broken"])
    slices = [make_slice(waiting, name="s1", pool="p1"), make_slice("x", name="s2", pool="p2")]

    assert find(slices, ONE, node=N1) == ["r=p2/x"]
    (allocation,) = make_allocator(slices[:1]).allocate(N1, [ONE])
    (result,) = allocation.devices.results
    assert result.binding_conditions == ["ready"]
    assert result.binding_failure_conditions == ["broken"]


def test_slices_are_tried_by_name():
    slices = [make_slice("a", name="s2", slices=2), make_slice("b", name="s1", slices=2)]

    assert find(slices, ONE, node=N1) == ["r=p/b"]


def test_an_incomplete_pool_is_skipped_or_stops_a_request_for_all():
    slices = [make_slice("x", slices=2)]

    assert find(slices, ONE, node=N1) is None
    with pytest.raises(AllocationError) as error:
        find(slices, ALL, node=N1)
    assert str(error.value) == (
        "claim ns/c, request r: asks for all devices, "
        "but resource pool d/p is currently being updated"
    )


@pytest.mark.parametrize("claim", [ONE, ALL], ids=["ExactCount", "All"])
def test_a_pool_with_a_newer_generation_elsewhere_is_ignored(claim):
    slices = [
        make_slice("x", name="old", slices=2),
        make_slice("x", name="new", node="n2", generation=2),
    ]

    assert find(slices, claim, node=N1) is None


def test_all_devices_includes_those_in_use():
    slices = [make_slice("x", "y")]
    held = [make_claim(name="other", holds=[make_held("x")])]
    admin = make_claim(make_request(mode="All", count=0, admin=True))

    assert find(slices, ALL, node=N1, allocated=held) is None
    assert find(slices, admin, node=N1, allocated=held) == ["r=p/x", "r=p/y"]


def test_a_claim_has_at_most_32_results():
    slices = [make_slice(*(f"x{number}" for number in range(33)))]

    with pytest.raises(AllocationError) as error:
        find(slices, ALL, node=N1)
    assert str(error.value) == (
        "claim ns/c: number of requested devices 33 exceeds the claim limit of 32"
    )


ADMIN = make_request(admin=True)


@pytest.mark.parametrize(
    ("first", "second", "devices"),
    [
        pytest.param(ADMIN, ADMIN, ["r=p/x", "r=p/x"], id="d15 both admin"),
        pytest.param(make_request(), ADMIN, ["r=p/x", "r=p/x"], id="d16 the second admin"),
        pytest.param(ADMIN, make_request(), ["r=p/x", "r=p/y"], id="d16 the first admin"),
    ],
)
def test_admin_access_takes_what_others_have(first, second, devices):
    claims = [make_claim(first, name="c1"), make_claim(second, name="c2")]

    assert find([make_slice("x", "y")], *claims, node=N1) == devices


def numa(name: str, value: int):
    return make_device(name, attributes={"numa": value})


def test_match_attribute_wants_the_same_value_on_all_devices():
    claim = make_claim(
        make_request(count=2), constraints=[DeviceConstraint(match_attribute="d/numa")]
    )
    slices = [make_slice(numa("one", 0), numa("two", 1), numa("three", 1))]

    assert find(slices, claim, node=N1) == ["r=p/two", "r=p/three"]


def test_a_device_without_the_attribute_is_skipped_or_stops_a_request_for_all():
    constraints = [DeviceConstraint(match_attribute="d/numa")]
    one = make_claim(make_request(), constraints=constraints)
    everything = make_claim(make_request(mode="All", count=0), constraints=constraints)
    slices = [make_slice("x", numa("y", 1))]

    assert find(slices, one, node=N1) == ["r=p/y"]
    with pytest.raises(AllocationError) as error:
        find(slices, everything, node=N1)
    assert str(error.value) == (
        "claim ns/c, request r: cannot add device d/p/x "
        "because a claim constraint would not be satisfied"
    )


@pytest.mark.parametrize(
    ("effect", "tolerations", "devices"),
    [
        pytest.param("NoSchedule", [], None, id="not tolerated"),
        pytest.param("NoExecute", [], None, id="NoExecute as well"),
        pytest.param(
            "NoSchedule", [DeviceToleration(key="k", operator="Exists")], ["r=p/x"], id="tolerated"
        ),
        pytest.param(
            "NoSchedule", [DeviceToleration(key="k", value="w")], None, id="another value"
        ),
        pytest.param("None", [], ["r=p/x"], id="taint without effect"),
    ],
)
def test_taints_must_be_tolerated(effect, tolerations, devices):
    tainted = make_device("x", taints=[DeviceTaint(key="k", value="v", effect=effect)])
    claim = make_claim(make_request(tolerations=tolerations))

    assert find([make_slice(tainted)], claim, node=N1) == devices


def test_the_first_alternative_that_fits_is_taken():
    claim = make_claim(
        DeviceRequest(
            name="r", first_available=[make_subrequest("big", "false"), make_subrequest("small")]
        )
    )

    assert find([make_slice("x")], claim, node=N1) == ["r/small=p/x"]


@pytest.mark.parametrize(
    ("name", "devices"), [("full", None), ("half", ["r=p/half2"])], ids=["full", "half"]
)
def test_partitions_share_counters(name, devices):
    def part(device, kind, memory):
        return make_device(device, attributes={"kind": kind}, counters={"mem": memory})

    slices = [
        make_slice(name="counters", slices=2, counters={"mem": "40Gi"}),
        make_slice(
            part("full", "full", "40Gi"),
            part("half1", "half", "20Gi"),
            part("half2", "half", "20Gi"),
            name="devices",
            slices=2,
        ),
    ]
    claim = make_claim(make_request("r", f'device.attributes["d"].kind == "{name}"'))
    held = [make_claim(name="other", holds=[make_held("half1")])]

    assert find(slices, claim, node=N1, allocated=held) == devices


def shared(policy: bool = True):
    capacity = make_capacity("10Gi", default="1Gi", least="1Gi", step="1Gi", most="4Gi")
    return make_device("x", multiple=True, capacity={"mem": capacity if policy else "10Gi"})


def consumed(claim, *, held=()):
    allocations = make_allocator([make_slice(shared())], held).allocate(N1, [claim])
    if allocations is None:
        return None
    (result,) = allocations[0].devices.results
    assert result.share_id == "share-1"
    return result.consumed_capacity["mem"].canonical


@pytest.mark.parametrize(
    ("request_", "amount"),
    [({"mem": "1536Mi"}, "2Gi"), (None, "1Gi"), ({"mem": "5Gi"}, None)],
    ids=["rounded up", "default", "above the maximum"],
)
def test_requests_of_capacity_follow_the_policy(request_, amount):
    assert consumed(make_claim(make_request(capacity=request_))) == amount


@pytest.mark.parametrize(("used", "amount"), [("9Gi", None), ("8Gi", "2Gi")])
def test_no_more_is_consumed_than_there_is(used, amount):
    held = [make_claim(name="o", holds=[make_held("x", share="s", consumed={"mem": used})])]

    assert consumed(make_claim(make_request(capacity={"mem": "2Gi"})), held=held) == amount


def test_without_a_policy_a_share_takes_the_whole_and_without_capacity_nothing():
    claims = [make_claim(make_request(), name="c1"), make_claim(make_request(), name="c2")]
    bare = make_device("x", multiple=True)

    assert find([make_slice(shared(policy=False))], *claims, node=N1) is None
    assert find([make_slice(shared(policy=False))], claims[0], node=N1) == ["r=p/x"]
    assert find([make_slice(bare)], *claims, node=N1) == ["r=p/x", "r=p/x"]


def test_a_device_without_the_requested_capacity_is_skipped():
    claim = make_claim(make_request(capacity={"foo": "1"}))

    assert find([make_slice(make_device("x", capacity={"mem": "1Gi"}))], claim, node=N1) is None


def test_a_selector_that_fails_on_a_device_ends_the_attempt():
    claim = make_claim(make_request("r", 'device.attributes["d"].healthy'))

    with pytest.raises(AllocationError) as error:
        find([make_slice("x")], claim, node=N1)
    assert str(error.value) == "claim ns/c: selector #0: CEL runtime error: no such key: healthy"


def test_an_unknown_domain_is_empty_and_an_unknown_name_an_error():
    failing = make_claim(make_request("r", 'device.attributes["other"].x == 1'))
    asking = make_claim(make_request("r", '"x" in device.attributes["other"]'))

    with pytest.raises(AllocationError, match="no such key: x"):
        find([make_slice("x")], failing, node=N1)
    assert find([make_slice("x")], asking, node=N1) is None


def configs(claim, classes=None):
    (allocation,) = make_allocator([make_slice("x", "y")], classes=classes).allocate(N1, [claim])
    return [(each.source, each.requests, each.opaque.driver) for each in allocation.devices.config]


def test_configurations_of_a_class_are_given_once_with_all_its_requests():
    claim = make_claim(make_request("a"), make_request("b"))

    assert configs(claim, [make_class(configs=["one", "two"])]) == [
        ("FromClass", ["a", "b"], "one"),
        ("FromClass", ["a", "b"], "two"),
    ]


def test_configurations_of_a_claim_are_given_once_for_each_request_they_name():
    named = DeviceClaimConfig(requests=["a", "b"], opaque=OpaqueConfig(driver="named"))
    general = DeviceClaimConfig(opaque=OpaqueConfig(driver="general"))
    claim = make_claim(make_request("a"), make_request("b"), config=[named, general])

    assert configs(claim) == [
        ("FromClaim", ["a", "b"], "named"),
        ("FromClaim", ["a", "b"], "named"),
        ("FromClaim", [], "general"),
    ]


def test_a_search_that_takes_too_long_ends():
    steps = iter((False, False, True))

    with pytest.raises(AllocationTimeout):
        make_allocator([make_slice("x")]).allocate(N1, [ONE], lambda: next(steps))


def test_an_invalid_pool_alone_fails_on_this_node_only():
    slices = [make_slice("x", "x")]

    with pytest.raises(NodeOnlyError) as error:
        find(slices, ONE, node=N1)
    assert str(error.value) == "invalid resource pools were encountered"
    assert find([*slices, make_slice("y", name="t", pool="q")], ONE, node=N1) == ["r=q/y"]


def test_amounts_are_written_as_they_were_requested():
    claim = make_claim(make_request(capacity={"mem": "3000Mi"}))
    device = make_device("x", multiple=True, capacity={"mem": "10Gi"})

    (allocation,) = make_allocator([make_slice(device)]).allocate(N1, [claim])

    (result,) = allocation.devices.results
    assert result.consumed_capacity == {"mem": parse_quantity("3000Mi")}
    assert result.consumed_capacity["mem"].canonical == "3000Mi"
