"""The assume cache of volumes and claims: observed objects, overlaid with assumed ones.

After a volume is chosen for a claim and before the watch shows it, other pods must see the volume
as taken. So the changed object is assumed: it hides the observed object as long as the resource
version of the observed object stays the same.

    observed (v1) ── assume(v1) ──▶ observed (v1) under assumed (v1)
         ▲                               │
         └── restore(v1), or the watch shows another version, or none ──┘
"""

from __future__ import annotations

from typing import Generic, TypeVar

from mooring.cluster.listers import Index, Listers
from mooring.errors import InvariantError, MooringError
from mooring.objects.claims import class_of_volume
from mooring.objects.meta import KubeObject
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim

K = TypeVar("K", bound=KubeObject)


class AssumeError(MooringError):
    """An assumption about an object that is gone, or has changed since it was read."""


class AssumeCache(Generic[K]):
    """The objects of one kind, assumed ones over observed ones."""

    def __init__(self, listers: Listers, kind: type[K], resource: str) -> None:
        self._listers = listers
        self._kind = kind
        self._resource = resource
        self._assumed: dict[str, K] = {}
        listers.follow(kind, self._drop_if_outdated)

    def get(self, key: str) -> K | None:
        observed = self.observed(key)
        return None if observed is None else self.latest(observed)

    def observed(self, key: str) -> K | None:
        """The object as last seen from the API server, without assumptions."""
        return self._listers.get(self._kind, key)

    def latest(self, observed: K) -> K:
        """The assumed object, or the observed one if there is none."""
        assumed = self._assumed.get(observed.key)
        return assumed if assumed is not None and _same_version(assumed, observed) else observed

    def assume(self, obj: K) -> None:
        """Assume an object. Raises AssumeError unless it has the last observed version."""
        observed = self.observed(obj.key)
        if observed is None:
            raise AssumeError(self.not_found(obj.key))
        if not _same_version(observed, obj):
            raise AssumeError(
                f'"{obj.key}" is out of sync (stored: {observed.metadata.resource_version},'
                f" assume: {obj.metadata.resource_version})"
            )
        self._assumed[obj.key] = obj

    def restore(self, obj: K) -> None:
        """Drop an assumption, unless it is for another version."""
        assumed = self._assumed.get(obj.key)
        if assumed is not None and _same_version(assumed, obj):
            del self._assumed[obj.key]

    @property
    def is_settled(self) -> bool:
        """Whether nothing is assumed."""
        return not self._assumed

    def not_found(self, key: str) -> str:
        """The reference's message for a missing object."""
        return f'{self._resource} "{key}" not found'

    def validate(self) -> None:
        """Raise InvariantError unless each assumed object has the observed version."""
        for key, assumed in self._assumed.items():
            observed = self.observed(key)
            if assumed.key != key or observed is None or not _same_version(assumed, observed):
                raise InvariantError(
                    f"{self._resource} {key} is assumed, but was not observed in this version"
                )

    def _drop_if_outdated(self, key: str) -> None:
        assumed = self._assumed.get(key)
        if assumed is not None:
            observed = self.observed(key)
            if observed is None or not _same_version(assumed, observed):
                del self._assumed[key]


class VolumeCache:
    """The volumes and claims of a cluster, with assumptions."""

    def __init__(self, listers: Listers) -> None:
        self.volumes = AssumeCache(listers, PersistentVolume, "persistentvolumes")
        self.claims = AssumeCache(listers, PersistentVolumeClaim, "persistentvolumeclaims")
        self._by_class = Index(listers, PersistentVolume, class_of_volume)

    @property
    def is_settled(self) -> bool:
        return self.volumes.is_settled and self.claims.is_settled

    def validate(self) -> None:
        """Raise InvariantError unless assumptions and index fit what was observed."""
        self.volumes.validate()
        self.claims.validate()
        self._by_class.validate()

    def volumes_of_class(self, name: str) -> list[PersistentVolume]:
        """The volumes of a class, in order of their names. Assumptions do not change the class."""
        return [self.volumes.latest(volume) for volume in self._by_class.under(name)]


def _same_version(a: KubeObject, b: KubeObject) -> bool:
    return a.metadata.resource_version == b.metadata.resource_version
