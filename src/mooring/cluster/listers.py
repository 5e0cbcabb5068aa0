"""The objects that plugins look up: claims, classes, services, namespaces and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from mooring.cluster.changes import Generations
from mooring.errors import check_kept
from mooring.objects import kinds
from mooring.objects.meta import KubeObject

K = TypeVar("K", bound=KubeObject)


class Listers:
    """Every known object that is neither a node nor a pod, by kind and key."""

    def __init__(self, generations: Generations | None = None) -> None:
        self._generations = generations or Generations()
        self._by_kind: dict[type[KubeObject], dict[str, KubeObject]] = {}
        #: Kind → the callbacks for changes.
        self._followers: dict[type[KubeObject], list[Callable[[str], None]]] = {}
        #: The generation of the latest change, so that caches know when they are outdated.
        self.generation = 0
        #: In a trial: kind → its objects before, and the objects that changed.
        self._trial: (
            dict[type[KubeObject], tuple[dict[str, KubeObject], dict[str, KubeObject]]] | None
        ) = None

    @contextmanager
    def trial(self) -> Iterator[None]:
        """At the end, all objects are as they were, and in the same order."""
        outer, self._trial = self._trial, {}
        try:
            yield
        finally:
            trial, self._trial = self._trial, outer
            for kind, (before, changed) in trial.items():
                self._by_kind[kind] = before
                for obj in changed.values():
                    self._changed(obj)

    def _changeable(self, obj: KubeObject) -> dict[str, KubeObject]:
        """The objects of this one's kind, to be changed: in a trial, a copy."""
        kind = type(obj)
        known = self._by_kind.setdefault(kind, {})
        if self._trial is not None:
            if kind not in self._trial:
                self._trial[kind] = (known, {})
                known = self._by_kind[kind] = known.copy()
            self._trial[kind][1][obj.key] = obj
        return known

    def put(self, obj: KubeObject) -> KubeObject | None:
        """Add an object. Return the object that it replaces, if any."""
        known = self._changeable(obj)
        replaced = known.get(obj.key)
        known[obj.key] = obj
        self._changed(obj)
        return replaced

    def drop(self, obj: KubeObject) -> KubeObject | None:
        dropped = self._changeable(obj).pop(obj.key, None)
        self._changed(obj)
        return dropped

    def follow(self, kind: type[KubeObject], changed: Callable[[str], None]) -> None:
        """Call `changed` with the key of each object that is added, replaced or removed."""
        self._followers.setdefault(kind, []).append(changed)

    def get(self, kind: type[K], key: str) -> K | None:
        """The object with this `namespace/name`, or name for a cluster-scoped kind."""
        found = self._by_kind.get(kind, {}).get(key)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[K]) -> Iterator[K]:
        """Every object of a kind, in order of arrival."""
        for obj in self._by_kind.get(kind, {}).values():
            if isinstance(obj, kind):
                yield obj

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        """The labels of a namespace; none if its object is missing."""
        found = self.get(kinds.Namespace, namespace)
        return found.labels if found is not None else {}

    def validate(self) -> None:
        """Raise InvariantError unless every object is kept under its kind and key."""
        for kind, known in self._by_kind.items():
            for key, obj in known.items():
                check_kept(f"{kind.__name__} {key}", (type(obj), obj.key), (kind, key))

    def _changed(self, obj: KubeObject) -> None:
        self.generation = self._generations.next()
        for changed in self._followers.get(type(obj), ()):
            changed(obj.key)


class Index(Generic[K]):
    """An index of the objects of one kind by a value, kept up to date."""

    def __init__(self, listers: Listers, kind: type[K], value_of: Callable[[K], str]) -> None:
        self._listers = listers
        self._kind = kind
        self._value_of = value_of
        self._values: dict[str, str] = {}
        self._under: dict[str, dict[str, K]] = {}
        #: The entries of `_under` that were read, in order of their keys.
        self._sorted: dict[str, list[K]] = {}
        for obj in listers.all(kind):
            self._changed(obj.key)
        listers.follow(kind, self._changed)

    def under(self, value: str) -> Sequence[K]:
        """The objects with this value, in order of their keys."""
        filed = self._under.get(value)
        if filed is None:
            return ()
        found = self._sorted.get(value)
        if found is None:
            found = self._sorted[value] = [filed[key] for key in sorted(filed)]
        return found

    def validate(self) -> None:
        """Raise InvariantError unless each object is under its value, and no others are."""
        objects = {obj.key: obj for obj in self._listers.all(self._kind)}
        values = {key: self._value_of(obj) for key, obj in objects.items()}
        under: dict[str, dict[str, K]] = {}
        for key, value in values.items():
            under.setdefault(value, {})[key] = objects[key]
        what = f"the index of {self._kind.__name__} objects"
        check_kept(what, self._values, values)
        check_kept(what, self._under, under)
        for value, found in self._sorted.items():
            expected = [under[value][key] for key in sorted(under.get(value, ()))]
            check_kept(f"{what}, sorted, {value}", found, expected)

    def _changed(self, key: str) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self._sorted.pop(value, None)
            del self._under[value][key]
            if not self._under[value]:
                del self._under[value]
        obj = self._listers.get(self._kind, key)
        if obj is not None:
            value = self._values[key] = self._value_of(obj)
            self._sorted.pop(value, None)
            self._under.setdefault(value, {})[key] = obj


#: The kinds kept here. `cluster.cache` keeps nodes and pods.
LISTED = tuple(kind.struct for kind in kinds.KINDS if kind.listed)
