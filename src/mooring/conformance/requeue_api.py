"""The API server of a replayed case: a write is carried out, and told to the scheduler, at once.

`sim.api` plays a cluster as it is, with grace periods and a watch that lags behind. A golden case leaves
nothing to time that it does not say itself: victims go when they are told to, claims are bound when the
scheduler has chosen, and the scheduler hears of each change before the next one is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from mooring.conformance.claim_stores import ReplayedObjects
from mooring.errors import ApiError, Conflict, NotFound
from mooring.framework.api import Event, PodStatusPatch
from mooring.objects.claims import BIND_COMPLETED, SELECTED_NODE, class_of_claim, requested_storage
from mooring.objects.decoding import decode_object, kind_of
from mooring.objects.kinds import KINDS
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.pod import Pod, PodCondition, PodStatus
from mooring.objects.pod_groups import PodGroup
from mooring.objects.storage import (
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
)
from mooring.objects.well_known import POD_SCHEDULED
from mooring.sim.api import Watcher
from mooring.sim.claim_api import StoredClaims

#: When the first pod of a case starts, if it is bound; the next one a second later, and so on.
_FIRST_START = datetime(2026, 1, 1, tzinfo=UTC)

_KIND_OF_NAME = {kind.name: kind.struct for kind in KINDS}

K = TypeVar("K", bound=KubeObject)


class ReplayApi:
    """The objects of a case, changed by its steps and by the scheduler's writes."""

    def __init__(self, *, lingering: bool, bindings_fail: Mapping[str, int]) -> None:
        #: Who hears of changes; a replay may set another for a while.
        self.watcher: Watcher | None = None
        #: The pods that the scheduler deleted.
        self.evicted: list[str] = []
        self._lingering = lingering
        #: `namespace/name` → how many more requests to bind this pod are refused.
        self._refusals = dict(bindings_fail)
        self._objects: dict[tuple[type[KubeObject], str], KubeObject] = {}
        #: UID → the position of the pod among all pods of the case, in order of creation.
        self._positions: dict[str, int] = {}
        self._version = 0
        store = ReplayedObjects(self.get, self.create, self._update, self._remove)
        self.claims = StoredClaims(store)

    # What a case does

    def get(self, kind: type[K], key: str) -> K | None:
        found = self._objects.get((kind, key))
        return found if isinstance(found, kind) else None

    def waiting_pods(self) -> list[Pod]:
        """Every pod that has no node."""
        return [pod for pod in self.all(Pod) if not pod.node_name]

    def create(self, obj: KubeObject) -> KubeObject:
        if isinstance(obj, Pod):
            self._positions.setdefault(obj.uid, len(self._positions))
            if obj.finished:
                return obj
        stored = self._store(obj)
        if self.watcher is not None:
            self.watcher.added(stored)
        return stored

    def put(self, raw: Mapping[str, Any]) -> None:
        """An object takes the place of the one of its kind and name; if there is none, nothing happens."""
        for obj in decode([raw]):
            self._put(obj, raw.get("status") or {})

    def _put(self, obj: KubeObject, raw_status: Mapping[str, Any]) -> None:
        stored = self.get(type(obj), obj.key)
        if stored is None:
            return
        if isinstance(obj, Pod) and isinstance(stored, Pod):
            obj = _updated_pod(stored, obj, raw_status)
            if obj.finished:
                self._remove(stored)
                return
        self._update(obj)

    def ungate(self, key: str) -> None:
        """A pod loses its scheduling gates."""
        stored = self.get(Pod, key)
        if stored is not None:
            self._update(replace(stored, spec=replace(stored.spec, scheduling_gates=[])))

    def all(self, kind: type[K]) -> list[K]:
        return [obj for obj in self._objects.values() if isinstance(obj, kind)]

    def remove(self, reference: str) -> None:
        """`Kind/namespace/name` or `Kind/name`; if there is no such object, nothing happens."""
        kind, _, key = reference.partition("/")
        known = _KIND_OF_NAME.get(kind)
        stored = None if known is None else self.get(known, key)
        if stored is not None:
            self._remove(stored)

    # What the scheduler writes

    async def bind(self, pod: Pod, node_name: str) -> None:
        if self._refusals.get(pod.key, 0) > 0:
            self._refusals[pod.key] -= 1
            raise ApiError(f"binding pod {pod.key} is refused")
        stored = self._same_pod(pod)
        condition = PodCondition(type=POD_SCHEDULED, status="True")
        self._update(
            stored.placed_on(node_name).with_status(
                nominated_node_name="",
                conditions=_with_condition(stored, condition),
                start_time=_FIRST_START + timedelta(seconds=self._positions[stored.uid]),
            )
        )

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        stored = self._same_pod(pod)
        changes: dict[str, object] = {}
        if patch.condition is not None:
            changes["conditions"] = _with_condition(stored, patch.condition)
        if patch.nominated_node_name is not None:
            changes["nominated_node_name"] = patch.nominated_node_name
        changed = stored.with_status(**changes)
        if changed != stored:
            self._update(changed)

    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None:
        stored = self.get(PodGroup, group.key)
        if stored is None or stored.uid != group.uid:
            raise NotFound(f'podgroups "{group.name}" not found')
        self._update(stored.with_condition(condition))

    async def delete_pod(self, pod: Pod) -> None:
        stored = self._same_pod(pod)
        self.evicted.append(stored.key)
        if not self._lingering:
            self._remove(stored)
        elif not stored.terminating:
            metadata = replace(stored.metadata, deletion_timestamp=_FIRST_START)
            self._update(replace(stored, metadata=metadata))

    async def update_object(self, obj: K) -> K:
        written = self._checked_update(obj)
        if isinstance(written, PersistentVolume):
            self._volume_written(written)
        elif isinstance(written, PersistentVolumeClaim):
            self._claim_written(written)
        return written

    def _volume_written(self, written: PersistentVolume) -> None:
        """A volume that refers to a claim is bound to it at once."""
        ref = written.spec.claim_ref
        claim = (
            None if ref is None else self.get(PersistentVolumeClaim, f"{ref.namespace}/{ref.name}")
        )
        if claim is not None:
            self._update(replace(written, status=replace(written.status, phase="Bound")))
            self._bind_claim(claim, written.name)

    def _claim_written(self, written: PersistentVolumeClaim) -> None:
        """A claim that names a node gets a volume at once."""
        if SELECTED_NODE in written.metadata.annotations and not written.spec.volume_name:
            volume = _volume_for(written)
            self.create(volume)
            self._bind_claim(written, volume.name)

    def record_event(self, event: Event) -> None:
        """No case tells of Events."""

    # The store

    def _store(self, obj: K) -> K:
        self._version += 1
        stored = obj.stored_as(str(self._version))
        self._objects[type(obj), obj.key] = stored
        return stored

    def _update(self, obj: K) -> K:
        old = self._objects[type(obj), obj.key]
        stored = self._store(obj)
        if self.watcher is not None:
            self.watcher.updated(old, stored)
        return stored

    def _remove(self, stored: KubeObject) -> None:
        del self._objects[type(stored), stored.key]
        if self.watcher is not None:
            self.watcher.deleted(stored)

    def _same_pod(self, pod: Pod) -> Pod:
        stored = self.get(Pod, pod.key)
        if stored is None or stored.uid != pod.uid:
            raise NotFound(f'pods "{pod.name}" not found')
        return stored

    def _checked_update(self, obj: K) -> K:
        stored = self.get(type(obj), obj.key)
        if stored is None:
            raise NotFound(f"{obj.kind} {obj.key} not found")
        if stored.metadata.resource_version != obj.metadata.resource_version:
            raise Conflict(f"{obj.kind} {obj.key} has been modified")
        return self._update(obj)

    def _bind_claim(self, claim: PersistentVolumeClaim, volume_name: str) -> None:
        annotations = {**claim.metadata.annotations, BIND_COMPLETED: "yes"}
        self._update(
            replace(
                claim,
                metadata=replace(claim.metadata, annotations=annotations),
                spec=replace(claim.spec, volume_name=volume_name),
                status=replace(claim.status, phase="Bound"),
            )
        )


def decode(objects: Iterable[Mapping[str, Any]]) -> list[KubeObject]:
    """In their order, without the kinds that mooring does not read."""
    return [
        decode_object(raw)
        for raw in objects
        if kind_of(raw.get("apiVersion"), raw.get("kind")) is not None
    ]


def _updated_pod(stored: Pod, new: Pod, raw_status: Mapping[str, Any]) -> Pod:
    """Labels, annotations, spec and what the new status mentions; the rest is the scheduler's."""
    status = {
        field.name: getattr(new.status, field.name)
        for field in msgspec.structs.fields(PodStatus)
        if field.encode_name in raw_status
    }
    return replace(
        stored,
        metadata=replace(
            stored.metadata, labels=new.metadata.labels, annotations=new.metadata.annotations
        ),
        spec=replace(new.spec, node_name=stored.spec.node_name),
        status=replace(stored.status, **status),
    )


def _with_condition(pod: Pod, condition: PodCondition) -> list[PodCondition]:
    others = [known for known in pod.status.conditions if known.type != condition.type]
    return [*others, condition]


def _volume_for(claim: PersistentVolumeClaim) -> PersistentVolume:
    """A volume of the class and the size that the claim wants, which every node can reach."""
    name = f"made-for-{claim.name}"
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(name=name, uid=name),
        spec=PersistentVolumeSpec(
            capacity={"storage": requested_storage(claim)},
            access_modes=claim.spec.access_modes,
            storage_class_name=class_of_claim(claim),
            volume_mode=claim.spec.volume_mode,
            claim_ref=ObjectReference(
                kind="PersistentVolumeClaim",
                api_version="v1",
                namespace=claim.namespace,
                name=claim.name,
                uid=claim.uid,
            ),
        ),
        status=PersistentVolumeStatus(phase="Bound"),
    )
