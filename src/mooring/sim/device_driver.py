"""The drivers of a simulated cluster, as far as they prepare devices after a claim was allocated.

A device with binding conditions is ready when its driver says so in the status of the claim, and the
scheduler waits for that. Annotations on the slice say how long that takes, and whether it fails. Without
them, nobody says so, as in a cluster whose driver does not run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from msgspec.structs import replace

from mooring.framework.clock import Clock
from mooring.objects.devices import (
    AllocatedDeviceStatus,
    Allocation,
    DeviceAllocationResult,
    DeviceCondition,
    ResourceClaim,
    ResourceSlice,
)
from mooring.objects.meta import KubeObject
from mooring.objects.resource_claims import has_binding_conditions
from mooring.sim.api import SimApi, seconds_in

#: On a ResourceSlice: the seconds after which its devices are ready, and whether they fail instead.
BINDING_SECONDS = "mooring.dev/binding-seconds"
BINDING_FAILS = "mooring.dev/binding-fails"


@dataclass(slots=True)
class DeviceDrivers:
    """Watches slices and claims; register it with `SimApi.watch`."""

    api: SimApi
    clock: Clock
    #: Driver, pool and name of devices → their slice, if it has the annotation.
    _slices: dict[tuple[str, str, str], ResourceSlice] = field(default_factory=dict)
    #: UIDs of claims → the allocations that are prepared.
    _preparing: dict[str, Allocation] = field(default_factory=dict)

    def added(self, obj: KubeObject) -> None:
        if isinstance(obj, ResourceSlice):
            if BINDING_SECONDS in obj.metadata.annotations:
                spec = obj.spec
                for device in spec.devices:
                    self._slices[spec.driver, spec.pool.name, device.name] = obj
        elif isinstance(obj, ResourceClaim) and self._slices:
            self._prepare(obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        if isinstance(old, ResourceSlice):
            self.deleted(old)
        self.added(new)

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, ResourceSlice):
            for key in [key for key, piece in self._slices.items() if piece.name == obj.name]:
                del self._slices[key]
        elif isinstance(obj, ResourceClaim):
            self._preparing.pop(obj.uid, None)

    def _prepare(self, claim: ResourceClaim) -> None:
        allocation = claim.status.allocation
        if allocation is None or not has_binding_conditions(claim):
            self._preparing.pop(claim.uid, None)
            return
        if self._preparing.get(claim.uid) == allocation:
            return
        self._preparing[claim.uid] = allocation
        for result in allocation.devices.results:
            piece = self._slices.get((result.driver, result.pool, result.device))
            if piece is not None and result.binding_conditions:
                fails = BINDING_FAILS in piece.metadata.annotations
                self._finish_later(claim, allocation, result, _delay_s(piece), fails=fails)

    def _finish_later(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        result: DeviceAllocationResult,
        delay_s: float,
        *,
        fails: bool,
    ) -> None:
        def finish() -> None:
            stored = self.api.get(ResourceClaim, claim.key)
            # The claim may have been freed and allocated again meanwhile.
            if (
                stored is not None
                and stored.uid == claim.uid
                and stored.status.allocation == allocation
            ):
                self.api.update(_with_status(stored, self._status(result, fails=fails)))

        self.api.later(delay_s, finish)

    def _status(self, result: DeviceAllocationResult, *, fails: bool) -> AllocatedDeviceStatus:
        kinds = result.binding_failure_conditions if fails else result.binding_conditions
        since = datetime.fromtimestamp(self.clock.now(), UTC)
        reason = "Failed" if fails else "Ready"
        message = "Device cannot be prepared" if fails else "Device is ready"
        return AllocatedDeviceStatus(
            driver=result.driver,
            pool=result.pool,
            device=result.device,
            share_id=result.share_id,
            conditions=[
                DeviceCondition(
                    type=kind,
                    status="True",
                    reason=reason,
                    message=message,
                    last_transition_time=since,
                )
                for kind in kinds
            ],
        )


def check_binding_seconds(piece: ResourceSlice) -> None:
    """Raises ValueError."""
    if BINDING_SECONDS in piece.metadata.annotations:
        _delay_s(piece)


def _delay_s(piece: ResourceSlice) -> float:
    return seconds_in(piece.metadata.annotations[BINDING_SECONDS], BINDING_SECONDS)


def _with_status(claim: ResourceClaim, device: AllocatedDeviceStatus) -> ResourceClaim:
    def same(other: AllocatedDeviceStatus) -> bool:
        return (other.driver, other.pool, other.device, other.share_id) == (
            device.driver,
            device.pool,
            device.device,
            device.share_id,
        )

    others = [each for each in claim.status.devices if not same(each)]
    return replace(claim, status=replace(claim.status, devices=[*others, device]))
