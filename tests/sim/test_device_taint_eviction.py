"""Pods whose devices get a NoExecute taint have to go, unless their claims tolerate it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from mooring.config import default_config
from mooring.config.gates import FeatureGates
from mooring.objects.devices import (
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    DeviceToleration,
    ResourceClaim,
    ResourceSlice,
)
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod
from mooring.sim.simulation import DEFAULT_EPOCH_S, SimOptions, Simulation
from tests.device_world import pod_with
from tests.devices.device_makers import (
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.makers import make_node

RULES = FeatureGates({"DRADeviceTaintRules": True})
BROKEN = DeviceTaint(key="broken", value="yes", effect="NoExecute")
GRACE_S = 30


def started(*tolerations: DeviceToleration, gates: FeatureGates = RULES) -> Simulation:
    """A pod that runs on one of two devices."""
    simulation = Simulation(SimOptions(default_config(gates)))
    request = make_request()
    assert request.exactly is not None
    request = replace(request, exactly=replace(request.exactly, tolerations=list(tolerations)))
    wanted = replace(make_claim(request), kind="ResourceClaim")
    simulation.load([make_node("n1"), make_class(), make_slice("x", "y"), wanted, pod_with("c")])
    simulation.settle()
    assert pod_in(simulation).node_name == "n1"
    return simulation


def pod_in(simulation) -> Pod | None:
    return next(iter(simulation.api.all(Pod)), None)


def taint(simulation, added: DeviceTaint = BROKEN, device: str = "x") -> None:
    (piece,) = simulation.api.all(ResourceSlice)
    devices = [make_device(each, taints=[added] if each == device else ()) for each in ("x", "y")]
    simulation.api.update(replace(piece, spec=replace(piece.spec, devices=devices)))


def rule(**selector) -> DeviceTaintRule:
    return DeviceTaintRule(
        kind="DeviceTaintRule",
        metadata=ObjectMeta(name="rule", uid="rule"),
        spec=DeviceTaintRuleSpec(device_selector=DeviceTaintSelector(**selector), taint=BROKEN),
    )


def tolerating(seconds: int | None = None, **given) -> DeviceToleration:
    given = {"key": "broken", "operator": "Exists", "effect": "NoExecute", **given}
    return DeviceToleration(**given, toleration_seconds=seconds)


def gone_after(simulation) -> float | None:
    """When the pod was deleted, in seconds from the start; None if it runs on."""
    simulation.run()
    events = [event for _, event in simulation.api.events]
    told = [event for event in events if event.reason == "DeviceTaintManagerEviction"]
    if pod_in(simulation) is not None:
        assert not told
        return None
    assert [each.note for each in told] == ["Marking for deletion"]
    (claim,) = simulation.api.all(ResourceClaim)
    assert claim.status.allocation is None
    simulation.scheduler.validate()
    return simulation.clock.elapsed_s - GRACE_S


@pytest.mark.parametrize(
    ("tolerations", "gone"),
    [
        pytest.param([], 0, id="no toleration"),
        pytest.param([tolerating()], None, id="tolerated for ever"),
        pytest.param([tolerating(300)], 300, id="tolerated for some time"),
        pytest.param([tolerating(300), tolerating(60)], 60, id="the shortest time counts"),
        pytest.param([tolerating(300), tolerating()], None, id="one of them is for ever"),
        pytest.param([tolerating(-5)], 0, id="a negative time is none"),
        pytest.param([tolerating(key="other")], 0, id="another key"),
        pytest.param([tolerating(operator="Equal", value="no")], 0, id="another value"),
        pytest.param([tolerating(effect="")], 0, id="the effect must be named"),
    ],
)
def test_a_pod_goes_when_its_toleration_is_over(tolerations, gone):
    with started(*tolerations) as simulation:
        taint(simulation)
        assert gone_after(simulation) == gone


def test_the_time_counts_from_when_the_taint_was_added():
    with started(tolerating(300)) as simulation:
        added = datetime.fromtimestamp(DEFAULT_EPOCH_S - 100, UTC)
        taint(simulation, replace(BROKEN, time_added=added))
        assert gone_after(simulation) == 200


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
def test_other_effects_evict_nobody(effect):
    with started() as simulation:
        taint(simulation, replace(BROKEN, effect=effect))
        assert gone_after(simulation) is None


def test_other_devices_do_not_matter():
    with started() as simulation:
        taint(simulation, device="y")
        assert gone_after(simulation) is None


def test_a_taint_that_is_taken_back_in_time_evicts_nobody():
    with started(tolerating(300)) as simulation:
        taint(simulation)
        simulation.run(until_s=100)
        taint(simulation, replace(BROKEN, effect="NoSchedule"))
        assert gone_after(simulation) is None


@pytest.mark.parametrize(
    ("selector", "gates", "gone"),
    [
        pytest.param({"driver": "d"}, RULES, 0, id="the driver"),
        pytest.param({"driver": "d", "pool": "p", "device": "x"}, RULES, 0, id="the device"),
        pytest.param({"device": "y"}, RULES, None, id="another device"),
        pytest.param({"driver": "other"}, RULES, None, id="another driver"),
        pytest.param({}, FeatureGates(), None, id="without the gate"),
    ],
)
def test_a_rule_evicts_the_pods_of_the_devices_that_it_selects(selector, gates, gone):
    with started(gates=gates) as simulation:
        simulation.api.create(rule(**selector))
        assert gone_after(simulation) == gone


def test_a_rule_that_is_deleted_in_time_evicts_nobody():
    with started(tolerating(300)) as simulation:
        simulation.api.create(rule())
        simulation.run(until_s=100)
        simulation.api.delete(rule())
        assert gone_after(simulation) is None


def test_without_its_gate_no_taint_evicts():
    with started(gates=FeatureGates({"DRADeviceTaints": False})) as simulation:
        taint(simulation)
        assert gone_after(simulation) is None


def test_a_pod_that_is_placed_under_a_taint_goes_when_its_time_is_over():
    """As long as it tolerates the taint it can be scheduled; the time began when the taint was added."""
    with Simulation() as simulation:
        request = make_request()
        assert request.exactly is not None
        tolerations = [tolerating(300)]
        request = replace(request, exactly=replace(request.exactly, tolerations=tolerations))
        tainted = make_slice(make_device("x", taints=[BROKEN]))
        simulation.load([make_node("n1"), make_class(), tainted, make_claim(request)])
        simulation.run(until_s=120)
        simulation.load([pod_with("c")])
        assert gone_after(simulation) == 300
