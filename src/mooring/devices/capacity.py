"""How much of a device's capacity a request consumes, and whether the device can give that much.

A device states its capacities and, for each, a policy on which amounts can be requested. Every device is
checked against the policies; only devices that can be shared keep count of what is consumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mooring.objects.devices import CapacityRange, CapacityRequestPolicy, Device, DeviceCapacity
from mooring.objects.quantity import BinaryQuantity, Quantity


class Consumed(NamedTuple):
    """What a request consumes of one capacity."""

    name: str
    amount: Quantity
    #: The amount, and all that the device has, in units of 10**-9.
    nanos: int
    limit: int


def consumed_capacity(
    device: Device, requests: Mapping[str, Quantity]
) -> tuple[Consumed, ...] | str:
    """What the request would consume of an unused device; a text if the device cannot give it."""
    for name in requests:
        if name not in device.capacity:
            return f"the device has no capacity {name}"
    amounts = []
    for name, capacity in device.capacity.items():
        amount = _consumed(capacity, requests.get(name))
        if _violates(amount, capacity.request_policy):
            return f"the policy of capacity {name} does not allow {amount.canonical}"
        entry = Consumed(name, amount, amount.nanos, capacity.value.nanos)
        if entry.nanos > entry.limit:
            return f"capacity {name}: {amount.canonical} of {capacity.value.canonical}"
        amounts.append(entry)
    return tuple(amounts)


def exceeded(
    amounts: tuple[Consumed, ...], used: Mapping[str, int], more: Mapping[str, int]
) -> str | None:
    """The first capacity that does not suffice for these amounts beside what is in use."""
    for name, _, nanos, limit in amounts:
        if nanos + used.get(name, 0) + more.get(name, 0) > limit:
            return name
    return None


def _consumed(capacity: DeviceCapacity, requested: Quantity | None) -> Quantity:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        return capacity.value if default is None else default
    if policy is None:
        return requested
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _up_to_range(requested, policy.valid_range, policy.valid_range.min)
    return next((each for each in policy.valid_values if not requested.exceeds(each)), requested)


def _up_to_range(requested: Quantity, valid: CapacityRange, least: Quantity) -> Quantity:
    if least.exceeds(requested):
        return least
    step = _step(valid)
    if not step:
        return requested
    steps = -(-(requested.value - least.value) // step)
    return BinaryQuantity(least.value + step * steps)


def _violates(amount: Quantity, policy: CapacityRequestPolicy | None) -> bool:
    if policy is None:
        return False
    if policy.default is not None and _same(amount, policy.default):
        return False
    if policy.valid_range is not None:
        return _outside(amount, policy.valid_range)
    return bool(policy.valid_values) and amount not in policy.valid_values


def _same(amount: Quantity, default: Quantity) -> bool:
    """Whether both are written alike. The reference never takes two in the big form for the same."""
    return (
        type(amount) is type(default)
        and not amount.wide
        and not default.wide
        and (amount.unscaled, amount.scale) == (default.unscaled, default.scale)
    )


def _outside(amount: Quantity, valid: CapacityRange) -> bool:
    if valid.max is not None and amount.exceeds(valid.max):
        return True
    step = _step(valid)
    least = valid.min.value if valid.min is not None else 0
    return bool(step and (amount.value - least) % step)


def _step(valid: CapacityRange) -> int:
    """0 without a step. The reference would divide by a step of zero; the API refuses it."""
    return valid.step.value if valid.step is not None else 0
