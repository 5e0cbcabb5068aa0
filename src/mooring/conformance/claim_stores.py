"""Where the claims of a replayed case are kept: a write is stored, and told to the scheduler, at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec.structs import replace

from mooring.cluster.listers import Listers
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

K = TypeVar("K", bound=KubeObject)


class NumberedNames:
    """Generated names end in a counter, as in the golden files."""

    def __init__(self) -> None:
        self._made = 0

    def with_generated_name(self, obj: K) -> K:
        self._made += 1
        name = f"{obj.metadata.generate_name}{self._made:05d}"
        return replace(obj, metadata=replace(obj.metadata, name=name, uid=f"uid-of-{name}"))


class ListedObjects(NumberedNames):
    """A store of the objects that a scheduler lists; there is no watch in between.

    No decision depends on what is written to a pod's status, so pods stay as they are.
    """

    def __init__(self, listers: Listers, pods: Mapping[str, Pod]) -> None:
        super().__init__()
        self._listers = listers
        self._pods = pods
        self._version = 0

    def get(self, kind: type[K], key: str) -> K | None:
        if kind is Pod:
            pod = self._pods.get(key)
            return pod if isinstance(pod, kind) else None
        return self._listers.get(kind, key)

    def create(self, obj: K) -> K:
        self._version += 1
        stored = obj.stored_as(str(self._version))
        self._listers.put(stored)
        return stored

    def update(self, obj: K) -> K:
        return obj if isinstance(obj, Pod) else self.create(obj)

    def delete(self, obj: KubeObject) -> None:
        self.remove(obj)

    def remove(self, stored: KubeObject) -> None:
        self._listers.drop(stored)


class ReplayedObjects(NumberedNames):
    """A store on top of the API of a replay."""

    def __init__(
        self,
        get: Callable[[type[KubeObject], str], KubeObject | None],
        create: Callable[[KubeObject], KubeObject],
        update: Callable[[KubeObject], KubeObject],
        remove: Callable[[KubeObject], None],
    ) -> None:
        super().__init__()
        self._get, self._create, self._update, self._remove = get, create, update, remove

    def get(self, kind: type[K], key: str) -> K | None:
        found = self._get(kind, key)
        return found if isinstance(found, kind) else None

    def create(self, obj: K) -> K:
        stored = self._create(obj)
        assert isinstance(stored, type(obj))
        return stored

    def update(self, obj: K) -> K:
        stored = self._update(obj)
        assert isinstance(stored, type(obj))
        return stored

    def delete(self, obj: KubeObject) -> None:
        self._remove(obj)

    def remove(self, stored: KubeObject) -> None:
        self._remove(stored)
