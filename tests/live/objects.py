"""Objects as the API has them, for a real API server: a maker fills in what a case does not mention."""

from __future__ import annotations

from typing import Any

from plain_client import Json

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

#: Who schedules a pod that does not say.
DEFAULT_SCHEDULER = "default-scheduler"


def node(
    name: str,
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int = 110,
    zone: str = "",
    labels: dict[str, str] | None = None,
    resources: dict[str, str] | None = None,
    images: list[Json] | None = None,
    **spec: Any,
) -> Json:
    labels = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **(labels or {})}
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods), **(resources or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "images": images or [],
            "conditions": [{"type": "Ready", "status": "True", "reason": "Made"}],
        },
    }


def pod(
    name: str,
    *,
    namespace: str = "default",
    cpu: str = "100m",
    memory: str = "100Mi",
    resources: dict[str, str] | None = None,
    ports: list[Json] | None = None,
    image: str = "nginx",
    labels: dict[str, str] | None = None,
    scheduler: str = DEFAULT_SCHEDULER,
    claims: tuple[str, ...] = (),
    **spec: Any,
) -> Json:
    requests = {"cpu": cpu, "memory": memory, **(resources or {})}
    container = {
        "name": "main",
        "image": image,
        "ports": ports or [],
        # An extended resource must be limited to what it requests.
        "resources": {"requests": requests, "limits": resources or {}},
    }
    volumes = [
        {"name": f"volume-{claim}", "persistentVolumeClaim": {"claimName": claim}}
        for claim in claims
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {
            "schedulerName": scheduler,
            "containers": [container],
            "volumes": volumes,
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def pods(prefix: str, count: int, **given: Any) -> list[Json]:
    """Many alike, as a controller makes them."""
    return [pod(f"{prefix}-{number}", **given) for number in range(count)]


def required_node_affinity(key: str, *values: str) -> Json:
    expression = {"key": key, "operator": "In", "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def required_pod_affinity(labels: dict[str, str], topology_key: str, *, anti: bool = False) -> Json:
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": topology_key}
    kind = "podAntiAffinity" if anti else "podAffinity"
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(labels: dict[str, str], topology_key: str) -> Json:
    return {
        "maxSkew": 1,
        "topologyKey": topology_key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": labels},
    }


def priority_class(name: str, value: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def storage_class(name: str, provisioner: str, *, waits: bool = True) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


def local_volume(name: str, storage_class: str, node_name: str) -> Json:
    expression = {"key": HOSTNAME, "operator": "In", "values": [node_name]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": storage_class,
            "local": {"path": "/mnt/data"},
            "nodeAffinity": {
                "required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            },
        },
    }


def claim(
    name: str, storage_class: str, *, namespace: str = "default", mode: str = "ReadWriteOnce"
) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "storageClassName": storage_class,
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
