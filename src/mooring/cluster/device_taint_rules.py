"""DeviceTaintRules: the taints that administrators add to the devices of drivers.

The scheduler sees each slice with the taints of all rules that select its devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mooring.objects.devices import Device, DeviceTaint, DeviceTaintRule, ResourceSlice


def with_rules(published: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of the rules, in the order of their names, after its own."""
    chosen = [rule for rule in rules if may_select(rule, published)]
    if not chosen:
        return published
    chosen.sort(key=lambda rule: rule.name)
    devices = [_with_taints(device, chosen) for device in published.spec.devices]
    return replace(published, spec=replace(published.spec, devices=devices))


def may_select(rule: DeviceTaintRule, published: ResourceSlice) -> bool:
    """Whether driver and pool match. A rule without a selector matches every device."""
    selector, spec = rule.spec.device_selector, published.spec
    return selector is None or (
        selector.driver in (None, spec.driver) and selector.pool in (None, spec.pool.name)
    )


def taints_of(seen: ResourceSlice) -> list[list[DeviceTaint]]:
    return [device.taints for device in seen.spec.devices]


def _with_taints(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added = [rule.spec.taint for rule in rules if _selects(rule, device)]
    return replace(device, taints=[*device.taints, *added]) if added else device


def _selects(rule: DeviceTaintRule, device: Device) -> bool:
    selector = rule.spec.device_selector
    return selector is None or selector.device in (None, device.name)
