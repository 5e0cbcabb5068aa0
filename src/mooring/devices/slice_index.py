"""All ResourceSlices, filed by the nodes that they matter for, and the pools of each node.

It is changed slice by slice and shared by all decisions. What is worked out for a node is kept until a
slice of one of its pools changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import TypeVar

import msgspec

from mooring.devices.allocated import PoolID
from mooring.devices.features import ALL_FEATURES, DeviceFeatures
from mooring.devices.node_matching import NodeSelectorError
from mooring.devices.pools import IndexedSlice, Pool, PoolSlices
from mooring.devices.selection import Selections
from mooring.errors import check_kept
from mooring.objects.devices import Device, ResourceSlice
from mooring.objects.meta import canonical_hook
from mooring.objects.node import Node

_Key = TypeVar("_Key")

_ENCODER = msgspec.json.Encoder(enc_hook=canonical_hook, order="deterministic")
#: How many contents of devices are remembered. Beyond that, equal devices get different numbers.
_MOST_CONTENTS = 1 << 17
#: If a pool has more slices, its nodes are not listed when a slice changes.
_MANY_SLICES = 64


@dataclass(frozen=True, slots=True)
class NodePools:
    """The pools that a node sees, in the order in which devices are tried."""

    #: All of them, except usable pools without devices for the node.
    pools: tuple[Pool, ...]
    #: Those that devices are taken from.
    usable: tuple[Pool, ...]
    #: Whether some pool is invalid.
    any_invalid: bool
    #: No two of these have the same number.
    serial: int


@dataclass(frozen=True, slots=True)
class _Kept:
    """The pools of a node, and what they were made of."""

    labels: Mapping[str, str]
    #: The pools with slices for the node, and their revisions.
    made_of: tuple[tuple[PoolSlices, int], ...]
    #: The revision of what is unusable elsewhere.
    unusable: int
    answer: NodePools


class SliceIndex:
    """The slices of the cluster."""

    def __init__(
        self, slices: Iterable[ResourceSlice] = (), features: DeviceFeatures = ALL_FEATURES
    ) -> None:
        self.features = features
        self._slices: dict[str, IndexedSlice] = {}
        self._pools: dict[PoolID, PoolSlices] = {}
        #: Node name → slices for the node alone, or with devices for the node by its name.
        self._on_node: dict[str, dict[str, IndexedSlice]] = {}
        #: Slices that every node must be compared with.
        self._compared: dict[str, IndexedSlice] = {}
        #: Pools that have counters → the slices that define them. They matter on every node.
        self._counters: dict[PoolID, dict[str, IndexedSlice]] = {}
        #: Pools that have counters, and of which every node must know that they are unusable.
        self._unusable: dict[PoolID, Pool] = {}
        #: Pools whose entry in `_unusable` may be wrong.
        self._unsure: set[PoolID] = set()
        #: Changes with `_unusable`.
        self._unusable_revision = 0
        self._kept: dict[str, _Kept] = {}
        self._contents: dict[bytes, int] = {}
        self._next_content = count()
        self._places = count()
        self._serials = count()
        #: Which devices selectors select.
        self.selections = Selections(features)
        for piece in slices:
            self._put(piece)

    def __len__(self) -> int:
        return len(self._slices)

    @property
    def slices(self) -> list[ResourceSlice]:
        return [piece.slice for piece in self._slices.values()]

    def put(self, piece: ResourceSlice) -> set[str] | None:
        """Add a slice, or replace the one of the same name.

        The answer is which nodes may see other pools than before; None if any node may.
        """
        former = self._slices.get(piece.name)
        changing = {_pool_id(piece), _pool_id(former.slice if former is not None else piece)}
        return self._nodes_affected(changing, partial(self._put, piece))

    def _put(self, piece: ResourceSlice) -> None:
        former = self._slices.get(piece.name)
        place = next(self._places) if former is None else former.place
        if former is not None:
            self._unfile(former)
        indexed = IndexedSlice(piece, place, self._content_of, self.features)
        self._slices[piece.name] = indexed
        self._file(indexed)

    def remove(self, name: str) -> set[str] | None:
        """Forget a slice, if it is known. The answer is that of `put`."""
        former = self._slices.pop(name, None)
        if former is None:
            return set()
        return self._nodes_affected({_pool_id(former.slice)}, partial(self._unfile, former))

    def pools_on(self, node: Node) -> NodePools:
        """Raises NodeSelectorError if a slice has a malformed node selector."""
        if self._unsure:
            self._look_at_unsure_pools()
        kept = self._kept.get(node.name)
        if kept is not None and self._holds(kept, node):
            return kept.answer
        kept = self._kept[node.name] = self._gather(node)
        return kept.answer

    def nodes_of(self, pool: PoolID) -> set[str] | None:
        """The nodes that can take devices of a pool; None if that takes comparing with each.

        Only on these does it matter which devices of the pool are in use.
        """
        return self._pools[pool].nodes if pool in self._pools else set()

    def validate(self) -> None:
        """Raise InvariantError unless the index is what a rebuild from its slices gives."""
        rebuilt = SliceIndex(self.slices, self.features)
        self._look_at_unsure_pools()
        rebuilt._look_at_unsure_pools()
        check_kept("slices by node", _names(self._on_node), _names(rebuilt._on_node))
        check_kept("slices to compare", set(self._compared), set(rebuilt._compared))
        check_kept("slices with counters", _names(self._counters), _names(rebuilt._counters))
        check_kept("unusable pools", set(self._unusable), set(rebuilt._unusable))
        pools, again = (
            {pool: each.slices for pool, each in index._pools.items()} for index in (self, rebuilt)
        )
        check_kept("slices by pool", _names(pools), _names(again))

    # Filing

    def _nodes_affected(self, pools: set[PoolID], change: Callable[[], None]) -> set[str] | None:
        """Make a change to these pools, and say which nodes may see it."""
        self._look_at_unsure_pools()
        unusable = self._unusable_revision
        before = [self._nodes_unless_many(pool) for pool in pools]
        change()
        self._look_at_unsure_pools()
        nodes = [*before, *(self._nodes_unless_many(pool) for pool in pools)]
        if unusable != self._unusable_revision or None in nodes:
            return None
        return set().union(*(each for each in nodes if each is not None))

    def _nodes_unless_many(self, pool: PoolID) -> set[str] | None:
        """Pools of many slices change slice by slice: listing their nodes each time takes too long."""
        if pool in self._pools and len(self._pools[pool].slices) > _MANY_SLICES:
            return None
        return self.nodes_of(pool)

    def _file(self, piece: IndexedSlice) -> None:
        pool_id = _pool_id(piece.slice)
        self._pools.setdefault(pool_id, PoolSlices(pool_id, self.features)).put(piece)
        if piece.has_counters and not piece.ignored:
            self._counters.setdefault(pool_id, {})[piece.name] = piece
        elif (nodes := piece.nodes_by_name()) is not None:
            for node in nodes:
                self._on_node.setdefault(node, {})[piece.name] = piece
                self._kept.pop(node, None)
        else:
            self._compared[piece.name] = piece
            self._kept.clear()
        if pool_id in self._counters:
            self._unsure.add(pool_id)

    def _unfile(self, piece: IndexedSlice) -> None:
        pool_id = _pool_id(piece.slice)
        if pool_id in self._counters:
            self._unsure.add(pool_id)
        pool = self._pools[pool_id]
        pool.remove(piece.name)
        if not pool.slices:
            del self._pools[pool_id]
        if piece.has_counters and not piece.ignored:
            _drop(self._counters, pool_id, piece.name)
        elif (nodes := piece.nodes_by_name()) is not None:
            for node in nodes:
                _drop(self._on_node, node, piece.name)
                self._kept.pop(node, None)
        else:
            del self._compared[piece.name]
            self._kept.clear()

    def _content_of(self, driver: str, device: Device) -> int:
        """The same number for devices that are alike to every selector and in their capacity."""
        told = (driver, device.attributes, device.capacity, device.allow_multiple_allocations)
        text = _ENCODER.encode(told)
        number = self._contents.get(text)
        if number is None:
            if len(self._contents) >= _MOST_CONTENTS:
                self._contents.clear()
            number = self._contents[text] = next(self._next_content)
        return number

    # The pools of a node

    def _holds(self, kept: _Kept, node: Node) -> bool:
        return (
            kept.unusable == self._unusable_revision
            and (kept.labels is node.labels or kept.labels == node.labels)
            and all(pool.revision == revision for pool, revision in kept.made_of)
        )

    def _gather(self, node: Node) -> _Kept:
        groups: dict[PoolID, list[IndexedSlice]] = {}
        for piece in self._relevant(node):
            groups.setdefault(_pool_id(piece.slice), []).append(piece)
        made_of = tuple((self._pools[each], self._pools[each].revision) for each in groups)
        own = []
        for pool_id, relevant in groups.items():
            relevant += self._counters.get(pool_id, {}).values()
            # The first slice tells how many there are. The reference looks at those of the node first.
            relevant.sort(
                key=lambda each: (each.has_counters or not each.reach.node_name, each.place)
            )
            pool = self._pools[pool_id].pool_of(relevant)
            if pool is not None:
                own.append(pool)
        others = (pool for pool in self._unusable.values() if pool.id not in groups)
        pools = tuple(
            sorted(chain(own, others), key=lambda pool: (pool.binding_conditions, pool.id))
        )
        answer = NodePools(
            pools,
            usable=tuple(pool for pool in pools if pool.usable and pool.devices),
            any_invalid=any(pool.invalid for pool in pools),
            serial=next(self._serials),
        )
        return _Kept(node.labels, made_of, self._unusable_revision, answer)

    def _relevant(self, node: Node) -> Iterable[IndexedSlice]:
        """The slices for the node that define no counters."""
        for piece in chain(self._on_node.get(node.name, {}).values(), self._compared.values()):
            if _includes(piece, node):
                yield piece

    def _look_at_unsure_pools(self) -> None:
        """Find out which pools with counters are unusable as far as any other node can see."""
        for pool_id in self._unsure:
            former = self._unusable.pop(pool_id, None)
            pieces = sorted(self._counters.get(pool_id, {}).values(), key=lambda each: each.place)
            pool = self._pools[pool_id].pool_of(pieces) if pieces else None
            if pool is not None and not pool.usable:
                self._unusable[pool_id] = pool
            if pool_id in self._unusable or former is not None:
                self._unusable_revision += 1
        self._unsure.clear()


def _pool_id(piece: ResourceSlice) -> PoolID:
    return PoolID(piece.spec.driver, piece.spec.pool.name)


def _includes(piece: IndexedSlice, node: Node) -> bool:
    """Whether the slice, or else one of its devices, is for the node."""
    try:
        if piece.reach.stated:
            return piece.reach.includes(node)
    except NodeSelectorError as error:
        raise NodeSelectorError(
            f"failed to perform node selection for slice {piece.name}: {error}"
        ) from error
    for device in piece.devices:
        try:
            if device.reach is not None and device.reach.includes(node):
                return True
        except NodeSelectorError as error:
            raise NodeSelectorError(
                f"failed to perform node selection for device {device.name} in slice {piece.name}: {error}"
            ) from error
    return False


def _drop(groups: dict[_Key, dict[str, IndexedSlice]], key: _Key, name: str) -> None:
    del groups[key][name]
    if not groups[key]:
        del groups[key]


def _names(groups: Mapping[_Key, Mapping[str, IndexedSlice]]) -> dict[_Key, set[str]]:
    return {key: set(group) for key, group in groups.items()}
