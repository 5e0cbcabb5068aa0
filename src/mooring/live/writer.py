"""The scheduler's writes, made to a real API server.

A bind is the one write that must not be made twice nor be believed undone when it was done: an answer that
was lost is asked for until there is one, and meanwhile the pod keeps its place.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from mooring.errors import (
    ApiError,
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
from mooring.live.client import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH, ApiClient, always
from mooring.live.decoding import decode_object
from mooring.live.event_recorder import EventRecorder
from mooring.live.rate_limit import Priority
from mooring.live.resources import CLAIMS, PODS, VOLUMES, ApiResource
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim

_LOG = logging.getLogger(__name__)

#: The pauses between the four tries of a status patch, and how much longer they are by chance.
_PATCH_PAUSES_S = (0.01, 0.05, 0.25)
_PATCH_JITTER = 0.1
#: What is worth another try, beside conflicts and a server that cannot be reached.
_TRANSIENT = frozenset((500, 503))

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
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._traffic = traffic
        self._clock = clock
        self._rng = rng
        self._may_write = may_write
        #: The last status patch under way for each pod, by UID; done when it has ended.
        self._patches: dict[str, asyncio.Future[None]] = {}

    # Binding

    async def bind(self, pod: Pod, node_name: str) -> None:
        """Raises Conflict if the pod has another node, NotFound if it is gone."""
        if pod.uid in self._patches:
            # Or a bound pod might be told that it fits nowhere.
            await asyncio.wait((self._patches[pod.uid],))
        with self._traffic:
            try:
                await self._post_binding(pod, node_name)
            except Unanswered as error:
                if not error.maybe_done:
                    raise
                await self._settle(pod, node_name)
            except ServerUnavailable as error:
                if error.status == _GATEWAY_TIMEOUT:
                    await self._settle(pod, node_name)
                elif not await self._was_bound(pod, node_name):
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
        await self._send("POST", path, binding, priority=Priority.BIND)

    async def _settle(self, pod: Pod, node_name: str) -> None:
        """Whether the pod was bound is not known: find out, and bind it if it was not.

        Binding again is the only way to be sure. Just looking is not enough: a request may be slow and
        not lost, and then arrive after all, when the place is already somebody else's.
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
                _LOG.info("whether pod %s was bound is not known yet: %s", pod.key, error)
            if refusals > _MOST_REFUSALS:
                raise ServerUnavailable(f"whether pod {pod.key} was bound could not be found out")
            pause_s = min(_FIRST_LOOK_S * 2.0 ** min(look, 16), _LONGEST_LOOK_S)
            await sleep(self._clock, pause_s * (1.0 + self._rng.random()))

    async def _was_bound(self, pod: Pod, node_name: str) -> bool:
        """Raises Conflict if it cannot be any more, NotFound if it is gone."""
        text = await self._client.request("GET", _path(PODS, pod), priority=Priority.BIND)
        stored = decode_object(text, PODS)
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
        """Patches of one pod arrive in the order in which they were made.

        Else the nomination that an attempt takes back might undo that of the attempt after it.
        """
        before = self._patches.get(pod.uid)
        ended = self._patches[pod.uid] = asyncio.get_running_loop().create_future()
        try:
            if before is not None:
                await asyncio.wait((before,))
            await self._patch_status(pod, patch)
        finally:
            ended.set_result(None)
            if self._patches[pod.uid] is ended:
                del self._patches[pod.uid]

    async def _patch_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        status: dict[str, Any] = {}
        if patch.condition is not None:
            status["conditions"] = [self._condition(pod, patch.condition)]
        if patch.nominated_node_name is not None:
            status["nominatedNodeName"] = patch.nominated_node_name or None
        # With its UID, so that a pod that has come under the same name is left alone.
        document = {"metadata": {"uid": pod.uid}, "status": status}
        path = f"{_path(PODS, pod)}/status"
        for pause_s in _PATCH_PAUSES_S:
            try:
                await self._send("PATCH", path, document, STRATEGIC_MERGE_PATCH)
                return
            except (Conflict, ServerUnavailable) as error:
                if not _worth_another_try(error):
                    raise
            await sleep(self._clock, pause_s * (1.0 + _PATCH_JITTER * self._rng.random()))
        await self._send("PATCH", path, document, STRATEGIC_MERGE_PATCH)

    def _condition(self, pod: Pod, condition: PodCondition) -> dict[str, Any]:
        """Fields that are not named stay as they are, so the time is named only when it changes."""
        document: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
        if condition.observed_generation:
            document["observedGeneration"] = condition.observed_generation
        known = pod.condition(condition.type)
        if known is None or known.status != condition.status:
            document["lastTransitionTime"] = _timestamp(self._clock.now())
        return document

    async def delete_pod(self, pod: Pod) -> None:
        """Raises NotFound if it is gone, also if another pod has come under its name."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": pod.uid},
        }
        try:
            await self._send("DELETE", _path(PODS, pod), options)
        except Conflict as error:
            raise NotFound(str(error), status=error.status, reason=error.reason) from error

    async def update_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Writes the claim it is for and its annotations: nothing else of a volume is ours to change."""
        changes = _annotated(volume)
        if volume.spec.claim_ref is not None:
            changes["spec"] = {"claimRef": volume.spec.claim_ref}
        stored = await self._merge(VOLUMES, volume, changes)
        assert isinstance(stored, PersistentVolume)
        return stored

    async def update_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Writes its annotations: nothing else of a claim is ours to change."""
        stored = await self._merge(CLAIMS, claim, _annotated(claim))
        assert isinstance(stored, PersistentVolumeClaim)
        return stored

    async def _merge(
        self, resource: ApiResource, obj: KubeObject, changes: Mapping[str, Any]
    ) -> KubeObject:
        """A patch and not an update: our objects have only the fields that mooring reads."""
        text = await self._send("PATCH", _path(resource, obj), changes, MERGE_PATCH)
        return decode_object(text, resource)

    def record_event(self, event: Event) -> None:
        self._recorder.record(event)

    async def _send(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any],
        content_type: str = JSON,
        *,
        priority: Priority = Priority.NORMAL,
    ) -> bytes:
        return await self._client.request(
            method,
            path,
            body=msgspec.json.encode(document),
            content_type=content_type,
            priority=priority,
            may_send=self._may_write,
        )


def _path(resource: ApiResource, obj: KubeObject) -> str:
    return resource.path_of(obj.namespace, obj.name)


def _worth_another_try(error: ApiError) -> bool:
    return isinstance(error, Conflict | Unanswered) or error.status in _TRANSIENT


def _annotated(obj: KubeObject) -> dict[str, Any]:
    """All annotations, on condition that nobody has written since they were read."""
    meta = obj.metadata
    return {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": meta.annotations,
        }
    }


def _timestamp(now_s: float) -> str:
    return datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
