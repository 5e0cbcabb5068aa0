"""The resource claims of a cluster, with what the scheduler knows ahead of the watch.

Two things are known ahead. A claim that the scheduler has written is *assumed*: it hides the
observed one until the watch shows a version that is at least as new. An allocation that is chosen
but not written yet is *in flight*: its devices are in use, and no other pod may use the claim.

    Reserve ── signal ──▶ in flight ── written: assume, withdraw ──▶ assumed ── the watch ──▶ observed
                             └── Unreserve: withdraw, restore ──▶ observed

Every change of a claim, assumed or observed, is told to followers: the queue wakes pods by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from mooring.cluster.changes import ChangeLog
from mooring.cluster.listers import Listers
from mooring.cluster.volume_cache import AssumeError
from mooring.devices.allocated import AllocatedDevices, PoolID
from mooring.devices.features import ALL_FEATURES, DeviceFeatures
from mooring.errors import InvariantError, check_kept
from mooring.objects.devices import Allocation, DeviceAllocationResult, ResourceClaim
from mooring.objects.pod import Pod
from mooring.objects.resource_claims import (
    EXTENDED_RESOURCE_CLAIM,
    is_extended_resource_claim_of,
    not_found,
)

#: Called with a claim before and after a change; None if there was or is none.
ClaimFollower = Callable[[ResourceClaim | None, ResourceClaim | None], None]
#: Called with a claim that the watch shows, and with the devices in use at that moment.
AllocationShown = Callable[[ResourceClaim, AllocatedDevices], None]


class UnknownClaimError(AssumeError):
    """An assumption about a claim that the watch has not shown yet."""


@dataclass(slots=True)
class _InFlight:
    #: With the allocation that was chosen.
    claim: ResourceClaim
    #: How many pods share it.
    sharers: int = 1
    #: The pod group that it was chosen for, as `namespace/name`; "" if for a pod alone.
    group: str = ""


class ClaimCache:
    """The latest version of every claim, the allocations in flight, and the devices in use."""

    def __init__(
        self,
        listers: Listers,
        features: DeviceFeatures = ALL_FEATURES,
        *,
        groups_own_claims: bool = False,
    ) -> None:
        #: Whether pod groups have claims that their pods share: the gate DRAWorkloadResourceClaims.
        self.groups_own_claims = groups_own_claims
        self._listers = listers
        self._latest: dict[str, ResourceClaim] = {}
        #: Keys of the claims that are assumed: the watch has not shown them in this version.
        self._assumed: set[str] = set()
        #: UID → the allocation in flight. A claim that does not exist yet has a UID of its own.
        self._in_flight: dict[str, _InFlight] = {}
        #: The devices that these claims hold.
        self.devices = AllocatedDevices(shares=features.consumable_capacity)
        #: The pools whose devices are used by others than before.
        self.pool_changes: ChangeLog[PoolID] = ChangeLog()
        #: Key of a claim → what was counted for it.
        self._counted: dict[str, list[DeviceAllocationResult]] = {}
        #: UID of a pod → the claim that the scheduler created for its extended resources.
        self._extended: dict[str, str] = {}
        self._followers: list[ClaimFollower] = []
        #: UID of a claim → what to call when the watch shows it with an allocation.
        self._awaited: dict[str, AllocationShown] = {}
        #: The cache of the engine that took over; it is told what this one still does.
        self._successor: ClaimCache | None = None
        for claim in listers.all(ResourceClaim):
            self._observed(claim.key)
        listers.follow(ResourceClaim, self._observed)

    @property
    def is_settled(self) -> bool:
        """Whether every claim is as the watch has shown it, and no allocation is under way."""
        return not self._assumed and not self._in_flight and not self._awaited

    def get(self, key: str) -> ResourceClaim | None:
        return self._latest.get(key)

    def all(self) -> Iterable[ResourceClaim]:
        return self._latest.values()

    def extended_resource_claim_of(self, pod: Pod) -> ResourceClaim | None:
        """The claim that the scheduler created for extended resources of the pod."""
        key = self._extended.get(pod.uid)
        claim = None if key is None else self._latest.get(key)
        return claim if claim is not None and is_extended_resource_claim_of(claim, pod) else None

    def follow(self, changed: ClaimFollower) -> None:
        self._followers.append(changed)

    # Assumed claims

    def assume(self, claim: ResourceClaim) -> None:
        """Assume a claim as the API server has stored it.

        Raises UnknownClaimError if the watch has not shown the claim yet, or no longer shows it, and
        AssumeError if the watch has shown a newer version.
        """
        known = self._latest.get(claim.key)
        if known is None:
            raise UnknownClaimError(not_found(claim.key))
        if _version(claim) < _version(known):
            raise AssumeError(
                f'ResourceClaim "{claim.key}" is out of sync (stored: {_version(known)},'
                f" assume: {_version(claim)})"
            )
        if claim is not self._listers.get(ResourceClaim, claim.key):
            self._assumed.add(claim.key)
        self._set(claim.key, claim)
        if self._successor is not None and self._successor.get(claim.key) is not None:
            self._successor.assume(claim)

    def restore(self, key: str) -> None:
        """Drop an assumption."""
        if key in self._assumed:
            self._assumed.discard(key)
            self._set(key, self._listers.get(ResourceClaim, key))
        if self._successor is not None:
            self._successor.restore(key)

    def await_allocation(self, uid: str, shown: AllocationShown) -> None:
        """Call `shown` each time that the watch shows the claim with an allocation.

        At the first call, what was allocated before is known, and what was allocated later is not yet:
        the watch shows writes in their order.
        """
        self._awaited[uid] = shown

    def stop_awaiting(self, uid: str) -> None:
        self._awaited.pop(uid, None)

    def _observed(self, key: str) -> None:
        self._take_observed(key)
        claim = self._listers.get(ResourceClaim, key)
        if self._awaited and claim is not None and claim.status.allocation is not None:
            shown = self._awaited.get(claim.uid)
            if shown is not None:
                shown(claim, self.devices)

    def _take_observed(self, key: str) -> None:
        claim, known = self._listers.get(ResourceClaim, key), self._latest.get(key)
        if claim is not None and known is not None and not _is_newer(claim, known):
            if _version(claim) == _version(known):
                # The watch shows what was assumed. Followers know it.
                self._latest[key] = claim
                self._assumed.discard(key)
                self._count(claim)
            return
        self._assumed.discard(key)
        self._set(key, claim)

    def _set(self, key: str, claim: ResourceClaim | None) -> None:
        before = self._latest.get(key)
        if claim is not None:
            self._latest[key] = claim
            self._count(claim)
            owner = claim.metadata.controller
            if owner is not None and EXTENDED_RESOURCE_CLAIM in claim.metadata.annotations:
                self._extended[owner.uid] = key
        elif before is not None:
            del self._latest[key]
            self._count(before)
            owner = before.metadata.controller
            if owner is not None and self._extended.get(owner.uid) == key:
                del self._extended[owner.uid]
        if before is not claim:
            self._tell(before, claim)

    def _tell(self, before: ResourceClaim | None, claim: ResourceClaim | None) -> None:
        for changed in self._followers:
            changed(before, claim)

    # Allocations in flight

    def in_flight(self, uid: str) -> Allocation | None:
        found = self._in_flight.get(uid)
        return None if found is None else found.claim.status.allocation

    def in_flight_for(self, uid: str, group: str) -> Allocation | None:
        """The allocation in flight, if it was chosen for this pod group, whose pods may share it."""
        found = self._in_flight.get(uid)
        if found is None or not group or found.group != group:
            return None
        return found.claim.status.allocation

    def signal(self, claim: ResourceClaim, group: str = "") -> None:
        """The claim's allocation was chosen; if one is in flight, one more pod shares that."""
        known = self._in_flight.get(claim.uid)
        if known is not None:
            known.sharers += 1
        else:
            self._in_flight[claim.uid] = _InFlight(claim, group=group)
            self._count(claim)
        if self._successor is not None:
            self._successor.signal(claim, group)

    def withdraw(self, uid: str, *, force: bool = False) -> bool:
        """A pod no longer needs the allocation in flight; whether no pod does, or `force` is set."""
        if self._successor is not None:
            self._successor.withdraw(uid, force=force)
        known = self._in_flight.get(uid)
        if known is None:
            return False
        if known.sharers > 1 and not force:
            known.sharers -= 1
            return False
        del self._in_flight[uid]
        claim = known.claim
        self._count(claim)
        if claim.metadata.resource_version and claim.key not in self._latest:
            # It was given back and deleted, which helped nobody, as its devices were still in use.
            self._tell(claim, replace(claim, status=replace(claim.status, allocation=None)))
        return True

    def _count(self, claim: ResourceClaim) -> None:
        """Count the devices that the claim holds now."""
        key = claim.key
        holder = self._holder(key, claim.uid)
        before = self._counted.get(key)
        after = None if holder is None else _results(holder)
        if before == after:
            return
        if holder is None or after is None:
            del self._counted[key]
            self.devices.remove(key)
        else:
            self._counted[key] = after
            self.devices.add(holder)
        for result in (*(before or ()), *(after or ())):
            self.pool_changes.note(PoolID(result.driver, result.pool))

    def _holder(self, key: str, uid: str) -> ResourceClaim | None:
        """The claim with its allocation, as known or in flight; None if it is not allocated."""
        latest = self._latest.get(key)
        if latest is not None and latest.status.allocation is not None:
            return latest
        flying = self._in_flight.get(uid)
        return None if flying is None else flying.claim

    # The engine

    def take_over(self, other: ClaimCache) -> None:
        """Go on with the assumptions of another cache, and with what it will still assume."""
        for key in other._assumed:
            if key in self._latest:
                self.assume(other._latest[key])
        for uid, flying in other._in_flight.items():
            self._in_flight[uid] = _InFlight(flying.claim, flying.sharers, flying.group)
            self._count(flying.claim)
        # The other engine goes on writing, and the watch shows its writes here.
        self._awaited = other._awaited
        other._successor = self

    def validate(self) -> None:
        """Raise InvariantError unless everything follows from observed and assumed claims."""
        observed = {claim.key: claim for claim in self._listers.all(ResourceClaim)}
        check_kept("the keys of claims", set(self._latest), set(observed))
        for key, claim in self._latest.items():
            if key in self._assumed:
                if _is_newer(observed[key], claim):
                    raise InvariantError(f"claim {key} is assumed, but the watch shows a newer one")
            elif claim is not observed[key]:
                raise InvariantError(f"claim {key} is neither observed nor assumed")
        claims = [*self._latest.values(), *(each.claim for each in self._in_flight.values())]
        holders = {
            claim.key: holder
            for claim in claims
            if (holder := self._holder(claim.key, claim.uid)) is not None
        }
        counted = {key: _results(holder) for key, holder in holders.items()}
        check_kept("allocations in use", self._counted, counted)
        self.devices.validate(holders.values())


def _results(claim: ResourceClaim) -> list[DeviceAllocationResult]:
    allocation = claim.status.allocation
    return [] if allocation is None else allocation.devices.results


def _is_newer(claim: ResourceClaim, known: ResourceClaim) -> bool:
    """Whether the watch shows something new. Without versions, what it shows last is new."""
    if claim.uid != known.uid or not claim.metadata.resource_version:
        return True
    return _version(claim) > _version(known)


def _version(claim: ResourceClaim) -> int:
    """Versions are numbers that increase, as in etcd."""
    version = claim.metadata.resource_version
    return int(version) if version.isdecimal() else 0
