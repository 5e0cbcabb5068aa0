"""Random volumes, devices and pod groups, for plugins that mention them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from mooring.objects.well_known import HOSTNAME, ZONE
from mooring.plugin_kit.case import Event, Manifest
from mooring.plugin_kit.vocabulary import Vocabulary

_DRIVER = "gpu.example.com"
_NAMES = ("one", "two")
_ONE_GPU = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}


class OtherObjects:
    """What beside nodes and pods is in the cluster of a case."""

    def __init__(self, source: random.Random, vocabulary: Vocabulary) -> None:
        self._random = source
        self._vocabulary = vocabulary
        #: The names of nodes.
        self.names: list[str] = []
        self._present: list[Manifest] = []
        self._binding_mode = source.choice(("Immediate", "WaitForFirstConsumer"))
        #: A pod group does not change once it is there.
        self._gang_sizes = [source.randint(1, 3) for _ in _NAMES]

    def first(self) -> list[Manifest]:
        """The objects that are there before the nodes."""
        made = [each for each in self._all() if self._random.random() < 0.7]
        self._present = list(made)
        return made

    def event(self) -> Event | None:
        made = list(self._all())
        if not made:
            return None
        if self._present and self._random.random() < 0.3:
            return Event(self._present.pop(self._random.randrange(len(self._present))), gone=True)
        chosen = self._random.choice(made)
        self._present = [each for each in self._present if _key(each) != _key(chosen)] + [chosen]
        return Event(chosen)

    def use_in(self, pod: dict[str, Any]) -> None:
        """Let a pod use some of them, or none."""
        spec = pod["spec"]
        for field in ("volumes", "resourceClaims", "schedulingGroup"):
            spec.pop(field, None)
        name = self._random.choice(_NAMES)
        if self._vocabulary.storage and self._random.random() < 0.6:
            spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        if self._vocabulary.devices and self._random.random() < 0.6:
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        if self._vocabulary.groups and self._random.random() < 0.6:
            spec["schedulingGroup"] = {"podGroupName": name}

    def _all(self) -> Iterator[Manifest]:
        if self._vocabulary.storage:
            yield from self._storage()
        if self._vocabulary.devices:
            yield from self._devices()
        if self._vocabulary.groups:
            yield from self._groups()

    def _storage(self) -> Iterator[Manifest]:
        yield {
            **_head("storage.k8s.io/v1", "StorageClass", "local", namespaced=False),
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": self._binding_mode,
        }
        for name in _NAMES:
            bound = self._random.random() < 0.5
            claim: dict[str, Any] = {
                "storageClassName": "local",
                "accessModes": [self._random.choice(("ReadWriteOnce", "ReadWriteOncePod"))],
                "resources": {"requests": {"storage": "1Gi"}},
            }
            if bound:
                claim["volumeName"] = name
            head = _head("v1", "PersistentVolumeClaim", name)
            if bound:
                head["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
            yield {
                **head,
                "spec": claim,
                "status": {"phase": "Bound" if bound else "Pending"},
            }
            yield self._volume(name, bound=bound)

    def _volume(self, name: str, *, bound: bool) -> Manifest:
        node = self._random.choice(self.names[:4])
        term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
        head = _head("v1", "PersistentVolume", name, namespaced=False)
        if self._random.random() < 0.3:
            head["metadata"]["labels"] = {ZONE: self._random.choice(("east", "west"))}
        spec: dict[str, Any] = {
            "storageClassName": "local",
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        }
        if bound:
            spec["claimRef"] = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
        return {**head, "spec": spec, "status": {"phase": "Bound" if bound else "Available"}}

    def _devices(self) -> Iterator[Manifest]:
        expression = f'device.driver == "{_DRIVER}"'
        yield {
            **_head("resource.k8s.io/v1", "DeviceClass", "gpu", namespaced=False),
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        for node in self.names[:4]:
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            count = self._random.randint(0, 2)
            yield {
                **_head("resource.k8s.io/v1", "ResourceSlice", f"slice-{node}", namespaced=False),
                "spec": {
                    "driver": _DRIVER,
                    "nodeName": node,
                    "pool": pool,
                    "devices": [{"name": f"gpu-{number}"} for number in range(count)],
                },
            }
        for name in _NAMES:
            request = {"name": "gpu", "exactly": _ONE_GPU}
            yield {
                **_head("resource.k8s.io/v1", "ResourceClaim", name),
                "spec": {"devices": {"requests": [request]}},
            }

    def _groups(self) -> Iterator[Manifest]:
        for name, count in zip(_NAMES, self._gang_sizes, strict=True):
            yield {
                **_head("scheduling.k8s.io/v1alpha2", "PodGroup", name),
                "spec": {"schedulingPolicy": {"gang": {"minCount": count}}},
            }


def _head(api_version: str, kind: str, name: str, *, namespaced: bool = True) -> dict[str, Any]:
    uid = f"claim-{name}" if kind == "PersistentVolumeClaim" else f"{kind}-{name}"
    metadata = {"name": name, "uid": uid}
    if namespaced:
        metadata["namespace"] = "default"
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def _key(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]
