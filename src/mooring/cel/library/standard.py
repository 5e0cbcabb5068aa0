"""The standard library: operators, sizes and conversions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import (
    COST_LIMIT,
    INT_OVERFLOW,
    NO_OVERLOAD,
    CelAbort,
    CelError,
)
from mooring.cel.library import conversions, times
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
    list_of,
    map_of,
    optional_of,
    param,
)
from mooring.cel.values import (
    MIN_INT,
    MutableList,
    StringMap,
    UInt,
    check_int,
    check_uint,
    compare,
    equal,
    is_list,
    is_map,
    type_name,
)

#: Joining lists costs 1 however long they are. This is what memory allows.
_LONGEST_LIST = 5_000_000
_A, _B = param("A"), param("B")
_LIST, _MAP = list_of(_A), map_of(_A, _B)


def _add(left: Any, right: Any) -> Any:
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return check_int(left + right)
        if kind is UInt:
            return check_uint(int(left) + int(right))
        if kind in (float, str, bytes):
            return left + right
        if kind is Duration:
            return Duration(check_int(left.nanos + right.nanos))
    if is_list(left) and is_list(right):
        if len(left) + len(right) > _LONGEST_LIST:
            raise CelAbort(COST_LIMIT)
        if kind is MutableList:
            left.extend(right)
            return left
        return left + right if left and right else (left or right)
    if kind is Timestamp and other is Duration:
        return times.add(left, right.nanos)
    if kind is Duration and other is Timestamp:
        return times.add(right, left.nanos)
    raise CelError(NO_OVERLOAD)


def _subtract(left: Any, right: Any) -> Any:
    kind, other = type(left), type(right)
    if kind is other:
        if kind is int:
            return check_int(left - right)
        if kind is UInt:
            return check_uint(int(left) - int(right))
        if kind is float:
            return left - right
        if kind is Duration:
            return Duration(check_int(left.nanos - right.nanos))
        if kind is Timestamp:
            return times.between(left, right)
    if kind is Timestamp and other is Duration:
        return times.subtract_duration(left, right)
    raise CelError(NO_OVERLOAD)


def _multiply(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right):
        raise CelError(NO_OVERLOAD)
    if kind is float:
        return left * right
    return check_int(left * right) if kind is int else check_uint(int(left) * int(right))


def _divide(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right):
        raise CelError(NO_OVERLOAD)
    if kind is float:
        return _divided(left, right)
    if right == 0:
        raise CelError("division by zero")
    if kind is UInt:
        return UInt(int(left) // int(right))
    quotient = abs(left) // abs(right)
    return check_int(quotient if (left < 0) == (right < 0) else -quotient)


def _divided(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or left != left:
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _modulo(left: Any, right: Any) -> Any:
    kind = type(left)
    if kind is not type(right):
        raise CelError(NO_OVERLOAD)
    if right == 0:
        raise CelError("modulus by zero")
    if kind is UInt:
        return UInt(int(left) % int(right))
    if left == MIN_INT and right == -1:
        raise CelError(INT_OVERFLOW)
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def _negate(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return check_int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return Duration(check_int(-value.nanos))
    raise CelError(NO_OVERLOAD)


def _not(value: Any) -> bool:
    if type(value) is not bool:
        raise CelError(NO_OVERLOAD)
    return not value


def _not_strictly_false(value: Any) -> bool:
    return value if type(value) is bool else True


def _in(item: Any, container: Any) -> bool:
    if is_list(container):
        return any(equal(item, each) is True for each in container)
    if isinstance(container, StringMap):
        return container.contains(item)
    if is_map(container):
        return bool(container.find(item)[0])
    raise CelError(NO_OVERLOAD)


def _order(holds: Callable[[int], bool]) -> Callable[[Any, Any], bool]:
    return lambda left, right: holds(compare(left, right))


def _traits(*names: str) -> Callable[[Any], bool]:
    wanted = frozenset(names)
    return lambda value: type_name(value) in wanted


_TIMES = ("google.protobuf.Duration", "google.protobuf.Timestamp")
_ADDERS = _traits("int", "uint", "double", "string", "bytes", "list", *_TIMES)
_SUBTRACTORS = _traits("int", "uint", "double", *_TIMES)
_NUMBERS = _traits("int", "uint", "double")
_COMPARERS = _traits("bool", "int", "uint", "double", "string", "bytes", *_TIMES)
_SIZERS = _traits("string", "bytes", "list", "map")
_NEGATERS = _traits("bool", "int", "double", "google.protobuf.Duration")
_MODDERS = _traits("int", "uint")


_ORDERED = {
    "bool": BOOL,
    "int64": INT,
    "uint64": UINT,
    "double": DOUBLE,
    "string": STRING,
    "bytes": BYTES,
    "timestamp": TIMESTAMP,
    "duration": DURATION,
}
_MIXED = ("int64", "uint64", "double")


def _relation(symbol: str, name: str, holds: Callable[[int], bool]) -> Function:
    overloads = [Overload(f"{name}_{kind}", (each, each), BOOL) for kind, each in _ORDERED.items()]
    overloads += [
        Overload(f"{name}_{left}_{right}", (_ORDERED[left], _ORDERED[right]), BOOL)
        for left in _MIXED
        for right in _MIXED
        if left != right
    ]
    return Function(f"_{symbol}_", overloads, singleton=_order(holds), operand=_COMPARERS)


def _operator(
    name: str, implementation: Any, operand: Any, *signatures: tuple[str, Type, Type, Type]
) -> Function:
    overloads = [Overload(each, (left, right), to) for each, left, right, to in signatures]
    return Function(name, overloads, singleton=implementation, operand=operand)


def _size(value: Any) -> int:
    return len(value)


def _string_test(name: str, overload: str, holds: Callable[[str, str], bool]) -> Function:
    def test(text: Any, part: Any) -> bool:
        if type(text) is not str or type(part) is not str:
            raise CelError(NO_OVERLOAD)
        return holds(text, part)

    return Function(
        name, [Overload(overload, (STRING, STRING), BOOL, test, member=True)], unguarded=True
    )


_V, _K = param("V"), param("K")
_OPT_LIST, _OPT_MAP = optional_of(list_of(_V)), optional_of(map_of(_K, _V))

FUNCTIONS = [
    Function("_?_:_", [Overload("conditional", (BOOL, _A, _A), _A)]),
    Function("_&&_", [Overload("logical_and", (BOOL, BOOL), BOOL)]),
    Function("_||_", [Overload("logical_or", (BOOL, BOOL), BOOL)]),
    Function("_==_", [Overload("equals", (_A, _A), BOOL)]),
    Function("_!=_", [Overload("not_equals", (_A, _A), BOOL)]),
    Function("!_", [Overload("logical_not", (BOOL,), BOOL)], singleton=_not),
    Function(
        "@not_strictly_false",
        [Overload("not_strictly_false", (BOOL,), BOOL)],
        singleton=_not_strictly_false,
    ),
    _operator(
        "_+_",
        _add,
        _ADDERS,
        ("add_bytes", BYTES, BYTES, BYTES),
        ("add_double", DOUBLE, DOUBLE, DOUBLE),
        ("add_duration_duration", DURATION, DURATION, DURATION),
        ("add_duration_timestamp", DURATION, TIMESTAMP, TIMESTAMP),
        ("add_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        ("add_int64", INT, INT, INT),
        ("add_list", _LIST, _LIST, _LIST),
        ("add_string", STRING, STRING, STRING),
        ("add_uint64", UINT, UINT, UINT),
    ),
    _operator(
        "_-_",
        _subtract,
        _SUBTRACTORS,
        ("subtract_double", DOUBLE, DOUBLE, DOUBLE),
        ("subtract_duration_duration", DURATION, DURATION, DURATION),
        ("subtract_int64", INT, INT, INT),
        ("subtract_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP),
        ("subtract_timestamp_timestamp", TIMESTAMP, TIMESTAMP, DURATION),
        ("subtract_uint64", UINT, UINT, UINT),
    ),
    _operator(
        "_*_",
        _multiply,
        _NUMBERS,
        ("multiply_double", DOUBLE, DOUBLE, DOUBLE),
        ("multiply_int64", INT, INT, INT),
        ("multiply_uint64", UINT, UINT, UINT),
    ),
    _operator(
        "_/_",
        _divide,
        _NUMBERS,
        ("divide_double", DOUBLE, DOUBLE, DOUBLE),
        ("divide_int64", INT, INT, INT),
        ("divide_uint64", UINT, UINT, UINT),
    ),
    _operator(
        "_%_",
        _modulo,
        _MODDERS,
        ("modulo_int64", INT, INT, INT),
        ("modulo_uint64", UINT, UINT, UINT),
    ),
    Function(
        "-_",
        [Overload("negate_double", (DOUBLE,), DOUBLE), Overload("negate_int64", (INT,), INT)],
        singleton=_negate,
        operand=_NEGATERS,
    ),
    _relation("<", "less", lambda order: order < 0),
    _relation("<=", "less_equals", lambda order: order <= 0),
    _relation(">", "greater", lambda order: order > 0),
    _relation(">=", "greater_equals", lambda order: order >= 0),
    Function(
        "_[_]",
        [
            Overload("index_list", (_LIST, INT), _A),
            Overload("index_map", (_MAP, _A), _B),
            Overload("optional_list_index_int", (_OPT_LIST, INT), optional_of(_V)),
            Overload("optional_map_index_value", (_OPT_MAP, _K), optional_of(_V)),
        ],
    ),
    Function(
        "_[?_]",
        [
            Overload("list_optindex_optional_int", (list_of(_V), INT), optional_of(_V)),
            Overload("optional_list_optindex_optional_int", (_OPT_LIST, INT), optional_of(_V)),
            Overload("map_optindex_optional_value", (map_of(_K, _V), _K), optional_of(_V)),
            Overload("optional_map_optindex_optional_value", (_OPT_MAP, _K), optional_of(_V)),
        ],
    ),
    Function(
        "@in",
        [Overload("in_list", (_A, _LIST), BOOL), Overload("in_map", (_A, _MAP), BOOL)],
        singleton=_in,
    ),
    Function(
        "size",
        [
            Overload(f"size_{kind}", (each,), INT)
            for kind, each in (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING))
        ]
        + [
            Overload(f"{kind}_size", (each,), INT, member=True)
            for kind, each in (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING))
        ],
        singleton=_size,
        operand=_SIZERS,
    ),
    _string_test("contains", "contains_string", lambda text, part: part in text),
    _string_test("startsWith", "starts_with_string", str.startswith),
    _string_test("endsWith", "ends_with_string", str.endswith),
    *times.FUNCTIONS,
    *conversions.FUNCTIONS,
]
