"""The scheduler's writes, made to a real API server.

A bind is the one write that must not be made twice nor be believed undone when it was done: an answer that
was lost is asked for until there is one, and meanwhile the pod keeps its place. What is said about a pod's
status is written by `StatusPatches`.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from mooring.errors import (
    Conflict,
    Forbidden,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
    Unanswered,
    Unauthorized,
)
from mooring.framework.api import Event, PodStatusPatch
from mooring.framework.clock import Clock, sleep
from mooring.live.bind_traffic import BindTraffic
from mooring.live.claim_writer import LiveClaims
from mooring.live.client import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiClient, always
from mooring.live.decoding import decode_answer
from mooring.live.event_recorder import EventRecorder
from mooring.live.line import Priority
from mooring.live.resources import PODS
from mooring.live.status_patches import StatusPatches
from mooring.live.write_metrics import KINDS, WriteMetrics
from mooring.objects.kinds import KIND_OF, Kind
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_groups import PodGroup
from mooring.objects.storage import PersistentVolume

_LOG = logging.getLogger(__name__)

K = TypeVar("K", bound=KubeObject)

#: The pauses between two looks at whether a bind was made: the first, and the longest.
_FIRST_LOOK_S = 0.1
_LONGEST_LOOK_S = 5.0
#: An API server that has just started may refuse everyone for a moment; this often, it means it.
_MOST_REFUSALS = 10

#: The API server gave up waiting for its own answer, which may yet come.
_GATEWAY_TIMEOUT = 504


class LiveWriter:
    """A `framework.api.ApiWriter`."""

    def __init__(
        self,
        client: ApiClient,
        recorder: EventRecorder,
        traffic: BindTraffic,
        *,
        clock: Clock,
        rng: random.Random,
        may_write: Callable[[], bool] = always,
        metrics: WriteMetrics | None = None,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._traffic = traffic
        self._clock = clock
        self._rng = rng
        self._may_write = may_write
        self._metrics = metrics or WriteMetrics()
        self._patches = StatusPatches(
            client, clock=clock, rng=rng, may_write=may_write, metrics=metrics, traffic=traffic
        )
        self.claims = LiveClaims(self._send)
        #: UID → the deletion of a pod, until the API server shows that it is gone.
        self._deleting: dict[str, asyncio.Future[None]] = {}
        #: UID → whether the pod is gone, for each pod whose bind waits or is under way.
        self._binding: dict[str, bool] = {}

    def pod_gone(self, uid: str) -> None:
        """The API server has shown that the pod is gone, and nothing more is written to it."""
        self._patches.forget(uid)
        self._deleting.pop(uid, None)
        if uid in self._binding:
            self._binding[uid] = True

    async def close(self) -> int:
        """Write no more to any pod's status; how many patches are dropped."""
        return await self._patches.close()

    # Binding

    async def settle(self, pod: Pod) -> None:
        """Before somebody else binds the pod: its status is written before that, or not at all."""
        await self._patches.settle(pod.uid)

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Raises Conflict if the pod has another node, NotFound if it is gone."""
        self._binding[pod.uid] = False
        try:
            await self._patches.settle(pod.uid)
            with self._traffic:
                await self._bind(pod, node_name)
        finally:
            self._binding.pop(pod.uid, None)

    async def _bind(self, pod: Pod, node_name: str) -> None:
        try:
            await self._post_binding(pod, node_name)
        except Unanswered as error:
            if not error.maybe_done:
                raise
            await self._settle(pod, node_name)
        except Conflict:
            # Perhaps with this very bind: a proxy in front of the API server may send it twice.
            if not await self._is_bound_after_all(pod, node_name):
                raise
        except ServerUnavailable as error:
            if error.status == _GATEWAY_TIMEOUT:
                await self._settle(pod, node_name)
            elif not await self._is_bound_after_all(pod, node_name):
                raise

    async def _post_binding(self, pod: Pod, node_name: str) -> None:
        meta = pod.metadata
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": meta.namespace, "name": meta.name, "uid": meta.uid},
            "target": {"kind": "Node", "name": node_name},
        }
        path = f"{_path(PODS, pod)}/binding"

        def may_bind() -> bool:
            self._client.hear()
            if self._binding.get(meta.uid):
                raise NotFound(f'pods "{meta.name}" not found: it is gone', status=404)
            return self._may_write()

        await self._send("POST", path, binding, priority=Priority.BIND, may_send=may_bind)

    async def _settle(self, pod: Pod, node_name: str) -> None:
        """Whether the pod was bound is not known: find out, and bind it if it was not.

        Binding again is the only way to be sure. Reading the pod is not enough: a request may be slow
        and not lost, and arrive when another pod already has the place.
        """
        refusals = 0
        for look in itertools.count():
            try:
                if await self._was_bound(pod, node_name):
                    return
                with suppress(Conflict):
                    # A conflict is most likely with the request that was taken for lost.
                    await self._post_binding(pod, node_name)
                    return
                refusals += 1
            except (Unauthorized, Forbidden):
                refusals += 1
            except (ServerUnavailable, TooManyRequests) as error:
                _LOG.info("not known yet whether pod %s was bound: %s", pod.key, error)
            if refusals > _MOST_REFUSALS:
                raise ServerUnavailable(f"cannot find out whether pod {pod.key} was bound")
            await self._pause(look)

    async def _is_bound_after_all(self, pod: Pod, node_name: str) -> bool:
        """Ask until there is an answer: as long as it is not known, the pod keeps its place."""
        refusals = 0
        for look in itertools.count():
            try:
                return await self._was_bound(pod, node_name)
            except (Conflict, NotFound):
                return False
            except (Unauthorized, Forbidden) as error:
                # Credentials that have just expired say nothing about the bind.
                refusals += 1
                if refusals > _MOST_REFUSALS:
                    return False
                _LOG.info("not known yet whether pod %s was bound: %s", pod.key, error)
            except (ServerUnavailable, TooManyRequests) as error:
                _LOG.info("not known yet whether pod %s was bound: %s", pod.key, error)
            await self._pause(look)
        raise AssertionError("there is no last look")

    async def _pause(self, look: int) -> None:
        pause_s = min(_FIRST_LOOK_S * 2.0 ** min(look, 16), _LONGEST_LOOK_S)
        await sleep(self._clock, pause_s * (1.0 + self._rng.random()))

    async def _was_bound(self, pod: Pod, node_name: str) -> bool:
        """Raises Conflict if it cannot be any more, NotFound if it is gone."""
        text = await self._client.request("GET", _path(PODS, pod), priority=Priority.BIND)
        stored = decode_answer(text, PODS)
        assert isinstance(stored, Pod)
        if stored.uid != pod.uid:
            raise NotFound(f'pods "{pod.name}" not found: another pod has its name')
        if stored.node_name == node_name:
            return True
        if stored.node_name:
            raise Conflict(f'pod {pod.name} is already assigned to node "{stored.node_name}"')
        if stored.terminating:
            raise Conflict(f"pod {pod.name} is being deleted, cannot be assigned to a host")
        return False

    # Other writes

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        """Return when it is written, or when something newer has taken its place."""
        await self._patches.patch(pod, patch)

    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None:
        known = group.condition(condition.type)
        since = known.last_transition_time if known is not None else None
        if known is None or known.status != condition.status or since is None:
            since = datetime.fromtimestamp(int(self._clock.now()), UTC)
        document = {
            "metadata": {"uid": group.uid},
            "status": {"conditions": [_condition_document(condition, since)]},
        }
        path = f"{_path(KIND_OF[PodGroup], group)}/status"
        await self._send(
            "PATCH", path, document, STRATEGIC_MERGE_PATCH, priority=Priority.CONDITION
        )

    async def delete_pod(self, pod: Pod) -> None:
        """Raises NotFound if it is gone, also if another pod has come under its name.

        A pod that is being deleted is not deleted again: later calls get the result of the first.
        """
        deletion = self._deleting.get(pod.uid)
        if deletion is None:
            deletion = self._deleting[pod.uid] = asyncio.ensure_future(self._delete(pod))
            deletion.add_done_callback(lambda done: self._deleted(pod.uid, done))
        await asyncio.shield(deletion)

    def _deleted(self, uid: str, deletion: asyncio.Future[None]) -> None:
        """One that failed may be tried again; one that succeeded is remembered until it shows."""
        if deletion.cancelled() or deletion.exception() is not None:
            self._deleting.pop(uid, None)

    async def _delete(self, pod: Pod) -> None:
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": pod.uid},
        }
        try:
            await self._send("DELETE", _path(PODS, pod), options, priority=Priority.EVICTION)
        except Conflict as error:
            raise NotFound(str(error), status=error.status, reason=error.reason) from error

    async def update_object(self, obj: K) -> K:
        """Writes the annotations, and the claim of a volume: nothing else is ours to change.

        A patch and not an update, because our objects have only the fields that mooring reads.
        """
        changes = _annotated(obj)
        if isinstance(obj, PersistentVolume) and obj.spec.claim_ref is not None:
            changes["spec"] = {"claimRef": obj.spec.claim_ref}
        kind = KIND_OF[type(obj)]
        # A bind waits for it.
        text = await self._send(
            "PATCH", _path(kind, obj), changes, MERGE_PATCH, priority=Priority.BIND
        )
        stored = decode_answer(text, kind)
        assert isinstance(stored, type(obj))
        return stored

    def record_event(self, event: Event) -> None:
        self._recorder.record(event)

    async def _send(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | None,
        content_type: str = JSON,
        *,
        priority: Priority,
        may_send: Callable[[], bool] | None = None,
    ) -> bytes:
        kind, asked_at = KINDS[priority], self._clock.now()
        waits = True

        def waits_no_more() -> None:
            nonlocal waits
            if waits:
                waits = False
                self._metrics.write_waits(kind, -1)
                self._metrics.write_waited(kind, max(0.0, self._clock.now() - asked_at))

        def may_send_now() -> bool:
            waits_no_more()
            return (may_send or self._may_write)()

        self._metrics.write_waits(kind, 1)
        try:
            return await self._client.request(
                method,
                path,
                body=None if document is None else msgspec.json.encode(document),
                content_type=content_type,
                priority=priority,
                may_send=may_send_now,
            )
        finally:
            waits_no_more()


def _path(kind: Kind, obj: KubeObject) -> str:
    return kind.path_of(obj.namespace, obj.name)


def _condition_document(condition: PodCondition, since: datetime) -> dict[str, Any]:
    """All fields, because an API server keeps the ones that a patch does not have."""
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
        "lastTransitionTime": since.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _annotated(obj: KubeObject) -> dict[str, Any]:
    """All annotations, with the version that was read: the patch fails if the object has changed since."""
    meta = obj.metadata
    return {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": meta.annotations,
        }
    }
