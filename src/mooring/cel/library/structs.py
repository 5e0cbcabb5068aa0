"""The messages of Protocol Buffers that an expression can create."""

from __future__ import annotations

from typing import Any

from mooring.cel.errors import CelError
from mooring.cel.library.times import Duration, Timestamp
from mooring.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
)
from mooring.cel.values import Map, UInt, check_int, is_list, is_map, text_of, type_name

_PACKAGE = "google.protobuf."
#: Integers beyond this are strings in JSON.
_SAFE = 2**53 - 1


def _nullable(wrapped: Type) -> Type:
    return Type(wrapped.kind, wrapped.name, nullable=True)


_WRAPPERS: dict[str, tuple[Type, Any]] = {
    "BoolValue": (BOOL, False),
    "BytesValue": (BYTES, b""),
    "DoubleValue": (DOUBLE, 0.0),
    "FloatValue": (DOUBLE, 0.0),
    "Int32Value": (INT, 0),
    "Int64Value": (INT, 0),
    "StringValue": (STRING, ""),
    "UInt32Value": (UINT, UInt(0)),
    "UInt64Value": (UINT, UInt(0)),
}
_JSON_LIST, _JSON_MAP = list_of(DYN), map_of(STRING, DYN)

#: Types by name. A wrapper has the type that it wraps, or null.
TYPES: dict[str, Type] = {
    _PACKAGE + "Timestamp": TIMESTAMP,
    _PACKAGE + "Duration": DURATION,
    _PACKAGE + "Value": DYN,
    _PACKAGE + "ListValue": _JSON_LIST,
    _PACKAGE + "Struct": _JSON_MAP,
    **{_PACKAGE + name: _nullable(wrapped) for name, (wrapped, _) in _WRAPPERS.items()},
}
FIELDS: dict[str, dict[str, Type]] = {
    _PACKAGE + "Timestamp": {"seconds": INT, "nanos": INT},
    _PACKAGE + "Duration": {"seconds": INT, "nanos": INT},
    _PACKAGE + "Value": {
        "null_value": NULL,
        "number_value": DOUBLE,
        "string_value": STRING,
        "bool_value": BOOL,
        "struct_value": _JSON_MAP,
        "list_value": _JSON_LIST,
    },
    _PACKAGE + "ListValue": {"values": _JSON_LIST},
    _PACKAGE + "Struct": {"fields": _JSON_MAP},
    **{_PACKAGE + name: {"value": wrapped} for name, (wrapped, _) in _WRAPPERS.items()},
}


def make_struct(name: str, fields: dict[str, Any]) -> Any:
    """The value of a message: it is one of CEL's own. Raises CelError."""
    if name not in TYPES:
        raise CelError(f"unknown type '{name}'")
    short = name.removeprefix(_PACKAGE)
    if short in _WRAPPERS:
        return fields.get("value", _WRAPPERS[short][1])
    if short in ("Value", "ListValue", "Struct"):
        empty: Any = {"Value": None, "ListValue": [], "Struct": Map()}[short]
        return _json(next(iter(reversed(fields.values())), empty))
    nanos = fields.get("seconds", 0) * 10**9 + fields.get("nanos", 0)
    return Timestamp(nanos) if short == "Timestamp" else Duration(check_int(nanos))


def _json(value: Any) -> Any:
    """A value as JSON holds it: numbers are doubles, and what JSON does not know is a string."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return float(value) if abs(value) <= _SAFE else str(int(value))
    if is_list(value):
        return [_json(item) for item in value]
    if is_map(value):
        return Map((text_of(key), _json(item)) for key, item in value.items())
    if isinstance(value, Timestamp | Duration):
        return str(value)
    raise CelError(f"unsupported type conversion to JSON: {type_name(value)}")
