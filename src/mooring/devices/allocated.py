"""Which devices are in use, by the allocations of all claims.

A result without a share takes the device for itself (dedicated). A result with a share adds its
consumed capacity to the device and leaves the rest to others. A result with admin access takes
nothing. The books are changed one claim at a time and must equal a rebuild from the claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from mooring.errors import check_kept
from mooring.objects.devices import DeviceAllocationResult, ResourceClaim

_Key = TypeVar("_Key")


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


class AllocatedDevices:
    """The devices in use. Amounts of capacity are in units of 10**-9."""

    def __init__(self, claims: Iterable[ResourceClaim] = ()) -> None:
        #: Devices that a claim has for itself → how many results say so; more than one is a conflict.
        self.dedicated: dict[DeviceID, int] = {}
        #: Shared devices → how many shares there are.
        self.shares: dict[DeviceID, int] = {}
        #: Shared devices of which capacity is consumed → capacity name → amount, summed over shares.
        self.consumed: dict[DeviceID, dict[str, int]] = {}
        #: Shared devices → how many shares tell of consumed capacity. An entry of `consumed` lives as
        #: long as this count.
        self._consumers: dict[DeviceID, int] = {}
        #: `namespace/name` of a claim → its results that take something.
        self._claims: dict[str, tuple[DeviceAllocationResult, ...]] = {}
        #: Pools → names of devices in use → how many results use them.
        self._in_pool: dict[PoolID, dict[str, int]] = {}
        #: Pools → how often their use has changed. Revisions only grow.
        self._revisions: dict[PoolID, int] = {}
        #: How often any use has changed.
        self.revision = 0
        for claim in claims:
            self.add(claim)

    def add(self, claim: ResourceClaim) -> None:
        """Count what the claim holds, in place of what it held before."""
        self.remove(claim.key)
        allocation = claim.status.allocation
        if allocation is None:
            return
        results = tuple(each for each in allocation.devices.results if not each.admin_access)
        if not results:
            return
        self._claims[claim.key] = results
        for result in results:
            self._count(result, 1)

    def remove(self, claim_key: str) -> None:
        """Forget what the claim (`namespace/name`) holds, if it holds anything."""
        for result in self._claims.pop(claim_key, ()):
            self._count(result, -1)

    def in_pool(self, pool: PoolID) -> Mapping[str, int]:
        """The devices of a pool that are in use, shared or not."""
        return self._in_pool.get(pool, {})

    def revision_of(self, pool: PoolID) -> int:
        """Changes when the use of the pool's devices changes."""
        return self._revisions.get(pool, 0)

    def holders(self, device: DeviceID) -> list[str]:
        """The claims that use a device. It searches all claims: this is for explanations."""
        return sorted(
            key
            for key, results in self._claims.items()
            if any(_device_id(result) == device for result in results)
        )

    def copy(self) -> AllocatedDevices:
        twin = AllocatedDevices()
        twin.dedicated = dict(self.dedicated)
        twin.shares = dict(self.shares)
        twin.consumed = {device: dict(amounts) for device, amounts in self.consumed.items()}
        twin._consumers = dict(self._consumers)
        twin._claims = dict(self._claims)
        twin._in_pool = {pool: dict(names) for pool, names in self._in_pool.items()}
        twin._revisions = dict(self._revisions)
        twin.revision = self.revision
        return twin

    def validate(self, claims: Iterable[ResourceClaim]) -> None:
        """Raise InvariantError unless the books are what a rebuild from these claims gives."""
        rebuilt = AllocatedDevices(claims)
        check_kept("dedicated devices", self.dedicated, rebuilt.dedicated)
        check_kept("shares of devices", self.shares, rebuilt.shares)
        check_kept("consumed capacity", self.consumed, rebuilt.consumed)
        check_kept("shares with consumed capacity", self._consumers, rebuilt._consumers)
        check_kept("devices in use by pool", self._in_pool, rebuilt._in_pool)
        check_kept("results by claim", self._claims, rebuilt._claims)

    def _count(self, result: DeviceAllocationResult, sign: int) -> None:
        device = _device_id(result)
        pool = PoolID(device.driver, device.pool)
        self.revision += 1
        self._revisions[pool] = self._revisions.get(pool, 0) + 1
        _add(self._in_pool.setdefault(pool, {}), device.device, sign)
        if not self._in_pool[pool]:
            del self._in_pool[pool]
        if result.share_id is None:
            _add(self.dedicated, device, sign)
            return
        _add(self.shares, device, sign)
        if result.consumed_capacity:
            self._consume(device, result, sign)

    def _consume(self, device: DeviceID, result: DeviceAllocationResult, sign: int) -> None:
        _add(self._consumers, device, sign)
        if device not in self._consumers:
            del self.consumed[device]
            return
        amounts = self.consumed.setdefault(device, {})
        for name, amount in result.consumed_capacity.items():
            _add(amounts, name, sign * amount.nanos)


def _device_id(result: DeviceAllocationResult) -> DeviceID:
    return DeviceID(result.driver, result.pool, result.device)


def _add(counts: dict[_Key, int], key: _Key, change: int) -> None:
    """Change a count; zero counts are not kept."""
    count = counts.get(key, 0) + change
    if count:
        counts[key] = count
    else:
        counts.pop(key, None)
