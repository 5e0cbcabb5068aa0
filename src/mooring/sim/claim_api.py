"""The part of the simulated API server that stores resource claims.

It refuses what a real one refuses: a write to a claim that has changed since it was read, another
allocation for an allocated claim, a reservation without an allocation, a deallocation while a pod
uses the claim. A deleted claim stays until its last finalizer is gone.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from msgspec.structs import replace

from mooring.errors import ApiError, Conflict, Forbidden, NotFound
from mooring.objects.devices import ConsumerReference, ResourceClaim, ResourceClaimStatus
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodExtendedResourceClaimStatus
from mooring.objects.resource_claims import MOST_RESERVATIONS, with_finalizers

_INVALID = 422

K = TypeVar("K", bound=KubeObject)


class Store(Protocol):
    """Where claims and pods are kept."""

    def get(self, kind: type[K], key: str) -> K | None: ...
    def create(self, obj: K) -> K: ...
    def update(self, obj: K) -> K: ...
    def delete(self, obj: KubeObject) -> None:
        """As users delete: an object with finalizers stays until they are gone."""
        ...

    def remove(self, stored: KubeObject) -> None: ...
    def with_generated_name(self, obj: K) -> K: ...


class StoredClaims:
    """A `framework.api.ClaimWriter`."""

    #: A simulation has one scheduler, unless a test starts two.
    others_allocate = False

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        return self._stored(claim)

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """The status cannot be set when a claim is created."""
        named = self._store.with_generated_name(replace(claim, status=ResourceClaimStatus()))
        return self._store.create(named)

    async def set_finalizers(self, claim: ResourceClaim, finalizers: list[str]) -> ResourceClaim:
        stored = self._unchanged(claim)
        changed = with_finalizers(stored, finalizers)
        if not finalizers and stored.terminating:
            self._store.remove(stored)
            return changed
        return self._store.update(changed)

    async def set_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
        stored = self._unchanged(claim)
        _check(stored, status)
        return self._store.update(replace(stored, status=status))

    async def remove_reservation(self, claim: ResourceClaim, user: Pod | ConsumerReference) -> None:
        stored = self._same(claim)
        others = [known for known in stored.status.reserved_for if known.uid != user.uid]
        if len(others) < len(stored.status.reserved_for):
            status = replace(stored.status, reserved_for=others)
            self._store.update(replace(stored, status=status))

    async def delete(self, claim: ResourceClaim) -> None:
        self._store.delete(self._same(claim))

    async def set_extended_resource_claim(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        stored = self._store.get(Pod, pod.key)
        if stored is None or stored.uid != pod.uid:
            raise NotFound(f'pods "{pod.name}" not found')
        self._store.update(stored.with_status(extended_resource_claim_status=status))

    def _stored(self, claim: ResourceClaim) -> ResourceClaim:
        stored = self._store.get(ResourceClaim, claim.key)
        if stored is None:
            raise NotFound(f'resourceclaims.resource.k8s.io "{claim.name}" not found')
        return stored

    def _same(self, claim: ResourceClaim) -> ResourceClaim:
        stored = self._stored(claim)
        if stored.uid != claim.uid:
            raise Conflict(f"resourceclaim {claim.key} has another UID: {stored.uid}")
        return stored

    def _unchanged(self, claim: ResourceClaim) -> ResourceClaim:
        stored = self._same(claim)
        if stored.metadata.resource_version != claim.metadata.resource_version:
            raise Conflict(f"resourceclaim {claim.key} has been modified")
        return stored


def _check(stored: ResourceClaim, status: ResourceClaimStatus) -> None:
    """Raises ApiError if an API server would not store the status."""
    before, after = stored.status.allocation, status.allocation
    added = [user for user in status.reserved_for if user not in stored.status.reserved_for]
    if stored.terminating and (added or (after is not None and before is None)):
        raise Forbidden(f"resourceclaim {stored.key} is being deleted")
    if after is None and status.reserved_for:
        raise _invalid(stored, "status.reservedFor: may not be specified when not allocated")
    if before is not None and after is not None and before != after:
        timed = replace(before, allocation_timestamp=after.allocation_timestamp)
        if before.allocation_timestamp is not None or timed != after:
            raise _invalid(stored, "status.allocation: field is immutable")
    if len(status.reserved_for) > MOST_RESERVATIONS:
        raise _invalid(stored, f"status.reservedFor: must have at most {MOST_RESERVATIONS} items")
    uids = [user.uid for user in status.reserved_for]
    for index, uid in enumerate(uids):
        if uid in uids[:index]:
            raise _invalid(stored, f'status.reservedFor[{index}]: Duplicate value: "{uid}"')


def _invalid(claim: ResourceClaim, problem: str) -> ApiError:
    text = f'ResourceClaim.resource.k8s.io "{claim.name}" is invalid: {problem}'
    return ApiError(text, status=_INVALID, reason="Invalid")
