"""From plain data to the structs of `types`, strictly.

An unknown field is an error, also in the args of known plugins. msgspec stops at the first error;
here all errors are collected, each with its path, so that a user can correct them at once. A null
means that the field is absent.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any

from msgspec import inspect

from mooring.config.args import ARGS_BY_PLUGIN
from mooring.config.document import Document
from mooring.config.durations import Duration, parse_duration
from mooring.config.field_errors import child, shown
from mooring.config.types import (
    API_VERSION,
    GROUP,
    KIND,
    KubeSchedulerConfiguration,
    PluginConfig,
)
from mooring.errors import ConfigError

_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1

#: Stands for a value that could not be read, for which a problem was recorded.
_UNREADABLE: Any = object()


def decode_config(
    document: Document, problems: list[str]
) -> tuple[KubeSchedulerConfiguration, list[str]]:
    """Read the document. Unknown fields and values of the wrong type are added to `problems`.

    Also returns the paths of values that could not be read: the configuration has defaults there, so
    further problems of these paths mean nothing. Raises ConfigError with all problems if the document
    is of another kind.
    """
    if wrong_kind := _type_meta_problems(document):
        raise ConfigError([*problems, *wrong_kind])
    reader = _Reader(problems)
    body = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    config = reader.read(_type_of(KubeSchedulerConfiguration), body, "")
    if not isinstance(config, KubeSchedulerConfiguration):
        raise ConfigError(problems)
    return config, reader.unreadable


def _type_meta_problems(document: Document) -> list[str]:
    wanted = {"apiVersion": API_VERSION, "kind": KIND}
    return [
        f"{field}: this is {shown(document[field])}; only {shown(value)} can be read"
        if document.get(field) is not None
        else f"{field}: missing; write {shown(value)}"
        for field, value in wanted.items()
        if document.get(field) != value
    ]


@cache
def _type_of(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


class _Reader:
    """Reads values by their type and records problems."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        #: The paths of values that could not be read.
        self.unreadable: list[str] = []

    def read(self, kind: inspect.Type, value: Any, path: str) -> Any:
        """The value in its type, or _UNREADABLE. A null becomes an empty struct."""
        match kind:
            case inspect.UnionType():
                return self.read(_apart_from_null(kind), value, path)
            case inspect.StructType() if kind.cls is PluginConfig:
                return self._read_plugin_config(value, path)
            case inspect.StructType():
                return self._read_struct(kind, value, path)
            case inspect.VarTupleType() | inspect.ListType():
                items = self._read_items(kind.item_type, value, path)
                return tuple(items) if isinstance(kind, inspect.VarTupleType) else items
            case inspect.DictType():
                return self._read_mapping(kind.value_type, value, path)
            case inspect.IntType():
                return self._read_integer(kind, value, path)
            case inspect.FloatType():
                is_number = isinstance(value, int | float) and not isinstance(value, bool)
                return float(value) if is_number else self._wrong(path, "a number", value)
            case inspect.BoolType():
                is_bool = isinstance(value, bool)
                return value if is_bool else self._wrong(path, "true or false", value)
            case inspect.StrType():
                return value if isinstance(value, str) else self._wrong(path, "a string", value)
            case inspect.BytesType():
                return self._read_bytes(value, path)
            case inspect.DataclassType() if kind.cls is Duration:
                return self._read_duration(value, path)
        raise NotImplementedError(f"no reader for {kind}")

    def _read_struct(self, kind: inspect.StructType, value: Any, path: str) -> Any:
        if value is None:
            return kind.cls()
        if not isinstance(value, Mapping):
            return self._wrong(path, "a mapping", value)
        fields = {field.encode_name: field for field in kind.fields}
        self._note_unknown(value, fields, path)
        given = {
            field.name: self.read(field.type, value[key], child(path, key))
            for key, field in fields.items()
            if value.get(key) is not None
        }
        return kind.cls(**{name: item for name, item in given.items() if item is not _UNREADABLE})

    def _read_plugin_config(self, value: Any, path: str) -> Any:
        """Read an entry of `pluginConfig`: its name decides the kind of the args."""
        if value is None:
            return PluginConfig()
        if not isinstance(value, Mapping):
            return self._wrong(path, "a mapping", value)
        self._note_unknown(value, ("name", "args"), path)
        given = value.get("name")
        name = self.read(inspect.StrType(), "" if given is None else given, child(path, "name"))
        if name is _UNREADABLE:
            return _UNREADABLE
        args = self._read_args(name, value.get("args"), path)
        return PluginConfig(name, None if args is _UNREADABLE else args)

    def _read_args(self, plugin: str, value: Any, path: str) -> Any:
        args_path = child(path, "args")
        if value is not None and not isinstance(value, Mapping):
            return self._wrong(args_path, "a mapping", value)
        kind = ARGS_BY_PLUGIN.get(plugin)
        if kind is None:
            return value
        given = dict(value or {})
        given_kind = given.pop("kind", None) or kind.__name__
        given_version = given.pop("apiVersion", None) or API_VERSION
        if (given_kind, given_version) == (kind.__name__, API_VERSION):
            return self.read(_type_of(kind), given, args_path)
        self.unreadable.append(args_path)
        if given_version == API_VERSION and given_kind in _ARGS_KINDS:
            problem = (
                f"args for plugin {plugin} were not of type {kind.__name__}.{GROUP}, "
                f"got {given_kind}.{GROUP}"
            )
        else:
            problem = (
                f"decoding args for plugin {plugin}: no kind {shown(given_kind)} is registered "
                f"for version {shown(given_version)}"
            )
        self.problems.append(f"decoding .{path}: {problem}")
        return _UNREADABLE

    def _read_items(self, kind: inspect.Type, value: Any, path: str) -> list[Any]:
        if not isinstance(value, list):
            self._wrong(path, "a list", value)
            return []
        items = [self.read(kind, item, f"{path}[{i}]") for i, item in enumerate(value)]
        # Later items keep their position, so that their problems have the right path.
        return [_stand_in(kind) if item is _UNREADABLE else item for item in items]

    def _read_mapping(self, kind: inspect.Type, value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            return self._wrong(path, "a mapping", value)
        read = {key: self.read(kind, item, f"{path}[{key}]") for key, item in value.items()}
        return {key: item for key, item in read.items() if item is not _UNREADABLE}

    def _read_integer(self, kind: inspect.IntType, value: Any, path: str) -> Any:
        # YAML does not separate integers from floats: 2.0 and 1e3 mean 2 and 1000.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return self._wrong(path, "an integer", value)
        low = _MIN_INT64 if kind.ge is None else kind.ge
        high = _MAX_INT64 if kind.le is None else kind.le
        if not low <= value <= high:
            return self._wrong(path, f"an integer from {low} to {high}", value)
        return value

    def _read_bytes(self, value: Any, path: str) -> Any:
        try:
            return base64.b64decode(value, validate=True)
        except (TypeError, ValueError, binascii.Error):
            return self._wrong(path, "base64 text", value)

    def _read_duration(self, value: Any, path: str) -> Any:
        if not isinstance(value, str):
            return self._wrong(path, 'a duration such as "15s"', value)
        try:
            return parse_duration(value)
        except ValueError as error:
            self.unreadable.append(path)
            self.problems.append(f"{path}: {error}")
            return _UNREADABLE

    def _note_unknown(self, value: Mapping[str, Any], known: Any, path: str) -> None:
        for key in value:
            if key not in known:
                hint = _nearest(key, known)
                self.problems.append(
                    f"{child(path, key)}: unknown field"
                    + (f"; did you mean {shown(hint)}?" if hint else "")
                )

    def _wrong(self, path: str, expected: str, value: Any) -> Any:
        self.unreadable.append(path)
        self.problems.append(f"{path}: expected {expected}, got {shown(value)}")
        return _UNREADABLE


_ARGS_KINDS = frozenset(kind.__name__ for kind in ARGS_BY_PLUGIN.values())


def _stand_in(kind: inspect.Type) -> Any:
    """A value of the type, instead of one that could not be read."""
    match kind:
        case inspect.StructType():
            return kind.cls()
        case inspect.StrType():
            return ""
        case _:
            return 0


def _apart_from_null(kind: inspect.UnionType) -> inspect.Type:
    (only,) = (each for each in kind.types if not isinstance(each, inspect.NoneType))
    return only


def _nearest(key: str, known: Any) -> str | None:
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(key.lower(), by_lower, n=1)
    return by_lower[close[0]] if close else None
