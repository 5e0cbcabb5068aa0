"""Which devices are in use, by the allocations of all claims.

A result without a share takes the device for itself (dedicated). A result with a share adds its
consumed capacity to the device and leaves the rest to others. A result with admin access takes
nothing. The books are changed one claim at a time and must equal a rebuild from the claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from mooring.errors import check_kept
from mooring.objects.devices import DeviceAllocationResult, ResourceClaim


class DeviceID(NamedTuple):
    """A device, unique in the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class PoolID(NamedTuple):
    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


@dataclass(slots=True)
class PoolUse:
    """The devices of one pool that are in use, by name. Amounts are in units of 10**-9."""

    #: Devices that a claim has for itself → how many results say so; more than one is a conflict.
    dedicated: dict[str, int] = field(default_factory=dict)
    #: Shared devices → how many shares there are.
    shares: dict[str, int] = field(default_factory=dict)
    #: Shared devices of which capacity is consumed → capacity name → amount, summed over the shares.
    #: An entry lives as long as some share tells of consumed capacity, even of none.
    consumed: dict[str, dict[str, int]] = field(default_factory=dict)
    #: Shared devices → how many shares tell of consumed capacity.
    consumers: dict[str, int] = field(default_factory=dict)

    def copy(self) -> PoolUse:
        consumed = {name: dict(amounts) for name, amounts in self.consumed.items()}
        return PoolUse(dict(self.dedicated), dict(self.shares), consumed, dict(self.consumers))

    def count(self, result: DeviceAllocationResult, sign: int, *, shares: bool) -> None:
        name = result.device
        if result.share_id is None or not shares:
            _add(self.dedicated, name, sign)
            return
        _add(self.shares, name, sign)
        if not result.consumed_capacity:
            return
        _add(self.consumers, name, sign)
        if name not in self.consumers:
            del self.consumed[name]
            return
        amounts = self.consumed.setdefault(name, {})
        for capacity, amount in result.consumed_capacity.items():
            _add(amounts, capacity, sign * amount.nanos)


_UNUSED = PoolUse()


class AllocatedDevices:
    """The devices in use, by pool."""

    def __init__(self, claims: Iterable[ResourceClaim] = (), *, shares: bool = True) -> None:
        """`shares` says whether DRAConsumableCapacity is on. If not, a share counts as the device."""
        self._shares = shares
        #: The pools in use.
        self._pools: dict[PoolID, PoolUse] = {}
        #: Pools → how often their use has changed. It only grows.
        self._revisions: dict[PoolID, int] = {}
        #: `namespace/name` of a claim → its results that take something.
        self._claims: dict[str, tuple[DeviceAllocationResult, ...]] = {}
        for claim in claims:
            self.add(claim)

    @property
    def dedicated(self) -> set[DeviceID]:
        """The devices that claims have for themselves."""
        return {
            DeviceID(*pool, name) for pool, use in self._pools.items() for name in use.dedicated
        }

    @property
    def shared(self) -> set[DeviceID]:
        """The devices that have shares."""
        return {DeviceID(*pool, name) for pool, use in self._pools.items() for name in use.shares}

    @property
    def consumed(self) -> dict[DeviceID, dict[str, int]]:
        """Shared devices → capacity name → consumed amount, in units of 10**-9."""
        return {
            DeviceID(*pool, name): dict(amounts)
            for pool, use in self._pools.items()
            for name, amounts in use.consumed.items()
        }

    def add(self, claim: ResourceClaim) -> None:
        """Count what the claim holds, in place of what it held before."""
        self.remove(claim.key)
        allocation = claim.status.allocation
        if allocation is None:
            return
        results = tuple(each for each in allocation.devices.results if not each.admin_access)
        if results:
            self._claims[claim.key] = results
            self._count(results, 1)

    def remove(self, claim_key: str) -> None:
        """Forget what the claim (`namespace/name`) holds, if it holds anything."""
        self._count(self._claims.pop(claim_key, ()), -1)

    def in_pool(self, pool: PoolID) -> PoolUse:
        """The use of a pool, to read."""
        return self._pools.get(pool, _UNUSED)

    def revision(self, pool: PoolID) -> int:
        """Changes when the use of the pool's devices changes."""
        return self._revisions.get(pool, 0)

    def holders(self, device: DeviceID) -> list[str]:
        """The claims that use a device. It searches all claims: this is for explanations."""
        return sorted(
            key
            for key, results in self._claims.items()
            if any((each.driver, each.pool, each.device) == device for each in results)
        )

    def copy(self) -> AllocatedDevices:
        twin = AllocatedDevices(shares=self._shares)
        twin._pools = {pool: use.copy() for pool, use in self._pools.items()}
        twin._revisions = dict(self._revisions)
        twin._claims = dict(self._claims)
        return twin

    def validate(self, claims: Iterable[ResourceClaim]) -> None:
        """Raise InvariantError unless the books are what a rebuild from these claims gives."""
        rebuilt = AllocatedDevices(claims, shares=self._shares)
        check_kept("devices held by claims", self._claims, rebuilt._claims)
        check_kept("devices in use", self._pools, rebuilt._pools)

    def _count(self, results: Iterable[DeviceAllocationResult], sign: int) -> None:
        for result in results:
            pool = PoolID(result.driver, result.pool)
            self._revisions[pool] = self._revisions.get(pool, 0) + 1
            use = self._pools.setdefault(pool, PoolUse())
            use.count(result, sign, shares=self._shares)
            if use == _UNUSED:
                del self._pools[pool]


def _add(counts: dict[str, int], key: str, change: int) -> None:
    """Change a count; zero counts are not kept."""
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
