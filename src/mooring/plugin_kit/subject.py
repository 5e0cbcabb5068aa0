"""The plugin under check: its class, its arguments, and the words of its source."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mooring.config import KubeSchedulerConfiguration, default_config, load_config
from mooring.errors import PluginError
from mooring.plugin_kit.vocabulary import Vocabulary, vocabulary_of
from mooring.plugins.registry import BUILT_IN
from mooring.runtime.plugin_calls import points_of
from mooring.runtime.registry import Registry

PROFILE = "default-scheduler"
_GATES = ("GenericWorkload", "GangScheduling")


@dataclass(frozen=True)
class Subject:
    """One plugin class with its arguments."""

    plugin: type
    args: Mapping[str, Any] | None = None

    @property
    def name(self) -> str:
        own = getattr(self.plugin, "name", None)
        return own if isinstance(own, str) else self.plugin.__name__

    @property
    def vocabulary(self) -> Vocabulary:
        return vocabulary_of(self.plugin, self.args)

    def alone(self) -> KubeSchedulerConfiguration:
        """A profile with this plugin, and what no profile can do without."""
        sorts = callable(getattr(self.plugin, "less", None))
        others = {"DefaultBinder"} if sorts else {"PrioritySort", "DefaultBinder"}
        enabled = [{"name": name} for name in (*sorted(others - {self.name}), self.name)]
        return self._config({"disabled": [{"name": "*"}], "enabled": enabled})

    def beside_the_defaults(self) -> KubeSchedulerConfiguration:
        """The default profile with this plugin."""
        own = [] if self.name in BUILT_IN else [{"name": self.name}]
        return self._config({"enabled": own})

    def defaults_without(self) -> KubeSchedulerConfiguration:
        """The default profile without this plugin, which may be one of it."""
        if self.name in BUILT_IN:
            return self._config({"disabled": [{"name": self.name}]})
        return default_config()

    def registry(self, plugin: type | None = None) -> Registry:
        """The built-in plugins and this one, which another class may stand in for."""
        return Registry({**BUILT_IN, self.name: plugin or self.plugin}, installed={})

    def _config(self, multi_point: Mapping[str, Any]) -> KubeSchedulerConfiguration:
        profile: dict[str, Any] = {"plugins": {"multiPoint": multi_point}}
        if self.args is not None:
            profile["pluginConfig"] = [{"name": self.name, "args": dict(self.args)}]
        return load_config(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [profile],
                "featureGates": dict.fromkeys(_GATES, True),
            }
        )


def load_subject(name: str, args: Mapping[str, Any] | None = None) -> Subject:
    """A plugin by `module:Class`, by its entry point, or by the name of a built-in one.

    Raises PluginError. Modules in the current folder are found.
    """
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    registry = Registry(BUILT_IN)
    plugin = registry.factory(name)
    if plugin is None:
        raise PluginError(
            f"no plugin is called {name!r}; write module:Class, or one of"
            f" {', '.join(sorted(registry.names()))}"
        )
    return subject_of(plugin, args)


def subject_of(plugin: object, args: Mapping[str, Any] | None = None) -> Subject:
    """Raises PluginError if this is no plugin class."""
    if not isinstance(plugin, type):
        raise PluginError(f"{plugin!r} is not a class; give the class of the plugin")
    if not points_of(plugin):
        raise PluginError(
            f"{plugin.__name__} has no method of any extension point (filter, score, permit, …)"
        )
    return Subject(plugin, args)
