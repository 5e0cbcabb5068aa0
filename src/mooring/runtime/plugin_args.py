"""Arguments that a plugin declares as a type: decoded strictly, with all problems at once.

A plugin has a class attribute `Args`, a msgspec Struct or a dataclass. Its constructor then gets an instance
of it instead of the mapping in the configuration. Fields without a default are required, other fields are
unknown. What a type cannot say, it checks in `__post_init__`, which raises ValueError.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, get_args, get_origin

import msgspec

from mooring.config.field_errors import child, invalid, required
from mooring.config.types import KubeSchedulerConfiguration, SchedulerProfile
from mooring.errors import PluginError
from mooring.framework.interface import PluginFactory

#: Kubernetes writes these into arguments; they say nothing that the name of the plugin does not.
_TYPE_FIELDS = ("apiVersion", "kind")


def args_type(factory: PluginFactory) -> type | None:
    """`Args` of a plugin; None if it has none. Raises PluginError."""
    kind = getattr(factory, "Args", None)
    if kind is None or _fields_of(kind) is not None:
        return kind
    raise PluginError(
        f"Args of plugin {factory.__name__} is neither a msgspec Struct nor a dataclass"
    )


def decoded(kind: type, args: object) -> object:
    """The arguments as an instance of `kind`. They have no problems."""
    return msgspec.convert(_without_type(kind, args), kind)


def args_problems(kind: type, args: object, path: str) -> list[str]:
    """What is wrong with arguments, each with the path of its field."""
    if args is not None and not isinstance(args, Mapping):
        return [invalid(path, args, "must be a mapping")]
    given = _without_type(kind, args)
    found = list(_problems(kind, given, path))
    return found or list(_refused(kind, given, path))


def declared_args(
    config: KubeSchedulerConfiguration, kinds: Mapping[str, type]
) -> Iterator[tuple[str, type, object]]:
    """(path, type, arguments) for each plugin of each profile that declares `Args`."""
    for number, profile in enumerate(config.profiles):
        for name in sorted(profile.plugins.enabled_names & kinds.keys()):
            yield _path(profile, name, f"profiles[{number}]"), kinds[name], profile.args_of(name)


def _path(profile: SchedulerProfile, name: str, path: str) -> str:
    for number, entry in enumerate(profile.plugin_config):
        if entry.name == name:
            return f"{path}.pluginConfig[{number}].args"
    return f"{path}.pluginConfig[{name}].args"


def _without_type(kind: type, args: object) -> dict[str, Any]:
    given = dict(typing.cast(Mapping[str, Any], args or {}))
    fields = _fields_of(kind) or {}
    return {k: v for k, v in given.items() if k in fields or k not in _TYPE_FIELDS}


def _problems(kind: Any, value: object, path: str) -> Iterator[str]:
    """Field by field, and item by item, as msgspec stops at the first problem."""
    fields = _fields_of(kind)
    if fields is not None:
        yield from _problems_of_struct(fields, value, path)
    elif get_origin(kind) in (list, tuple) and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(get_args(kind)[0], item, f"{path}[{number}]")
    elif get_origin(kind) is dict and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _problems(get_args(kind)[1], item, child(path, str(key)))
    else:
        yield from _refused(kind, value, path)


def _problems_of_struct(
    fields: Mapping[str, tuple[Any, bool]], value: object, path: str
) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield invalid(path, value, "must be a mapping")
        return
    for key in value:
        if key not in fields:
            yield f"{child(path, str(key))}: unknown field; choose one of {', '.join(sorted(fields))}"
    for name, (kind, is_required) in fields.items():
        if name in value:
            yield from _problems(kind, value[name], child(path, name))
        elif is_required:
            yield required(child(path, name))


def _refused(kind: Any, value: object, path: str) -> Iterator[str]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        text, _, where = str(error).partition(" - at `$")
        yield invalid(path + where.rstrip("`"), value, text)


def _fields_of(kind: Any) -> Mapping[str, tuple[Any, bool]] | None:
    """Name in a configuration → (type, whether it is required); None if the type has no fields."""
    return _fields_of_type(kind) if isinstance(kind, type) else None


@lru_cache(maxsize=256)
def _fields_of_type(kind: type) -> Mapping[str, tuple[Any, bool]] | None:
    if issubclass(kind, msgspec.Struct):
        return {
            field.encode_name: (field.type, field.required)
            for field in msgspec.structs.fields(kind)
        }
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        missing = dataclasses.MISSING
        return {
            field.name: (
                hints[field.name],
                field.default is missing and field.default_factory is missing,
            )
            for field in dataclasses.fields(kind)
        }
    return None
