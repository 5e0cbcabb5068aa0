"""Optional values, and the functions that comprehensions need to build maps."""

from __future__ import annotations

from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import CelError
from mooring.cel.types import BOOL, list_of, map_of, optional_of, param
from mooring.cel.values import (
    NONE,
    Map,
    MutableMap,
    Opaque,
    Optional,
    TypeValue,
    text_of,
)

_K, _V = param("K"), param("V")
_OPTIONAL = optional_of(_V)


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, TypeValue | Optional):
        return False
    if isinstance(value, Opaque):
        return value.is_zero()
    if isinstance(value, str | bytes | list | Map):
        return not len(value)
    if hasattr(value, "nanos"):
        return bool(value.nanos == value.zero_nanos)
    return bool(value == 0)


def _last(items: list[Any]) -> Optional:
    return Optional(items[-1]) if items else NONE


def _first(items: list[Any]) -> Optional:
    return Optional(items[0]) if items else NONE


def _unwrap(items: list[Any]) -> list[Any]:
    found = []
    for item in items:
        if not isinstance(item, Optional):
            raise CelError(f"value {text_of(item)} is not optional")
        if item.has_value:
            found.append(item.value)
    return found


def _insert(target: Map, key: Any, value: Any) -> Map:
    if target.find(key)[0]:
        raise CelError(f"insert failed: key {text_of(key)} already exists")
    made = target if isinstance(target, MutableMap) else Map(target.items())
    made.set(key, value)
    return made


def _insert_all(target: Map, update: Map) -> Map:
    for key, value in update.items():
        target = _insert(target, key, value)
    return target


_MAP = map_of(_K, _V)
FUNCTIONS = [
    Function("optional.of", [Overload("optional_of", (_V,), _OPTIONAL, Optional)]),
    Function(
        "optional.ofNonZeroValue",
        [Overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero)],
    ),
    Function("optional.none", [Overload("optional_none", (), _OPTIONAL, lambda: NONE)]),
    Function("value", [Overload("optional_value", (_OPTIONAL,), _V, Optional.get, member=True)]),
    Function(
        "hasValue",
        [
            Overload(
                "optional_hasValue", (_OPTIONAL,), BOOL, lambda each: each.has_value, member=True
            )
        ],
    ),
    Function(
        "or", [Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, member=True)]
    ),
    Function("orValue", [Overload("optional_orValue_value", (_OPTIONAL, _V), _V, member=True)]),
    Function("last", [Overload("list_last", (list_of(_V),), _OPTIONAL, _last, member=True)]),
    Function("first", [Overload("list_first", (list_of(_V),), _OPTIONAL, _first, member=True)]),
    Function(
        "optional.unwrap",
        [Overload("optional_unwrap", (list_of(_OPTIONAL),), list_of(_V), _unwrap)],
    ),
    Function(
        "unwrapOpt",
        [Overload("optional_unwrapOpt", (list_of(_OPTIONAL),), list_of(_V), _unwrap, member=True)],
    ),
    Function(
        "cel.@mapInsert",
        [
            Overload("@mapInsert_map_key_value", (_MAP, _K, _V), _MAP, _insert, variadic=True),
            Overload("@mapInsert_map_map", (_MAP, _MAP), _MAP, _insert_all),
        ],
    ),
]
