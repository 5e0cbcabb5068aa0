"""How many devices of a class a node has, and how many of them are in use: for scoring.

NodeResourcesFit and NodeResourcesBalancedAllocation score an extended resource that devices serve as
if the node offered its devices. The count is rougher than an allocation: every slice counts, whatever
its generation, and a device is in use if any claim has it or a share of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.changes import ChangeLog
from mooring.cluster.claim_cache import ClaimCache
from mooring.cluster.columns import Columns, Rows
from mooring.cluster.device_classes import DeviceClassNames, is_counted
from mooring.cluster.device_pools import DevicePools
from mooring.cluster.node_info import NodeInfo
from mooring.devices.allocated import PoolID
from mooring.devices.selectors import SelectorCompileError, SelectorRuntimeError, compile_selector
from mooring.objects.devices import Device, DeviceClass, ResourceSlice
from mooring.objects.node import Node
from mooring.objects.selectors import NodeSelector, compile_node_terms

if TYPE_CHECKING:
    from mooring.devices.cel_selectors import Selector


@dataclass(slots=True)
class _Found:
    """The devices of a class on a node."""

    #: The node's labels.
    labels: dict[str, str]
    #: Their names, by pool. A name that slices of several generations have counts several times.
    devices: dict[PoolID, list[str]]
    #: How many are in use, and the revisions of the pools at which that was counted.
    in_use: int = 0
    revisions: list[int] | None = None


@dataclass(slots=True)
class _Counted:
    """The counts of all rows for one resource."""

    #: int64[row].
    in_use: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    devices: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    #: The rows whose devices are in a pool.
    rows_of: dict[PoolID, set[int]] = field(default_factory=dict)
    #: What was counted: positions in logs, and the revision of slices and classes.
    nodes_at: int = 0
    pools_at: int = 0
    revision: int = -1


class DeviceCounts:
    """Counts devices.

    What selectors say of devices is kept until a slice or a class changes; how many are in use, until the use
    of their pools changes.
    """

    def __init__(
        self,
        classes: DeviceClassNames,
        pools: DevicePools,
        claims: ClaimCache,
        node_changes: ChangeLog[int],
    ) -> None:
        self._classes = classes
        self._pools = pools
        self._allocated = claims.devices
        #: The pools whose use changed, and the rows whose node changed.
        self._pool_changes = claims.pool_changes
        self._node_changes = node_changes
        #: By resource.
        self._counted: dict[str, _Counted] = {}
        self._revision = -1
        #: Slices by the name of their node, and those that every node must be compared with.
        self._on_node: dict[str, list[ResourceSlice]] = {}
        self._compared: list[ResourceSlice] = []
        #: By the names of the class and of the node.
        self._found: dict[tuple[str, str], _Found] = {}
        self._selectors: dict[str, Selector] = {}

    def counts(self, resource: str) -> bool:
        """Whether a class serves the resource."""
        return resource in self._classes and is_counted(resource)

    def of(self, resource: str, node: Node) -> tuple[int, int]:
        """The devices in use and all devices; (0, 0) if that cannot be said."""
        served_by = self._classes.get(resource)
        if served_by is None:
            return 0, 0
        try:
            found = self._devices(served_by, node)
        except (SelectorCompileError, SelectorRuntimeError):
            return 0, 0
        revisions = [self._allocated.revision(pool) for pool in found.devices]
        if revisions != found.revisions:
            found.in_use = sum(self._in_use(*each) for each in found.devices.items())
            found.revisions = revisions
        return found.in_use, sum(map(len, found.devices.values()))

    def on_rows(
        self, resource: str, columns: Columns, rows: Rows, infos: Mapping[str, NodeInfo]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The same for many nodes. Only nodes with other devices, or other use of them, are counted again."""
        counted = self._counted.setdefault(resource, _Counted())
        for row in self._outdated(counted, columns):
            info = infos.get(columns.names[row])
            node = None if info is None else info.node
            counted.in_use[row], counted.devices[row] = self.of(resource, node) if node else (0, 0)
            for pool in self._pools_of(resource, node) if node else ():
                counted.rows_of.setdefault(pool, set()).add(row)
        counted.nodes_at = self._node_changes.position
        counted.pools_at = self._pool_changes.position
        counted.revision = self._pools.revision
        return counted.in_use[rows], counted.devices[rows]

    def _outdated(self, counted: _Counted, columns: Columns) -> Iterable[int]:
        nodes = self._node_changes.since(counted.nodes_at)
        pools = self._pool_changes.since(counted.pools_at)
        if (
            counted.revision != self._pools.revision
            or len(counted.devices) != columns.size
            or nodes is None
            or pools is None
        ):
            counted.in_use = np.zeros(columns.size, np.int64)
            counted.devices = np.zeros(columns.size, np.int64)
            counted.rows_of = {}
            return range(columns.size)
        return set(nodes).union(*(counted.rows_of.get(pool, ()) for pool in pools))

    def _pools_of(self, resource: str, node: Node) -> Iterable[PoolID]:
        served_by = self._classes.get(resource)
        known = None if served_by is None else self._found.get((served_by.name, node.name))
        return () if known is None else known.devices

    def _in_use(self, pool: PoolID, names: list[str]) -> int:
        use = self._allocated.in_pool(pool)
        return sum(name in use.dedicated or name in use.shares for name in names)

    def _devices(self, device_class: DeviceClass, node: Node) -> _Found:
        if self._revision != self._pools.revision:
            self._file_slices()
        key = device_class.name, node.name
        known = self._found.get(key)
        if known is None or (known.labels is not node.labels and known.labels != node.labels):
            known = self._found[key] = _Found(node.labels, self._look(device_class, node))
        return known

    def _look(self, device_class: DeviceClass, node: Node) -> dict[PoolID, list[str]]:
        found: dict[PoolID, list[str]] = {}
        for piece in (*self._on_node.get(node.name, ()), *self._compared):
            driver, pool = piece.spec.driver, piece.spec.pool.name
            for device in _on(piece, node):
                if self._is_of(device_class, driver, device):
                    found.setdefault(PoolID(driver, pool), []).append(device.name)
        return found

    def _is_of(self, device_class: DeviceClass, driver: str, device: Device) -> bool:
        for each in device_class.spec.selectors:
            if each.cel is None:
                continue
            expression = each.cel.expression
            selector = self._selectors.get(expression)
            if selector is None:
                selector = self._selectors[expression] = compile_selector(
                    expression, list_attributes=self._pools.slices.features.list_attributes
                )
            if not selector.matches(driver, device):
                return False
        return True

    def _file_slices(self) -> None:
        self._revision = self._pools.revision
        self._found.clear()
        self._selectors.clear()
        self._on_node, self._compared = {}, []
        for piece in self._pools.slices.slices:
            spec = piece.spec
            alone = not (spec.per_device_node_selection or spec.all_nodes or spec.node_selector)
            if spec.node_name and alone:
                self._on_node.setdefault(spec.node_name, []).append(piece)
            else:
                self._compared.append(piece)


def _on(piece: ResourceSlice, node: Node) -> list[Device]:
    """The devices of a slice that the node can use. A slice that does not say is for every node."""
    spec = piece.spec
    if spec.per_device_node_selection:
        return [
            device
            for device in spec.devices
            if _is_for(node, device.node_name, device.all_nodes, device.node_selector)
        ]
    says = spec.node_name or spec.all_nodes or spec.node_selector is not None
    if says and not _is_for(node, spec.node_name, spec.all_nodes, spec.node_selector):
        return []
    return spec.devices


def _is_for(
    node: Node, name: str | None, all_nodes: bool | None, selector: NodeSelector | None
) -> bool:
    if all_nodes or (name and name == node.name):
        return True
    if selector is None:
        return False
    terms = compile_node_terms(selector.node_selector_terms)
    return any(term.matches(node.labels, node.name) for term in terms)
