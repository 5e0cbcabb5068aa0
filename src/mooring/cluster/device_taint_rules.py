"""DeviceTaintRules: the taints that administrators add to the devices of drivers.

The scheduler sees each slice with the taints of all rules that select its devices.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mooring.objects.devices import Device, DeviceTaint, DeviceTaintRule, ResourceSlice


def with_rules(published: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    """The slice with the taints of the rules, in the order of their names, after its own."""
    spec = published.spec
    chosen = [rule for rule in rules if may_select(rule, spec.driver, spec.pool.name)]
    if not chosen:
        return published
    chosen.sort(key=lambda rule: rule.name)
    devices = [_with_taints(device, chosen) for device in published.spec.devices]
    return replace(published, spec=replace(published.spec, devices=devices))


def may_select(rule: DeviceTaintRule, driver: str, pool: str) -> bool:
    """Whether driver and pool match. A rule without a selector matches every device."""
    selector = rule.spec.device_selector
    return selector is None or (selector.driver in (None, driver) and selector.pool in (None, pool))


def selects(rule: DeviceTaintRule, device: str) -> bool:
    """Whether a rule selects the device of this name, if driver and pool match."""
    selector = rule.spec.device_selector
    return selector is None or selector.device in (None, device)


def taints_of(seen: ResourceSlice) -> list[list[DeviceTaint]]:
    return [device.taints for device in seen.spec.devices]


def _with_taints(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added = [rule.spec.taint for rule in rules if selects(rule, device.name)]
    return replace(device, taints=[*device.taints, *added]) if added else device
