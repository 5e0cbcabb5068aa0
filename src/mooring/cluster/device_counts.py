"""How many devices of a class a node has, and how many of them are in use: for scoring.

NodeResourcesFit and NodeResourcesBalancedAllocation score an extended resource that devices serve as
if the node offered its devices. The count is rougher than an allocation: every slice counts, whatever
its generation, and a device is in use if any claim has it or a share of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.cluster.device_classes import DeviceClassNames, is_counted
from mooring.cluster.device_pools import DevicePools
from mooring.devices.allocated import AllocatedDevices, DeviceID, PoolID
from mooring.devices.selectors import (
    Selector,
    SelectorCompileError,
    SelectorRuntimeError,
    compile_selector,
)
from mooring.objects.devices import Device, DeviceClass, ResourceSlice
from mooring.objects.node import Node
from mooring.objects.selectors import NodeSelector, compile_node_terms


@dataclass(slots=True)
class _Found:
    """The devices of a class on a node."""

    #: The node's labels.
    labels: dict[str, str]
    devices: list[DeviceID]
    pools: tuple[PoolID, ...]
    #: How many are in use, and the revisions of the pools at which that was counted.
    in_use: int = 0
    revisions: list[int] | None = None


class DeviceCounts:
    """Counts devices.

    What selectors say of devices is kept until a slice or a class changes; how many are in use, until the use
    of their pools changes.
    """

    def __init__(
        self, classes: DeviceClassNames, pools: DevicePools, allocated: AllocatedDevices
    ) -> None:
        self._classes = classes
        self._pools = pools
        self._allocated = allocated
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
        revisions = [self._allocated.revision(pool) for pool in found.pools]
        if revisions != found.revisions:
            found.in_use = sum(map(self._is_in_use, found.devices))
            found.revisions = revisions
        return found.in_use, len(found.devices)

    def _is_in_use(self, device: DeviceID) -> bool:
        use = self._allocated.in_pool(PoolID(device.driver, device.pool))
        return device.device in use.dedicated or device.device in use.shares

    def _devices(self, device_class: DeviceClass, node: Node) -> _Found:
        if self._revision != self._pools.revision:
            self._file_slices()
        key = device_class.name, node.name
        known = self._found.get(key)
        if known is None or (known.labels is not node.labels and known.labels != node.labels):
            devices = self._look(device_class, node)
            pools = dict.fromkeys(PoolID(each.driver, each.pool) for each in devices)
            known = self._found[key] = _Found(node.labels, devices, tuple(pools))
        return known

    def _look(self, device_class: DeviceClass, node: Node) -> list[DeviceID]:
        return [
            DeviceID(piece.spec.driver, piece.spec.pool.name, device.name)
            for piece in (*self._on_node.get(node.name, ()), *self._compared)
            for device in _on(piece, node)
            if self._is_of(device_class, piece.spec.driver, device)
        ]

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
