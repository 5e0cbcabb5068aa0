"""Whether a device was given to two claims: the API server checks each claim by itself.

This can happen only if two schedulers write at the same time, each before it has seen the other's write.
"""

from __future__ import annotations

from collections.abc import Sequence

from mooring.devices.allocated import AllocatedDevices, PoolID
from mooring.devices.pools import Pool
from mooring.objects.devices import DeviceAllocationResult


def double_booked(
    results: Sequence[DeviceAllocationResult], allocated: AllocatedDevices, pools: Sequence[Pool]
) -> str:
    """The first device that its claim cannot have beside the others, as `driver/pool/device`; "" if none."""
    by_id = {pool.id: pool for pool in pools}
    for result in results:
        pool_id = PoolID(result.driver, result.pool)
        if not result.admin_access and _is_taken(result, allocated, by_id.get(pool_id)):
            return f"{pool_id}/{result.device}"
    return ""


def _is_taken(
    result: DeviceAllocationResult, allocated: AllocatedDevices, pool: Pool | None
) -> bool:
    use = allocated.in_pool(PoolID(result.driver, result.pool))
    name = result.device
    holders = use.dedicated.get(name, 0)
    if holders > 1 or (holders and name in use.shares):
        return True
    if pool is None:
        # Its slices are gone. What it can give is not known.
        return False
    offered = next((each.device.capacity for each in pool.devices if each.name == name), {})
    consumed = use.consumed.get(name, {})
    if any(consumed.get(each, 0) > amount.value.nanos for each, amount in offered.items()):
        return True
    left = pool.available(allocated)
    return any(left[key] < 0 for key, _ in pool.consumers.get(name, ()))
