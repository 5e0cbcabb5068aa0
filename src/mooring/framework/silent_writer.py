"""A writer that writes nothing: for callers that only need the decision."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from mooring.framework.api import ClaimWriter, Event, PodStatusPatch
from mooring.objects.devices import ConsumerReference, ResourceClaim, ResourceClaimStatus
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from mooring.objects.pod_groups import PodGroup
from mooring.objects.resource_claims import with_finalizers

K = TypeVar("K", bound=KubeObject)


class SilentClaims:
    """Answers as if claims were written."""

    others_allocate = False

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        return claim

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        return claim

    async def set_finalizers(self, claim: ResourceClaim, finalizers: list[str]) -> ResourceClaim:
        return with_finalizers(claim, finalizers)

    async def set_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
        return replace(claim, status=status)

    async def remove_reservation(self, claim: ResourceClaim, user: Pod | ConsumerReference) -> None:
        pass

    async def delete(self, claim: ResourceClaim) -> None:
        pass

    async def set_extended_resource_claim(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        pass


class SilentWriter:
    def __init__(self) -> None:
        self.claims: ClaimWriter = SilentClaims()

    async def bind(self, pod: Pod, node_name: str) -> None:
        pass

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        pass

    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None:
        pass

    async def delete_pod(self, pod: Pod) -> None:
        pass

    async def update_object(self, obj: K) -> K:
        return obj

    def record_event(self, event: Event) -> None:
        pass
