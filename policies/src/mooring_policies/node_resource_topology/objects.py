"""The NodeResourceTopology of a node, and what it says about the kubelet's Topology Manager."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.objects.kinds import custom_kind
from mooring.objects.meta import KubeObject, Part
from mooring.objects.quantity import ZERO, Quantity


class ZoneResource(Part, frozen=True):
    name: str = ""
    allocatable: Quantity = ZERO
    available: Quantity = ZERO


class ZoneCost(Part, frozen=True):
    #: The other zone.
    name: str = ""
    value: int = 0


class Attribute(Part, frozen=True):
    name: str = ""
    value: str = ""


class Zone(Part, frozen=True):
    name: str = ""
    #: `Node` for a NUMA zone.
    type: str = ""
    costs: list[ZoneCost] = []
    resources: list[ZoneResource] = []
    attributes: list[Attribute] = []


class NodeResourceTopology(KubeObject, frozen=True):
    topology_policies: list[str] = []
    zones: list[Zone] = []
    attributes: list[Attribute] = []


def attribute(attributes: Iterable[Attribute], name: str) -> str:
    """The value of the first attribute with this name, or an empty text."""
    return next((each.value for each in attributes if each.name == name), "")


TOPOLOGIES = custom_kind(
    NodeResourceTopology,
    "topology.node.k8s.io",
    "noderesourcetopologies",
    version="v1alpha2",
    namespaced=False,
)

CONTAINER, POD = "container", "pod"
SINGLE_NUMA_NODE = "single-numa-node"
_POLICIES = ("none", "best-effort", "restricted", SINGLE_NUMA_NODE)
_DEFAULT_ZONES, _MOST_ZONES = 8, 1024

#: The deprecated `topologyPolicies` → policy and scope.
_NAMED = {
    "SingleNUMANodePodLevel": (SINGLE_NUMA_NODE, POD),
    "SingleNUMANodeContainerLevel": (SINGLE_NUMA_NODE, CONTAINER),
    "BestEffortPodLevel": ("best-effort", POD),
    "BestEffortContainerLevel": ("best-effort", CONTAINER),
    "RestrictedPodLevel": ("restricted", POD),
    "RestrictedContainerLevel": ("restricted", CONTAINER),
}


@dataclass(frozen=True, slots=True)
class TopologyManager:
    """How the kubelet of a node aligns resources."""

    scope: str = CONTAINER
    policy: str = "none"
    max_zones: int = _DEFAULT_ZONES

    @classmethod
    def of(cls, topology: NodeResourceTopology) -> TopologyManager:
        """Attributes go before the deprecated policies; values that mean nothing are ignored."""
        policy, scope = _NAMED.get(next(iter(topology.topology_policies), ""), ("none", CONTAINER))
        zones = _DEFAULT_ZONES
        for attribute in topology.attributes:
            match attribute.name:
                case "topologyManagerScope" if attribute.value in (CONTAINER, POD):
                    scope = attribute.value
                case "topologyManagerPolicy" if attribute.value in _POLICIES:
                    policy = attribute.value
                case "topologyManagerMaxNUMANodes" if _is_number(attribute.value):
                    if int(attribute.value) > 1:
                        zones = min(int(attribute.value), _MOST_ZONES)
        return cls(scope, policy, zones)


def _is_number(text: str) -> bool:
    digits = text[1:] if text[:1] in ("+", "-") else text
    return digits.isascii() and digits.isdigit() and len(digits) < 19
