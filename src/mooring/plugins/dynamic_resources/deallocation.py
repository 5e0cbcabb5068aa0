"""Give devices back: those that keep a pod from being scheduled, and those that an attempt took."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from mooring.objects.devices import ConsumerReference, ResourceClaim, ResourceClaimStatus
from mooring.objects.pod import Pod
from mooring.objects.resource_claims import (
    is_pod_group,
    is_reserved_for,
    is_used_by_nobody_but,
    without_finalizer,
)
from mooring.plugin import ApiError, Conflict, Handle, Status, sleep, unresolvable, unschedulable
from mooring.plugins.dynamic_resources.extended_resources import is_in_memory
from mooring.plugins.dynamic_resources.pod_claims import PodClaims

_LOG = logging.getLogger(__name__)

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
NOTHING_TO_DEALLOCATE = unschedulable("no new claims to deallocate")
DEALLOCATED = unschedulable("deallocation of ResourceClaim completed")
DELETED = unschedulable("deletion of ResourceClaim completed")
UNRESERVED = unresolvable("ResourceClaim unreserved for PodGroup")
STILL_NOT_SCHEDULABLE = unschedulable("still not schedulable")

#: How often a write is repeated after a conflict, and the pause in between.
MOST_TRIES = 5
PAUSE_S = 0.01
#: How long a pod waits that could not be helped, because of an API error.
_AFTER_FAILURE_S = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How PostFilter would help a pod."""

    status: Status
    #: The claim to deallocate, or the one to delete.
    deallocate: ResourceClaim | None = None
    delete: ResourceClaim | None = None
    #: A claim that is to be given back by a group none of whose pods has a node, and that group.
    unreserve: tuple[ResourceClaim, ConsumerReference] | None = None


class Deallocation:
    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._cache = handle.cluster.claims

    # PostFilter

    def plan(self, claims: PodClaims, pod: Pod) -> Plan:
        """A claim that is idle and of no use on some node is deallocated, the first one.

        The reference takes any of them at random.
        """
        if not claims.claims:
            return Plan(NOTHING_TO_DEALLOCATE)
        extended = claims.extended
        left_over = extended if extended is not None and not is_in_memory(extended) else None
        for index in sorted(claims.unavailable):
            claim = claims.claims[index]
            if index == claims.extended_at or claim.status.allocation is None:
                continue
            if is_used_by_nobody_but(claim, pod):
                return Plan(DEALLOCATED, deallocate=claim)
            user = claims.users[index]
            if is_pod_group(user) and is_reserved_for(claim, user) and self._is_idle(pod.group_key):
                return Plan(UNRESERVED, unreserve=(claim, user))
        if left_over is not None:
            return Plan(DELETED, delete=left_over)
        return Plan(STILL_NOT_SCHEDULABLE)

    def _is_idle(self, group_key: str) -> bool:
        """Whether no pod of the group has a node."""
        groups = self._handle.cluster.pod_groups
        if groups is None or group_key not in groups:
            return True
        return groups.get(group_key).scheduled_count == 0

    def help_pod(self, claims: PodClaims, pod: Pod) -> Status:
        """Carry the plan out beside the scheduling cycle. The event of the claim wakes the pod."""
        plan = self.plan(claims, pod)
        if plan != Plan(plan.status):
            self._handle.spawn(self.carry_out(plan, pod))
        return plan.status

    async def carry_out(self, plan: Plan, pod: Pod) -> None:
        """Write what the plan says. If that fails, the pod is tried again."""
        try:
            if plan.deallocate is not None:
                await self._handle.writer.claims.set_status(plan.deallocate, ResourceClaimStatus())
            if plan.delete is not None:
                await self._delete(plan.delete)
            if plan.unreserve is not None:
                await self._handle.writer.claims.remove_reservation(*plan.unreserve)
        except ApiError as error:
            # The reference ends the attempt with this error, and the pod is tried again.
            _LOG.warning("pod %s: a claim could not be given back: %s", pod.key, error)
            await sleep(self._handle.clock, _AFTER_FAILURE_S)
            self._handle.activate({pod.key: pod})

    # Unreserve

    def undo(self, claims: PodClaims, pod: Pod) -> None:
        """Forget what was chosen, and take back the reservations that were written."""
        for claim in claims.user_claims():
            if self._cache.withdraw(claim.uid):
                self._cache.restore(claim.key)
            if claim.status.allocation is not None and is_reserved_for(claim, pod):
                self._handle.spawn(self._remove_reservation(claim, pod))
        extended = claims.extended
        if extended is not None:
            if self._cache.withdraw(claims.extended_uid):
                self._cache.restore(extended.key)
            if not is_in_memory(extended):
                self._handle.spawn(self._delete_quietly(extended))

    async def _remove_reservation(self, claim: ResourceClaim, pod: Pod) -> None:
        try:
            await self._handle.writer.claims.remove_reservation(claim, pod)
        except ApiError as error:
            # The next attempt at this pod starts from the reservation.
            _LOG.warning("claim %s stays reserved for pod %s: %s", claim.key, pod.key, error)

    async def _delete_quietly(self, claim: ResourceClaim) -> None:
        try:
            await self._delete(claim)
        except ApiError as error:
            # The next attempt at this pod finds the claim and deletes it.
            _LOG.warning("claim %s could not be deleted: %s", claim.key, error)

    async def _delete(self, claim: ResourceClaim) -> None:
        """Remove the finalizer, then the claim. Raises ApiError."""
        writer = self._handle.writer.claims
        current = claim
        for tries in range(1, MOST_TRIES + 1):
            try:
                finalizers = without_finalizer(current.metadata.finalizers)
                current = await writer.set_finalizers(current, finalizers)
                break
            except Conflict:
                if tries == MOST_TRIES:
                    raise
                await sleep(self._handle.clock, PAUSE_S)
                current = await writer.get(claim)
        await writer.delete(current)
