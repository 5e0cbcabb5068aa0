"""What a call costs, in the reference's units.

Two questions decide: which function, and whether the checker found exactly one overload. A call with
several candidates costs 1 in many cases in which the overload alone would cost more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from mooring.cel.errors import CelAbort
from mooring.cel.values import Map, Opaque, Optional, go_type, is_list

#: The cost of creating a list, a map and an object.
LIST: Final = 10
MAP: Final = 30
STRUCT: Final = 40

_TRAVERSAL: Final = 0.1
_REGEX: Final = 0.25


class Failed:
    """Stands for an argument or a result that is an error."""


FAILED: Final = Failed()

Cost = Callable[[tuple[Any, ...], Any], int]


def size(value: Any) -> int:
    """The size of a value as far as cost is concerned; 1 for values that have none."""
    if isinstance(value, str | bytes | list | Map):
        return len(value)
    if isinstance(value, Opaque) and value.size is not None:
        return value.size
    return 1


def _deep_size(value: Any) -> int:
    """The size of a value, or of what an optional holds."""
    while isinstance(value, Optional) and value.has_value:
        value = value.value
    return size(value)


def _traversed(value: Any) -> int:
    """The cost of walking through a value with all that is in it."""
    if isinstance(value, str):
        return int(len(value.encode()) * _TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * _TRAVERSAL)
    if is_list(value):
        return sum(map(_traversed, value))
    if isinstance(value, Map):
        return sum(_traversed(key) + _traversed(item) for key, item in value.items())
    return 1


def _walk(args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(size(args[0]) * _TRAVERSAL)


def _walk_and_build(args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(size(args[0]) * 2 * _TRAVERSAL)


def _build(args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(size(result) * 2 * _TRAVERSAL)


def regex_cost(text: int, pattern: int) -> int:
    return math.ceil((1.0 + text) * _TRAVERSAL) * math.ceil(pattern * _REGEX)


def _regex(args: tuple[Any, ...], result: Any) -> int:
    return regex_cost(size(args[0]), size(args[1]))


def _deep_regex(args: tuple[Any, ...], result: Any) -> int:
    return regex_cost(_deep_size(args[0]), _deep_size(args[1]))


def _all_items(args: tuple[Any, ...], result: Any) -> int:
    return _traversed(args[0])


def _contains_ip(args: tuple[Any, ...], result: Any) -> int:
    return math.ceil((size(args[0]) * 2) * _TRAVERSAL)


def _contains_ip_text(args: tuple[Any, ...], result: Any) -> int:
    return _contains_ip(args, result) + math.ceil(size(args[1]) * _TRAVERSAL)


def _contains_cidr(args: tuple[Any, ...], result: Any) -> int:
    return _contains_ip(args, result) + _walk(args, result) + 1


def _contains_cidr_text(args: tuple[Any, ...], result: Any) -> int:
    return _contains_cidr(args, result) + math.ceil(size(args[1]) * _TRAVERSAL)


def _validate(args: tuple[Any, ...], result: Any) -> int:
    pattern = getattr(args[0], "pattern_size", None)
    return 1 if pattern is None else regex_cost(size(args[1]), pattern)


#: By the name of the function, whichever overload it is.
_BY_FUNCTION: dict[str, Cost] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _all_items),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _walk),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _walk),
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _walk),
    "ip": _walk,
    "ip.isCanonical": _walk_and_build,
    "replace": _walk_and_build,
    "split": _walk_and_build,
    "join": _build,
    "find": _regex,
    "findAll": _regex,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
}
#: Functions of a fixed cost, which their overloads do not change.
_NOMINAL = frozenset(
    (
        *("masked", "prefixLength", "family", "isUnspecified", "isLoopback"),
        *("isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast", "format.named"),
        *("sign", "asInteger", "isInteger", "asApproximateFloat", "isGreaterThan", "isLessThan"),
        *("compareTo", "add", "sub", "major", "minor", "patch"),
        *("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"),
    )
)


def _first(args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(_deep_size(args[0]) * _TRAVERSAL)


def _second(args: tuple[Any, ...], result: Any) -> int:
    return _deep_size(args[1])


def shorter(args: tuple[Any, ...], result: Any) -> int:
    return math.ceil(min(_deep_size(args[0]), _deep_size(args[1])) * _TRAVERSAL)


def equality(args: tuple[Any, ...], result: Any) -> int:
    return 1 if isinstance(args[0], Opaque) else shorter(args, result)


def _both(args: tuple[Any, ...], result: Any) -> int:
    return math.ceil((_deep_size(args[0]) + _deep_size(args[1])) * _TRAVERSAL)


def _contains(args: tuple[Any, ...], result: Any) -> int:
    return _first(args, result) * math.ceil(_deep_size(args[1]) * _TRAVERSAL)


def _list_call(factor: float, items: int) -> int:
    return int(items * factor) + 1 + LIST


def _result_list(args: tuple[Any, ...], result: Any) -> int:
    return _list_call(1, size(result))


def _flatten(args: tuple[Any, ...], result: Any) -> int:
    depth = 1
    if len(args) == 2:
        if type(args[1]) is not int:
            raise CelAbort(
                f"internal error: interface conversion: ref.Val is {_go_name(args[1])}, not types.Int"
            )
        depth = args[1]
    return max(_list_call(float(depth), size(args[0])), 0)


def _self_compare(position: int) -> Cost:
    def cost(args: tuple[Any, ...], result: Any) -> int:
        items = args[position]
        if not is_list(items):
            raise CelAbort(
                f"internal error: interface conversion: {_go_name(items)} is not traits.Lister: "
                "missing method Add"
            )
        factor = 2.0
        if items and isinstance(items[0], str | bytes):
            factor += _TRAVERSAL
        return _list_call(factor, len(items) * len(items))

    return cost


def _go_name(value: Any) -> str:
    return "*types.Err" if isinstance(value, Failed) else go_type(value)


def _sets(factor: int) -> Cost:
    return lambda args, result: 1 + size(args[0]) * size(args[1]) * factor


_ORDERS = ("less", "less_equals", "greater", "greater_equals")
_SORTED = (
    *("int", "uint", "double", "bool", "string", "bytes"),
    *("google.protobuf.Duration", "google.protobuf.Timestamp"),
)

#: By overload, before the name of the function is looked at.
_TRACKED: dict[str, Cost] = {
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), _result_list),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten),
    "list_distinct": _self_compare(0),
    **{f"list_{name}_sort": _self_compare(0) for name in _SORTED},
    **{f"list_{name}_sortByAssociatedKeys": _self_compare(1) for name in _SORTED},
    **dict.fromkeys(("list_sets_contains_list", "list_sets_intersects_list"), _sets(1)),
    "list_sets_equivalent_list": _sets(2),
    "cidr_contains_ip_string": _contains_ip_text,
    "cidr_contains_cidr_string": _contains_cidr_text,
}
#: By overload, if the name of the function decides nothing.
_BY_OVERLOAD: dict[str, Cost] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string", "string_to_bytes"), _first),
    **dict.fromkeys(("bytes_to_string", "strings_quote", "string_format"), _first),
    "in_list": _second,
    **{f"{order}_{kind}": shorter for order in _ORDERS for kind in ("string", "bytes")},
    **dict.fromkeys(("add_string", "add_bytes"), _both),
    "matches_string": _deep_regex,
    "contains_string": _contains,
}


def cost_of(function: str, overloads: list[str]) -> Cost | None:
    """The cost of a call as a function of arguments and result; None if it is always 1."""
    overload = overloads[0] if len(overloads) == 1 else ""
    if overload in _TRACKED:
        return _TRACKED[overload]
    if function in _NOMINAL or overload == "cidr_ip":
        return None
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(overload)
