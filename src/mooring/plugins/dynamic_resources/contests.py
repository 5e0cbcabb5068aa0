"""Two schedulers may give one device to two claims: the later one gives it back.

The API server checks each claim by itself, so both writes succeed. The watch shows writes in their order.
When it shows the scheduler's own write, every allocation that came before is known, and none that came after
is. If the device has another holder at that moment, this scheduler was later: it takes its allocation back
and decides again. Of two schedulers that do so, exactly one keeps the device, whatever the delays.

    A writes ──── B writes ──── A's watch shows A: no other holder, A keeps the device
                        └────── B's watch shows A, then B: A holds it, B gives it back

A scheduler that does not look, such as kube-scheduler, keeps what it wrote later. See decision 0026.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable

from mooring.objects.devices import ResourceClaim, ResourceClaimStatus
from mooring.plugin import (
    ApiError,
    Conflict,
    Handle,
    MooringError,
    NotFound,
    ServerUnavailable,
    sleep,
)
from mooring.plugin.devices import AllocatedDevices, double_booked

_LOG = logging.getLogger(__name__)

TAKEN = "claim {}: device {} was given to another claim in the meantime"
NOT_SHOWN = "claim {}: the watch does not show its allocation, so other claims may have its devices"

#: How long to wait until the watch shows a write.
_SHOWN_S = 30.0
#: The pauses between two tries to give devices back.
_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 1.0


class ClaimBindingFailed(MooringError):
    """The pod's claims cannot be bound as decided: another attempt must decide again."""


class Contests:
    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._cluster = handle.cluster
        self._cache = handle.cluster.claims

    async def win(
        self, claim: ResourceClaim, node_name: str, store: Callable[[], Awaitable[ResourceClaim]]
    ) -> ResourceClaim:
        """Store an allocation, and return when it is known that it was first. Raises ClaimBindingFailed."""
        #: What was found when the watch showed the claim: the device that another claim has, or "".
        found: list[str] = []
        shown = asyncio.Event()

        def look(current: ResourceClaim, devices: AllocatedDevices) -> None:
            if not found:
                found.append(self._taken(current, devices, node_name))
                shown.set()

        self._cache.await_allocation(claim.uid, look)
        try:
            stored = await store()
            timer = self._handle.clock.call_later(_SHOWN_S, shown.set)
            try:
                await shown.wait()
            finally:
                timer.cancel()
        finally:
            self._cache.stop_awaiting(claim.uid)
        if found == [""]:
            return stored
        await self._give_back(stored)
        text = TAKEN.format(claim.key, found[0]) if found else NOT_SHOWN.format(claim.key)
        raise ClaimBindingFailed(text)

    def _taken(self, claim: ResourceClaim, devices: AllocatedDevices, node_name: str) -> str:
        allocation, info = claim.status.allocation, self._cluster.infos.get(node_name)
        if allocation is None:
            return ""
        try:
            node = info.node if info is not None else None
            pools = self._cluster.device_pools.slices.pools_on(node).pools if node else ()
        except MooringError:
            # A slice with a malformed node selector came in between.
            pools = ()
        return double_booked(allocation.devices.results, devices, pools)

    async def _give_back(self, stored: ResourceClaim) -> None:
        """Deallocate the claim, unless other pods use it by now. Asks until there is an answer."""
        writer, current = self._handle.writer.claims, stored
        for tries in itertools.count():
            if len(current.status.reserved_for) > 1 or current.status.allocation is None:
                if current.status.allocation is not None:
                    _LOG.error("claim %s is in use, and so are its devices elsewhere", stored.key)
                return
            try:
                await writer.set_status(current, ResourceClaimStatus())
                return
            except NotFound:
                return
            except (Conflict, ServerUnavailable):
                await sleep(
                    self._handle.clock, min(_PAUSE_S * 2.0 ** min(tries, 16), _LONGEST_PAUSE_S)
                )
            except ApiError as error:
                _LOG.error("claim %s keeps devices of another claim: %s", stored.key, error)
                return
            try:
                current = await writer.get(stored)
            except NotFound:
                return
            except ApiError:
                continue
            if current.uid != stored.uid:
                return
