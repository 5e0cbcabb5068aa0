"""What etcd promises: every write has a version, all are in one order, and old ones are forgotten.

The objects, the kubelet and the rules of binding and deleting are those of the simulation (`SimApi`); the
history for watches, and the writes as HTTP brings them, are added here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from mooring.errors import ApiError, Conflict, NotFound
from mooring.objects.decoding import convert
from mooring.objects.kinds import KIND_OF, Kind
from mooring.objects.meta import KubeObject, encode_hook
from mooring.objects.pod import Pod
from mooring.sim.api import SimApi

MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)

K = TypeVar("K", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class Change:
    """One write, as a watch tells it."""

    version: int
    type: str
    obj: KubeObject
    #: The object before the write; None if it was created.
    old: KubeObject | None


class Store(SimApi):
    """Objects with a history."""

    def __init__(self, loop: Any, clock: Any) -> None:
        super().__init__(loop, clock)
        self.history: dict[type[KubeObject], list[Change]] = {}
        #: Watches from before this version are told that it is too old.
        self.compacted = 0
        self.on_change: list[Any] = []

    @property
    def version(self) -> int:
        return self._version

    def _store(self, obj: K) -> K:
        old = self._objects.get((type(obj), obj.key))
        stored = super()._store(obj)
        self._note(Change(self._version, "ADDED" if old is None else "MODIFIED", stored, old))
        return stored

    def remove(self, stored: KubeObject) -> None:
        super().remove(stored)
        self._version += 1
        last = stored.stored_as(str(self._version))
        self._note(Change(self._version, "DELETED", last, stored))

    def _note(self, change: Change) -> None:
        self.history.setdefault(type(change.obj), []).append(change)
        for listener in self.on_change:
            listener(change)

    def compact(self) -> None:
        self.compacted = self._version
        self.history = {kind: [] for kind in self.history}

    def as_of(self, kind: type[KubeObject], version: int) -> list[KubeObject]:
        """The objects of a kind as they were at a version that is not compacted."""
        now = {obj.key: obj for obj in self.all(kind)}
        for change in reversed(self.history.get(kind, [])):
            if change.version <= version:
                break
            if change.old is None:
                now.pop(change.obj.key, None)
            else:
                now[change.obj.key] = change.old
        return list(now.values())

    # Writes

    def terminate(self, stored: Pod) -> Pod:  # type: ignore[override]
        """As the simulation's; the API server marks a pod before it removes it. Returns it as marked."""
        marked = self._must_get(stored)
        if not marked.terminating and (not marked.node_name or marked.finished):
            marked = self.update(self._marked(marked))
        super().terminate(marked)
        return self.get(Pod, stored.key) or marked

    def count_version(self) -> None:
        """Something was written that is kept elsewhere, and that nobody watches."""
        self._version += 1

    def patch(
        self,
        kind: Kind,
        key: str,
        patch: Mapping[str, Any],
        *,
        status: bool,
        check: Callable[[KubeObject, KubeObject], None],
    ) -> KubeObject:
        """A merge patch, or a strategic one: lists are merged where the API says so."""
        stored = self.get(kind.struct, key)
        if stored is None:
            raise missing(kind, key)
        given = dict(patch.get("metadata", {}))
        uid, version = given.pop("uid", None), given.pop("resourceVersion", None)
        if uid is not None and uid != stored.uid:
            group = f".{kind.group}" if kind.group else ""
            raise ApiError(
                f'{kind.name}{group} "{stored.name}" is invalid: metadata.uid: Invalid value:'
                f' "{uid}": field is immutable',
                status=422,
                reason="Invalid",
            )
        if version is not None and version != stored.metadata.resource_version:
            raise Conflict(
                f'Operation cannot be fulfilled on {_resource(kind)} "{stored.name}": {MODIFIED}',
                reason="Conflict",
            )
        changes: dict[str, Any] = {"metadata": given} if given else {}
        for part in ("status",) if status else ("spec",):
            if part in patch:
                changes[part] = patch[part]
        before = plain(stored)
        after = merged(before, changes)
        if after == before:
            return stored
        changed = convert(after, kind.struct)
        check(stored, changed)
        if changed.terminating and not changed.metadata.finalizers and not isinstance(changed, Pod):
            self.remove(stored)
            return changed
        return self.update(changed)


def plain(obj: KubeObject) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(obj, enc_hook=encode_hook)
    return document


def text_of(obj: KubeObject) -> bytes:
    kind = KIND_OF[type(obj)]
    whole = msgspec.structs.replace(obj, api_version=kind.api_version, kind=kind.name)
    return msgspec.json.encode(whole, enc_hook=encode_hook)


def missing(kind: Kind, key: str) -> ApiError:
    return NotFound(f'{_resource(kind)} "{key.rpartition("/")[2]}" not found', status=404)


def _resource(kind: Kind) -> str:
    """As messages name it: `pods`, `resourceclaims.resource.k8s.io`."""
    return f"{kind.plural}.{kind.group}" if kind.group else kind.plural


#: Lists that a strategic merge patch merges, by the field that tells their entries apart.
_MERGED_BY = {"conditions": "type", "reservedFor": "uid"}


def merged(before: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    result = dict(before) if isinstance(before, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        elif name in _MERGED_BY and isinstance(value, list) and _is_strategic(name, value):
            result[name] = _merged_list(result.get(name, []), value, _MERGED_BY[name])
        else:
            result[name] = merged(result.get(name), value)
    return result


def _is_strategic(name: str, entries: list[Any]) -> bool:
    return name == "conditions" or any("$patch" in entry for entry in entries)


def _merged_list(before: list[Any], patch: list[Any], by: str) -> list[Any]:
    result = {entry.get(by): entry for entry in before}
    for entry in patch:
        if entry.get("$patch") == "delete":
            result.pop(entry[by], None)
        else:
            result[entry[by]] = merged(result.get(entry[by]), entry)
    return list(result.values())
