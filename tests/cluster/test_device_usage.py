"""Which devices there are, in which state, and who holds them."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.cluster.device_usage import DeviceUsage
from mooring.sim.simulation import Simulation
from tests.device_world import claim, gpu_class, pod_with
from tests.devices.device_makers import (
    make_capacity,
    make_class,
    make_device,
    make_held,
    make_slice,
)
from tests.makers import make_node, make_pod


def usage_of(*objects) -> DeviceUsage:
    simulation = Simulation()
    simulation.scheduler.load(objects)
    try:
        return DeviceUsage(simulation.scheduler.cluster)
    finally:
        simulation.close()


def states(usage: DeviceUsage) -> dict[str, str]:
    return {device.id.device: device.state for device in usage.devices}


def sharing(amount: str, name: str = "c"):
    """A claim with a share of `card`."""
    made = claim(name, holds=[])
    held = make_held("card", share=f"s-{name}", consumed={"bw": amount})
    allocation = made.status.allocation
    devices = replace(allocation.devices, results=[held])
    return replace(
        made, status=replace(made.status, allocation=replace(allocation, devices=devices))
    )


def test_a_device_in_use_names_its_claim_and_the_pods_that_it_is_reserved_for():
    pod = pod_with("c", node="n1")
    usage = usage_of(
        make_node("n1"),
        gpu_class(),
        make_slice("a", "b"),
        pod,
        claim("c", holds=["a"], reserved_for=[pod]),
    )

    assert states(usage) == {"a": "in use", "b": "free"}
    assert [(h.claim, h.pods) for h in usage.devices[0].holders] == [("ns/c", ("ns/pod",))]
    assert usage.held_by_pods() == {"ns/pod": {"gpu": 1}}


def test_a_device_whose_counter_is_used_up_by_another_is_blocked():
    usage = usage_of(
        *(make_node("n1"), gpu_class(), claim("c", holds=["half-1"])),
        make_slice(name="counters", slices=2, counters={"memory": "80Gi"}),
        make_slice(
            make_device("whole", counters={"memory": "80Gi"}),
            make_device("half-1", counters={"memory": "40Gi"}),
            make_device("half-2", counters={"memory": "40Gi"}),
            slices=2,
        ),
    )

    assert states(usage) == {"whole": "blocked", "half-1": "in use", "half-2": "free"}
    assert usage.by_class()["gpu"].states == {"blocked": 1, "in use": 1, "free": 1}


def test_a_device_with_shares_is_in_use_when_nothing_of_a_capacity_is_left():
    card = make_device("card", capacity={"bw": make_capacity("100G", default="1G")}, multiple=True)
    objects = (make_node("n1"), gpu_class(), make_slice(card), sharing("40G", "one"))

    some, all_of_it = usage_of(*objects), usage_of(*objects, sharing("60G", "two"))

    assert (states(some), states(all_of_it)) == ({"card": "shared"}, {"card": "in use"})
    assert some.by_class()["gpu"].capacity == {"bw": [40 * 10**18, 100 * 10**18]}
    assert some.by_class()["gpu"].whole == 0


def test_a_device_for_all_nodes_is_counted_once():
    usage = usage_of(
        *(make_node("n1"), make_node("n2"), gpu_class()),
        make_slice("far", all_nodes=True),
        make_slice("near", name="s2", pool="q", node="n2"),
    )

    assert [(device.node, device.id.device) for device in usage.devices] == [
        ("", "far"),
        ("n2", "near"),
    ]


def test_a_class_that_fails_on_a_device_does_not_select_it():
    usage = usage_of(
        make_node("n1"),
        make_slice("a"),
        make_class("broken", 'device.attributes["d"].absent == 1'),
        make_class("syntax", "device."),
    )

    assert [device.classes for device in usage.devices] == [()]


def test_a_claim_that_was_given_back_counts_for_the_pod_that_had_it_and_only_once():
    there, gone = pod_with("c", node="n1"), make_pod("gone", namespace="ns")
    again = claim("c", holds=["a"], reserved_for=[there])
    usage = usage_of(make_node("n1"), gpu_class(), make_slice("a", "b"), there, again)

    released = [
        claim("c", holds=["b"], reserved_for=[there]),
        claim("old", holds=["b"], reserved_for=[gone]),
    ]

    assert usage.held_by_pods(released) == {"ns/pod": {"gpu": 1}, "ns/gone": {"gpu": 1}}
