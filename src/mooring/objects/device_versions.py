"""Older versions of resource.k8s.io, in the form of v1.

The API server stores one version and converts the others. v1beta2 differs from v1 in nothing that a
manifest can say. v1beta1 and v1alpha3 have the fields of a request beside its name instead of under
`exactly`, and the fields of a device under `basic`. v1alpha1 and v1alpha2 were another API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROUP = "resource.k8s.io"
CURRENT = f"{GROUP}/v1"
_SAME_FORM = f"{GROUP}/v1beta2"
_FLAT_FORMS = (f"{GROUP}/v1beta1", f"{GROUP}/v1alpha3")
_OLDER = (_SAME_FORM, *_FLAT_FORMS)
_ANOTHER_API = (f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha2")

#: What the flat forms have beside the name of a request, and v1 under `exactly`.
_EXACTLY = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)


def is_older(api_version: object) -> bool:
    return api_version in _OLDER


def is_another_api(api_version: object) -> bool:
    """Whether the claims of a version say nothing that v1 has: read as v1, they would ask for no device."""
    return api_version in _ANOTHER_API


def upgraded(raw: Mapping[str, Any]) -> dict[str, Any]:
    """An object of an older version as v1. What has the wrong type is left for the decoder to refuse."""
    obj = {**raw, "apiVersion": CURRENT}
    if raw.get("apiVersion") not in _FLAT_FORMS:
        return obj
    match raw.get("kind"):
        case "ResourceClaim":
            obj["spec"] = _claim_spec(raw.get("spec"))
        case "ResourceClaimTemplate":
            spec = raw.get("spec")
            if isinstance(spec, dict):
                obj["spec"] = {**spec, "spec": _claim_spec(spec.get("spec"))}
        case "ResourceSlice":
            spec = raw.get("spec")
            if isinstance(spec, dict) and isinstance(spec.get("devices"), list):
                obj["spec"] = {**spec, "devices": [_device(each) for each in spec["devices"]]}
    return {name: value for name, value in obj.items() if value is not None}


def _claim_spec(spec: Any) -> Any:
    devices = spec.get("devices") if isinstance(spec, dict) else None
    if not isinstance(devices, dict) or not isinstance(devices.get("requests"), list):
        return spec
    requests = [_request(each) for each in devices["requests"]]
    return {**spec, "devices": {**devices, "requests": requests}}


def _request(request: Any) -> Any:
    if not isinstance(request, dict):
        return request
    exactly = {name: request[name] for name in _EXACTLY if request.get(name) is not None}
    rest = {name: value for name, value in request.items() if name not in _EXACTLY}
    return {**rest, "exactly": exactly} if exactly else rest


def _device(device: Any) -> Any:
    if not isinstance(device, dict) or not isinstance(device.get("basic"), dict):
        return device
    return {**device["basic"], **{name: v for name, v in device.items() if name != "basic"}}
