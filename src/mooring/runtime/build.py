"""From a configuration to frameworks: which plugins, in which order, with which arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.config.expansion import ExpandedPlugins, expand_profiles, unknown_plugins
from mooring.config.extension_points import ExtensionPoint
from mooring.config.types import KubeSchedulerConfiguration, SchedulerProfile
from mooring.errors import ConfigError, PluginError
from mooring.faults import PLUGIN_FAULTS
from mooring.objects.kinds import Kind
from mooring.runtime.framework import Framework
from mooring.runtime.handle import PluginHandle
from mooring.runtime.metrics import Metrics
from mooring.runtime.plugin_args import args_problems, declared_args
from mooring.runtime.plugin_calls import Calls, describe
from mooring.runtime.registry import Registry


def expand(config: KubeSchedulerConfiguration, registry: Registry) -> dict[str, ExpandedPlugins]:
    """The plugins of every profile, point by point. Raises ConfigError with all problems."""
    wanted = {name for profile in config.profiles for name in profile.plugins.enabled_names}
    problems = list(unknown_plugins(config, registry.known(wanted)))
    implemented: dict[str, frozenset[ExtensionPoint]] = {}
    kinds: dict[str, type] = {}
    for name in sorted(wanted):
        try:
            implemented |= registry.implemented([name])
            kinds |= registry.args_types([name])
        except PluginError as error:
            problems.append(str(error))
    for path, kind, args in declared_args(config, kinds):
        problems += args_problems(kind, args, path)
    for name in wanted - implemented.keys():
        # Reported above; elsewhere, take it as it is used, so that it does not cause further problems.
        implemented[name] = _points_that_name(config, name)
    try:
        expanded = expand_profiles(config.profiles, implemented)
    except ConfigError as error:
        raise ConfigError([*problems, *error.problems]) from error
    if problems:
        raise ConfigError(problems)
    return expanded


def plugin_problems(config: KubeSchedulerConfiguration, registry: Registry) -> list[str]:
    """What `expand` would refuse."""
    try:
        expand(config, registry)
    except ConfigError as error:
        return list(error.problems)
    return []


def plugin_kinds(config: KubeSchedulerConfiguration, registry: Registry) -> tuple[Kind, ...]:
    """The kinds that the enabled plugins declare. Raises PluginError."""
    return registry.kinds(
        {name for profile in config.profiles for name in profile.plugins.enabled_names}
    )


def _points_that_name(config: KubeSchedulerConfiguration, name: str) -> frozenset[ExtensionPoint]:
    return frozenset(
        point
        for profile in config.profiles
        for point in ExtensionPoint
        if any(plugin.name == name for plugin in profile.plugins.at(point).enabled)
    )


def build_frameworks(
    config: KubeSchedulerConfiguration,
    registry: Registry,
    make_handle: Callable[[str], PluginHandle],
    metrics: Metrics,
) -> dict[str, Framework]:
    """A framework for every profile, by scheduler name. Raises ConfigError with all problems."""
    expanded = expand(config, registry)
    problems: list[str] = []
    frameworks: dict[str, Framework] = {}
    for profile in config.profiles:
        handle = make_handle(profile.scheduler_name)
        try:
            frameworks[profile.scheduler_name] = _build(
                profile, expanded[profile.scheduler_name], registry, handle, metrics
            )
        except PluginError as error:
            where = f"creating profile for scheduler name {profile.scheduler_name}"
            problems.append(f"{where}: {error}")
        except ConfigError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return frameworks


def _build(
    profile: SchedulerProfile,
    expanded: ExpandedPlugins,
    registry: Registry,
    handle: PluginHandle,
    metrics: Metrics,
) -> Framework:
    """Each plugin is made once, for whichever points it runs at."""
    configured = dict.fromkeys(name for order in expanded.order.values() for name in order)
    calls: dict[str, Calls] = {}
    problems: list[str] = []
    for name in configured:
        try:
            plugin = registry.build(name, profile.args_of(name), handle)
        except PluginError as error:
            problems.append(str(error))
            continue
        try:
            calls[name] = call = Calls(_own_name(plugin, name), plugin, metrics)
            for spec in call.own_columns:
                handle.declare_column(spec, call.name)
        except PLUGIN_FAULTS as error:
            problems.append(f'reading what plugin "{name}" says of itself: {describe(error)}')
    if problems:
        where = f"creating profile for scheduler name {profile.scheduler_name}"
        raise ConfigError([f"{where}: {problem}" for problem in problems])
    _check_names(calls)
    handle.framework = Framework(
        profile.scheduler_name,
        {point: [calls[name] for name in order] for point, order in expanded.order.items()},
        {calls[name].name: w for name, w in expanded.score_weights.items() if name in calls},
        placement_weights={
            calls[name].name: w
            for name, w in expanded.placement_score_weights.items()
            if name in calls
        },
        waiting_pods=handle.waiting,
        nominator=handle.nominator,
        metrics=metrics,
    )
    return handle.framework


def _own_name(plugin: object, configured: str) -> str:
    """What a plugin calls itself; one that does not goes by the name of its class."""
    name = getattr(plugin, "name", None)
    return name if isinstance(name, str) else configured.rpartition(":")[2]


def _check_names(calls: Mapping[str, Calls]) -> None:
    seen: dict[str, str] = {}
    for configured, call in calls.items():
        first = seen.setdefault(call.name, configured)
        if first != configured:
            raise PluginError(f"{first} and {configured} are both plugins called {call.name!r}")
