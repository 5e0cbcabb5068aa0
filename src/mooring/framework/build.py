"""From a configuration to frameworks: which plugins, in which order, with which arguments."""

from __future__ import annotations

from collections.abc import Callable

from mooring.config.expansion import ExpandedPlugins, expand_profiles, unknown_plugins
from mooring.config.types import KubeSchedulerConfiguration, SchedulerProfile
from mooring.errors import ConfigError, PluginError
from mooring.framework.handle import PluginHandle
from mooring.framework.metrics import Metrics
from mooring.framework.plugin_calls import Calls
from mooring.framework.registry import Registry
from mooring.framework.runtime import Framework


def expand(config: KubeSchedulerConfiguration, registry: Registry) -> dict[str, ExpandedPlugins]:
    """The plugins of every profile, point by point. Raises ConfigError with all problems."""
    wanted = {name for profile in config.profiles for name in profile.plugins.enabled_names}
    problems = list(unknown_plugins(config, registry.known(wanted)))
    if problems:
        raise ConfigError(problems)
    try:
        implemented = registry.implemented(sorted(wanted))
    except PluginError as error:
        raise ConfigError([str(error)]) from error
    return expand_profiles(config.profiles, implemented)


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
    names = dict.fromkeys(name for order in expanded.order.values() for name in order)
    calls = {
        name: Calls(name, registry.build(name, profile.args_of(name), handle), metrics)
        for name in names
    }
    handle.framework = Framework(
        profile.scheduler_name,
        {point: [calls[name] for name in order] for point, order in expanded.order.items()},
        expanded.score_weights,
        waiting_pods=handle.waiting,
        nominator=handle.nominator,
        metrics=metrics,
    )
    return handle.framework
