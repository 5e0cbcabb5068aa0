"""Defaults that depend on other fields; the plain ones are in `types`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from mooring.config.args import (
    ARGS_BY_PLUGIN,
    CPU_AND_MEMORY,
    DynamicResourcesArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from mooring.config.default_plugins import default_plugins
from mooring.config.document import Document
from mooring.config.durations import seconds
from mooring.config.gates import FeatureGates, binding_conditions_enabled
from mooring.config.merge import merge_plugins
from mooring.config.old_versions import V1
from mooring.config.types import (
    ClientConnectionConfiguration,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    PluginConfig,
    SchedulerProfile,
)
from mooring.objects.pod import DEFAULT_SCHEDULER

_LEADER_ELECTION = LeaderElectionConfiguration()
_CLIENT_CONNECTION = ClientConnectionConfiguration()
_EXTENDER = Extender()
_POD_TOPOLOGY_SPREAD = PodTopologySpreadArgs()

_EMPTIEST_DISK_FIRST = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))


def fill_absent(document: Document) -> None:
    """Set the defaults of absent fields. After decoding, absent and empty are the same.

    A single profile without a name, not even an empty one, is that of the default scheduler.
    Contention profiling is on by default only if profiling is.
    """
    profiles = document.get("profiles")
    if isinstance(profiles, list) and len(profiles) == 1:
        profile = {} if profiles[0] is None else profiles[0]
        if isinstance(profile, dict) and profile.get("schedulerName") is None:
            document["profiles"] = [{**profile, "schedulerName": DEFAULT_SCHEDULER}]
    if (
        document.get("enableProfiling") is False
        and document.get("enableContentionProfiling") is None
    ):
        document["enableContentionProfiling"] = False


def with_defaults(
    config: KubeSchedulerConfiguration, gates: FeatureGates, version: str = V1
) -> KubeSchedulerConfiguration:
    """The effective configuration: profiles merged with the default plugins of the version, args complete.

    Without profiles, there is one for the default scheduler.
    """
    profiles = config.profiles or (SchedulerProfile(DEFAULT_SCHEDULER),)
    return replace(
        config,
        leader_election=_leader_election(config.leader_election),
        client_connection=_client_connection(config.client_connection),
        profiles=tuple(_profile(profile, gates, version) for profile in profiles),
        extenders=tuple(
            replace(extender, http_timeout=extender.http_timeout or _EXTENDER.http_timeout)
            for extender in config.extenders
        ),
        feature_gates=dict(gates.settings),
    )


def _leader_election(given: LeaderElectionConfiguration) -> LeaderElectionConfiguration:
    default = _LEADER_ELECTION
    return replace(
        given,
        lease_duration=given.lease_duration or default.lease_duration,
        renew_deadline=given.renew_deadline or default.renew_deadline,
        retry_period=given.retry_period or default.retry_period,
        resource_lock=given.resource_lock or default.resource_lock,
        resource_name=given.resource_name or default.resource_name,
        resource_namespace=given.resource_namespace or default.resource_namespace,
    )


def _client_connection(given: ClientConnectionConfiguration) -> ClientConnectionConfiguration:
    default = _CLIENT_CONNECTION
    return replace(
        given,
        content_type=given.content_type or default.content_type,
        qps=given.qps or default.qps,
        burst=given.burst or default.burst,
    )


def _profile(profile: SchedulerProfile, gates: FeatureGates, version: str) -> SchedulerProfile:
    plugins = merge_plugins(default_plugins(gates, version), profile.plugins)
    given = tuple(
        replace(entry, args=_args(entry.name, entry.args, gates)) for entry in profile.plugin_config
    )
    configured = {entry.name for entry in given}
    missing = sorted(plugins.enabled_names.intersection(ARGS_BY_PLUGIN) - configured)
    return replace(
        profile,
        plugins=plugins,
        plugin_config=(
            *given,
            *(PluginConfig(name, _args(name, None, gates)) for name in missing),
        ),
    )


def _args(plugin: str, args: Any, gates: FeatureGates) -> Any:
    if args is None and plugin in ARGS_BY_PLUGIN:
        args = ARGS_BY_PLUGIN[plugin]()
    if not isinstance(args, PluginArgs):
        return args
    return replace(args, **dict(_args_changes(args, gates)))


def _args_changes(args: PluginArgs, gates: FeatureGates) -> Iterator[tuple[str, Any]]:
    """The fields of the args to default, each with its default."""
    match args:
        case NodeResourcesFitArgs():
            strategy = args.scoring_strategy
            yield (
                "scoring_strategy",
                replace(strategy, resources=_resources(strategy.resources)),
            )
        case NodeResourcesBalancedAllocationArgs():
            yield "resources", _resources(args.resources)
        case PodTopologySpreadArgs(defaulting_type=""):
            yield "defaulting_type", _POD_TOPOLOGY_SPREAD.defaulting_type
        case VolumeBindingArgs():
            if not args.shape and gates.enabled("StorageCapacityScoring"):
                yield "shape", _EMPTIEST_DISK_FIRST
        case DynamicResourcesArgs():
            if args.filter_timeout is None and gates.enabled("DRASchedulerFilterTimeout"):
                yield "filter_timeout", seconds(10)
            if args.binding_timeout is None and binding_conditions_enabled(gates):
                yield "binding_timeout", seconds(600)


def _resources(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    given = resources or CPU_AND_MEMORY
    return tuple(replace(resource, weight=resource.weight or 1) for resource in given)
