"""Devices, with kube-controller-manager's claim controller at work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from control_plane import ControlPlane
from plain_client import Json

from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.conftest import StartMooring
from tests.live.process import Mooring, configuration
from tests.live.waiting import wait_for

pytestmark = pytest.mark.live

API = "resource.k8s.io/v1"
DRIVER = "gpu.test"
GPU = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}


@pytest.fixture(scope="module", autouse=True)
def claim_controller(control_plane: ControlPlane) -> Iterator[None]:
    component = control_plane.start_controllers("resourceclaim-controller")
    yield
    component.kill()


def device_class() -> Json:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return {
        "apiVersion": API,
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": [selector]},
    }


def slice_of(node: str, *devices: str) -> Json:
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-gpus"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": name} for name in devices],
        },
    }


def template() -> Json:
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [GPU]}}},
    }


def claim(name: str) -> Json:
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [GPU]}},
    }


def pod(name: str, **of: str) -> Json:
    """`of` is the claim or the template."""
    return objects.pod(name, resourceClaims=[{"name": "gpu", **of}])


def devices_of_bound_pods(cluster: Cluster) -> list[str]:
    """The devices of claims that bound pods use, as often as they were given."""
    placed = bound(cluster)
    return sorted(
        result["device"]
        for each in cluster.client.list("ResourceClaim")
        if any(user["name"] in placed for user in each.get("status", {}).get("reservedFor", []))
        for result in each["status"]["allocation"]["devices"]["results"]
    )


def held(cluster: Cluster) -> dict[str, str]:
    """Device → the pod that its claim is reserved for."""
    found: dict[str, str] = {}
    for each in cluster.client.list("ResourceClaim"):
        status = each.get("status", {})
        for result in status.get("allocation", {}).get("devices", {}).get("results", []):
            users = [user["name"] for user in status.get("reservedFor", [])]
            assert result["device"] not in found, f"{result['device']} was given twice"
            found[result["device"]] = ",".join(users)
    return found


def bound(cluster: Cluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: node_name(pod) for pod in cluster.pods() if node_name(pod)}


def test_each_pod_gets_a_device_of_its_own_and_a_freed_one_goes_to_the_next(
    cluster: Cluster, mooring: Mooring
) -> None:
    cluster.add(objects.node("node-a"), objects.node("node-b"))
    cluster.add(device_class(), template(), slice_of("node-b", "gpu-0", "gpu-1"))
    cluster.add(*(pod(f"p{i}", resourceClaimTemplateName="one-gpu") for i in range(3)))

    wait_for(lambda: len(bound(cluster)) == 2, lambda: f"two pods have a device: {held(cluster)}")

    first, second = bound(cluster)
    assert set(bound(cluster).values()) == {"node-b"}
    wait_for(
        lambda: sorted(held(cluster).values()) == [first, second],
        lambda: f"the claims are reserved for their pods: {held(cluster)}",
    )
    [left] = {"p0", "p1", "p2"} - {first, second}
    cluster.wait_until_refused(left, saying="cannot allocate all claims")

    cluster.client.delete("Pod", first)

    wait_for(lambda: left in bound(cluster), lambda: f"{left} gets the device: {held(cluster)}")
    assert left in held(cluster).values()
    assert mooring.exit_code is None


def test_a_claim_by_name_is_allocated_reserved_and_shared_by_its_pods(
    cluster: Cluster, mooring: Mooring
) -> None:
    cluster.add(objects.node("node-a"), device_class(), slice_of("node-a", "gpu-0"), claim("ours"))
    cluster.add(pod("one", resourceClaimName="ours"))
    cluster.wait_until_bound()

    cluster.add(pod("two", resourceClaimName="ours"))

    assert cluster.wait_until_bound() == {"one": "node-a", "two": "node-a"}
    stored = cluster.client.get("ResourceClaim", "ours")
    assert stored["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert stored["status"]["allocation"]["allocationTimestamp"]
    assert {user["name"] for user in stored["status"]["reservedFor"]} == {"one", "two"}


def test_two_schedulers_that_race_for_devices_never_both_get_one(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    """Both decide for the same devices at the same time, each before it sees what the other wrote."""
    devices = [f"gpu-{i:02}" for i in range(12)]
    names = ("first", "second")
    moorings = [start_mooring(configuration(name), name=name) for name in names]
    cluster.add(objects.node("node-a"), device_class(), slice_of("node-a", *devices))
    cluster.add(*(claim(f"claim-{i}") for i in range(20)))

    cluster.add(
        *(
            objects.pod(
                f"p{i}",
                scheduler=names[i % 2],
                resourceClaims=[{"name": "gpu", "resourceClaimName": f"claim-{i}"}],
            )
            for i in range(20)
        )
    )

    wait_for(
        lambda: len(bound(cluster)) >= len(devices),
        lambda: f"every device is in use: {devices_of_bound_pods(cluster)}",
    )
    assert devices_of_bound_pods(cluster) == devices
    assert [mooring.exit_code for mooring in moorings] == [None, None]
