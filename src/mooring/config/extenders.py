"""The order of the extenders, and the resources that they manage."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from mooring.config.args import NodeResourcesFitArgs
from mooring.config.types import (
    Extender,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    PluginConfig,
    SchedulerProfile,
)
from mooring.errors import ConfigError

_NO_ARGS = "couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"


def ordered_extenders(extenders: Iterable[Extender]) -> tuple[Extender, ...]:
    """The extenders in order: those that must not fail first, then the ignorable ones."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def ignored_resources(extenders: Iterable[Extender]) -> tuple[str, ...]:
    """The resources that extenders manage and the scheduler ignores."""
    return tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )


def tls_of(extender: Extender) -> ExtenderTLSConfig:
    """The TLS settings. With HTTPS and no CA, the certificate is not verified."""
    tls = extender.tls_config or ExtenderTLSConfig()
    if extender.enable_https and not (tls.ca_file or tls.ca_data):
        return replace(tls, insecure=True)
    return tls


def with_ignored_resources(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """Make NodeResourcesFit in every profile ignore these resources, instead of those in its args.

    Raises ConfigError if a profile has no args for the plugin.
    """
    ignored = ignored_resources(config.extenders)
    if not ignored:
        return config
    return replace(
        config, profiles=tuple(_ignoring(profile, ignored) for profile in config.profiles)
    )


def _ignoring(profile: SchedulerProfile, ignored: tuple[str, ...]) -> SchedulerProfile:
    if not isinstance(profile.args_of("NodeResourcesFit"), NodeResourcesFitArgs):
        raise ConfigError([_NO_ARGS])
    return replace(
        profile,
        plugin_config=tuple(_entry_ignoring(entry, ignored) for entry in profile.plugin_config),
    )


def _entry_ignoring(entry: PluginConfig, ignored: tuple[str, ...]) -> PluginConfig:
    if not isinstance(entry.args, NodeResourcesFitArgs):
        return entry
    return replace(entry, args=replace(entry.args, ignored_resources=ignored))
