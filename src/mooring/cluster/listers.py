"""The objects that rules look up by name: claims, classes, services, namespaces and the like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from mooring.objects import kinds, storage
from mooring.objects.meta import KubeObject

K = TypeVar("K", bound=KubeObject)


class Listers:
    """Every known object that is neither a node nor a pod, by kind and key."""

    def __init__(self) -> None:
        self._by_kind: dict[type[KubeObject], dict[str, KubeObject]] = {}
        #: Grows with every change, so that what was derived from these objects can be kept.
        self.generation = 0

    def put(self, obj: KubeObject) -> KubeObject | None:
        """Take an object in; the one it replaces, if there was one."""
        known = self._by_kind.setdefault(type(obj), {})
        replaced = known.get(obj.key)
        known[obj.key] = obj
        self.generation += 1
        return replaced

    def drop(self, obj: KubeObject) -> KubeObject | None:
        self.generation += 1
        return self._by_kind.get(type(obj), {}).pop(obj.key, None)

    def get(self, kind: type[K], key: str) -> K | None:
        """By `namespace/name`, or by the bare name of a kind that has no namespace."""
        found = self._by_kind.get(kind, {}).get(key)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[K]) -> Iterator[K]:
        """Every object of a kind, in the order they came."""
        for obj in self._by_kind.get(kind, {}).values():
            if isinstance(obj, kind):
                yield obj

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """A namespace without an object has no labels."""
        found = self.get(kinds.Namespace, namespace)
        return found.labels if found is not None else {}


#: The kinds kept here, beside which a cluster holds only nodes and pods.
LISTED: tuple[type[KubeObject], ...] = (
    kinds.Namespace,
    kinds.Service,
    kinds.ReplicationController,
    kinds.ReplicaSet,
    kinds.StatefulSet,
    kinds.PodDisruptionBudget,
    kinds.PriorityClass,
    kinds.DeviceClass,
    storage.PersistentVolume,
    storage.PersistentVolumeClaim,
    storage.StorageClass,
    storage.CSINode,
    storage.CSIDriver,
    storage.CSIStorageCapacity,
    storage.VolumeAttachment,
)
