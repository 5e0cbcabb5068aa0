"""Node: what a machine offers, and which pods it accepts."""

from __future__ import annotations

from mooring.objects.cached_property import cached_property
from mooring.objects.empties import NO_ITEMS, NO_KEYS
from mooring.objects.meta import KubeObject, Part, ResourceList
from mooring.objects.taints import Taint


class NodeSpec(Part, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = NO_ITEMS
    provider_id: str = ""


class ContainerImage(Part, frozen=True):
    names: list[str] = NO_ITEMS
    size_bytes: int = 0


class NodeCondition(Part, frozen=True):
    type: str = ""
    status: str = ""


class NodeSystemInfo(Part, frozen=True):
    operating_system: str = ""
    architecture: str = ""


class NodeStatus(Part, frozen=True):
    allocatable: ResourceList = NO_KEYS
    capacity: ResourceList = NO_KEYS
    images: list[ContainerImage] = NO_ITEMS
    conditions: list[NodeCondition] = NO_ITEMS
    declared_features: list[str] = NO_ITEMS
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(KubeObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        return tuple(self.spec.taints)
