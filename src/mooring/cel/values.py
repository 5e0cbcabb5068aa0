"""The values of expressions, and what holds for all of them: type, equality, order and size.

bool, int, float, str, bytes and None stand for themselves; lists are lists. An unsigned integer is a
`UInt`. Errors are no values here: they are raised.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from mooring.cel.errors import INT_OVERFLOW, NO_OVERLOAD, UINT_OVERFLOW, CelError

MAX_INT = 2**63 - 1
MIN_INT = -(2**63)
MAX_UINT = 2**64 - 1
#: From this power of ten on, Go writes a double with an exponent.
_PLAIN_DIGITS = 6

Value = Any


class UInt(int):
    """An unsigned integer of 64 bits."""

    __slots__ = ()


class MutableList(list[Value]):
    """The list that a comprehension is building. `+` extends it in place, as in the reference."""

    __slots__ = ()


class TypeValue:
    """A type as a value: `type(1)`, `int`. Two are equal if their names are."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Optional:
    """A value or none."""

    __slots__ = ("has_value", "value")

    def __init__(self, value: Value, has_value: bool = True) -> None:
        self.value = value
        self.has_value = has_value

    def get(self) -> Value:
        if not self.has_value:
            raise CelError("optional.none() dereference")
        return self.value


NONE = Optional(None, has_value=False)


class Opaque:
    """A value of a library: its type has a name, and it knows equality. Subclasses hold the rest."""

    __slots__ = ()
    type_name = ""
    #: Its size for cost; None for values without a size.
    size: int | None = None

    def equals(self, other: Value) -> bool | None:
        """Whether it is equal to the other; None if they cannot be compared."""
        raise NotImplementedError

    def is_zero(self) -> bool:
        return False


class Map:
    """A map. Keys that are equal as numbers are one key; true and 1 are two."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Value, Value]] = ()) -> None:
        #: From the key as Python may hash it to the key as it was given, and the value.
        self._entries: dict[Any, tuple[Value, Value]] = {}
        for key, value in entries:
            self._entries[_hashed(key)] = (key, value)

    def __len__(self) -> int:
        return len(self._entries)

    def keys(self) -> list[Value]:
        return [key for key, _ in self._entries.values()]

    def items(self) -> Iterator[tuple[Value, Value]]:
        return iter(list(self._entries.values()))

    def find(self, key: Value) -> tuple[bool, Value]:
        """Whether the key is there, and the value."""
        found = self._entries.get(_hashed(key))
        return (False, None) if found is None else (True, found[1])

    def set(self, key: Value, value: Value) -> None:
        hashed = _hashed(key)
        old = self._entries.get(hashed)
        self._entries[hashed] = (key if old is None else old[0], value)

    def remove(self, key: Value) -> None:
        self._entries.pop(_hashed(key), None)


class StringMap(Map):
    """A map of an input, with strings as keys; looking up anything else finds nothing."""

    __slots__ = ("default", "values")

    def __init__(self, values: dict[str, Value], default: Value = None) -> None:
        self.values = values
        #: What a lookup of an unknown key gives; None for nothing.
        self.default = default

    def __len__(self) -> int:
        return len(self.values)

    def keys(self) -> list[Value]:
        return list(self.values)

    def items(self) -> Iterator[tuple[Value, Value]]:
        return iter(list(self.values.items()))

    def find(self, key: Value) -> tuple[bool, Value]:
        found = self.values.get(key) if type(key) is str else None
        if found is None:
            return (self.default is not None, self.default)
        return (True, found)

    def contains(self, key: Value) -> bool:
        """What `in` says: it does not see the default."""
        return type(key) is str and key in self.values


class MutableMap(Map):
    """The map that a comprehension is building; insertion changes it in place."""

    __slots__ = ()


def _hashed(key: Value) -> Any:
    kind = type(key)
    if kind is str or kind is int or kind is UInt:
        return key
    if kind is bool:
        return (bool, key)
    if kind is float:
        return int(key) if key.is_integer() else key
    if kind is TypeValue:
        return (TypeValue, key.name)
    if kind is type(None):
        return (None,)
    if kind is bytes:
        raise CelError("internal error: runtime error: hash of unhashable type types.Bytes")
    if isinstance(key, Opaque) or hasattr(key, "nanos"):
        return key
    return id(key)


_NAMES: dict[type, str] = {
    bool: "bool",
    int: "int",
    UInt: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    MutableList: "list",
    Map: "map",
    StringMap: "map",
    MutableMap: "map",
    TypeValue: "type",
    Optional: "optional_type",
}


def type_name(value: Value) -> str:
    name = _NAMES.get(type(value))
    return value.type_name if name is None else name


_GO_TYPES: dict[str, str] = {
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "list": "*types.baseList",
    "map": "*types.baseMap",
    "type": "*types.Type",
    "optional_type": "*types.Optional",
    "google.protobuf.Duration": "types.Duration",
    "google.protobuf.Timestamp": "types.Timestamp",
}


def go_type(value: Value) -> str:
    """The type of a value as it shows in some messages of the reference."""
    name = type_name(value)
    return _GO_TYPES.get(name) or "cel." + name.rpartition(".")[2]


def register(kind: type, name: str) -> None:
    _NAMES[kind] = name


_NUMBERS = frozenset((int, UInt, float))
_LISTS = frozenset((list, MutableList))
_MAPS = frozenset((Map, StringMap, MutableMap))


def is_list(value: Value) -> bool:
    return type(value) in _LISTS


def is_map(value: Value) -> bool:
    return type(value) in _MAPS


def equal(left: Value, right: Value) -> bool | None:
    """`==`: numbers of different types are compared as numbers, other types are never equal.

    None stands for an error: values of libraries cannot be compared with those of other types. Within
    lists and maps, the reference takes that for equality.
    """
    kind, other = type(left), type(right)
    if kind is str or other is str:
        if isinstance(left, Opaque):
            return left.equals(right)
        return kind is other and bool(left == right)
    if kind in _NUMBERS:
        return other in _NUMBERS and compare_numbers(left, right) == 0
    if left is None or right is None:
        return left is right
    if kind in _LISTS:
        return (
            other in _LISTS
            and len(left) == len(right)
            and all(equal(mine, its) is not False for mine, its in zip(left, right, strict=True))
        )
    if kind in _MAPS:
        return other in _MAPS and _equal_maps(left, right)
    if kind is Optional:
        if other is not Optional or left.has_value != right.has_value:
            return False
        return not left.has_value or equal(left.value, right.value)
    if kind is TypeValue:
        return other is TypeValue and left.name == right.name
    if isinstance(left, Opaque):
        return left.equals(right)
    return kind is other and bool(left == right)


def _equal_maps(left: Map, right: Map) -> bool:
    if len(left) != len(right):
        return False
    for key, mine in left.items():
        found, its = right.find(key)
        if not found or equal(mine, its) is False:
            return False
    return True


def compare_numbers(left: float, right: float) -> int | None:
    """-1, 0 or 1, as the reference compares: None if one is not a number."""
    if type(left) is float or type(right) is float:
        if left != left or right != right:
            return None
        if type(left) is not float:
            flipped = compare_numbers(right, left)
            return None if flipped is None else -flipped
        if type(right) is not float:
            lowest, highest = (0, MAX_UINT) if type(right) is UInt else (MIN_INT, MAX_INT)
            if left < float(lowest):
                return -1
            if left > float(highest):
                return 1
            right = float(right)
    return (left > right) - (left < right)


def compare(left: Value, right: Value) -> int:
    """The order of two values: -1, 0 or 1."""
    kind, other = type(left), type(right)
    if kind in _NUMBERS:
        if other not in _NUMBERS:
            raise CelError(NO_OVERLOAD)
        order = compare_numbers(left, right)
        if order is None:
            raise CelError("NaN values cannot be ordered")
        return order
    if kind is not other:
        raise CelError(NO_OVERLOAD)
    if kind is str:
        # By bytes of UTF-8, which is the order of code points.
        return int((left > right) - (left < right))
    if kind is bytes or kind is bool or hasattr(left, "nanos"):
        return int((left > right) - (left < right))
    return int(left.compare(right))


def check_int(value: int) -> int:
    if MIN_INT <= value <= MAX_INT:
        return value
    raise CelError(INT_OVERFLOW)


def check_uint(value: int) -> UInt:
    if 0 <= value <= MAX_UINT:
        return UInt(value)
    raise CelError(UINT_OVERFLOW)


def format_g(value: float) -> str:
    """A double as Go writes it with `%g`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = _shortest(value)
    if exponent < -4 or exponent >= _PLAIN_DIGITS:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'+' if exponent >= 0 else '-'}{abs(exponent):02d}"
    return sign + _plain(digits, exponent)


def format_f(value: float) -> str:
    """The shortest form without an exponent, as Go writes it with `FormatFloat(v, 'f', -1, 64)`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = _shortest(value)
    return sign + _plain(digits, exponent)


def _shortest(value: float) -> tuple[str, str, int]:
    """Sign, digits without zeros at the ends, and the power of ten of the first digit."""
    mantissa, _, power = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    exponent = len(whole) - 1 + int(power or 0)
    stripped = digits.lstrip("0")
    exponent -= len(digits) - len(stripped)
    return "-" if value < 0 else "", stripped.rstrip("0") or "0", exponent


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return digits[: exponent + 1] + "." + digits[exponent + 1 :]


def text_of(value: Value) -> str:
    """A value inside an error message."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return format_g(value)
    if kind in _LISTS:
        return "[" + ", ".join(text_of(item) for item in value) + "]"
    if kind in _MAPS:
        return "{" + ", ".join(f"{text_of(k)}: {text_of(v)}" for k, v in value.items()) + "}"
    if kind is TypeValue:
        return str(value.name)
    if kind is bytes:
        return "[" + " ".join(str(byte) for byte in value) + "]"
    if value is None:
        return "NULL_VALUE"
    if kind is Optional:
        return f"optional({text_of(value.value)})" if value.has_value else "optional.none()"
    return str(value)
