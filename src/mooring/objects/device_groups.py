"""Devices from a short text, for users without a driver: `8xgpu.example.com,memory=80Gi,model=H100`.

    [COUNTx]DRIVER[,OPTION…]

Each node gets as many devices as the text says, in a pool with the name of the node, as drivers publish them.
A device class with the name of the driver selects them, unless the input has such a class. `gpu` is short for
`gpu.example.com`.

A device with `partitions=4` can be had whole or in four equal parts, which take their share from one counter.
The parts have a class of their own, `DRIVER-1-of-4`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from math import lcm

from mooring.objects.devices import (
    CapacityRange,
    CapacityRequestPolicy,
    CelSelector,
    Counter,
    CounterConsumption,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    DeviceTaint,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.node import Node
from mooring.objects.quantity import BinaryQuantity, Quantity, parse_quantity
from mooring.objects.selector_text import parse_selector
from mooring.objects.selectors import Selector

EXAMPLES = "8xgpu.example.com,memory=80Gi,model=H100 or 1xnic.example.com,shared,bandwidth=100G"

_API = "resource.k8s.io/v1"
_DEFAULT_DOMAIN = "example.com"
_OPTIONS = ("on", "node", "partitions", "shared", "share", "taint", "class", "name")
_MOST_DEVICES, _MOST_PARTS = 1_000, 64
#: What the API allows in a slice: devices, devices with taints or counters, sets of counters.
_IN_SLICE, _IN_SLICE_WITH_COUNTERS, _SETS_IN_SLICE = 128, 64, 8

_COUNT = re.compile(r"([0-9]+)\s*[x×*]\s*(.+)", re.ASCII | re.DOTALL)
_DRIVER = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}", re.ASCII)
#: An amount with a unit is a capacity.
_AMOUNT = re.compile(r"[0-9.]+(?:[KMGTPE]i|[kMGTPE])", re.ASCII)
_TAINT = re.compile(r"([^=:]+)(?:=([^:]*))?:(NoSchedule|NoExecute|None)")
_COMMA = re.compile(r",(?![^()]*\))")
#: Attributes and a counter of partitions.
_PARTS, _KIND = "partitions", "kind"


@dataclass(slots=True)
class DeviceGroup:
    """Devices that are alike, on each node that is chosen."""

    #: As the user wrote it.
    text: str
    count: int
    driver: str
    #: The nodes: by labels, and by name if there is one.
    selector: Selector = field(default_factory=Selector)
    node: str = ""
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    capacity: dict[str, Quantity] = field(default_factory=dict)
    taints: list[DeviceTaint] = field(default_factory=list)
    #: In how many equal parts a device can be had; several numbers are several sizes.
    partitions: tuple[int, ...] = ()
    is_shared: bool = False
    #: What a share consumes if its claim does not say, and at least: capacity → amount.
    shares: dict[str, Quantity] = field(default_factory=dict)
    #: The beginning of the devices' names.
    name: str = ""
    #: The name of the device class; that of the driver by default.
    class_name: str = ""

    def is_on(self, node: Node) -> bool:
        return self.node in ("", node.name) and self.selector.matches(node.labels)

    @property
    def device_capacity(self) -> dict[str, DeviceCapacity]:
        return {
            name: DeviceCapacity(value=amount, request_policy=self._policy(name))
            for name, amount in self.capacity.items()
        }

    def _policy(self, capacity: str) -> CapacityRequestPolicy | None:
        share = self.shares.get(capacity)
        if share is None:
            return None
        return CapacityRequestPolicy(default=share, valid_range=CapacityRange(min=share))


def parse_device_group(text: str) -> DeviceGroup:
    """Raises ValueError: what is wrong, and what to write."""
    counted = _COUNT.fullmatch(text.strip())
    count, described = (int(counted[1]), counted[2]) if counted else (1, text.strip())
    if not 1 <= count <= _MOST_DEVICES:
        raise ValueError(f"{count} devices: write a number from 1 to {_MOST_DEVICES:,}")
    words = [word.strip() for word in _COMMA.split(described) if word.strip()]
    if not words or "=" in words[0] or re.fullmatch(r"[0-9]+\s*[x×*]?", words[0]):
        raise ValueError(f"names no driver; write {EXAMPLES}")
    driver = words[0]
    if not _DRIVER.fullmatch(driver) or ".." in driver:
        raise ValueError(
            f"{driver!r} is not the name of a driver, which has lower case letters, digits, - and .;"
            f" write {EXAMPLES}"
        )
    if "." not in driver:
        driver = f"{driver}.{_DEFAULT_DOMAIN}"
    group = DeviceGroup(text, count, driver, name=driver.partition(".")[0], class_name=driver)
    for word in words[1:]:
        _read(group, word)
    _check(group)
    return group


def _read(group: DeviceGroup, word: str) -> None:
    key, equals, value = (part.strip() for part in word.partition("="))
    if key == "shared" and not equals:
        group.is_shared = True
        return
    if not equals or not value:
        raise ValueError(f"{word!r} has no value; write {key}=VALUE, or shared")
    match key:
        case "on":
            group.selector = parse_selector(value.replace(";", ","))
        case "node":
            group.node = value
        case "name":
            group.name = value
        case "class":
            group.class_name = value
        case "partitions":
            group.partitions = tuple(_whole(key, each) for each in value.split(";"))
        case "share":
            name, _, amount = value.partition("=")
            group.shares[name.strip()] = _quantity(f"share={name}", amount.strip())
        case "taint":
            group.taints.append(_taint(value))
        case _:
            _property(group, key, value)


def _property(group: DeviceGroup, key: str, value: str) -> None:
    """A capacity if the value is an amount with a unit, otherwise an attribute."""
    close = get_close_matches(key, _OPTIONS, n=1, cutoff=0.8)
    if close:
        raise ValueError(f"there is no option {key!r}; did you mean {close[0]}?")
    if not _IDENTIFIER.fullmatch(key):
        raise ValueError(
            f"{key!r} is not the name of an attribute or a capacity: at most 32 letters, digits and _"
        )
    if key in group.capacity or key in group.attributes:
        raise ValueError(f"{key} is given twice")
    if _AMOUNT.fullmatch(value):
        group.capacity[key] = _quantity(key, value)
    elif value in ("true", "false"):
        group.attributes[key] = DeviceAttribute(boolean=value == "true")
    elif re.fullmatch(r"-?[0-9]{1,18}", value, re.ASCII):
        group.attributes[key] = DeviceAttribute(integer=int(value))
    elif len(value) > 64:
        raise ValueError(f"{key}={value}: an attribute has at most 64 characters")
    else:
        group.attributes[key] = DeviceAttribute(string=value)


def _check(group: DeviceGroup) -> None:
    if group.is_shared and group.partitions:
        raise ValueError("shared and partitions: give one of the two")
    if group.is_shared and not group.capacity:
        raise ValueError("shared devices need a capacity to share; write shared,bandwidth=100G")
    unknown = [name for name in group.shares if name not in group.capacity]
    if unknown:
        raise ValueError(f"share={unknown[0]}: the device has no capacity {unknown[0]}")
    if group.shares and not group.is_shared:
        raise ValueError("share is about shared devices; add shared")
    if group.partitions:
        taken = {_PARTS, _KIND}.intersection(group.attributes)
        if taken:
            raise ValueError(f"{min(taken)} is an attribute that partitions have already")


# Objects


class CannotAddDevices(ValueError):
    """No node is chosen, or a node has devices of the driver already."""


def device_objects(
    groups: Sequence[DeviceGroup], nodes: Iterable[Node], known: Iterable[KubeObject] = ()
) -> list[KubeObject]:
    """The slices of the nodes, and the classes that are not among the `known` objects.

    Raises CannotAddDevices.
    """
    nodes, known = list(nodes), list(known)
    for group in groups:
        _check_free(group, known)
        if not any(map(group.is_on, nodes)):
            some = ", ".join(node.name for node in nodes[:5]) or "none"
            raise CannotAddDevices(
                f"--devices {group.text}: no node is chosen; the nodes are {some}"
            )
    classes = {obj.name for obj in known if isinstance(obj, DeviceClass)}
    made = {each.name: each for group in groups for each in _classes(group)}
    objects: list[KubeObject] = [each for name, each in made.items() if name not in classes]
    for node in nodes:
        objects += slices_of(groups, node)
    return objects


def _check_free(group: DeviceGroup, known: Iterable[KubeObject]) -> None:
    """Two pools of one name would contradict each other."""
    for obj in known:
        if isinstance(obj, ResourceSlice) and obj.spec.driver == group.driver:
            raise CannotAddDevices(
                f"--devices {group.text}: ResourceSlice {obj.name} has devices of driver {group.driver}"
                " already; leave it out, or use another driver"
            )


def slices_of(groups: Sequence[DeviceGroup], node: Node) -> list[ResourceSlice]:
    """What the drivers would publish for a node."""
    by_driver: dict[str, list[DeviceGroup]] = {}
    for group in groups:
        if group.is_on(node):
            by_driver.setdefault(group.driver, []).append(group)
    return [piece for driver, some in by_driver.items() for piece in _pool(driver, some, node)]


def _pool(driver: str, groups: Sequence[DeviceGroup], node: Node) -> list[ResourceSlice]:
    devices: list[Device] = []
    sets: list[CounterSet] = []
    numbers: dict[str, int] = {}
    for group in groups:
        for _ in range(group.count):
            number = numbers.get(group.name, 0)
            numbers[group.name] = number + 1
            devices += _devices(group, f"{group.name}-{number}")
            sets += _counters(group, f"{group.name}-{number}")
    size = _IN_SLICE_WITH_COUNTERS if sets or any(d.taints for d in devices) else _IN_SLICE
    parts: list[ResourceSliceSpec] = [
        ResourceSliceSpec(shared_counters=sets[i : i + _SETS_IN_SLICE])
        for i in range(0, len(sets), _SETS_IN_SLICE)
    ]
    parts += [
        ResourceSliceSpec(devices=devices[i : i + size]) for i in range(0, len(devices), size)
    ]
    return [
        ResourceSlice(
            api_version=_API,
            kind="ResourceSlice",
            metadata=ObjectMeta(name=f"{node.name}-{driver}-{i}", uid=f"{node.name}-{driver}-{i}"),
            spec=ResourceSliceSpec(
                driver=driver,
                pool=ResourcePool(name=node.name, generation=1, resource_slice_count=len(parts)),
                node_name=node.name,
                devices=part.devices,
                shared_counters=part.shared_counters,
            ),
        )
        for i, part in enumerate(parts)
    ]


def _devices(group: DeviceGroup, name: str) -> Iterator[Device]:
    """The device or, if it can be divided, its smallest parts first: a claim for any of them gets these."""
    whole = Device(
        name=name,
        attributes=group.attributes,
        capacity=group.device_capacity,
        taints=group.taints,
        allow_multiple_allocations=group.is_shared or None,
    )
    if not group.partitions:
        yield whole
        return
    units = lcm(*group.partitions)
    for parts in sorted((1, *group.partitions), reverse=True):
        told = DeviceAttribute(string="whole" if parts == 1 else "partition")
        attributes = {
            **group.attributes,
            _KIND: told,
            _PARTS: DeviceAttribute(integer=parts),
        }
        used = CounterConsumption(
            counter_set=name, counters={_PARTS: Counter(value=Quantity(units // parts))}
        )
        for i in range(parts):
            yield Device(
                name=name if parts == 1 else f"{name}-{i + 1}-of-{parts}",
                attributes=attributes,
                capacity={
                    capacity: DeviceCapacity(value=_divided(amount, parts))
                    for capacity, amount in group.capacity.items()
                },
                taints=group.taints,
                consumes_counters=[used],
            )


def _counters(group: DeviceGroup, name: str) -> Iterator[CounterSet]:
    if group.partitions:
        units = lcm(*group.partitions)
        yield CounterSet(name=name, counters={_PARTS: Counter(value=Quantity(units))})


def _divided(amount: Quantity, parts: int) -> Quantity:
    """A part of an amount, rounded down to whole units."""
    kind = BinaryQuantity if isinstance(amount, BinaryQuantity) else Quantity
    return kind(amount.value // parts)


def _classes(group: DeviceGroup) -> Iterator[DeviceClass]:
    driver = f'device.driver == "{group.driver}"'
    if not group.partitions:
        yield _class(group.class_name, driver)
        return
    attribute = f'device.attributes["{group.driver}"]'
    yield _class(group.class_name, f'{driver} && {attribute}.{_KIND} == "whole"')
    for parts in group.partitions:
        selects = f"{driver} && {attribute}.{_PARTS} == {parts}"
        yield _class(f"{group.class_name}-1-of-{parts}", selects)


def _class(name: str, expression: str) -> DeviceClass:
    return DeviceClass(
        api_version=_API,
        kind="DeviceClass",
        metadata=ObjectMeta(name=name, uid=f"class-{name}"),
        spec=DeviceClassSpec(selectors=[DeviceSelector(cel=CelSelector(expression=expression))]),
    )


# Values


def _whole(key: str, text: str) -> int:
    number = int(text) if text.strip().isascii() and text.strip().isdigit() else 0
    if not 2 <= number <= _MOST_PARTS:
        raise ValueError(f"{key}={text}: write a whole number from 2 to {_MOST_PARTS}")
    return number


def _quantity(key: str, text: str) -> Quantity:
    try:
        amount = parse_quantity(text)
        if amount.nanos > 0:
            return amount
    except ValueError:
        pass
    raise ValueError(f"{key}={text}: write an amount such as 80Gi")


def _taint(text: str) -> DeviceTaint:
    found = _TAINT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a taint of a device; write taint=KEY=VALUE:NoSchedule")
    return DeviceTaint(key=found[1].strip(), value=found[2] or "", effect=found[3])
