"""Drivers of a simulated cluster make binding conditions true, or report that a device failed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mooring.errors import InputError
from mooring.objects.devices import ResourceClaim
from mooring.objects.pod import Pod
from mooring.sim.simulation import Simulation
from tests.device_world import pod_with
from tests.devices.device_makers import (
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
)
from tests.makers import make_node


def slice_with(**annotations) -> object:
    device = replace(
        make_device("x"), binding_conditions=["Ready"], binding_failure_conditions=["Broken"]
    )
    piece = make_slice(device)
    named = {f"mooring.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return replace(piece, metadata=replace(piece.metadata, annotations=named))


def run(piece, until_s=None) -> tuple[Pod, ResourceClaim, float]:
    with Simulation() as simulation:
        objects = [make_node("n1"), make_class(), piece, make_claim(make_request()), pod_with("c")]
        simulation.load(objects)
        simulation.run(until_s=until_s)
        (pod,), (claim,) = simulation.api.all(Pod), simulation.api.all(ResourceClaim)
        assert not simulation.errors
        simulation.scheduler.validate()
        return pod, claim, simulation.clock.elapsed_s


def test_conditions_become_true_after_the_given_time():
    pod, claim, _ = run(slice_with(binding_seconds="20"))

    assert pod.node_name == "n1"
    assert pod.status.start_time is not None
    assert (pod.status.start_time.timestamp() - 1_767_225_600.0) in range(20, 26)
    (device,) = claim.status.devices
    assert [(each.type, each.status) for each in device.conditions] == [("Ready", "True")]
    assert [user.name for user in claim.status.reserved_for] == [pod.name]


def test_a_pod_waits_until_then():
    pod, claim, _ = run(slice_with(binding_seconds="20"), until_s=19)

    assert not pod.node_name
    assert claim.status.allocation is not None
    assert not claim.status.devices


def test_a_device_that_fails_is_given_back():
    pod, _, _ = run(slice_with(binding_seconds="5", binding_fails="true"), until_s=60)

    assert not pod.node_name


def test_without_the_annotation_nobody_makes_them_true():
    pod, _, _ = run(slice_with(), until_s=500)

    assert not pod.node_name


def test_a_time_that_is_none_is_refused():
    with pytest.raises(
        InputError, match=r"resourceslice .*binding-seconds.*'soon' is not a number"
    ):
        run(slice_with(binding_seconds="soon"))
