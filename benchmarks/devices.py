"""Devices for the workloads: ten on each node, in a slice of its own, and what pods ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.manifests import Template, make, node_name
from mooring.objects.meta import KubeObject

PER_NODE = 10
DRIVER = "gpu.example.com"
RESOURCE = "example.com/gpu"

_API = "resource.k8s.io/v1"
_IS_OURS = f'device.driver == "{DRIVER}"'
#: A device is large if its number is even.
LARGE = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0'

Brings = Callable[[str], Iterator[KubeObject]]


def _selector(expression: str) -> dict[str, Any]:
    return {"cel": {"expression": expression}}


def _class() -> KubeObject:
    spec = {"selectors": [_selector(_IS_OURS)], "extendedResourceName": RESOURCE}
    return make(
        {"apiVersion": _API, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": spec}
    )


def _device(number: int, more: Mapping[str, Any]) -> dict[str, Any]:
    size = "80Gi" if number % 2 == 0 else "40Gi"
    return {
        "name": f"gpu-{number}",
        "attributes": {"model": {"string": "a100"}, "numa": {"int": number // 5}},
        "capacity": {"memory": {"value": size}},
        **more,
    }


def _slice(i: int, name: str, **spec: Any) -> KubeObject:
    pool = {"name": node_name(i), "generation": 1, "resourceSliceCount": spec.pop("count", 1)}
    whole = {"driver": DRIVER, "nodeName": node_name(i), "pool": pool, **spec}
    metadata = {"name": f"{name}-{i}", "uid": f"{name}-{i}"}
    return make({"apiVersion": _API, "kind": "ResourceSlice", "metadata": metadata, "spec": whole})


def whole_devices(nodes: int) -> Iterator[KubeObject]:
    yield _class()
    for i in range(nodes):
        yield _slice(i, "slice", devices=[_device(number, {}) for number in range(PER_NODE)])


def in_use(per_node: int) -> Callable[[int], Iterator[KubeObject]]:
    """Whole devices, of which other claims have so many on each node."""

    def devices(nodes: int) -> Iterator[KubeObject]:
        yield from whole_devices(nodes)
        for i in range(nodes):
            results = [
                {
                    "request": "gpu",
                    "driver": DRIVER,
                    "pool": node_name(i),
                    "device": f"gpu-{number}",
                }
                for number in range(per_node)
            ]
            metadata = {"name": f"used-{i}", "namespace": "default", "uid": f"used-{i}"}
            status = {"allocation": {"devices": {"results": results}}}
            yield make(
                {
                    "apiVersion": _API,
                    "kind": "ResourceClaim",
                    "metadata": metadata,
                    "spec": {"devices": {"requests": []}},
                    "status": status,
                }
            )

    return devices


def shared_devices(nodes: int) -> Iterator[KubeObject]:
    """Devices of which each claim takes a part."""
    yield _class()
    for i in range(nodes):
        more = {"allowMultipleAllocations": True}
        yield _slice(i, "slice", devices=[_device(number, more) for number in range(PER_NODE)])


def partitions(nodes: int) -> Iterator[KubeObject]:
    """Five devices a node, each of which can be used whole or as two halves."""
    yield _class()
    for i in range(nodes):
        sets = [
            {"name": f"set-{n}", "counters": {"memory": {"value": "80Gi"}}}
            for n in range(PER_NODE // 2)
        ]
        yield _slice(i, "counters", count=2, sharedCounters=sets)
        devices = []
        for n in range(PER_NODE // 2):
            for name, size in (("whole", "80Gi"), ("left", "40Gi"), ("right", "40Gi")):
                consumed = {"counterSet": f"set-{n}", "counters": {"memory": {"value": size}}}
                device = {"name": f"gpu-{n}-{name}", "consumesCounters": [consumed]}
                devices.append({**device, "capacity": {"memory": {"value": size}}})
        yield _slice(i, "slice", count=2, devices=devices)


def whole_and_part(pod: str) -> Iterator[KubeObject]:
    """A device of any size, and a whole one. On the last free GPUs of a node the search must go back."""
    yield _claim(
        pod,
        {"requests": [_request("any", {}), _request("whole", {"selectors": [_selector(LARGE)]})]},
    )


def asking(*constraints: Mapping[str, Any], **exactly: Any) -> Brings:
    """Each pod brings a claim as the claim controller makes it from a template."""
    devices = {"requests": [_request("gpu", exactly)], "constraints": list(constraints)}

    def brings(pod: str) -> Iterator[KubeObject]:
        yield _claim(pod, devices)

    return brings


def _request(name: str, exactly: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **exactly}
    return {"name": name, "exactly": wanted}


def _claim(pod: str, devices: Mapping[str, Any]) -> KubeObject:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod, "controller": True}
    metadata = {"name": f"{pod}-gpu", "namespace": "default", "uid": f"claim-{pod}"}
    return make(
        {
            "apiVersion": _API,
            "kind": "ResourceClaim",
            "metadata": {**metadata, "ownerReferences": [owner]},
            "spec": {"devices": devices},
        }
    )


selectors = asking(selectors=[_selector(LARGE)])
same_numa = asking({"matchAttribute": f"{DRIVER}/numa", "requests": ["gpu"]}, count=2)
part = asking(capacity={"requests": {"memory": "10Gi"}})

#: A pod whose claim was made from a template.
WITH_CLAIM = Template(
    {"app": "devices"},
    resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "@name@-gpu"}]},
)
#: A pod that asks for an extended resource, which devices serve.
WITH_RESOURCE = Template({"app": "devices"}, requests={RESOURCE: "1"})
