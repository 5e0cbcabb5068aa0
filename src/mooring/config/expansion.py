"""From a profile to the plugins that run at each extension point, and their weights.

A profile enables plugins at single points, and under `multiPoint` at every point that they
implement. Callers pass in which points a plugin implements: nothing here depends on the code of
plugins. The messages are those of the reference, and the first one is the one that it would give.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from msgspec.structs import fields, replace

from mooring.config.extension_points import ExtensionPoint
from mooring.config.field_errors import not_found, shown
from mooring.config.merge import ALL
from mooring.config.removed_plugins import why_unknown
from mooring.config.types import (
    KubeSchedulerConfiguration,
    Plugin,
    Plugins,
    PluginSet,
    SchedulerProfile,
)
from mooring.errors import ConfigError
from mooring.objects.quantity import MAX_INT64

MAX_SCORE = 100

#: The points that each plugin implements, by the plugin's name in the configuration.
Implemented = Mapping[str, Collection[ExtensionPoint]]


@dataclass(frozen=True, slots=True)
class ExpandedPlugins:
    """A profile with `multiPoint` expanded. Plugins have their names in the configuration."""

    #: For every extension point, the plugins in the order in which they run.
    order: Mapping[ExtensionPoint, tuple[str, ...]]
    #: Plugin → the weight of its score, including plugins that are disabled at Score.
    score_weights: Mapping[str, int]
    #: The same for PlacementScore.
    placement_score_weights: Mapping[str, int]


def expand_profiles(
    profiles: Sequence[SchedulerProfile], implemented: Implemented
) -> dict[str, ExpandedPlugins]:
    """Expand all profiles, by scheduler name. Raises ConfigError with all problems."""
    problems: list[str] = [] if profiles else ["at least one profile is required"]
    expanded: dict[str, ExpandedPlugins] = {}
    for profile in profiles:
        name = profile.scheduler_name
        try:
            plugins = expand_plugins(profile, implemented)
        except ConfigError as error:
            problems += [
                f"creating profile for scheduler name {name}: {line}" for line in error.problems
            ]
            continue
        if not name:
            problems.append("scheduler name is needed")
        elif name in expanded:
            problems.append(f"duplicate profile with scheduler name {shown(name)}")
        else:
            expanded[name] = plugins
    if not problems:
        problems = list(_queue_sort_differences(profiles, expanded))
    if problems:
        raise ConfigError(problems)
    return expanded


def expand_plugins(profile: SchedulerProfile, implemented: Implemented) -> ExpandedPlugins:
    """Expand one profile. Raises ConfigError with all problems."""
    plugins = profile.plugins
    problems = [*_repeated_config(profile), *_specific_problems(plugins, implemented)]
    problems += _multi_point_problems(plugins, implemented)
    if problems:
        raise ConfigError(problems)
    order = {point: _order_at(point, plugins, implemented) for point in ExtensionPoint}
    problems += _count_problems(order, profile.scheduler_name)
    score_weights = _weights(ExtensionPoint.SCORE, plugins, implemented)
    placement_score_weights = _weights(ExtensionPoint.PLACEMENT_SCORE, plugins, implemented)
    if _overflows(score_weights):
        problems.append("score plugins: total score of Score plugins could overflow")
    if _overflows(placement_score_weights):
        problems.append("placement score plugins: total score of Score plugins could overflow")
    if problems:
        raise ConfigError(problems)
    return ExpandedPlugins(order, score_weights, placement_score_weights)


def unknown_plugins(config: KubeSchedulerConfiguration, known: Collection[str]) -> Iterator[str]:
    """The enabled plugins that are unknown: the path of each, and a similar name.

    Building the profile refuses them too, but the messages of the reference have neither.
    """
    for i, profile in enumerate(config.profiles):
        for key, plugin_set in profile.plugins.sets():
            for j, plugin in enumerate(plugin_set.enabled):
                if plugin.name not in known:
                    yield not_found(
                        f"profiles[{i}].plugins.{key}.enabled[{j}].name",
                        plugin.name,
                        f"no plugin has this name{_hint(plugin.name, known)}",
                    )


def idle_entries(config: KubeSchedulerConfiguration, known: Collection[str]) -> Iterator[str]:
    """The entries that have no effect, because no plugin has their name or the plugin is not enabled."""
    for i, profile in enumerate(config.profiles):
        for key, plugin_set in profile.plugins.sets():
            for plugin in plugin_set.disabled:
                if plugin.name != ALL and plugin.name not in known:
                    yield (
                        f"profiles[{i}].plugins.{key}.disabled: {shown(plugin.name)} has no effect: no"
                        f" plugin has this name{_hint(plugin.name, known)}"
                    )
        enabled = profile.plugins.enabled_names
        for j, entry in enumerate(profile.plugin_config):
            if entry.name not in enabled:
                why = "is not enabled" if entry.name in known else "does not exist"
                yield (
                    f"profiles[{i}].pluginConfig[{j}]: has no effect: plugin {shown(entry.name)} {why}"
                    f"{'' if entry.name in known else _hint(entry.name, known)}"
                )


def without_plugins(
    config: KubeSchedulerConfiguration, known: Collection[str]
) -> tuple[KubeSchedulerConfiguration, list[str]]:
    """The configuration without unknown plugins, and their names.

    If nothing is left to sort the queue or to bind, the default plugin does it.
    """
    left_out: dict[str, None] = {}
    profiles = []
    for profile in config.profiles:
        unknown = sorted(profile.plugins.enabled_names - frozenset(known))
        left_out.update(dict.fromkeys(unknown))
        profiles.append(_without(profile, frozenset(unknown)) if unknown else profile)
    return replace(config, profiles=tuple(profiles)), list(left_out)


def _without(profile: SchedulerProfile, unknown: frozenset[str]) -> SchedulerProfile:
    sets = {
        field.name: replace(
            found := getattr(profile.plugins, field.name),
            enabled=tuple(each for each in found.enabled if each.name not in unknown),
        )
        for field in fields(Plugins)
    }
    by_multi_point = {plugin.name for plugin in sets["multi_point"].enabled}
    for point, default in (("queue_sort", "PrioritySort"), ("bind", "DefaultBinder")):
        was_enabled = {plugin.name for plugin in getattr(profile.plugins, point).enabled}
        if was_enabled & unknown and not sets[point].enabled:
            needed = () if default in by_multi_point else (Plugin(default),)
            sets[point] = PluginSet(enabled=needed)
    return replace(
        profile,
        plugins=Plugins(**sets),
        plugin_config=tuple(each for each in profile.plugin_config if each.name not in unknown),
    )


def _hint(name: str, known: Collection[str]) -> str:
    """What to write instead of an unknown name, as the end of a sentence."""
    if why := why_unknown(name):
        return f"; {why}"
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {shown(close[0])}?" if close else ""


def _repeated_config(profile: SchedulerProfile) -> Iterator[str]:
    names = [entry.name for entry in profile.plugin_config]
    for i, name in enumerate(names):
        if name in names[:i]:
            yield f"repeated config for plugin {name}"


def _specific_problems(plugins: Plugins, implemented: Implemented) -> Iterator[str]:
    for point in ExtensionPoint:
        seen: set[str] = set()
        for plugin in plugins.at(point).enabled:
            if plugin.name not in implemented:
                yield f"{point.plugin_type} {shown(plugin.name)} does not exist"
            elif point not in implemented[plugin.name]:
                yield f"plugin {shown(plugin.name)} does not extend {point.plugin_type} plugin"
            elif plugin.name in seen:
                yield _already_registered(plugin.name, point)
            seen.add(plugin.name)


def _multi_point_problems(plugins: Plugins, implemented: Implemented) -> Iterator[str]:
    """Each plugin is reported once, at the first point where it would be added."""
    refused: set[str] = set()
    for point in ExtensionPoint:
        seen: set[str] = set()
        for name in _offered_by_multi_point(point, plugins, implemented):
            if name not in implemented and name not in refused:
                yield f"{point.plugin_type} {shown(name)} does not exist"
                refused.add(name)
            elif name in seen and name not in refused:
                yield _already_registered(name, point)
                refused.add(name)
            seen.add(name)


def _offered_by_multi_point(
    point: ExtensionPoint, plugins: Plugins, implemented: Implemented
) -> Iterator[str]:
    """The plugins that `multiPoint` adds at this point, including unknown ones.

    Plugins that the point itself enables are left out: that entry takes precedence.
    """
    here = plugins.at(point)
    disabled = {plugin.name for plugin in here.disabled}
    enabled = {plugin.name for plugin in here.enabled}
    if ALL in disabled:
        return
    for plugin in plugins.multi_point.enabled:
        name = plugin.name
        if name not in implemented:
            yield name
        elif point in implemented[name] and name not in disabled and name not in enabled:
            yield name


def _already_registered(name: str, point: ExtensionPoint) -> str:
    return f"plugin {shown(name)} already registered as {shown(point.plugin_type)}"


def _order_at(point: ExtensionPoint, plugins: Plugins, implemented: Implemented) -> tuple[str, ...]:
    """Plugins in both lists first, in the order of the point; then `multiPoint`, then the point."""
    here = plugins.at(point)
    specific = [plugin.name for plugin in here.enabled]
    disabled = {plugin.name for plugin in here.disabled}
    multi_point = {plugin.name for plugin in plugins.multi_point.enabled}
    overrides = (
        [] if ALL in disabled else [n for n in specific if n in multi_point and n not in disabled]
    )
    return (
        *overrides,
        *_offered_by_multi_point(point, plugins, implemented),
        *(name for name in specific if name not in overrides),
    )


def _count_problems(
    order: Mapping[ExtensionPoint, tuple[str, ...]], scheduler_name: str
) -> Iterator[str]:
    profile = f"for profile with scheduler name {shown(scheduler_name)}"
    queue_sorts = len(order[ExtensionPoint.QUEUE_SORT])
    if queue_sorts != 1:
        yield f"only one queue sort plugin required {profile}, but got {queue_sorts}"
    if not order[ExtensionPoint.BIND]:
        yield f"at least one bind plugin is needed {profile}"
    if len(order[ExtensionPoint.PLACEMENT_GENERATE]) > 1:
        yield f"at most one placement generate plugin is allowed {profile}"


def _weights(point: ExtensionPoint, plugins: Plugins, implemented: Implemented) -> dict[str, int]:
    """The first entry of a plugin counts, those of the point before `multiPoint`. 0 means 1."""
    weights: dict[str, int] = {}
    mentions: tuple[Plugin, ...] = (*plugins.at(point).enabled, *plugins.multi_point.enabled)
    for plugin in mentions:
        # If every point disables `multiPoint`, an unknown name is not refused earlier.
        if point in implemented.get(plugin.name, ()):
            weights.setdefault(plugin.name, plugin.weight or 1)
    return weights


def _overflows(weights: Mapping[str, int]) -> bool:
    total = 0
    for weight in weights.values():
        total += weight * MAX_SCORE
        if total > MAX_INT64:
            return True
    return False


def _queue_sort_differences(
    profiles: Sequence[SchedulerProfile], expanded: Mapping[str, ExpandedPlugins]
) -> Iterator[str]:
    """There is one queue, so all profiles must sort it in the same way."""
    first, *others = profiles
    (sort,) = expanded[first.scheduler_name].order[ExtensionPoint.QUEUE_SORT]
    for profile in others:
        name = shown(profile.scheduler_name)
        (other,) = expanded[profile.scheduler_name].order[ExtensionPoint.QUEUE_SORT]
        if other != sort:
            yield (
                f"different queue sort plugins for profile {name}: "
                f"{shown(other)}, first: {shown(sort)}"
            )
        elif profile.args_of(sort) != first.args_of(sort):
            yield f"different queue sort plugin args for profile {name}"
