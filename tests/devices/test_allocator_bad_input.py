"""What no API server should have stored, and what is too large to search: an answer, or an error."""

from __future__ import annotations

import sys
from time import process_time

import pytest
from msgspec.structs import replace

from mooring.devices.allocated import DeviceID
from mooring.devices.allocator import AllocationError, AllocationTimeout, NodeOnlyError
from mooring.devices.refusals import DeviceRefusal, PoolRefusal
from mooring.objects.devices import (
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceTaint,
    ExactDeviceRequest,
)
from tests.devices.device_makers import (
    find,
    make_allocator,
    make_claim,
    make_class,
    make_device,
    make_held,
    make_node_selector,
    make_request,
    make_slice,
    make_subrequest,
    results,
)
from tests.makers import make_node

N1 = make_node("n1", labels={"zone": "a"})
ONE = make_claim(make_request())
ALL = make_claim(make_request(mode="All", count=0))


def error_of(slices, *claims, **given) -> str:
    with pytest.raises(AllocationError) as error:
        find(slices, *claims, node=N1, **given)
    return str(error.value)


@pytest.mark.parametrize(
    ("claim", "text"),
    [
        pytest.param(
            make_claim(make_request(device_class="none")),
            "claim ns/c, request r: could not retrieve device class none: "
            'deviceclass.resource.k8s.io "none" not found',
            id="class",
        ),
        pytest.param(
            make_claim(make_request(device_class="")),
            "claim ns/c, request r: missing device class name (unsupported request type?)",
            id="no class",
        ),
        pytest.param(
            make_claim(DeviceRequest(name="r")),
            "claim ns/c, request r: missing device class name (unsupported request type?)",
            id="no request",
        ),
        pytest.param(
            make_claim(make_request(mode="Some")),
            "claim ns/c, request r: unsupported count mode Some",
            id="mode",
        ),
        pytest.param(
            make_claim(
                DeviceRequest(
                    name="r",
                    exactly=ExactDeviceRequest(
                        device_class_name="gpu", selectors=[DeviceSelector()]
                    ),
                )
            ),
            "claim ns/c, request r, selector #0: CEL expression empty (unsupported selector type?)",
            id="selector",
        ),
        pytest.param(
            make_claim(make_request(), constraints=[DeviceConstraint()]),
            "claim ns/c, constraint #0: empty constraint (unsupported constraint type?)",
            id="constraint",
        ),
        pytest.param(
            make_claim(make_request("a", count=20), make_request("b", count=13)),
            "claim ns/c: number of requested devices 33 exceeds the claim limit of 32",
            id="count",
        ),
        pytest.param(
            make_claim(
                DeviceRequest(
                    name="r", first_available=[make_subrequest("sub", device_class="none")]
                )
            ),
            "claim ns/c, request sub: could not retrieve device class none: "
            'deviceclass.resource.k8s.io "none" not found',
            id="class of an alternative",
        ),
    ],
)
def test_a_claim_that_makes_no_sense_is_an_error_even_without_devices(claim, text):
    assert error_of([], claim) == text


def test_a_selector_that_does_not_compile_is_an_error_once_a_device_is_looked_at():
    claim = make_claim(make_request("r", "device.driver +"))

    assert find([], claim, node=N1) is None
    text = error_of([make_slice("x")], claim)
    assert text.startswith("claim ns/c: selector #0: CEL compile error: ")


def test_a_selector_of_a_class_is_named_by_the_class():
    broken = make_class("gpu", "true", 'device.attributes["d"].healthy')

    assert error_of([make_slice("x")], ONE, classes=[broken]) == (
        "class gpu: selector #1: CEL runtime error: no such key: healthy"
    )


def test_a_failing_selector_does_not_matter_for_devices_that_are_never_reached():
    good = make_device("good", attributes={"healthy": True})
    claim = make_claim(make_request("r", 'device.attributes["d"].healthy'))

    assert find([make_slice(good, "bad")], claim, node=N1) == ["r=p/good"]
    assert "no such key" in error_of([make_slice("bad", good)], claim)
    in_use = [make_claim(name="o", holds=[make_held("bad")])]
    assert find([make_slice("bad", good)], claim, node=N1, allocated=in_use) == ["r=p/good"]


def test_a_failing_selector_does_not_matter_for_a_device_that_the_pod_has_taken():
    """The second request passes over `bad` without asking its selector, as `bad` is taken."""
    good = make_device("good", attributes={"healthy": True})
    claim = make_claim(make_request("a"), make_request("b", 'device.attributes["d"].healthy'))

    assert find([make_slice("bad", good)], claim, node=N1) == ["a=p/bad", "b=p/good"]


def test_counters_below_zero_block_every_device_that_consumes_counters():
    slices = [
        make_slice(name="counters", slices=2, counters={"c": "1", "other": "9"}),
        make_slice(
            make_device("x", counters={"c": "2"}),
            make_device("y", counters={"other": "1"}),
            "z",
            name="devices",
            slices=2,
        ),
    ]
    held = [make_claim(name="o", holds=[make_held("x")])]

    assert find(slices, ONE, node=N1, allocated=held) == ["r=p/z"]


def test_an_invalid_pool_stops_a_request_for_all():
    assert error_of([make_slice("x", "x")], ALL) == (
        "claim ns/c, request r: asks for all devices, but resource pool d/p is currently invalid"
    )


def test_an_invalid_pool_of_another_node_does_not_count_unless_it_has_counters():
    assert find([make_slice("x", "x", node="n2")], ONE, node=N1) is None
    counters = make_slice(name="t", node="n2", slices=2, counters={"c": "1"})
    bad = make_slice(make_device("x", counters={"no": "1"}), node="n2", slices=2)
    with pytest.raises(NodeOnlyError):
        find([counters, bad], ONE, node=N1)


def test_a_device_in_use_both_whole_and_shared_cannot_be_shared():
    device = make_device("x", multiple=True, capacity={"mem": "4"})
    held = [
        make_claim(name="a", holds=[make_held("x")]),
        make_claim(name="b", holds=[make_held("x", share="s", consumed={"mem": "1"})]),
    ]
    claim = make_claim(make_request(capacity={"mem": "1"}))

    assert find([make_slice(device)], claim, node=N1, allocated=held[:1]) is None
    assert find([make_slice(device)], claim, node=N1, allocated=held) is None
    assert find([make_slice(device)], claim, node=N1, allocated=held[1:]) == ["r=p/x"]


def test_a_node_selector_with_several_terms_is_an_error():
    piece = make_slice("x", selector=make_node_selector("zone", "a", terms=2))

    assert error_of([piece], ONE) == (
        "create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms"
    )


def test_a_malformed_node_selector_of_any_slice_is_an_error():
    piece = make_slice("x", name="bad", selector=make_node_selector("zone"))

    assert error_of([make_slice("y", pool="q"), piece], ONE).startswith(
        "gather pool information: failed to perform node selection for slice bad: "
        "failed to parse node selector"
    )


def test_node_selectors_of_the_devices_are_joined_without_repetition():
    zone = make_node_selector("zone", "a")
    slices = [
        make_slice("x", name="s1", slices=2, selector=zone),
        make_slice("y", name="s2", slices=2, selector=zone),
    ]
    claim = make_claim(make_request(count=2))

    (allocation,) = make_allocator(slices).allocate(N1, [claim])

    assert allocation.node_selector == zone
    (everywhere,) = make_allocator([make_slice("x", all_nodes=True)]).allocate(N1, [ONE])
    assert everywhere.node_selector is None


def test_ten_thousand_devices_in_a_pool_are_searched_and_found_wanting():
    devices = [make_device(f"x{number}", attributes={"i": number}) for number in range(10_000)]
    slices = [make_slice(*devices)]

    def last(number):
        return make_claim(make_request("r", f'device.attributes["d"].i >= {number}', count=32))

    allocator = make_allocator(slices)
    found = results(allocator.allocate(N1, [last(9968)]))

    assert found == [f"r=p/x{number}" for number in range(9968, 10_000)]
    assert allocator.allocate(N1, [last(9969)]) is None


def test_many_claims_need_more_levels_than_python_has_nested_calls():
    claims = [make_claim(make_request(count=32), name=f"c{number}") for number in range(64)]
    devices = [f"x{number}" for number in range(32 * 64)]

    # Deep expressions raise the limit for the rest of the process, so whichever test came before may have.
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    try:
        found = find([make_slice(*devices)], *claims, node=N1)
    finally:
        sys.setrecursionlimit(limit)

    assert len(found) == 2048


def test_a_hopeless_search_can_be_stopped():
    """Four requests for three of 14 devices that all differ, and one for a device that does not exist."""
    claim = make_claim(
        *(make_request(f"r{number}", count=3) for number in range(4)), make_request("s", "false")
    )
    devices = [make_device(f"x{number}", attributes={"numa": number}) for number in range(14)]
    allocator = make_allocator([make_slice(*devices)])
    steps = 0

    def expired() -> bool:
        nonlocal steps
        steps += 1
        return steps > 5000

    with pytest.raises(AllocationTimeout):
        allocator.allocate(N1, [claim], expired)


def steps_of(slices, *claims) -> int:
    """How often a search that finds nothing asks whether its time is over."""
    steps = 0

    def expired() -> bool:
        nonlocal steps
        steps += 1
        return steps > 100_000

    assert make_allocator(slices).allocate(N1, claims, expired) is None
    return steps


def test_attributes_that_no_devices_share_do_not_need_all_pairs():
    """10,000 devices, each with a value of its own, or one other with the same: 50 million pairs."""
    for sharing in (1, 2):
        devices = [
            make_device(f"x{number}", attributes={"numa": number // sharing})
            for number in range(10_000)
        ]
        constraint = DeviceConstraint(match_attribute="d/numa")
        claim = make_claim(make_request(count=3), constraints=[constraint])

        assert steps_of([make_slice(*devices)], claim) < 20_000


def test_devices_that_are_alike_are_not_tried_twice_at_the_same_place():
    """Three of 10,000 equal devices, and one that does not exist: 10**11 combinations are one."""
    devices = [make_device(f"x{number}", attributes={"numa": 1}) for number in range(10_000)]
    constraint = DeviceConstraint(match_attribute="d/numa")
    claim = make_claim(
        make_request("r", count=3), make_request("s", "false"), constraints=[constraint]
    )

    assert steps_of([make_slice(*devices)], claim) < 10_000


def test_missing_devices_are_noticed_without_trying_all_combinations():
    """29 of 30 devices are free: 2**29 combinations do not have to be tried."""
    slices = [make_slice(*(f"x{number}" for number in range(30)))]
    held = [make_claim(name="o", holds=[make_held("x7")])]

    assert find(slices, make_claim(make_request(count=30)), node=N1, allocated=held) is None


def test_claims_that_are_alike_do_not_take_the_same_devices_in_every_order():
    """11 claims for 10 devices: 10! orders lead to the same few sets of devices."""
    claims = [make_claim(make_request(), name=f"c{number}") for number in range(11)]
    slices = [make_slice(*(f"x{number}" for number in range(10)))]
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    assert make_allocator(slices).allocate(N1, claims, count) is None
    assert steps < 20_000


def test_a_claim_without_requests_is_allocated_with_nothing():
    (allocation,) = make_allocator([]).allocate(N1, [make_claim()])

    assert allocation.devices.results == []
    assert allocation.node_selector is None


# Why devices were refused


def test_refusals_say_what_stands_in_the_way():
    slices = [
        make_slice(name="counters", slices=2, counters={"c": "1"}),
        make_slice(
            "held",
            make_device("wrong", attributes={"kind": 1}),
            make_device("tainted", taints=[DeviceTaint(key="k", value="v", effect="NoSchedule")]),
            make_device("greedy", counters={"c": "2"}),
            make_device("plain"),
            name="devices",
            slices=2,
        ),
        make_slice("x", name="partial", pool="q", slices=2),
    ]
    held = [make_claim(name="owner", holds=[make_held("held")])]
    claim = make_claim(
        make_request("r", '!("kind" in device.attributes["d"])'),
        constraints=[DeviceConstraint(match_attribute="d/numa")],
    )
    refusals = []

    assert find(slices, claim, node=N1, allocated=held, refusals=refusals) is None

    pools = [each for each in refusals if isinstance(each, PoolRefusal)]
    assert [(str(each.pool), each.reason) for each in pools] == [("d/q", "incomplete")]
    devices = [each for each in refusals if isinstance(each, DeviceRefusal)]
    assert [(each.device.device, each.reason, each.detail) for each in devices] == [
        ("held", "in use", "ns/owner"),
        ("wrong", "selector", 'selector #0 of the claim: !("kind" in device.attributes["d"])'),
        ("tainted", "taint", "k=v:NoSchedule"),
        ("greedy", "counters", "too little of a counter is left"),
        ("plain", "constraint", "matchAttribute d/numa"),
    ]
    assert {(each.claim, each.request) for each in devices} == {("ns/c", "r")}
    assert devices[0].device == DeviceID("d", "p", "held")


def test_recording_refusals_does_not_change_the_answer():
    slices = [make_slice("x", "y")]
    claims = [replace(ONE), make_claim(make_request(), name="c2")]

    assert find(slices, *claims, node=N1, refusals=[]) == find(slices, *claims, node=N1)


def test_a_selector_that_fails_is_evaluated_once_for_devices_that_are_alike():
    ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    endless = "true"
    for variable in "abcdef":
        endless = f"{ten}.all({variable}, {endless})"
    allocator = make_allocator([make_slice("x", "y")])

    def seconds(name: str) -> float:
        begun = process_time()
        with pytest.raises(AllocationError) as error:
            allocator.allocate(N1, [make_claim(make_request("r", endless), name=name)])
        assert str(error.value) == (
            f"claim ns/{name}: selector #0: CEL runtime error: "
            "operation cancelled: actual cost limit exceeded"
        )
        return process_time() - begun

    first = seconds("c")
    assert seconds("d") < first / 5
