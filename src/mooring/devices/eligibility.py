"""Which devices of a node each request can have, as far as that does not depend on what the pod takes.

Devices are judged when their turn comes and not before: a selector that fails on a device ends the attempt,
so a device that the search never reaches must not be looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence

from mooring.devices.allocated import AllocatedDevices
from mooring.devices.capacity import Consumed
from mooring.devices.claim_requests import PodRequests, Request
from mooring.devices.constraints import AttributeConstraint, value_of
from mooring.devices.holdings import Holdings
from mooring.devices.pools import Pool, PoolDevice
from mooring.devices.slice_index import NodePools
from mooring.errors import MooringError
from mooring.objects.node import Node
from mooring.objects.resource_claims import tolerates_taint

#: Passing so many devices takes about as long as one decision.
DEVICES_A_STEP = 16
TIMED_OUT = "timed out trying to allocate devices"

Amounts = tuple[Consumed, ...]
#: A device, its pool, and what the request would consume of it.
Eligible = tuple[Pool, PoolDevice, Amounts]


class AllocationTimeout(MooringError):
    """The search took too long."""


class EligibleDevices:
    """The devices that a request can have, found as far as the search has come."""

    __slots__ = ("device", "exhausted", "found", "matching", "pool", "unknown")

    def __init__(self) -> None:
        #: In order. Amounts are None for a device that was taken when its turn came, and so was not
        #: judged; a place is None if the device was judged later, and refused.
        self.found: list[tuple[Pool, PoolDevice, Amounts | None] | None] = []
        #: Where to look next.
        self.pool = 0
        self.device = 0
        #: Whether all devices were looked at.
        self.exhausted = False
        #: How many of those found are not judged.
        self.unknown = 0
        #: How many devices have the same values of the attributes that constraints compare; None if not all
        #: devices are judged yet.
        self.matching: Counter[Hashable] | None = None


class Eligibility:
    def __init__(
        self,
        node: Node,
        pools: NodePools,
        requests: PodRequests,
        allocated: AllocatedDevices,
        holdings: Holdings,
        expired: Callable[[], bool] | None = None,
    ) -> None:
        """`expired` is asked now and then as a request passes devices; true raises AllocationTimeout."""
        self._expired = expired
        self._node = node
        self._pools = pools
        self._allocated = allocated
        self._holdings = holdings
        self._devices: list[EligibleDevices | None] = [None] * requests.size
        self._all_devices: dict[Request, list[Eligible]] = {}

    def needed(self, request: Request) -> int:
        """How many devices the request needs on this node."""
        return len(self._all_devices[request]) if request.all_devices else request.count

    def list_all(self, request: Request) -> str | None:
        """Find all devices for a request that wants all. The text is why that is impossible.

        Devices in use are among them: the request fails later because of them.
        """
        devices = self._all_devices[request] = []
        for pool in self._pools.pools:
            asks = f"asks for all devices, but resource pool {pool.id} is currently"
            if pool.incomplete:
                return f"{asks} being updated"
            if pool.invalid:
                return f"{asks} invalid"
            for candidate in pool.devices:
                amounts = self._judge(request, candidate)
                if amounts is None:
                    continue
                if not self._holdings.exceeded(request, pool, candidate, amounts):
                    devices.append((pool, candidate, amounts))
        return None

    def all_devices(self, request: Request) -> list[Eligible]:
        return self._all_devices[request]

    def obstructed(self, request: Request, pool: Pool, candidate: PoolDevice) -> bool:
        """Whether a device of a request for all devices is in use, or has a taint."""
        return (
            not self._takeable(request, candidate)
            or self._in_use(request, pool, candidate)
            or self._holdings.blocked(request, candidate)
            or self._repels(request, candidate)
        )

    def next_free(self, request: Request, start: int, missing: int) -> tuple[int, Eligible] | None:
        """The first device from place `start` on that is free, and the place after it.

        None if there is none, or if fewer devices are left than the request is missing.
        """
        devices = self._devices[request.number]
        if devices is None:
            devices = self._devices[request.number] = EligibleDevices()
        found, holdings, expired = devices.found, self._holdings, self._expired
        place = start
        while True:
            if expired is not None and not place % DEVICES_A_STEP and expired():
                raise AllocationTimeout(TIMED_OUT)
            if place == len(found) and (devices.exhausted or not self._find_more(request, devices)):
                return None
            if devices.exhausted and not devices.unknown and len(found) - place < missing:
                return None
            entry = found[place]
            place += 1
            if entry is None:
                continue
            pool, candidate, amounts = entry
            if holdings.taking and holdings.blocked(request, candidate):
                continue
            if amounts is None:
                devices.unknown -= 1
                amounts = self._judge_all(request, candidate)
                found[place - 1] = None if amounts is None else (pool, candidate, amounts)
                if amounts is None:
                    continue
            if not holdings.exceeded(request, pool, candidate, amounts):
                return place, (pool, candidate, amounts)

    def number_with_values_of(
        self, candidate: PoolDevice, request: Request, constraints: Sequence[AttributeConstraint]
    ) -> int | None:
        """How many devices have the candidate's values of all attributes that the constraints compare.

        None if that is not known, because not all devices are judged yet. The constraints are always those of
        the request.
        """
        devices = self._devices[request.number]
        if devices is None or not devices.exhausted or devices.unknown:
            return None
        if devices.matching is None:
            devices.matching = Counter(
                _values(entry[1], constraints) for entry in devices.found if entry is not None
            )
        return devices.matching[_values(candidate, constraints)]

    def _find_more(self, request: Request, devices: EligibleDevices) -> bool:
        """Add the next device that is eligible, or that cannot be judged now."""
        usable = self._pools.usable
        taking = self._holdings.taking
        while devices.pool < len(usable):
            pool = usable[devices.pool]
            in_use = {} if request.admin_access else self._allocated.in_pool(pool.id).dedicated
            for place in range(devices.device, len(pool.devices)):
                candidate = pool.devices[place]
                if candidate.name in in_use:
                    self._in_use(request, pool, candidate)
                    continue
                if taking and self._holdings.blocked(request, candidate):
                    amounts = None
                    devices.unknown += 1
                else:
                    amounts = self._judge_all(request, candidate)
                    if amounts is None:
                        continue
                devices.found.append((pool, candidate, amounts))
                devices.device = place + 1
                return True
            devices.pool += 1
            devices.device = 0
        devices.exhausted = True
        return False

    def _judge_all(self, request: Request, candidate: PoolDevice) -> Amounts | None:
        amounts = self._judge(request, candidate)
        if amounts is None or not self._takeable(request, candidate):
            return None
        return None if self._repels(request, candidate) else amounts

    def _judge(self, request: Request, candidate: PoolDevice) -> Amounts | None:
        """Selectors, nodes and capacity; None if one of them refuses the device."""
        if not candidate.selectable:
            text = "the device has binding conditions, and their feature gate is off"
            self._holdings.refuse(request, candidate, "feature gate", text)
            return None
        assert request.selection is not None
        assert request.device_class is not None
        fit = request.selection.fits.get(candidate.content)
        if fit is None:
            fit = request.selection.judge(candidate, request.device_class.name, request.claim)
        if fit.by_selector:
            self._holdings.refuse(request, candidate, "selector", fit.refused)
            return None
        if candidate.reach is not None and not candidate.reach.includes(self._node):
            self._holdings.refuse(request, candidate, "node", "the device is not for this node")
            return None
        if fit.refused:
            self._holdings.refuse(request, candidate, "capacity", fit.refused)
            return None
        return fit.amounts

    def _in_use(self, request: Request, pool: Pool, candidate: PoolDevice) -> bool:
        """Whether another claim has the device for itself. Admin access does not mind."""
        if request.admin_access:
            return False
        if candidate.name not in self._allocated.in_pool(pool.id).dedicated:
            return False
        if self._holdings.explaining:
            holders = ", ".join(self._allocated.holders(candidate.id))
            self._holdings.refuse(request, candidate, "in use", holders)
        return True

    def _takeable(self, request: Request, candidate: PoolDevice) -> bool:
        if not candidate.takeable:
            text = "the device consumes counters, and DRAPartitionableDevices is off"
            self._holdings.refuse(request, candidate, "feature gate", text)
        return candidate.takeable

    def _repels(self, request: Request, candidate: PoolDevice) -> bool:
        """Whether the device has a taint that the request does not tolerate."""
        for taint in candidate.taints:
            if not any(tolerates_taint(each, taint) for each in request.tolerations):
                text = f"{taint.key}={taint.value}:{taint.effect}"
                self._holdings.refuse(request, candidate, "taint", text)
                return True
        return False


def _values(candidate: PoolDevice, constraints: Sequence[AttributeConstraint]) -> Hashable:
    return tuple(value_of(candidate, constraint.attribute) for constraint in constraints)
