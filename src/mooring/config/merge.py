"""Merge the plugins of a profile with the default plugins."""

from __future__ import annotations

import msgspec

from mooring.config.types import Plugin, Plugins, PluginSet

ALL = "*"


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """Merge point by point. The result keeps what was disabled: expanding `multiPoint` needs it."""
    return Plugins(
        **{
            field.name: merge_plugin_set(getattr(default, field.name), getattr(custom, field.name))
            for field in msgspec.structs.fields(Plugins)
        }
    )


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """The default plugins in their order, then those that only the profile enables.

    A default plugin that the profile enables again gets the entry of the profile, with its weight,
    and keeps its position. A plugin that the profile both enables and disables is enabled, and
    comes last.
    """
    disabled = tuple(Plugin(plugin.name) for plugin in (*custom.disabled, *default.disabled))
    disabled_names = {plugin.name for plugin in disabled}
    # If a plugin is enabled twice, the last entry replaces the default one. The other entry stays,
    # and is refused when the profile is built.
    replacements = {plugin.name: i for i, plugin in enumerate(custom.enabled)}
    kept = () if ALL in disabled_names else default.enabled
    kept = tuple(plugin for plugin in kept if plugin.name not in disabled_names)
    replaced = {replacements[plugin.name] for plugin in kept if plugin.name in replacements}
    return PluginSet(
        enabled=(
            *(
                custom.enabled[replacements[plugin.name]] if plugin.name in replacements else plugin
                for plugin in kept
            ),
            *(plugin for i, plugin in enumerate(custom.enabled) if i not in replaced),
        ),
        disabled=disabled,
    )
