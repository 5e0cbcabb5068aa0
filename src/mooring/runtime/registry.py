"""Where plugins come from: built in, installed packages, or named as `module:Class`.

An installed package offers plugins by entry points of the group `mooring.plugins`; nothing is ever found
by scanning folders.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Collection, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from mooring.config.extension_points import ExtensionPoint
from mooring.errors import PluginError
from mooring.faults import PLUGIN_FAULTS
from mooring.framework.interface import Handle, PluginFactory
from mooring.framework.version import check_version
from mooring.objects.kinds import Kind
from mooring.runtime.plugin_args import args_type, decoded
from mooring.runtime.plugin_calls import describe, kinds_of, points_of

if TYPE_CHECKING:
    from importlib import metadata

ENTRY_POINT_GROUP = "mooring.plugins"


class Registry:
    """Plugin classes by the names that configurations use."""

    def __init__(
        self,
        built_in: Mapping[str, PluginFactory],
        *,
        installed: Mapping[str, metadata.EntryPoint] | None = None,
    ) -> None:
        self._factories: dict[str, PluginFactory] = dict(built_in)
        self._built_in = frozenset(built_in)
        if installed is not None:
            self._installed = self._checked(installed)

    @cached_property
    def _installed(self) -> Mapping[str, metadata.EntryPoint]:
        """Looked up when a configuration names a plugin that is not built in: it takes a while."""
        return self._checked(installed_plugins())

    def _checked(
        self, installed: Mapping[str, metadata.EntryPoint]
    ) -> Mapping[str, metadata.EntryPoint]:
        for name in installed.keys() & self._built_in:
            raise PluginError(
                f"a plugin named {name} already exists; the package that offers another as"
                f" {installed[name].value} must choose another name"
            )
        return installed

    def add(self, name: str, factory: PluginFactory) -> None:
        """For programs that bring their own plugins along."""
        if name in self.names():
            raise PluginError(f"a plugin named {name} already exists")
        self._factories[name] = factory

    def names(self) -> frozenset[str]:
        """Every name that is known without being spelled out as `module:Class`."""
        return frozenset(self._factories) | self._installed.keys()

    def known(self, wanted: Collection[str]) -> frozenset[str]:
        """The names of `wanted` that are known, with all built-in ones; all known names if one is not."""
        spelled_out = {name for name in wanted if ":" in name}
        if self._factories.keys() | spelled_out >= set(wanted):
            return frozenset(self._factories) | spelled_out
        return self.names() | spelled_out

    def factory(self, name: str) -> PluginFactory | None:
        """None for an unknown name. Raises PluginError if its module cannot be loaded."""
        found = self._factories.get(name)
        if found is None and name in self._installed:
            found = self._factories[name] = _load(name, self._installed[name].value)
        if found is None and ":" in name:
            found = self._factories[name] = _load(name, name)
        return found

    def implemented(self, names: Collection[str]) -> dict[str, frozenset[ExtensionPoint]]:
        """The points at which each of these plugins takes part. Raises PluginError."""
        points: dict[str, frozenset[ExtensionPoint]] = {}
        for name in names:
            if (factory := self.factory(name)) is not None:
                check_version(factory, name)
                points[name] = _points_of(factory)
        return points

    def kinds(self, names: Collection[str]) -> tuple[Kind, ...]:
        """The kinds that these plugins declare in their attribute `kinds`. Raises PluginError."""
        found = (kind for name in sorted(names) for kind in kinds_of(self.factory(name), name))
        return tuple(dict.fromkeys(found))

    def args_types(self, names: Collection[str]) -> dict[str, type]:
        """Plugin → the type of its arguments, for those that declare one. Raises PluginError."""
        found = {name: self.factory(name) for name in names}
        kinds = {name: args_type(factory) for name, factory in found.items() if factory is not None}
        return {name: kind for name, kind in kinds.items() if kind is not None}

    def build(self, name: str, args: object, handle: Handle) -> object:
        """Make a plugin. Raises PluginError if its constructor does not like its arguments."""
        factory = self.factory(name)
        assert factory is not None
        try:
            kind = args_type(factory)
            if kind is not None and not isinstance(args, kind):
                args = decoded(kind, args)
            return factory(*_wanted_arguments(factory, args, handle))
        except PLUGIN_FAULTS as error:
            raise PluginError(f'initializing plugin "{name}": {describe(error)}') from error


def installed_plugins() -> dict[str, metadata.EntryPoint]:
    from importlib import metadata

    return {entry.name: entry for entry in metadata.entry_points(group=ENTRY_POINT_GROUP)}


def _load(name: str, target: str) -> PluginFactory:
    module_name, _, attribute = target.partition(":")
    try:
        found: object = importlib.import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except PLUGIN_FAULTS as error:
        raise PluginError(f"plugin {name!r} cannot be loaded: {describe(error)}") from error
    if not isinstance(found, type):
        raise PluginError(f"plugin {name!r} is not a class: {target}")
    if not points_of(found):
        raise PluginError(
            f"plugin {name!r} has no method of any extension point (filter, score, permit, …)"
        )
    return found


def _wanted_arguments(factory: PluginFactory, args: object, handle: Handle) -> tuple[object, ...]:
    """A constructor may take the arguments and the handle, the arguments only, or nothing."""
    return (args, handle)[: _parameter_count(factory)]


@lru_cache(maxsize=256)
def _parameter_count(factory: PluginFactory) -> int:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except ValueError:  # a class without a constructor of its own may have no signature
        return 0
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in positional for parameter in parameters)


#: The points at which a plugin takes part. Asked for each plugin whenever an engine is built.
_points_of = lru_cache(maxsize=256)(points_of)
