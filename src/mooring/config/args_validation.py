"""Validation of plugin args, with the rules and messages of the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mooring.config.args import (
    LIST_DEFAULTING,
    REQUESTED_TO_CAPACITY_RATIO,
    SCORING_STRATEGIES,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from mooring.config.durations import seconds
from mooring.config.field_errors import (
    child,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from mooring.config.gates import FeatureGates, binding_conditions_enabled
from mooring.config.label_names import label_key_problems
from mooring.config.selector_validation import node_selector_problems, preferred_term_problems
from mooring.objects.pod import TopologySpreadConstraint

_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_HIGHEST_SHAPE_SCORE = 10


def args_problems(args: PluginArgs, path: str, gates: FeatureGates) -> list[str]:
    """What is wrong with the args. `path` is the path of the args, and may be empty."""
    check = _CHECKS[type(args)]
    return list(check(args, path, gates))


def _default_preemption(
    args: DefaultPreemptionArgs, path: str, gates: FeatureGates
) -> Iterator[str]:
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    percentage = args.min_candidate_nodes_percentage
    absolute = args.min_candidate_nodes_absolute
    if not 0 <= percentage <= 100:
        yield invalid(percentage_path, percentage, "not in valid range [0, 100]")
    if absolute < 0:
        yield invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        at_once = "cannot be zero at the same time as"
        yield invalid(percentage_path, percentage, f"{at_once} minCandidateNodesAbsolute")
        yield invalid(absolute_path, absolute, f"{at_once} minCandidateNodesPercentage")


def _dynamic_resources(args: DynamicResourcesArgs, path: str, gates: FeatureGates) -> Iterator[str]:
    filter_path = child(path, "filterTimeout")
    binding_path = child(path, "bindingTimeout")
    if args.filter_timeout is not None:
        if not gates.enabled("DRASchedulerFilterTimeout"):
            # The gate is called DRASchedulerFilterTimeout; the reference misspells it here.
            yield forbidden(filter_path, "DRASchedulingFilterTimeout feature gate is disabled")
        elif args.filter_timeout < seconds(0):
            yield invalid(filter_path, args.filter_timeout, "must be zero or positive")
    if args.binding_timeout is not None:
        if not binding_conditions_enabled(gates):
            yield forbidden(
                binding_path,
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus "
                "feature gate is disabled",
            )
        elif args.binding_timeout < seconds(1):
            yield invalid(binding_path, args.binding_timeout, "must be at least 1 second")


def _inter_pod_affinity(
    args: InterPodAffinityArgs, path: str, gates: FeatureGates
) -> Iterator[str]:
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        yield invalid(child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")


def _node_affinity(args: NodeAffinityArgs, path: str, gates: FeatureGates) -> Iterator[str]:
    if args.added_affinity is None:
        return
    affinity_path = child(path, "addedAffinity")
    if args.added_affinity.required is not None:
        yield from node_selector_problems(
            args.added_affinity.required,
            child(affinity_path, "requiredDuringSchedulingIgnoredDuringExecution"),
        )
    yield from preferred_term_problems(
        args.added_affinity.preferred or (),
        child(affinity_path, "preferredDuringSchedulingIgnoredDuringExecution"),
    )


def _node_resources_balanced_allocation(
    args: NodeResourcesBalancedAllocationArgs, path: str, gates: FeatureGates
) -> Iterator[str]:
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        resource_path = f"{child(path, 'resources')}[{i}]"
        if resource.name in seen:
            yield duplicate(child(resource_path, "name"), resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(child(resource_path, "weight"), resource.weight, "must be 1")


def _node_resources_fit(
    args: NodeResourcesFitArgs, path: str, gates: FeatureGates
) -> Iterator[str]:
    for i, resource in enumerate(args.ignored_resources):
        yield from label_name_errors(resource, f"{child(path, 'ignoredResources')}[{i}]")
    for i, group in enumerate(args.ignored_resource_groups):
        group_path = f"{child(path, 'ignoredResourceGroups')}[{i}]"
        if "/" in group:
            yield invalid(group_path, group, "resource group name can't contain '/'")
        yield from label_name_errors(group, group_path)
    yield from _scoring_strategy(args.scoring_strategy, child(path, "scoringStrategy"))


def _scoring_strategy(strategy: ScoringStrategy, path: str) -> Iterator[str]:
    if strategy.type not in SCORING_STRATEGIES:
        yield not_supported(child(path, "type"), strategy.type, SCORING_STRATEGIES)
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            yield invalid(
                f"{child(path, 'resources')}[{i}].weight",
                resource.weight,
                f"resource weight of {resource.name} not in valid range (0, 100]",
            )
    ratio = strategy.requested_to_capacity_ratio
    ratio_path = child(path, "requestedToCapacityRatio")
    if strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        if ratio is not None:
            yield forbidden(
                ratio_path, f"must be nil when type is not {REQUESTED_TO_CAPACITY_RATIO}"
            )
    elif ratio is None:
        yield required(ratio_path, f"must be specified when type is {REQUESTED_TO_CAPACITY_RATIO}")
    else:
        yield from _shape(ratio.shape, child(ratio_path, "shape"))


def _pod_topology_spread(
    args: PodTopologySpreadArgs, path: str, gates: FeatureGates
) -> Iterator[str]:
    defaulting_path = child(path, "defaultingType")
    if args.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        supported = (SYSTEM_DEFAULTING, LIST_DEFAULTING)
        yield not_supported(defaulting_path, args.defaulting_type, supported)
    elif args.defaulting_type == SYSTEM_DEFAULTING and args.default_constraints:
        yield invalid(
            defaulting_path, args.defaulting_type, "when .defaultConstraints are not empty"
        )
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(args.default_constraints):
        constraint_path = f"{child(path, 'defaultConstraints')}[{i}]"
        yield from _constraint(constraint, constraint_path)
        key, action = constraint.topology_key, constraint.when_unsatisfiable
        if (key, action) in seen:
            yield duplicate(constraint_path, f"{{{key}, {action}}}")
        seen.add((key, action))


def _constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[str]:
    if constraint.max_skew <= 0:
        yield invalid(child(path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield required(child(path, "topologyKey"), "can not be empty")
    else:
        yield from label_name_errors(constraint.topology_key, child(path, "topologyKey"))
    if not constraint.when_unsatisfiable:
        yield required(child(path, "whenUnsatisfiable"), "can not be empty")
    elif constraint.when_unsatisfiable not in _ACTIONS:
        yield not_supported(
            child(path, "whenUnsatisfiable"), constraint.when_unsatisfiable, _ACTIONS
        )
    if constraint.label_selector is not None:
        yield forbidden(
            child(path, "labelSelector"),
            "constraint must not define a selector, as they deduced for each pod",
        )


def _volume_binding(args: VolumeBindingArgs, path: str, gates: FeatureGates) -> Iterator[str]:
    if args.bind_timeout_seconds < 0:
        yield invalid(
            child(path, "bindTimeoutSeconds"),
            args.bind_timeout_seconds,
            "invalid BindTimeoutSeconds, should not be a negative value",
        )
    if gates.enabled("StorageCapacityScoring"):
        yield from _shape(args.shape or (), child(path, "shape"))
    elif args.shape is not None:
        yield invalid(
            child(path, "shape"),
            args.shape,
            "unexpected field `shape`, "
            "remove it or turn on the feature gate StorageCapacityScoring",
        )


def _shape(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[str]:
    if not shape:
        yield required(path, "at least one point must be specified")
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            yield invalid(
                f"{path}[{i}].utilization",
                shape[i].utilization,
                "values must be sorted in increasing order",
            )
            break
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield invalid(
                f"{path}[{i}].utilization", point.utilization, "not in valid range [0, 100]"
            )
        if not 0 <= point.score <= _HIGHEST_SHAPE_SCORE:
            yield invalid(
                f"{path}[{i}].score",
                point.score,
                f"not in valid range [0, {_HIGHEST_SHAPE_SCORE}]",
            )


def label_name_errors(name: str, path: str) -> Iterator[str]:
    for problem in label_key_problems(name):
        yield invalid(path, name, problem)


_CHECKS: dict[type[PluginArgs], Callable[..., Iterator[str]]] = {
    DefaultPreemptionArgs: _default_preemption,
    DynamicResourcesArgs: _dynamic_resources,
    InterPodAffinityArgs: _inter_pod_affinity,
    NodeAffinityArgs: _node_affinity,
    NodeResourcesBalancedAllocationArgs: _node_resources_balanced_allocation,
    NodeResourcesFitArgs: _node_resources_fit,
    PodTopologySpreadArgs: _pod_topology_spread,
    VolumeBindingArgs: _volume_binding,
}
