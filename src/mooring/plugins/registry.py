"""Every built-in plugin, by its name in configurations."""

from __future__ import annotations

from mooring.framework.interface import PluginFactory
from mooring.plugins.default_binder import DefaultBinder
from mooring.plugins.default_preemption import DefaultPreemption
from mooring.plugins.dynamic_resources import DynamicResources
from mooring.plugins.gang_scheduling import GangScheduling
from mooring.plugins.image_locality import ImageLocality
from mooring.plugins.inter_pod_affinity import InterPodAffinity
from mooring.plugins.node_affinity import NodeAffinity
from mooring.plugins.node_declared_features import NodeDeclaredFeatures
from mooring.plugins.node_name import NodeName
from mooring.plugins.node_ports import NodePorts
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from mooring.plugins.node_resources_fit import NodeResourcesFit
from mooring.plugins.node_unschedulable import NodeUnschedulable
from mooring.plugins.node_volume_limits import NodeVolumeLimits
from mooring.plugins.pod_group_pods_count import PodGroupPodsCount
from mooring.plugins.pod_topology_spread import PodTopologySpread
from mooring.plugins.priority_sort import PrioritySort
from mooring.plugins.scheduling_gates import SchedulingGates
from mooring.plugins.taint_toleration import TaintToleration
from mooring.plugins.topology_placement import TopologyPlacementGenerator
from mooring.plugins.volume_binding import VolumeBinding
from mooring.plugins.volume_restrictions import VolumeRestrictions
from mooring.plugins.volume_zone import VolumeZone
from mooring.runtime.registry import Registry

BUILT_IN: dict[str, PluginFactory] = {
    "DefaultBinder": DefaultBinder,
    "DefaultPreemption": DefaultPreemption,
    "DynamicResources": DynamicResources,
    "GangScheduling": GangScheduling,
    "ImageLocality": ImageLocality,
    "InterPodAffinity": InterPodAffinity,
    "NodeAffinity": NodeAffinity,
    "NodeDeclaredFeatures": NodeDeclaredFeatures,
    "NodeName": NodeName,
    "NodePorts": NodePorts,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocation,
    "NodeResourcesFit": NodeResourcesFit,
    "NodeUnschedulable": NodeUnschedulable,
    "NodeVolumeLimits": NodeVolumeLimits,
    "PodGroupPodsCount": PodGroupPodsCount,
    "PodTopologySpread": PodTopologySpread,
    "PrioritySort": PrioritySort,
    "SchedulingGates": SchedulingGates,
    "TaintToleration": TaintToleration,
    "TopologyPlacementGenerator": TopologyPlacementGenerator,
    "VolumeBinding": VolumeBinding,
    "VolumeRestrictions": VolumeRestrictions,
    "VolumeZone": VolumeZone,
}


def default_registry() -> Registry:
    """A registry with the built-in plugins and the plugins of installed packages."""
    return Registry(BUILT_IN)
