"""Node: what a machine offers, and which pods it accepts."""

from __future__ import annotations

from mooring.objects.cached_property import cached_property
from mooring.objects.meta import KubeObject, Part, ResourceList
from mooring.objects.taints import Taint


class NodeSpec(Part, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []
    provider_id: str = ""


class ContainerImage(Part, frozen=True):
    names: list[str] = []
    size_bytes: int = 0


class NodeCondition(Part, frozen=True):
    type: str = ""
    status: str = ""


class NodeSystemInfo(Part, frozen=True):
    operating_system: str = ""
    architecture: str = ""


class NodeStatus(Part, frozen=True):
    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    images: list[ContainerImage] = []
    conditions: list[NodeCondition] = []
    declared_features: list[str] = []
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(KubeObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @cached_property
    def taints(self) -> tuple[Taint, ...]:
        return tuple(self.spec.taints)
