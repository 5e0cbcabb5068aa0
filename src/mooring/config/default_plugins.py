"""The default plugins, and the order in which each extension point runs them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.config.gates import FeatureGates
from mooring.config.old_versions import V1, V1BETA2
from mooring.config.types import Plugin, Plugins, PluginSet

#: The default profile with the gates of 1.36 at their defaults. DynamicResources comes before
#: DefaultPreemption: to free an idle claim is better than to evict a pod.
_ALWAYS = (
    Plugin("SchedulingGates"),
    Plugin("PrioritySort"),
    Plugin("NodeUnschedulable"),
    Plugin("NodeName"),
    Plugin("TaintToleration", 3),
    Plugin("NodeAffinity", 2),
    Plugin("NodePorts"),
    Plugin("NodeResourcesFit", 1),
    Plugin("VolumeRestrictions"),
    Plugin("NodeVolumeLimits"),
    Plugin("VolumeBinding"),
    Plugin("VolumeZone"),
    Plugin("PodTopologySpread", 2),
    Plugin("InterPodAffinity", 2),
    Plugin("DynamicResources", 2),
    Plugin("DefaultPreemption"),
    Plugin("NodeResourcesBalancedAllocation", 1),
    Plugin("ImageLocality", 1),
    Plugin("DefaultBinder"),
)

#: Where the score weights of v1beta2 differ.
_V1BETA2_WEIGHTS = {"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}

#: The plugins that feature gates append, in this order.
_BY_GATE = (
    ("NodeDeclaredFeatures", (Plugin("NodeDeclaredFeatures"),)),
    ("GangScheduling", (Plugin("GangScheduling"),)),
    (
        "TopologyAwareWorkloadScheduling",
        (Plugin("TopologyPlacementGenerator"), Plugin("PodGroupPodsCount", 1)),
    ),
)

#: Plugin → the feature gate without which it does nothing.
GATE_OF = {plugin.name: gate for gate, plugins in _BY_GATE for plugin in plugins}

#: The default profile, expanded to each point. Nothing is computed from this; a test compares the
#: built-in plugins with it.
DEFAULT_ORDER: Mapping[Point, tuple[str, ...]] = {
    Point.PRE_ENQUEUE: ("SchedulingGates", "DynamicResources", "DefaultPreemption"),
    Point.QUEUE_SORT: ("PrioritySort",),
    Point.PRE_FILTER: (
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ),
    Point.FILTER: (
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ),
    Point.POST_FILTER: ("DynamicResources", "DefaultPreemption"),
    Point.PRE_SCORE: (
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
    ),
    Point.SCORE: (
        "TaintToleration",
        "NodeAffinity",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
    ),
    Point.RESERVE: ("VolumeBinding", "DynamicResources"),
    Point.PERMIT: (),
    Point.PRE_BIND: ("VolumeBinding", "DynamicResources"),
    Point.BIND: ("DefaultBinder",),
    Point.POST_BIND: (),
    Point.PLACEMENT_GENERATE: (),
    Point.PLACEMENT_SCORE: ("NodeResourcesFit",),
}


def default_plugins(gates: FeatureGates, version: str = V1) -> Plugins:
    """The plugins that a profile of this version starts from, all under `multiPoint`."""
    gated = (plugin for gate, plugins in _BY_GATE if gates.enabled(gate) for plugin in plugins)
    weights = _V1BETA2_WEIGHTS if version == V1BETA2 else {}
    return Plugins(
        multi_point=PluginSet(
            enabled=tuple(
                replace(plugin, weight=weights.get(plugin.name, plugin.weight))
                for plugin in (*_ALWAYS, *gated)
            )
        )
    )
