"""Write a pod's allocations and reservations to the API server, and wait for its devices.

For each claim that is not reserved for the pod yet, in this order:

    [create the claim for extended resources] → [add the finalizer] → allocation and reservation
    → [see that no other scheduler gave the devices away] → [name the claim for extended resources in
    the pod's status]

The devices stay in flight until it is known what was stored. If an answer is lost, the claim is read
and written again until there is an answer: a device that a lost write has allocated after all must
not be given to another pod.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from mooring.objects.devices import (
    CLAIM_FINALIZER,
    Allocation,
    ConsumerReference,
    ResourceClaim,
    ResourceClaimStatus,
)
from mooring.objects.pod import Pod, PodExtendedResourceClaimStatus
from mooring.objects.resource_claims import (
    BindingConditionFailed,
    has_binding_conditions,
    has_timed_out,
    is_ready,
    is_reserved_for,
    not_found,
)
from mooring.plugin import (
    ApiError,
    Conflict,
    Event,
    Handle,
    ServerUnavailable,
    Unanswered,
    sleep,
)
from mooring.plugin.devices import UnknownClaimError
from mooring.plugin.storage import AssumeError
from mooring.plugins.dynamic_resources.contests import ClaimBindingFailed, Contests
from mooring.plugins.dynamic_resources.deallocation import MOST_TRIES, PAUSE_S
from mooring.plugins.dynamic_resources.extended_resources import is_in_memory
from mooring.plugins.dynamic_resources.pod_claims import PodClaims

#: The pauses between two looks at what became of a write whose answer was lost.
_FIRST_LOOK_S = 0.1
_LONGEST_LOOK_S = 5.0

#: The API server gave up waiting for its own answer, which may yet come.
_GATEWAY_TIMEOUT = 504

#: How often to look for a new claim in the watch, and for how long.
_SHOWN_POLL_S = 1.0
_SHOWN_POLLS = 120
#: How often to look whether devices are ready.
_READY_POLL_S = 5.0

PENDING_REASON = "BindingConditionsPending"
PENDING_NOTE = "waiting for binding conditions for device on node {}"


class ClaimBinder:
    def __init__(self, handle: Handle, *, binding_timeout_s: float | None) -> None:
        self._handle = handle
        self._cache = handle.cluster.claims
        #: None if the gates of binding conditions are off.
        self._timeout_s = binding_timeout_s
        self._contests = Contests(handle)
        #: Claims that are being written.
        self._writing: set[asyncio.Task[None]] = set()

    def close(self) -> None:
        """The scheduler ends: do not wait for answers any more."""
        for task in self._writing:
            task.cancel()

    async def write(self, claims: PodClaims, pod: Pod, node_name: str) -> None:
        """Raises ClaimBindingFailed. Unreserve undoes what was written."""
        for index, claim in enumerate(claims.claims):
            if not is_reserved_for(claim, pod) and not is_reserved_for(claim, claims.users[index]):
                await self._carry_through(self._bind_claim(claims, index, pod, node_name))

    async def _carry_through(self, work: Coroutine[Any, Any, None]) -> None:
        """Do all of the work, even if PreBind is cancelled: what was written must be known first.

        PreBind is cancelled by every pod that preempts this one, so it may happen more than once.
        """
        task = asyncio.ensure_future(work)
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        cancelled: asyncio.CancelledError | None = None
        while not task.done():
            try:
                await asyncio.wait((task,))
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is None:
            return task.result()
        if not task.cancelled():
            task.exception()
        raise cancelled

    async def _bind_claim(self, claims: PodClaims, index: int, pod: Pod, node_name: str) -> None:
        claim, user = claims.claims[index], claims.users[index]
        allocation = claims.chosen[index] if claims.chosen else None
        extended = index == claims.extended_at
        in_flight = claims.extended_uid if extended else claim.uid
        if extended and allocation is None and not claim.spec.devices.requests:
            return  # The node itself offers the resources.
        found = claims.by_node.get(node_name)
        if extended and found is not None and not found.mappings and is_in_memory(claim):
            # No resource needs a device on this node. The reference creates a claim without requests
            # here, and then fails as there is nothing to tell the pod about it.
            self._cache.withdraw(in_flight)
            return
        assumed = False
        try:
            if extended and is_in_memory(claim):
                claim = claims.claims[index] = await self._create(claims, node_name)
            contested = allocation is not None and index not in claims.reused
            if contested and self._handle.writer.claims.others_allocate:
                stored = await self._contests.win(
                    claim, node_name, lambda: self._store(claim, allocation, user)
                )
            else:
                stored = await self._store(claim, allocation, user)
            claims.claims[index] = stored
            assumed = await self._assume(stored, waits=extended)
            if extended:
                await self._tell_pod(claims, stored, pod, node_name)
        finally:
            if allocation is not None:
                self._cache.withdraw(in_flight, force=assumed)

    async def _create(self, claims: PodClaims, node_name: str) -> ResourceClaim:
        found = claims.by_node.get(node_name)
        if found is None or found.extended is None:
            raise ClaimBindingFailed(f"extended resource claim not found for node {node_name}")
        metadata = replace(found.extended.metadata, name="", uid="")
        wanted = replace(found.extended, metadata=metadata)
        try:
            return await self._handle.writer.claims.create(wanted)
        except ApiError as error:
            raise ClaimBindingFailed(
                f"create claim for extended resources {wanted.namespace}/: {error}"
            ) from error

    async def _assume(self, stored: ResourceClaim, *, waits: bool) -> bool:
        """Let others see the claim as stored. The watch may not have shown a new claim yet."""
        for polls in itertools.count():
            try:
                self._cache.assume(stored)
            except UnknownClaimError:
                if not waits or polls >= _SHOWN_POLLS:
                    return False
            except AssumeError:
                # The watch has shown a newer version.
                return False
            else:
                return True
            await sleep(self._handle.clock, _SHOWN_POLL_S)
        raise AssertionError

    async def _tell_pod(
        self, claims: PodClaims, claim: ResourceClaim, pod: Pod, node_name: str
    ) -> None:
        found = claims.by_node.get(node_name)
        status = PodExtendedResourceClaimStatus(
            request_mappings=[] if found is None else found.mappings,
            resource_claim_name=claim.name,
        )
        try:
            await self._handle.writer.claims.set_extended_resource_claim(pod, status)
        except ApiError as error:
            raise ClaimBindingFailed(
                f"update pod {pod.key} ExtendedResourceClaimStatus: {error}"
            ) from error

    # The claim itself

    async def _store(
        self, claim: ResourceClaim, allocation: Allocation | None, user: ConsumerReference
    ) -> ResourceClaim:
        """The claim as stored, allocated and reserved for the user. Raises ClaimBindingFailed."""
        conflicts, lost = 0, 0
        current = claim
        while True:
            try:
                return await self._store_once(current, allocation, user)
            except _Retry as retry:
                failed = retry
            if isinstance(failed.error, Conflict):
                conflicts += 1
                if conflicts >= MOST_TRIES:
                    raise ClaimBindingFailed(failed.text) from failed.error
                await sleep(self._handle.clock, PAUSE_S)
            else:
                lost += 1
                await sleep(self._handle.clock, _pause_s(lost))
            current = await self._read_again(claim, until_answered=lost > 0)
            if _is_ours(current, allocation, user):
                # The answer was lost, or the write was carried out twice and conflicts with itself.
                return current
            if _is_refusal(failed.error):
                raise ClaimBindingFailed(failed.text) from failed.error

    async def _read_again(self, claim: ResourceClaim, *, until_answered: bool) -> ResourceClaim:
        for look in itertools.count():
            try:
                current = await self._handle.writer.claims.get(claim)
                if current.uid == claim.uid:
                    return current
                raise ClaimBindingFailed(f"claim {claim.key} got deleted in the meantime")
            except ServerUnavailable as error:
                if not until_answered:
                    raise _read_failed(claim, error) from error
                await sleep(self._handle.clock, _pause_s(look))
            except ApiError as error:
                raise _read_failed(claim, error) from error
        raise AssertionError

    async def _store_once(
        self, claim: ResourceClaim, allocation: Allocation | None, user: ConsumerReference
    ) -> ResourceClaim:
        """Raises _Retry if the claim is to be read and written again, and ClaimBindingFailed."""
        writer = self._handle.writer.claims
        if claim.terminating:
            raise ClaimBindingFailed(f"claim {claim.key} got deleted in the meantime")
        if allocation is not None and _is_allocated_alike(claim, allocation):
            # Another pod of the group was faster.
            allocation = None
        if allocation is not None:
            if claim.status.allocation is not None:
                raise ClaimBindingFailed(
                    f"claim {claim.key} got allocated elsewhere in the meantime"
                )
            finalizers = claim.metadata.finalizers
            if CLAIM_FINALIZER not in finalizers:
                claim = await _tried(
                    writer.set_finalizers(claim, [*finalizers, CLAIM_FINALIZER]),
                    f"add finalizer to claim {claim.key}",
                )
        status = self._status(claim, allocation, user)
        doing = "reservation" if allocation is None else "allocation and reservation"
        return await _tried(writer.set_status(claim, status), f"add {doing} to claim {claim.key}")

    def _status(
        self, claim: ResourceClaim, allocation: Allocation | None, user: ConsumerReference
    ) -> ResourceClaimStatus:
        """The status to write: allocated, reserved, and with a time."""
        status = claim.status
        allocation = allocation or status.allocation
        if self._timeout_s is not None:
            if allocation is None:
                raise ClaimBindingFailed(
                    f"claim {claim.key} got deallocated elsewhere in the meantime"
                )
            if allocation.allocation_timestamp is None:
                # The API keeps whole seconds.
                now = datetime.fromtimestamp(self._handle.clock.now(), UTC).replace(microsecond=0)
                allocation = replace(allocation, allocation_timestamp=now)
        reserved_for = status.reserved_for
        if not any(known.uid == user.uid for known in reserved_for):
            reserved_for = [*reserved_for, user]
        return replace(status, allocation=allocation, reserved_for=reserved_for)

    # Devices that must get ready

    async def wait_until_ready(self, claims: PodClaims, pod: Pod, node_name: str) -> None:
        """Return when every device is ready for the pod. Raises ClaimBindingFailed."""
        timeout_s = self._timeout_s
        if timeout_s is None or not any(map(has_binding_conditions, claims.claims)):
            return
        self._handle.writer.record_event(
            Event(
                regarding=pod,
                type="Normal",
                reason=PENDING_REASON,
                action="Scheduling",
                note=PENDING_NOTE.format(node_name),
                reporting_controller=self._handle.profile_name,
            )
        )
        clock = self._handle.clock
        end = clock.now() + timeout_s
        while not self._all_ready(claims, timeout_s):
            if clock.now() + _READY_POLL_S > end:
                await sleep(clock, max(0.0, end - clock.now()))
                raise ClaimBindingFailed("device binding timeout: context deadline exceeded")
            await sleep(clock, _READY_POLL_S)

    def _all_ready(self, claims: PodClaims, timeout_s: float) -> bool:
        """Raises ClaimBindingFailed if a claim is gone, has failed, or has had its time."""
        now = datetime.fromtimestamp(self._handle.clock.now(), UTC)
        for index, written in enumerate(claims.claims):
            if is_in_memory(written):
                continue
            claim = self._cache.get(written.key)
            if claim is None:
                raise ClaimBindingFailed(not_found(written.key))
            claims.claims[index] = claim
            try:
                if is_ready(claim):
                    continue
            except BindingConditionFailed as error:
                raise ClaimBindingFailed(str(error)) from error
            if has_timed_out(claim, now, timeout_s):
                raise ClaimBindingFailed(f"device binding timeout: claim={claim.name}")
            return False
        return True


class _Retry(Exception):
    """A write that was refused because of another one, or whose answer was lost."""

    def __init__(self, text: str, error: ApiError) -> None:
        super().__init__(text)
        self.text = text
        self.error = error


async def _tried(write: Coroutine[Any, Any, ResourceClaim], doing: str) -> ResourceClaim:
    try:
        return await write
    except (Conflict, ServerUnavailable) as error:
        raise _Retry(f"{doing}: {error}", error) from error
    except ApiError as error:
        raise ClaimBindingFailed(f"{doing}: {error}") from error


def _read_failed(claim: ResourceClaim, error: ApiError) -> ClaimBindingFailed:
    return ClaimBindingFailed(f"get updated claim {claim.key} after conflict: {error}")


def _is_allocated_alike(claim: ResourceClaim, allocation: Allocation) -> bool:
    stored = claim.status.allocation
    return stored is not None and stored.devices == allocation.devices


def _is_ours(claim: ResourceClaim, allocation: Allocation | None, user: ConsumerReference) -> bool:
    """Whether the claim is what a write for this user would have made of it."""
    stored = claim.status.allocation
    if stored is None or not is_reserved_for(claim, user):
        return False
    return allocation is None or stored.devices == allocation.devices


def _is_refusal(error: ApiError) -> bool:
    """Whether the API server refused, so that the write cannot take effect later."""
    if isinstance(error, Unanswered):
        return not error.maybe_done
    return isinstance(error, ServerUnavailable) and error.status != _GATEWAY_TIMEOUT


def _pause_s(tries: int) -> float:
    return min(_FIRST_LOOK_S * 2.0 ** min(tries, 16), _LONGEST_LOOK_S)
