"""The writes of a scheduler to the API server, including Events."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

from mooring.objects.devices import ConsumerReference, ResourceClaim, ResourceClaimStatus
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from mooring.objects.pod_groups import PodGroup

K = TypeVar("K", bound=KubeObject)


class PodStatusPatch(msgspec.Struct, frozen=True):
    """A change of a pod's status; None means no change."""

    condition: PodCondition | None = None
    #: An empty name clears the nomination.
    nominated_node_name: str | None = None


class Event(msgspec.Struct, frozen=True):
    """An Event about a pod (events.k8s.io/v1). A struct is made many times as fast as a frozen dataclass."""

    regarding: Pod
    #: Normal or Warning.
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str = ""
    #: The pod or pod group on whose behalf it happened.
    related: Pod | PodGroup | None = None


class ClaimWriter(Protocol):
    """The writes to resource claims. They raise ApiError, and return the claim as stored.

    Changes say what the claim was when it was read, and what it is to be: they raise Conflict if
    someone has written to it since.
    """

    @property
    def others_allocate(self) -> bool:
        """Whether other schedulers may allocate devices at the same time, and the watch shows it."""
        ...

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim as it is now; NotFound if there is none of this name."""
        ...

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim; the API server gives it a name from `generateName`, and a UID."""
        ...

    async def set_finalizers(self, claim: ResourceClaim, finalizers: list[str]) -> ResourceClaim:
        """A claim that is being deleted is gone when its last finalizer is."""
        ...

    async def set_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
        """Change allocation, reservations and device statuses."""
        ...

    async def remove_reservation(self, claim: ResourceClaim, user: Pod | ConsumerReference) -> None:
        """Take the pod or pod group out of `reservedFor`, also if the claim has changed otherwise."""
        ...

    async def delete(self, claim: ResourceClaim) -> None: ...

    async def set_extended_resource_claim(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        """Say in the pod's status which claim serves its extended resources."""
        ...


class ApiWriter(Protocol):
    """The writes of a scheduler. They raise ApiError; only `record_event` never fails."""

    @property
    def claims(self) -> ClaimWriter: ...
    async def bind(self, pod: Pod, node_name: str) -> None: ...
    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None: ...
    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None: ...
    async def delete_pod(self, pod: Pod) -> None: ...
    async def update_object(self, obj: K) -> K:
        """Update an object of a writable kind. Return it as stored, with its new resource version.

        Raises Conflict if the object has changed since it was read.
        """
        ...

    def record_event(self, event: Event) -> None: ...
