"""Validation of configurations, with the rules, order and messages of the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from mooring.config.args import ARGS_BY_PLUGIN, NodeResourcesFitArgs, PluginArgs
from mooring.config.args_validation import args_problems
from mooring.config.durations import seconds
from mooring.config.extenders import ignored_resources
from mooring.config.extension_points import POD_POINTS
from mooring.config.field_errors import child, duplicate, invalid, required
from mooring.config.gates import FeatureGates
from mooring.config.label_names import label_key_problems
from mooring.config.removed_plugins import REPLACED_BY
from mooring.config.types import (
    API_VERSION,
    ClientConnectionConfiguration,
    Extender,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
    Plugins,
    SchedulerProfile,
)
from mooring.objects.requests import is_extended

#: In-tree plugins that v1 does not have.
REMOVED_PLUGINS = frozenset(("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"))

#: The reference calls the version in which they were removed "v1".
_REMOVED = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'


def config_problems(config: KubeSchedulerConfiguration, gates: FeatureGates) -> list[str]:
    """All problems of a configuration that has its defaults; empty if there are none."""
    return list(_config(config, gates))


def _config(config: KubeSchedulerConfiguration, gates: FeatureGates) -> Iterator[str]:
    yield from _client_connection(config.client_connection)
    if config.leader_election.leader_elect:
        yield from _leader_election(config.leader_election)
    if config.parallelism <= 0:
        yield invalid(
            "parallelism", config.parallelism, "should be an integer value greater than zero"
        )
    if not config.profiles:
        yield required("profiles")
    else:
        yield from _profiles(config, gates)
    yield from _percentage(config.percentage_of_nodes_to_score, "percentageOfNodesToScore")
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    if initial <= 0:
        yield invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        yield invalid(
            "podMaxBackoffSeconds",
            longest,
            "must be greater than or equal to PodInitialBackoffSeconds",
        )
    yield from _extenders(config.extenders)


def _client_connection(connection: ClientConnectionConfiguration) -> Iterator[str]:
    if connection.burst < 0:
        yield invalid("clientConnection.burst", connection.burst, "must be non-negative")


def _leader_election(election: LeaderElectionConfiguration) -> Iterator[str]:
    path = "leaderElection"
    for name, duration in (
        ("leaseDuration", election.lease_duration),
        ("renewDeadline", election.renew_deadline),
        ("retryPeriod", election.retry_period),
    ):
        if duration <= seconds(0):
            yield invalid(child(path, name), duration, "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        # As in the reference, the path is that of the lease but the value is the deadline.
        yield invalid(
            child(path, "leaseDuration"),
            election.renew_deadline,
            "must be greater than `RenewDeadline`",
        )
    for name, text in (
        ("resourceLock", election.resource_lock),
        ("resourceNamespace", election.resource_namespace),
        ("resourceName", election.resource_name),
    ):
        if not text:
            yield required(child(path, name))
    if election.resource_lock != "leases":
        yield invalid(
            child(path, "resourceLock"),
            election.resource_lock,
            'resourceLock value must be "leases"',
        )


def _profiles(config: KubeSchedulerConfiguration, gates: FeatureGates) -> Iterator[str]:
    ignored = ignored_resources(config.extenders)
    first_with_name: dict[str, str] = {}
    for i, profile in enumerate(config.profiles):
        path = f"profiles[{i}]"
        name_path = child(path, "schedulerName")
        if not profile.scheduler_name:
            yield required(name_path)
        percentage = profile.percentage_of_nodes_to_score
        if percentage is not None:
            yield from _percentage(percentage, child(path, "percentageOfNodesToScore"))
        yield from _removed_plugins(profile.plugins, child(path, "plugins"))
        yield from _plugin_config(profile, path, ignored, gates)
        if profile.scheduler_name in first_with_name:
            yield duplicate(name_path, first_with_name[profile.scheduler_name])
        first_with_name.setdefault(profile.scheduler_name, name_path)
    yield from _common_queue_sort(config.profiles)


def _percentage(percentage: int, path: str) -> Iterator[str]:
    if not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _removed_plugins(plugins: Plugins, path: str) -> Iterator[str]:
    # The reference looks for removed plugins only at these points.
    for point in POD_POINTS:
        for i, plugin in enumerate(plugins.at(point).enabled):
            if plugin.name in REMOVED_PLUGINS:
                yield invalid(
                    f"{child(path, point)}.enabled[{i}]", plugin.name, _removed(plugin.name)
                )


def _removed(name: str) -> str:
    return f"{_REMOVED}; use {REPLACED_BY[name]}"


def _plugin_config(
    profile: SchedulerProfile, path: str, ignored: tuple[str, ...], gates: FeatureGates
) -> Iterator[str]:
    enabled = profile.plugins.enabled_names
    seen: set[str] = set()
    for i, entry in enumerate(profile.plugin_config):
        entry_path = f"{child(path, 'pluginConfig')}[{i}]"
        args_path = child(entry_path, "args")
        if entry.name in seen:
            yield duplicate(entry_path, entry.name)
        seen.add(entry.name)
        kind = ARGS_BY_PLUGIN.get(entry.name)
        args = entry.args
        if entry.name in REMOVED_PLUGINS:
            yield invalid(entry_path, entry.name, _removed(entry.name))
        elif kind is not None and not isinstance(args, kind):
            yield invalid(args_path, args, "has to match plugin args")
        elif isinstance(args, NodeResourcesFitArgs):
            # In the reference the plugin itself checks these when it is built: only if it is
            # enabled, and after extenders have changed them.
            if entry.name in enabled:
                in_force = replace(args, ignored_resources=ignored or args.ignored_resources)
                yield from args_problems(in_force, args_path, gates)
        elif isinstance(args, PluginArgs):
            yield from args_problems(args, args_path, gates)


def _common_queue_sort(profiles: Sequence[SchedulerProfile]) -> Iterator[str]:
    """There is one queue, so all profiles must sort it in the same way."""
    first = profiles[0]
    common = first.plugins.queue_sort
    name = common.enabled[0].name if common.enabled else ""
    if len(common.enabled) > 1:
        yield invalid(
            "profiles[0].plugins.queueSort.Enabled",
            len(common.enabled),
            "only one queue sort plugin can be enabled",
        )
    for i, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != common:
            yield invalid(
                f"profiles[{i}].plugins.queueSort",
                profile.plugins.queue_sort,
                "must be the same for all profiles",
            )
        for entry in profile.plugin_config:
            if name and entry.name == name and entry.args != first.args_of(name):
                yield invalid(
                    f"profiles[{i}].pluginConfig.args",
                    entry.args,
                    "queueSort must be the same for all profiles",
                )


def _extenders(extenders: Sequence[Extender]) -> Iterator[str]:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path = f"extenders[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(
                child(path, "weight"), extender.weight, "must have a positive weight applied to it"
            )
        for j, resource in enumerate(extender.managed_resources):
            name_path = f"{child(path, 'managedResources')}[{j}].name"
            yield from _extended_resource_name(resource.name, name_path)
            if resource.name in managed:
                yield invalid(name_path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        yield invalid(
            "extenders",
            f"found {binders} extenders implementing bind",
            "only one extender can implement bind",
        )


def _extended_resource_name(name: str, path: str) -> Iterator[str]:
    problems = label_key_problems(name)
    for problem in problems:
        yield invalid(path, name, problem)
    if not problems and not is_extended(name):
        yield invalid(path, name, "is an invalid extended resource name")
