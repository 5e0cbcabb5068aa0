"""The arguments of plugins. The kind of a plugin's arguments is its name and `Args`."""

from __future__ import annotations

from mooring.config.durations import Duration
from mooring.config.types import ConfigPart, Int32, Int64
from mooring.objects.pod import NodeAffinity, TopologySpreadConstraint

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"
SCORING_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class PluginArgs(ConfigPart, frozen=True):
    """The base class of all args."""


class ResourceSpec(ConfigPart, frozen=True):
    name: str = ""
    weight: Int64 = 0


CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


class UtilizationShapePoint(ConfigPart, frozen=True):
    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(ConfigPart, frozen=True):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ConfigPart, frozen=True):
    """A strategy must name its type. Only a missing strategy means LeastAllocated."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(PluginArgs, frozen=True):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(PluginArgs, frozen=True):
    #: How long Filter may search one node; zero means no limit. None if its gate is off.
    filter_timeout: Duration | None = None
    #: How long PreBind waits for binding conditions. None if its gates are off.
    binding_timeout: Duration | None = None


class InterPodAffinityArgs(PluginArgs, frozen=True):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(PluginArgs, frozen=True):
    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(PluginArgs, frozen=True):
    resources: tuple[ResourceSpec, ...] = ()


class NodeResourcesFitArgs(PluginArgs, frozen=True):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED, CPU_AND_MEMORY)


class PodTopologySpreadArgs(PluginArgs, frozen=True):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = SYSTEM_DEFAULTING


class VolumeBindingArgs(PluginArgs, frozen=True):
    bind_timeout_seconds: Int64 = 600
    #: None and an empty shape differ: if the gate is off, only None is accepted.
    shape: tuple[UtilizationShapePoint, ...] | None = None


#: Plugin → the type of its args. Other plugins get their args as written.
ARGS_BY_PLUGIN: dict[str, type[PluginArgs]] = {
    kind.__name__.removesuffix("Args"): kind
    for kind in (
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        InterPodAffinityArgs,
        NodeAffinityArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs,
        PodTopologySpreadArgs,
        VolumeBindingArgs,
    )
}
