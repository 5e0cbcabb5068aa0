"""Manifests of devices: older versions, what the API server fills in, and what it refuses."""

from __future__ import annotations

import pytest

from mooring.objects.decoding import decode_object
from mooring.objects.defaults import Defaults
from mooring.objects.validation import problems_of

CLASS = "gpu.example.com"


def claim(version: str, *requests, constraints=()) -> dict:
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {"devices": {"requests": list(requests), "constraints": list(constraints)}},
    }


def piece(version: str, *devices, **spec) -> dict:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {"driver": "d", "pool": pool, "nodeName": "n1", "devices": list(devices), **spec},
    }


EXACTLY = {"deviceClassName": CLASS, "count": 2, "allocationMode": "ExactCount"}
ALTERNATIVES = {"name": "b", "firstAvailable": [{"name": "s", "deviceClassName": CLASS}]}


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha3"])
def test_older_versions_have_the_fields_of_a_request_beside_its_name(version):
    flat = claim(version, {"name": "a", **EXACTLY}, ALTERNATIVES)
    nested = [{"name": "a", "exactly": EXACTLY}, ALTERNATIVES]

    expected = decode_object(claim("v1", *nested))
    assert decode_object(flat) == expected
    assert decode_object(claim("v1beta2", *nested)) == expected


def test_a_template_of_v1beta1_is_converted_too():
    body = claim("v1beta1", {"name": "a", **EXACTLY})
    whole = {**body, "kind": "ResourceClaimTemplate", "spec": {"spec": body["spec"]}}

    (request,) = decode_object(whole).spec.spec.devices.requests

    assert request.exactly.count == 2


def test_v1beta1_has_the_fields_of_a_device_under_basic():
    content = {"attributes": {"model": {"string": "a100"}}, "capacity": {"m": {"value": "80Gi"}}}

    old = decode_object(piece("v1beta1", {"name": "x", "basic": content}))

    assert old == decode_object(piece("v1", {"name": "x", **content}))


def test_what_has_the_wrong_type_is_refused_and_not_converted():
    with pytest.raises(ValueError, match=r"spec\.devices"):
        decode_object({**claim("v1beta1"), "spec": {"devices": [1]}})
    with pytest.raises(ValueError, match=r"spec\.devices"):
        decode_object(piece("v1beta1", "x"))


def test_the_api_server_fills_in_mode_count_and_operator():
    toleration = {"key": "k", "value": "v"}
    raw = claim(
        "v1",
        {"name": "a", "exactly": {"deviceClassName": CLASS, "tolerations": [toleration]}},
        {"name": "all", "exactly": {"deviceClassName": CLASS, "allocationMode": "All"}},
        ALTERNATIVES,
    )

    done = Defaults().of(decode_object(raw))

    one, every, alternatives = done.spec.devices.requests
    assert (one.exactly.allocation_mode, one.exactly.count) == ("ExactCount", 1)
    assert one.exactly.tolerations[0].operator == "Equal"
    assert (every.exactly.allocation_mode, every.exactly.count) == ("All", 0)
    assert alternatives.first_available[0].count == 1
    assert Defaults().of(done) is done


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (claim("v1", {"name": "a"}), "spec.devices.requests[0]"),
        (
            claim("v1", {"name": "a", "exactly": {}}),
            "spec.devices.requests[0].exactly.deviceClassName",
        ),
        (
            claim("v1", {"name": "a", "exactly": {**EXACTLY, "allocationMode": "Some"}}),
            "spec.devices.requests[0].exactly.allocationMode",
        ),
        (
            claim("v1", {"name": "a", "exactly": {**EXACTLY, "selectors": [{}]}}),
            "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        ),
        (claim("v1", ALTERNATIVES, ALTERNATIVES), "spec.devices.requests[1].name"),
        (
            claim("v1", ALTERNATIVES, constraints=[{"matchAttribute": "a", "requests": []}]),
            "spec.devices.constraints[0].matchAttribute",
        ),
        (
            claim("v1", ALTERNATIVES, constraints=[{"matchAttribute": "d/a", "requests": ["z"]}]),
            "spec.devices.constraints[0].requests[0]",
        ),
        (piece("v1", allNodes=True), "spec"),
        (piece("v1", pool={"name": "p"}), "spec.pool.resourceSliceCount"),
        (piece("v1", {"name": "x"}, {"name": "x"}), "spec.devices[1].name"),
        (
            piece("v1", {"name": "x", "attributes": {"a": {"int": 1, "string": "b"}}}),
            "spec.devices[0].attributes[a]",
        ),
        (
            piece("v1", {"name": "x", "taints": [{"key": "k", "effect": "Never"}]}),
            "spec.devices[0].taints[0].effect",
        ),
    ],
)
def test_what_the_api_server_refuses_is_refused_with_its_path(raw, path):
    assert path in dict(problems_of(decode_object(raw)))


def test_what_is_right_has_no_problems():
    raw = claim("v1", {"name": "a", "exactly": EXACTLY}, ALTERNATIVES)
    device = {
        "name": "x",
        "attributes": {"a": {"int": 1}},
        "taints": [{"key": "k", "effect": "None"}],
    }

    assert list(problems_of(decode_object(raw))) == []
    assert list(problems_of(decode_object(piece("v1", device)))) == []
