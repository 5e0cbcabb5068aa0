"""The messages of Protocol Buffers that an expression can create."""

from __future__ import annotations

from typing import Any

from mooring.cel.library.times import Duration, Timestamp
from mooring.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
)
from mooring.cel.values import UInt, check_int

_PACKAGE = "google.protobuf."


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

#: Types by name. A wrapper has the type that it wraps, or null.
TYPES: dict[str, Type] = {
    _PACKAGE + "Timestamp": TIMESTAMP,
    _PACKAGE + "Duration": DURATION,
    **{_PACKAGE + name: _nullable(wrapped) for name, (wrapped, _) in _WRAPPERS.items()},
}
FIELDS: dict[str, dict[str, Type]] = {
    _PACKAGE + "Timestamp": {"seconds": INT, "nanos": INT},
    _PACKAGE + "Duration": {"seconds": INT, "nanos": INT},
    **{_PACKAGE + name: {"value": wrapped} for name, (wrapped, _) in _WRAPPERS.items()},
}


def make_struct(name: str, fields: dict[str, Any]) -> Any:
    """The value of a message: it is one of CEL's own."""
    short = name.removeprefix(_PACKAGE)
    if short in _WRAPPERS:
        return fields.get("value", _WRAPPERS[short][1])
    nanos = fields.get("seconds", 0) * 10**9 + fields.get("nanos", 0)
    return Timestamp(nanos) if short == "Timestamp" else Duration(check_int(nanos))
