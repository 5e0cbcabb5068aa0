"""Conversions between types, and the type of a value."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import INT_OVERFLOW, UINT_OVERFLOW, CelError
from mooring.cel.library import times
from mooring.cel.library.times import Duration, Timestamp
from mooring.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    param,
    type_of,
)
from mooring.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    TypeValue,
    UInt,
    check_uint,
    format_g,
    type_name,
)

_A = param("A")


def _to_int(value: Any) -> int:
    match value:
        case UInt():
            if value > MAX_INT:
                raise CelError(INT_OVERFLOW)
            return int(value)
        case float():
            if not float(MIN_INT) < value < float(MAX_INT):
                raise CelError(INT_OVERFLOW)
            return int(value)
        case Timestamp():
            return value.nanos // 10**9
        case Duration():
            return value.nanos
    if re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII) and len(value) < 1000:
        number = int(value)
        if MIN_INT <= number <= MAX_INT:
            return number
    raise _no_conversion(value, "int")


def _to_uint(value: Any) -> UInt:
    if isinstance(value, float):
        if not (0 <= value < float(2**64)):
            raise CelError(UINT_OVERFLOW)
        return UInt(int(value))
    if isinstance(value, int):
        return check_uint(value)
    if re.fullmatch(r"[0-9]+", value, re.ASCII) and len(value) < 1000 and int(value) <= MAX_UINT:
        return UInt(int(value))
    raise _no_conversion(value, "uint")


#: Digits may be separated by single underscores.
_UNDERSCORE = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+", re.ASCII
)
_SPECIAL = re.compile(r"[+-]?(?:inf|infinity)|nan", re.ASCII | re.IGNORECASE)


def _to_double(value: Any) -> float:
    if isinstance(value, int):
        return float(value)
    digits = _UNDERSCORE.sub("", value) if "_" in value else value
    if _DECIMAL.fullmatch(digits):
        number = float(digits)
        if not math.isinf(number):
            return number
    elif _SPECIAL.fullmatch(value):
        return float(value)
    elif _HEXADECIMAL.fullmatch(digits):
        try:
            return float.fromhex(digits)
        except OverflowError:
            pass
    raise _no_conversion(value, "double")


def _to_string(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return format_g(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None
    return str(value)


def _to_bool(value: str) -> bool:
    if value in ("1", "t", "T", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "F", "false", "FALSE", "False"):
        return False
    raise _no_conversion(value, "bool")


def _to_duration(value: Any) -> Duration:
    found = times.parse_duration(value) if isinstance(value, str) else None
    if found is None:
        raise _no_conversion(value, "google.protobuf.Duration")
    return found


def _to_timestamp(value: Any) -> Timestamp:
    if isinstance(value, int):
        return times.timestamp_of_seconds(value)
    found = times.parse_timestamp(value)
    if found is None:
        raise _no_conversion(value, "google.protobuf.Timestamp")
    return found


def _no_conversion(value: Any, to: str) -> CelError:
    return CelError(f"type conversion error from '{type_name(value)}' to '{to}'")


def _same(value: Any) -> Any:
    return value


def _type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


def _conversion(name: str, to: Type, convert: Callable[[Any], Any], *sources: str) -> Function:
    known = {
        each.kind: each for each in (BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT)
    }
    own = "int64" if name == "int" else "uint64" if name == "uint" else name
    overloads = [Overload(f"{own}_to_{own}", (to,), to, _same)]
    for source in sources:
        prefix = {"int": "int64", "uint": "uint64"}.get(source, source)
        overloads.append(Overload(f"{prefix}_to_{own}", (known[source],), to, convert))
    return Function(name, overloads)


FUNCTIONS = [
    Function("type", [Overload("type", (_A,), type_of(_A))], singleton=_type),
    Function("dyn", [Overload("to_dyn", (_A,), DYN)], singleton=_same),
    _conversion("bool", BOOL, _to_bool, "string"),
    _conversion("bytes", BYTES, str.encode, "string"),
    _conversion("double", DOUBLE, _to_double, "int", "string", "uint"),
    _conversion("duration", DURATION, _to_duration, "int", "string"),
    _conversion("int", INT, _to_int, "double", "duration", "string", "timestamp", "uint"),
    _conversion(
        "string",
        STRING,
        _to_string,
        *("bool", "bytes", "double", "duration", "int", "timestamp", "uint"),
    ),
    _conversion("timestamp", TIMESTAMP, _to_timestamp, "int", "string"),
    _conversion("uint", UINT, _to_uint, "double", "int", "string"),
]
