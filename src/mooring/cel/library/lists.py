"""Functions of lists and of lists taken as sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import COST_LIMIT, NO_OVERLOAD, CelAbort, CelError
from mooring.cel.library.standard import FUNCTIONS as STANDARD
from mooring.cel.library.times import Duration
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
    list_of,
    param,
)
from mooring.cel.values import UInt, compare, equal, is_list, is_map, type_name

_T = param("T")
_LIST = list_of(_T)
_COMPARABLE: tuple[Type, ...] = (INT, UINT, DOUBLE, BOOL, DURATION, TIMESTAMP, STRING, BYTES)
_ZEROS: dict[str, Any] = {"int": 0, "uint": UInt(0), "double": 0.0, "duration": Duration(0)}
_SUMMABLE = {"int": INT, "uint": UINT, "double": DOUBLE, "duration": DURATION}
#: No evaluation can afford more items than this.
_LONGEST = 1_100_000
_comparable_names = frozenset(each.name for each in _COMPARABLE)
_add = next(each.singleton for each in STANDARD if each.name == "_+_")


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    asked = f"cannot slice({start}, {end})"
    if start < 0 or end < 0:
        raise CelError(f"{asked}, negative indexes not supported")
    if start > end:
        raise CelError(f"{asked}, start index must be less than or equal to end index")
    if len(items) < end:
        raise CelError(f"{asked}, list is length {len(items)}")
    return items[start:end]


def _flatten(items: Any, depth: Any = 1) -> list[Any]:
    if not is_list(items):
        raise CelError(f"no such overload: {type_name(items)}.flatten()")
    if type(depth) is not int:
        raise CelError(f"no such overload: {type_name(items)}.flatten({type_name(depth)})")
    if depth < 0:
        raise CelError("level must be non-negative")
    if depth == 0:
        return list(items)
    found: list[Any] = []
    for item in items:
        if is_list(item):
            found += _flatten(item, depth - 1)
        else:
            found.append(item)
    return found


def _sort(items: list[Any]) -> list[Any]:
    return _sort_by(items, items)


def _sort_by(items: list[Any], keys: Any) -> list[Any]:
    if len(items) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    first = type_name(keys[0])
    if first not in _comparable_names:
        raise CelError("list elements must be comparable")
    if len(keys) > 1 and any(type_name(key) != first for key in keys):
        raise CelError("list elements must have the same type")
    order = sorted(range(len(items)), key=cmp_to_key(lambda a, b: _compared(keys[a], keys[b])))
    return [items[position] for position in order]


def _compared(left: Any, right: Any) -> int:
    """What is not a number has no order; the reference takes that for equality."""
    try:
        return compare(left, right)
    except CelError:
        return 0


def _range(count: int) -> list[int]:
    if count > _LONGEST:
        raise CelAbort(COST_LIMIT)
    return list(range(count))


def _affordable(comparisons: int) -> None:
    """Give up at once if the cost, which is at least this much, will exceed the limit."""
    if comparisons > _LONGEST:
        raise CelAbort(COST_LIMIT)


def _distinct(items: list[Any]) -> list[Any]:
    _affordable(2 * len(items) ** 2)
    found: list[Any] = []
    for item in items:
        if not any(equal(item, other) is True for other in found):
            found.append(item)
    return found


def _is_sorted(items: Any) -> bool:
    walked = _iterated(items)
    return all(
        _compared(walked[position], walked[position + 1]) <= 0
        for position in range(len(walked) - 1)
    )


def _iterated(items: Any) -> list[Any]:
    found = items.keys() if is_map(items) else items
    for item in found:
        if type_name(item) not in _comparable_names:
            raise CelError(NO_OVERLOAD)
    return list(found)


def _extreme(name: str, sign: int) -> Callable[[Any], Any]:
    def find(items: Any) -> Any:
        walked = _iterated(items)
        if not walked:
            raise CelError(f"{name} called on empty list")
        best = walked[0]
        for item in walked[1:]:
            if _compared(best, item) == -sign:
                best = item
        return best

    return find


def _sum(zero: Any) -> Callable[[Any], Any]:
    def add(items: Any) -> Any:
        assert _add is not None
        total = zero
        for item in items:
            total = _add(total, item)
        return total

    return add


def _index_of(items: list[Any], item: Any) -> int:
    for position, each in enumerate(items):
        if equal(each, item) is True:
            return position
    return -1


def _last_index_of(items: list[Any], item: Any) -> int:
    for position in range(len(items) - 1, -1, -1):
        if equal(items[position], item) is True:
            return position
    return -1


def _has(items: list[Any], item: Any) -> bool:
    return any(equal(item, each) is True for each in items)


def _contains(items: list[Any], others: list[Any]) -> bool:
    _affordable(len(items) * len(others))
    return all(_has(items, other) for other in others)


def _equivalent(items: list[Any], others: list[Any]) -> bool:
    return _contains(items, others) and _contains(others, items)


def _intersects(items: list[Any], others: list[Any]) -> bool:
    _affordable(len(items) * len(others))
    return any(_has(others, item) for item in items)


def _short(each: Type) -> str:
    return each.kind


def _member(name: str, *overloads: Overload) -> Function:
    return Function(name, list(overloads))


FUNCTIONS = [
    _member(
        "isSorted",
        *(
            Overload(
                f"list_{_short(each)}_is_sorted_bool",
                (list_of(each),),
                BOOL,
                _is_sorted,
                member=True,
            )
            for each in _COMPARABLE
        ),
    ),
    _member(
        "sum",
        *(
            Overload(
                f"list_{name}_sum_{name}", (list_of(each),), each, _sum(_ZEROS[name]), member=True
            )
            for name, each in _SUMMABLE.items()
        ),
    ),
    *(
        _member(
            name,
            *(
                Overload(
                    f"list_{_short(each)}_{name}_{_short(each)}",
                    (list_of(each),),
                    each,
                    _extreme(name, sign),
                    member=True,
                )
                for each in _COMPARABLE
            ),
        )
        for name, sign in (("max", 1), ("min", -1))
    ),
    _member("indexOf", Overload("list_a_index_of_int", (_LIST, _T), INT, _index_of, member=True)),
    _member(
        "lastIndexOf",
        Overload("list_a_last_index_of_int", (_LIST, _T), INT, _last_index_of, member=True),
    ),
    _member(
        "slice",
        Overload("list_slice", (_LIST, INT, INT), _LIST, _slice, member=True, variadic=True),
    ),
    Function(
        "flatten",
        [
            Overload("list_flatten", (list_of(_LIST),), _LIST, _flatten, member=True),
            Overload("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten, member=True),
        ],
        unguarded=True,
    ),
    Function(
        "sort",
        [
            Overload(f"list_{each.name}_sort", (list_of(each),), list_of(each), member=True)
            for each in _COMPARABLE
        ],
        singleton=_sort,
        operand=is_list,
    ),
    Function(
        "@sortByAssociatedKeys",
        [
            Overload(
                f"list_{each.name}_sortByAssociatedKeys", (_LIST, list_of(each)), _LIST, member=True
            )
            for each in _COMPARABLE
        ],
        singleton=_sort_by,
        operand=is_list,
    ),
    Function("lists.range", [Overload("lists_range", (INT,), list_of(INT), _range)]),
    _member(
        "reverse",
        Overload("list_reverse", (_LIST,), _LIST, lambda items: items[::-1], member=True),
    ),
    _member("distinct", Overload("list_distinct", (_LIST,), _LIST, _distinct, member=True)),
    Function(
        "sets.contains", [Overload("list_sets_contains_list", (_LIST, _LIST), BOOL, _contains)]
    ),
    Function(
        "sets.equivalent",
        [Overload("list_sets_equivalent_list", (_LIST, _LIST), BOOL, _equivalent)],
    ),
    Function(
        "sets.intersects",
        [Overload("list_sets_intersects_list", (_LIST, _LIST), BOOL, _intersects)],
    ),
]
