"""Pools: the devices of one driver that belong together, as one node sees them.

A pool is spread over slices, and a driver replaces them one by one. Only the newest generation counts.
No device is taken from a pool that is incomplete (slices are missing) or invalid (slices contradict
each other), but the pool is known, because a request for all devices must not pass it over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from mooring.devices.allocated import AllocatedDevices, DeviceID, PoolID
from mooring.devices.features import DeviceFeatures
from mooring.devices.node_matching import Reach
from mooring.objects.devices import Device, DeviceTaint, ResourceSlice

#: A counter: the name of its set, and its own.
CounterKey = tuple[str, str]
#: What a device takes of the counters, in units of 10**-9.
Consumption = tuple[tuple[CounterKey, int], ...]


class PoolDevice:
    """A device in its slice, with what the allocator asks for again and again."""

    __slots__ = (
        "content",
        "counters",
        "device",
        "id",
        "multiple",
        "name",
        "reach",
        "selectable",
        "slice",
        "taints",
        "takeable",
    )

    def __init__(
        self, piece: ResourceSlice, device: Device, content: int, features: DeviceFeatures
    ) -> None:
        spec = piece.spec
        self.slice = piece
        self.device = device
        self.name = device.name
        self.id = DeviceID(spec.driver, spec.pool.name, device.name)
        #: Devices with the same number are alike to every selector.
        self.content = content
        #: Whether several claims can have a share.
        self.multiple = features.consumable_capacity and bool(device.allow_multiple_allocations)
        self.counters: Consumption = _consumption(device)
        #: The taints that keep requests off the device.
        self.taints: tuple[DeviceTaint, ...] = (
            tuple(each for each in device.taints if each.effect in ("NoSchedule", "NoExecute"))
            if features.device_taints
            else ()
        )
        #: Whether requests can select the device, and whether they can take it. Both are false only because
        #: of a feature that is off.
        self.selectable = features.binding_conditions or not device.binding_conditions
        self.takeable = features.partitionable_devices or not device.consumes_counters
        #: The nodes of this device, if the slice leaves that to its devices.
        self.reach = (
            Reach(device.node_name, device.all_nodes, device.node_selector)
            if spec.per_device_node_selection
            else None
        )


class IndexedSlice:
    """A slice, and what follows from it alone."""

    __slots__ = ("_content_of", "_devices", "_features", "place", "reach", "slice")

    def __init__(
        self,
        piece: ResourceSlice,
        place: int,
        content_of: Callable[[str, Device], int],
        features: DeviceFeatures,
    ) -> None:
        spec = piece.spec
        self.slice = piece
        #: Slices are looked at in the order of their places.
        self.place = place
        self.reach = Reach(spec.node_name, spec.all_nodes, spec.node_selector)
        self._content_of = content_of
        self._features = features
        self._devices: tuple[PoolDevice, ...] | None = None

    @property
    def name(self) -> str:
        return self.slice.name

    @property
    def generation(self) -> int:
        return self.slice.spec.pool.generation

    @property
    def has_counters(self) -> bool:
        """Whether it defines counters. Such a slice matters on every node and offers no devices."""
        return bool(self.slice.spec.shared_counters)

    @property
    def ignored(self) -> bool:
        """Whether it needs a feature that is off. It still counts as one of the slices of its pool."""
        if self._features.partitionable_devices:
            return False
        return self.has_counters or self.slice.spec.per_device_node_selection is not None

    def nodes_by_name(self) -> set[str] | None:
        """The names of the nodes that it is for; None if nodes must be compared with it."""
        if self.ignored:
            return set()
        if self.reach.stated:
            return {self.reach.node_name} if self.reach.node_name else None
        spec = self.slice.spec
        if not spec.per_device_node_selection:
            return set()
        reaches = [
            Reach(each.node_name, each.all_nodes, each.node_selector) for each in spec.devices
        ]
        if not all(reach.by_name for reach in reaches):
            return None
        return {reach.node_name for reach in reaches if reach.node_name}

    @property
    def devices(self) -> tuple[PoolDevice, ...]:
        if self._devices is None:
            spec = self.slice.spec
            self._devices = tuple(
                PoolDevice(
                    self.slice, device, self._content_of(spec.driver, device), self._features
                )
                for device in spec.devices
            )
        return self._devices


@dataclass(slots=True, eq=False)
class Pool:
    """A pool as a node sees it. Nodes that see the same slices share it."""

    id: PoolID
    #: Whether slices are missing.
    incomplete: bool = False
    #: What is wrong with the slices; empty if nothing is.
    invalid: str = ""
    #: The devices for the node, in order: by name of the slice, then by place in it.
    devices: tuple[PoolDevice, ...] = ()
    #: The counters of the pool and their values.
    counters: dict[CounterKey, int] = field(default_factory=dict)
    #: What devices of the pool take of the counters if they are in use, wherever they can be used from.
    consumers: dict[str, Consumption] = field(default_factory=dict)
    #: Whether some device has binding conditions. Such pools are tried last.
    binding_conditions: bool = False
    _available: tuple[AllocatedDevices, int, dict[CounterKey, int]] | None = None

    @property
    def usable(self) -> bool:
        return not self.incomplete and not self.invalid

    def available(self, allocated: AllocatedDevices) -> dict[CounterKey, int]:
        """What the devices in use leave of the counters. It may be negative."""
        revision = allocated.revision(self.id)
        kept = self._available
        if kept is not None and kept[0] is allocated and kept[1] == revision:
            return kept[2]
        left = dict(self.counters)
        use = allocated.in_pool(self.id)
        for name in use.dedicated.keys() | use.shares.keys():
            for key, amount in self.consumers.get(name, ()):
                left[key] -= amount
        self._available = allocated, revision, left
        return left


class PoolSlices:
    """All slices of one pool, for any node, and the pools made of them."""

    def __init__(self, pool_id: PoolID, features: DeviceFeatures) -> None:
        self.id = pool_id
        self._features = features
        self.slices: dict[str, IndexedSlice] = {}
        #: How often the slices have changed.
        self.revision = 0
        #: Names of the slices that matter for a node → the pool as it is there.
        self._made: dict[tuple[str, ...], Pool | None] = {}
        self._by_generation: dict[int, list[IndexedSlice]] | None = None
        self._counters: dict[int, _Counters] = {}
        self._nodes: set[str] | None = None
        self._nodes_known = False

    @property
    def nodes(self) -> set[str] | None:
        """The nodes that can take its devices; None if nodes must be compared with some slice."""
        if not self._nodes_known:
            offering = [each for each in self.slices.values() if not each.has_counters]
            named = [each.nodes_by_name() for each in offering]
            known = [each for each in named if each is not None]
            self._nodes = set().union(*known) if len(known) == len(named) else None
            self._nodes_known = True
        return self._nodes

    def put(self, piece: IndexedSlice) -> None:
        self.slices[piece.name] = piece
        self._changed()

    def remove(self, name: str) -> None:
        del self.slices[name]
        self._changed()

    def pool_of(self, relevant: Sequence[IndexedSlice]) -> Pool | None:
        """The pool for a node that these slices matter for; None if a newer generation exists."""
        newest = max(each.generation for each in relevant)
        kept = [each for each in relevant if each.generation == newest]
        key = tuple(each.name for each in kept)
        try:
            return self._made[key]
        except KeyError:
            pool = self._made[key] = self._make(kept)
            return pool

    def _changed(self) -> None:
        self.revision += 1
        self._made = {}
        self._by_generation = None
        self._counters = {}
        self._nodes_known = False

    def _make(self, kept: list[IndexedSlice]) -> Pool | None:
        wanted = kept[0].slice.spec.pool.resource_slice_count
        generation = kept[0].generation
        whole = self._generations()[generation]
        if len(kept) == wanted:
            # More slices than the pool says to have: those of other nodes are not looked at.
            counters = self._counters_of(generation) if len(kept) == len(whole) else None
            return self._build(kept, counters or self._read_counters(kept))
        if max(self._generations()) > generation:
            return None
        if len(whole) != wanted:
            return Pool(self.id, incomplete=True)
        return self._build(kept, self._counters_of(generation))

    def _build(self, kept: Iterable[IndexedSlice], counters: _Counters) -> Pool:
        pool = _build(self.id, kept, counters)
        if self._features.stable_allocator:
            # No device with conditions is selected, and the pools are not put last.
            pool.binding_conditions = False
        return pool

    def _read_counters(self, pieces: Iterable[IndexedSlice]) -> _Counters:
        return _read_counters(pieces) if self._features.partitionable_devices else _Counters({}, {})

    def _generations(self) -> dict[int, list[IndexedSlice]]:
        if self._by_generation is None:
            self._by_generation = {}
            for piece in self.slices.values():
                self._by_generation.setdefault(piece.generation, []).append(piece)
        return self._by_generation

    def _counters_of(self, generation: int) -> _Counters:
        """The same for all nodes, because slices that define counters matter on all of them."""
        if generation not in self._counters:
            self._counters[generation] = self._read_counters(self._generations()[generation])
        return self._counters[generation]


@dataclass(frozen=True, slots=True)
class _Counters:
    """The counters that slices define, and what devices take of them."""

    values: dict[CounterKey, int]
    consumers: dict[str, Consumption]
    #: What is wrong; empty if nothing is.
    invalid: str = ""


def _build(pool_id: PoolID, kept: Iterable[IndexedSlice], counters: _Counters) -> Pool:
    """A complete pool."""
    in_order = sorted(kept, key=lambda each: each.name)
    devices = tuple(device for each in in_order if not each.has_counters for device in each.devices)
    names = set()
    for device in devices:
        if device.name in names:
            return Pool(pool_id, invalid=f"duplicate device name {device.name}")
        names.add(device.name)
    if counters.invalid:
        return Pool(pool_id, invalid=counters.invalid)
    return Pool(
        pool_id,
        devices=devices,
        counters=counters.values,
        consumers=counters.consumers,
        binding_conditions=any(each.device.binding_conditions for each in devices),
    )


def _read_counters(pieces: Iterable[IndexedSlice]) -> _Counters:
    in_order = sorted(pieces, key=lambda each: each.name)
    values: dict[CounterKey, int] = {}
    sets: set[str] = set()
    for piece in in_order:
        for counter_set in piece.slice.spec.shared_counters:
            if counter_set.name in sets:
                return _Counters({}, {}, f"duplicate counter set name {counter_set.name}")
            sets.add(counter_set.name)
            for name, counter in counter_set.counters.items():
                values[counter_set.name, name] = counter.value.nanos
    consumers: dict[str, Consumption] = {}
    for piece in in_order:
        for device in piece.slice.spec.devices:
            if not device.consumes_counters:
                continue
            if problem := _unknown_counter(device, sets, values):
                return _Counters({}, {}, problem)
            if not piece.has_counters:
                taken = _consumption(device)
                consumers[device.name] = consumers.get(device.name, ()) + taken
    return _Counters(values, consumers)


def _unknown_counter(device: Device, sets: set[str], values: dict[CounterKey, int]) -> str:
    for consumed in device.consumes_counters:
        if consumed.counter_set not in sets:
            return f"counter set {consumed.counter_set} not found"
        for name in consumed.counters:
            if (consumed.counter_set, name) not in values:
                return f"counter {name} not found in counter set {consumed.counter_set}"
    return ""


def _consumption(device: Device) -> Consumption:
    return tuple(
        ((consumed.counter_set, name), counter.value.nanos)
        for consumed in device.consumes_counters
        for name, counter in consumed.counters.items()
    )
