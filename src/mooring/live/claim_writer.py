"""The scheduler's writes to resource claims, made to a real API server.

Changes are patches and not updates, because our objects have only the fields that mooring reads. A patch
has what differs between the claim that was read and the claim that is wanted, and fails if the claim was
changed in between. Fields that mooring does not know stay as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from mooring.errors import Conflict, NotFound
from mooring.live.client import JSON, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from mooring.live.decoding import decode_answer
from mooring.live.line import Priority
from mooring.live.resources import PODS
from mooring.objects.devices import (
    Allocation,
    ConsumerReference,
    ResourceClaim,
    ResourceClaimStatus,
)
from mooring.objects.kinds import KIND_OF
from mooring.objects.meta import encode_hook
from mooring.objects.pod import Pod, PodExtendedResourceClaimStatus

_CLAIMS = KIND_OF[ResourceClaim]


class Send(Protocol):
    """Makes a request when it is its turn; the body of the answer."""

    def __call__(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | None,
        content_type: str = JSON,
        *,
        priority: Priority,
    ) -> Awaitable[bytes]: ...


class LiveClaims:
    """A `framework.api.ClaimWriter`. Binds wait for these writes, so they come with the binds."""

    others_allocate = True

    def __init__(self, send: Send) -> None:
        self._send = send

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        return _decoded(await self._send("GET", _path(claim), None, priority=Priority.BIND))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        path, _, _ = _CLAIMS.path_of(claim.namespace, "any").rpartition("/")
        document = _plain(replace(claim, status=ResourceClaimStatus()))
        return _decoded(await self._send("POST", path, document, priority=Priority.BIND))

    async def set_finalizers(self, claim: ResourceClaim, finalizers: list[str]) -> ResourceClaim:
        metadata = {**_as_read(claim), "finalizers": finalizers or None}
        return await self._patch(_path(claim), {"metadata": metadata})

    async def set_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
        document = {"metadata": _as_read(claim), "status": status_changes(claim.status, status)}
        return await self._patch(f"{_path(claim)}/status", document)

    async def remove_reservation(self, claim: ResourceClaim, user: Pod | ConsumerReference) -> None:
        document = {
            "metadata": {"uid": claim.uid},
            "status": {"reservedFor": [{"$patch": "delete", "uid": user.uid}]},
        }
        path = f"{_path(claim)}/status"
        await self._send("PATCH", path, document, STRATEGIC_MERGE_PATCH, priority=Priority.BIND)

    async def delete(self, claim: ResourceClaim) -> None:
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": claim.uid},
        }
        try:
            await self._send("DELETE", _path(claim), options, priority=Priority.BIND)
        except Conflict as error:
            # Another claim has come under its name.
            raise NotFound(str(error), status=error.status, reason=error.reason) from error

    async def set_extended_resource_claim(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        document = {
            "metadata": {"uid": pod.uid},
            "status": {"extendedResourceClaimStatus": _plain(status)},
        }
        path = f"{PODS.path_of(pod.namespace, pod.name)}/status"
        await self._send("PATCH", path, document, STRATEGIC_MERGE_PATCH, priority=Priority.BIND)

    async def _patch(self, path: str, document: Mapping[str, Any]) -> ResourceClaim:
        answer = await self._send("PATCH", path, document, MERGE_PATCH, priority=Priority.BIND)
        return _decoded(answer)


def status_changes(before: ResourceClaimStatus, after: ResourceClaimStatus) -> dict[str, Any]:
    """What a merge patch must say to turn one status into the other; null removes a field."""
    changes: dict[str, Any] = {}
    if before.allocation != after.allocation:
        changes["allocation"] = _allocation_changes(before.allocation, after.allocation)
    if before.reserved_for != after.reserved_for:
        # Nothing of an entry is unknown to us. A list can only be replaced as a whole.
        changes["reservedFor"] = [_reference(each) for each in after.reserved_for] or None
    if before.devices != after.devices:
        changes["devices"] = [_plain(each) for each in after.devices] or None
    return changes


def _allocation_changes(before: Allocation | None, after: Allocation | None) -> Any:
    if before is None or after is None:
        return None if after is None else _plain(after)
    told, wanted = _plain(before), _plain(after)
    return {
        name: wanted.get(name)
        for name in told.keys() | wanted.keys()
        if told.get(name) != wanted.get(name)
    }


def _reference(entry: msgspec.Struct) -> dict[str, Any]:
    """The API requires these fields, even if they are empty."""
    return {"resource": "", "name": "", "uid": "", **_plain(entry)}


def _path(claim: ResourceClaim) -> str:
    return _CLAIMS.path_of(claim.namespace, claim.name)


def _as_read(claim: ResourceClaim) -> dict[str, Any]:
    """With the version that was read: the patch fails if the claim has changed since."""
    meta = claim.metadata
    return {"uid": meta.uid, "resourceVersion": meta.resource_version}


def _plain(value: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(value, enc_hook=encode_hook)
    return plain


def _decoded(answer: bytes) -> ResourceClaim:
    claim = decode_answer(answer, _CLAIMS)
    assert isinstance(claim, ResourceClaim)
    return claim
