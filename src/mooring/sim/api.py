"""An API server in memory. It stores objects, sends every change to watchers, and acts as the kubelet.

It treats a scheduler's writes as a real API server does: a binding sets the node and the PodScheduled
condition and clears the nomination; a deleted pod first terminates for its grace period. Watchers get
changes in order, and only after the write has returned.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Protocol, TypeVar

import msgspec

from mooring.errors import Conflict, Forbidden, NotFound
from mooring.framework.api import Event, PodStatusPatch
from mooring.framework.clock import Clock
from mooring.objects.decoding import group_of
from mooring.objects.devices import ResourceClaim
from mooring.objects.generated_names import NameMaker, generated_uid
from mooring.objects.kinds import KIND_OF
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_groups import PodGroup
from mooring.objects.well_known import POD_SCHEDULED
from mooring.sim.claim_api import StoredClaims

#: How long a pod runs, in seconds of virtual time; then it succeeds and frees its node.
RUN_SECONDS = "mooring.dev/run-seconds"

_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)
_DEFAULT_GRACE_S = 30

K = TypeVar("K", bound=KubeObject)


class Watcher(Protocol):
    """Receives every change of an object."""

    def added(self, obj: KubeObject) -> None: ...
    def updated(self, old: KubeObject, new: KubeObject) -> None: ...
    def deleted(self, obj: KubeObject) -> None: ...


class SimApi:
    """The objects of a simulated cluster, and the writes a scheduler makes to them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._objects: dict[tuple[type[KubeObject], str], KubeObject] = {}
        self._version = 0
        self._watchers: tuple[Watcher, ...] = ()
        #: Changes, and the watchers at that time.
        self._untold: deque[tuple[Callable[[Watcher], None], tuple[Watcher, ...]]] = deque()
        self._names = NameMaker(())
        self.claims = StoredClaims(self)
        #: Every Event that was recorded, with its time.
        self.events: list[tuple[float, Event]] = []
        #: Pods that have finished.
        self.finished: list[Pod] = []
        #: The number of timers that will still change something, such as runs and terminations.
        self.busy = 0
        #: How many of them are pods that run until they finish, or as long as they tolerate a device's taint.
        self.running = 0

    # Objects

    def watch(self, watcher: Watcher) -> None:
        """Send the existing objects to the watcher, then every change."""
        self._watchers = (*self._watchers, watcher)
        for obj in self._objects.values():
            watcher.added(obj)

    def get(self, kind: type[K], key: str) -> K | None:
        found = self._objects.get((kind, key))
        return found if isinstance(found, kind) else None

    def all(self, kind: type[K]) -> Iterator[K]:
        for obj in list(self._objects.values()):
            if isinstance(obj, kind):
                yield obj

    def create(self, obj: K) -> K:
        stored = self._create(obj)
        self._tell(lambda watcher: watcher.added(stored))
        return stored

    def create_all(self, objects: Iterable[KubeObject]) -> None:
        """As `create` for each, with one turn of the loop for all of them."""
        created = [self._create(obj) for obj in objects]
        watchers = self._watchers
        self._loop.call_soon(self._tell_created, created, watchers)

    def _tell_created(self, created: list[KubeObject], watchers: tuple[Watcher, ...]) -> None:
        for stored in created:
            for watcher in watchers:
                try:
                    watcher.added(stored)
                except Exception as error:
                    self._failed(watcher, error)

    def update(self, obj: K) -> K:
        return self._replace(self._must_get(obj), obj)

    def _replace(self, old: K, obj: K) -> K:
        stored = self._store(obj)
        self._tell(lambda watcher: watcher.updated(old, stored))
        return stored

    def delete(self, obj: KubeObject) -> None:
        """Delete at once, except a claim with finalizers: it is marked, and stays until they are gone.

        `delete_pod` lets a pod on a node terminate first.
        """
        stored = self._must_get(obj)
        if not isinstance(stored, ResourceClaim) or not stored.metadata.finalizers:
            self.remove(stored)
        elif not stored.terminating:
            self.update(self._marked(stored))

    def remove(self, stored: KubeObject) -> None:
        """Take an object away, whatever its finalizers."""
        del self._objects[type(stored), stored.key]
        self._tell(lambda watcher: watcher.deleted(stored))

    def with_generated_name(self, obj: K) -> K:
        """The object with a name from its `generateName`, if it has none, and a UID."""
        metadata = obj.metadata
        name = metadata.name
        while not name or (not metadata.name and self._has(obj, name)):
            name = self._names.name(type(obj), metadata.namespace, metadata.generate_name)
        # Two objects that have the same name one after the other are not the same.
        unique = f"{name}/{self._version}"
        uid = metadata.uid or generated_uid(
            group_of(obj.api_version), obj.kind, metadata.namespace, unique
        )
        metadata = msgspec.structs.replace(
            metadata,
            name=name,
            uid=uid,
            creation_timestamp=metadata.creation_timestamp or self._timestamp(),
        )
        return msgspec.structs.replace(obj, metadata=metadata)

    def _has(self, obj: KubeObject, name: str) -> bool:
        key = f"{obj.namespace}/{name}" if obj.namespace else name
        return (type(obj), key) in self._objects

    # Writes of a scheduler

    async def bind(self, pod: Pod, node_name: str) -> None:
        stored = self._same_pod(pod)
        if stored.node_name:
            raise Conflict(f"pod {pod.key} is already assigned to node {stored.node_name}")
        if stored.terminating:
            raise Conflict(f"pod {pod.key} is being deleted, cannot be assigned to a host")
        now = self._timestamp()
        condition = PodCondition(type=POD_SCHEDULED, status="True", last_transition_time=now)
        bound = stored.placed_on(node_name).with_status(
            nominated_node_name="",
            conditions=_with_condition(stored, condition),
            phase="Running",
            start_time=now,
        )
        self._start(self._replace(stored, bound))

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        stored = self._same_pod(pod)
        changes: dict[str, object] = {}
        if patch.condition is not None:
            known = stored.condition(patch.condition.type)
            flipped = known is None or known.status != patch.condition.status
            since = self._timestamp() if flipped or known is None else known.last_transition_time
            condition = msgspec.structs.replace(patch.condition, last_transition_time=since)
            changes["conditions"] = _with_condition(stored, condition)
        if patch.nominated_node_name is not None:
            changes["nominated_node_name"] = patch.nominated_node_name
        self._replace(stored, stored.with_status(**changes))

    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None:
        stored = self.get(PodGroup, group.key)
        if stored is None or stored.uid != group.uid:
            raise NotFound(f'podgroups "{group.name}" not found')
        known = stored.condition(condition.type)
        flipped = known is None or known.status != condition.status
        since = self._timestamp() if flipped or known is None else known.last_transition_time
        told = msgspec.structs.replace(condition, last_transition_time=since)
        self._replace(stored, stored.with_condition(told))

    async def delete_pod(self, pod: Pod) -> None:
        self.terminate(self._same_pod(pod))

    def terminate(self, stored: Pod) -> None:
        """Delete a pod as users and controllers do: one on a node gets its grace period."""
        if not stored.node_name or stored.finished:
            self.delete(stored)
            return
        if stored.terminating:
            return
        terminating = self.update(self._marked(stored))
        grace_s = stored.spec.termination_grace_period_seconds
        self.later(_DEFAULT_GRACE_S if grace_s is None else grace_s, lambda: self._end(terminating))

    def _marked(self, stored: K) -> K:
        metadata = msgspec.structs.replace(stored.metadata, deletion_timestamp=self._timestamp())
        return msgspec.structs.replace(stored, metadata=metadata)

    async def update_object(self, obj: K) -> K:
        kind = KIND_OF.get(type(obj))
        if kind is None or not kind.writable:
            raise Forbidden(f"a scheduler cannot change a {type(obj).__name__}")
        stored = self._must_get(obj)
        if stored.metadata.resource_version != obj.metadata.resource_version:
            raise Conflict(f"{type(obj).__name__} {obj.key} has been modified")
        return self.update(obj)

    def record_event(self, event: Event) -> None:
        self.events.append((self._clock.now(), event))

    # The kubelet

    def _start(self, pod: Pod) -> None:
        run_s = run_seconds(pod)
        if run_s is not None:
            self.running += 1
            self.later(run_s, lambda: self._succeed(pod))

    def _succeed(self, pod: Pod) -> None:
        self.running -= 1
        stored = self.get(Pod, pod.key)
        if stored is None or stored.uid != pod.uid:
            return
        done = self._store(stored.with_status(phase="Succeeded"))
        self.finished.append(done)
        self._tell(lambda watcher: watcher.updated(stored, done))

    def _end(self, pod: Pod) -> None:
        stored = self.get(Pod, pod.key)
        if stored is not None and stored.uid == pod.uid:
            self.delete(stored)

    def later(self, delay_s: float, action: Callable[[], None]) -> None:
        """Change the cluster after a delay; a run waits for it."""
        self.busy += 1

        def act() -> None:
            self.busy -= 1
            action()

        self._clock.call_later(delay_s, act)

    # The store

    def _create(self, obj: K) -> K:
        if (type(obj), obj.key) in self._objects:
            raise Conflict(f"{obj.kind} {obj.key} already exists")
        stored = self._store(obj)
        if isinstance(stored, Pod) and stored.node_name:
            self._start(stored)
        return stored

    def _store(self, obj: K) -> K:
        self._version += 1
        stored = obj.stored_as(str(self._version))
        self._objects[type(obj), obj.key] = stored
        return stored

    def _must_get(self, obj: K) -> K:
        found = self.get(type(obj), obj.key)
        if found is None:
            raise NotFound(f"{obj.kind or type(obj).__name__} {obj.key} not found")
        return found

    def _same_pod(self, pod: Pod) -> Pod:
        stored = self._must_get(pod)
        if stored.uid != pod.uid:
            raise Conflict(f"pod {pod.key} has another UID: {stored.uid}")
        return stored

    def _tell(self, news: Callable[[Watcher], None]) -> None:
        self._untold.append((news, self._watchers))
        self._loop.call_soon(self._tell_next)

    def _tell_next(self) -> None:
        news, watchers = self._untold.popleft()
        for watcher in watchers:
            try:
                news(watcher)
            except Exception as error:
                self._failed(watcher, error)

    def _failed(self, watcher: Watcher, error: Exception) -> None:
        """As in a callback of its own: the others are told all the same."""
        message = f"{type(watcher).__name__} failed"
        self._loop.call_exception_handler({"message": message, "exception": error})

    def _timestamp(self) -> datetime:
        return datetime.fromtimestamp(self._clock.now(), UTC)


def run_seconds(pod: Pod) -> float | None:
    """The run time in the pod's annotation; None if it has none and never finishes. Raises ValueError."""
    text = pod.metadata.annotations.get(RUN_SECONDS)
    return None if text is None else seconds_in(text, RUN_SECONDS)


def seconds_in(text: str, annotation: str) -> float:
    """The seconds in the value of an annotation. Raises ValueError."""
    if not _SECONDS.fullmatch(text):
        raise ValueError(
            f"metadata.annotations[{annotation}]: {text!r} is not a number of seconds;"
            ' write one such as "90" or "0.5"'
        )
    return float(text)


def _with_condition(pod: Pod, condition: PodCondition) -> list[PodCondition]:
    others = [known for known in pod.status.conditions if known.type != condition.type]
    return [*others, condition]
