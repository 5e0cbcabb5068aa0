"""`KubeSchedulerConfiguration` v1: read strictly, completed, checked, expanded and written out.

    source ─ document ─ old_versions ─ decode ─ defaults (merge) ─ validation ─→ KubeSchedulerConfiguration
                                                                   ├─ expansion ─→ plugins per point
                                                                   └─ write ─→ plain data

Nothing here depends on the code of plugins.
"""

from mooring.config.args_validation import args_problems
from mooring.config.default_plugins import DEFAULT_ORDER, default_plugins
from mooring.config.defaults import with_defaults
from mooring.config.durations import Duration, parse_duration
from mooring.config.expansion import (
    ExpandedPlugins,
    expand_plugins,
    expand_profiles,
    idle_entries,
    unknown_plugins,
    without_plugins,
)
from mooring.config.extenders import ordered_extenders, with_ignored_resources
from mooring.config.extension_points import ExtensionPoint
from mooring.config.gates import DEFAULT_GATES, FeatureGates, parse_gates
from mooring.config.load import default_config, load_config
from mooring.config.types import (
    Extender,
    KubeSchedulerConfiguration,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    SchedulerProfile,
)
from mooring.config.validation import config_problems
from mooring.config.write import write_config

__all__ = [
    "DEFAULT_GATES",
    "DEFAULT_ORDER",
    "Duration",
    "ExpandedPlugins",
    "Extender",
    "ExtensionPoint",
    "FeatureGates",
    "KubeSchedulerConfiguration",
    "Plugin",
    "PluginConfig",
    "PluginSet",
    "Plugins",
    "SchedulerProfile",
    "args_problems",
    "config_problems",
    "default_config",
    "default_plugins",
    "expand_plugins",
    "expand_profiles",
    "idle_entries",
    "load_config",
    "ordered_extenders",
    "parse_duration",
    "parse_gates",
    "unknown_plugins",
    "with_defaults",
    "with_ignored_resources",
    "without_plugins",
    "write_config",
]
