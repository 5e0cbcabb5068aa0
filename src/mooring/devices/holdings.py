"""What the claims of a pod would hold during a search: devices are taken, and taken back exactly."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from mooring.devices.allocated import AllocatedDevices
from mooring.devices.capacity import Consumed, exceeded
from mooring.devices.claim_requests import Request
from mooring.devices.constraints import AttributeConstraint
from mooring.devices.pools import CounterKey, Pool, PoolDevice
from mooring.devices.refusals import DeviceRefusal, Reason, Refusal
from mooring.errors import MooringError

_Changes = tuple[tuple[CounterKey, int | None], ...]


class ConstraintViolated(MooringError):
    """A request for all devices cannot have one of them, because of a constraint of its claim."""


class Taken(NamedTuple):
    """A device that a request has, and what to restore when it is taken back."""

    request: Request
    pool: Pool
    candidate: PoolDevice
    #: What a share of the device consumes; empty for a device that is taken whole.
    amounts: tuple[Consumed, ...]
    #: The counters that were changed, with their values before; None if there was no value.
    counters: _Changes
    #: What shares of the device consumed before; None if there was no share.
    shared: dict[str, int] | None


class Holdings:
    """The state of one search. What others use is only read."""

    def __init__(
        self,
        allocated: AllocatedDevices,
        constraints: Sequence[Sequence[AttributeConstraint]],
        refusals: list[Refusal] | None = None,
    ) -> None:
        self._allocated = allocated
        #: The constraints of each claim.
        self.constraints = constraints
        self._refusals = refusals
        #: The results of each claim.
        self.results: list[list[Taken]] = [[] for _ in constraints]
        #: Devices taken whole → the claims (by index) that have them. Several have admin access.
        self.taking: dict[PoolDevice, tuple[int, ...]] = {}
        #: Devices of which shares are taken → capacity name → amount.
        self.sharing: dict[PoolDevice, dict[str, int]] = {}
        #: What the taken devices consume of the counters of their pools.
        self.counters: dict[Pool, dict[CounterKey, int]] = {}

    def blocked(self, request: Request, candidate: PoolDevice) -> bool:
        """Whether the pod's own claims have taken the device already."""
        claims = self.taking.get(candidate)
        if claims is None or (request.admin_access and request.claim_index not in claims):
            return False
        self.refuse(request, candidate, "taken by this pod", "")
        return True

    def exceeded(
        self, request: Request, pool: Pool, candidate: PoolDevice, amounts: tuple[Consumed, ...]
    ) -> bool:
        """Whether shares of the device leave too little of its capacity."""
        used = self._allocated.in_pool(pool.id).consumed.get(candidate.name)
        more = self.sharing.get(candidate)
        if used is None and more is None:
            return False
        capacity = exceeded(amounts, used or {}, more or {})
        if capacity is None:
            return False
        self.refuse(request, candidate, "capacity", f"too little {capacity} is left")
        return True

    def take(
        self, request: Request, pool: Pool, candidate: PoolDevice, amounts: tuple[Consumed, ...]
    ) -> Taken | None:
        """Take a device that is free; None, and nothing is changed, if it cannot be had.

        Raises ConstraintViolated if a request for all devices cannot have it for that reason.
        """
        changes = self._take_counters(pool, candidate)
        if changes is None:
            self.refuse(request, candidate, "counters", "too little of a counter is left")
            return None
        claim = request.claim_index
        if self.constraints[claim] and not self._constrain(request, candidate):
            self._restore_counters(pool, changes)
            if request.all_devices:
                raise ConstraintViolated(
                    f"claim {request.claim}, request {request.name}: cannot add device {candidate.id} "
                    "because a claim constraint would not be satisfied"
                )
            return None
        if request.all_devices and self.exceeded(request, pool, candidate, amounts):
            self._release(request, len(self.constraints[claim]))
            self._restore_counters(pool, changes)
            return None
        shared = self.sharing.get(candidate)
        if candidate.multiple:
            before = shared or {}
            self.sharing[candidate] = {
                each.name: each.nanos + before.get(each.name, 0) for each in amounts
            }
        else:
            amounts = ()
            self.taking[candidate] = (*self.taking.get(candidate, ()), claim)
        taken = Taken(request, pool, candidate, amounts, changes, shared)
        self.results[claim].append(taken)
        return taken

    def undo(self, taken: Taken) -> None:
        """Restore what was before the last device was taken, which is this one."""
        request, pool, candidate = taken.request, taken.pool, taken.candidate
        self.results[request.claim_index].pop()
        if not candidate.multiple:
            claims = self.taking[candidate][:-1]
            if claims:
                self.taking[candidate] = claims
            else:
                del self.taking[candidate]
        elif taken.shared is None:
            del self.sharing[candidate]
        else:
            self.sharing[candidate] = taken.shared
        self._release(request, len(self.constraints[request.claim_index]))
        self._restore_counters(pool, taken.counters)

    def state_for(self, claim: int) -> Hashable:
        """All that the search for the rest of a claim, and for the claims after it, depends on."""
        return (
            len(self.results[claim]),
            frozenset(
                (candidate, len(claims), claim in claims)
                for candidate, claims in self.taking.items()
            ),
            frozenset(
                (candidate, tuple(amounts.values())) for candidate, amounts in self.sharing.items()
            ),
            tuple(constraint.state for constraint in self.constraints[claim]),
        )

    @property
    def explaining(self) -> bool:
        """Whether refusals are recorded."""
        return self._refusals is not None

    def refuse(self, request: Request, candidate: PoolDevice, reason: Reason, detail: str) -> None:
        if self._refusals is not None:
            self._refusals.append(
                DeviceRefusal(request.claim, request.full_name, candidate.id, reason, detail)
            )

    def _counted(self, pool: Pool, candidate: PoolDevice) -> bool:
        """Whether the counters of a shared device are taken already, by its first share."""
        return candidate.multiple and (
            candidate.name in self._allocated.in_pool(pool.id).consumed or candidate in self.sharing
        )

    def _take_counters(self, pool: Pool, candidate: PoolDevice) -> _Changes | None:
        """What was changed; None if too little is left.

        The reference compares all counters of the pool: one below zero blocks every device.
        """
        if not candidate.counters or self._counted(pool, candidate):
            return ()
        available = pool.available(self._allocated)
        if any(left < 0 for left in available.values()):
            return None
        consumed = self.counters.setdefault(pool, {})
        changes = []
        for key, amount in candidate.counters:
            before = consumed.get(key)
            changes.append((key, before))
            consumed[key] = (before or 0) + amount
        if any(consumed[key] > available[key] for key, _ in changes):
            self._restore_counters(pool, tuple(changes))
            return None
        return tuple(changes)

    def _restore_counters(self, pool: Pool, changes: _Changes) -> None:
        if not changes:
            return
        consumed = self.counters[pool]
        for key, before in reversed(changes):
            if before is None:
                consumed.pop(key, None)
            else:
                consumed[key] = before
        if not consumed:
            del self.counters[pool]

    def _constrain(self, request: Request, candidate: PoolDevice) -> bool:
        for number, constraint in enumerate(self.constraints[request.claim_index]):
            if not constraint.add(request.base, request.full_name, candidate):
                self._release(request, number)
                self.refuse(request, candidate, "constraint", str(constraint))
                return False
        return True

    def _release(self, request: Request, added: int) -> None:
        for constraint in reversed(self.constraints[request.claim_index][:added]):
            constraint.remove(request.base, request.full_name)
