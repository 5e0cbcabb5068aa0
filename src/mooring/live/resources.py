"""Where each kind lives in the API, and which kinds a scheduler has to watch."""

from __future__ import annotations

from dataclasses import dataclass

from mooring.framework.events import Resource
from mooring.objects import kinds, storage
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.scheduler.extenders import EXTENDER_EVENTS
from mooring.scheduler.scheduler import Scheduler

#: A pod that has run to its end holds nothing, so it is not watched; when one ends, it is as good as gone.
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class ApiResource:
    """A kind as the API server serves it."""

    kind: type[KubeObject]
    #: Such as `v1` or `storage.k8s.io/v1`.
    api_version: str
    plural: str
    #: Of all of the kind, only these are wanted.
    field_selector: str = ""

    @property
    def kind_name(self) -> str:
        return self.kind.__name__

    @property
    def path(self) -> str:
        """Of all its objects, in every namespace."""
        return f"{self._root}/{self.plural}"

    def path_of(self, namespace: str, name: str) -> str:
        """Of one object; a kind without namespaces has an empty one."""
        inside = f"/namespaces/{namespace}" if namespace else ""
        return f"{self._root}{inside}/{self.plural}/{name}"

    @property
    def _root(self) -> str:
        return (
            f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        )


PODS = ApiResource(Pod, "v1", "pods", UNFINISHED)
VOLUMES = ApiResource(storage.PersistentVolume, "v1", "persistentvolumes")
CLAIMS = ApiResource(storage.PersistentVolumeClaim, "v1", "persistentvolumeclaims")

#: What rules look up whatever the plugins are; changes to the last six wake no pod.
ALWAYS = (
    ApiResource(Node, "v1", "nodes"),
    PODS,
    ApiResource(kinds.Namespace, "v1", "namespaces"),
    ApiResource(kinds.Service, "v1", "services"),
    ApiResource(kinds.ReplicationController, "v1", "replicationcontrollers"),
    ApiResource(kinds.ReplicaSet, "apps/v1", "replicasets"),
    ApiResource(kinds.StatefulSet, "apps/v1", "statefulsets"),
    ApiResource(kinds.PodDisruptionBudget, "policy/v1", "poddisruptionbudgets"),
)

#: What is watched if a plugin asked to hear of it.
ON_REQUEST = {
    Resource.PERSISTENT_VOLUME: VOLUMES,
    Resource.PERSISTENT_VOLUME_CLAIM: CLAIMS,
    Resource.STORAGE_CLASS: ApiResource(
        storage.StorageClass, "storage.k8s.io/v1", "storageclasses"
    ),
    Resource.CSI_NODE: ApiResource(storage.CSINode, "storage.k8s.io/v1", "csinodes"),
    Resource.CSI_DRIVER: ApiResource(storage.CSIDriver, "storage.k8s.io/v1", "csidrivers"),
    Resource.CSI_STORAGE_CAPACITY: ApiResource(
        storage.CSIStorageCapacity, "storage.k8s.io/v1", "csistoragecapacities"
    ),
    Resource.VOLUME_ATTACHMENT: ApiResource(
        storage.VolumeAttachment, "storage.k8s.io/v1", "volumeattachments"
    ),
    Resource.DEVICE_CLASS: ApiResource(kinds.DeviceClass, "resource.k8s.io/v1", "deviceclasses"),
}


def kinds_to_watch(scheduler: Scheduler) -> list[ApiResource]:
    """Those that every scheduler needs, and those that the plugins of any profile registered for."""
    registered = {
        registered.event.resource
        for framework in scheduler.frameworks.values()
        for _, registered in framework.events_to_register()
    }
    if len(scheduler.extenders):
        registered.update(event.event.resource for event in EXTENDER_EVENTS)
    everything = Resource.WILDCARD in registered
    return [
        *ALWAYS,
        *(api for resource, api in ON_REQUEST.items() if everything or resource in registered),
    ]
