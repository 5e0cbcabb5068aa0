"""Selecting from values: fields, keys and indices, with and without `?`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mooring.cel.errors import CelError
from mooring.cel.values import (
    MAX_INT,
    NONE,
    Map,
    Optional,
    StringMap,
    UInt,
    go_type,
    is_list,
    text_of,
    type_name,
)

#: Evaluation: from the frame (cost so far, then variables) to the value.
Eval = Callable[[list[Any]], Any]

_QUALIFIERS = frozenset((str, int, UInt, bool, float))


class Qualifier:
    """One step of a selection: a constant key, or one that is evaluated."""

    __slots__ = ("constant", "key", "optional")

    def __init__(self, key: Any, *, constant: bool, optional: bool) -> None:
        self.key = key
        self.constant = constant
        self.optional = optional


def find(value: Any, key: Any) -> tuple[bool, Any]:
    """Whether the value has the key or index, and what is there. Raises CelError."""
    if isinstance(value, Map):
        return value.find(key)
    if is_list(value):
        index = index_of(key)
        return (True, value[index]) if 0 <= index < len(value) else (False, None)
    return False, None


def missing(value: Any, key: Any) -> CelError:
    what = "index out of bounds" if is_list(value) else "no such key"
    return CelError(f"{what}: {text_of(key)}")


def index_of(key: Any) -> int:
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is UInt and key <= MAX_INT:
        return int(key)
    if kind is float and key == key and abs(key) < float(MAX_INT) and key.is_integer():
        return int(key)
    if kind is float or kind is UInt:
        raise CelError(f"unsupported index value {text_of(key)} in list")
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


def checked_key(key: Any) -> Any:
    """The key, if values of its type can be keys."""
    if type(key) in _QUALIFIERS:
        return key
    raise CelError(f"invalid qualifier type: {go_type(key)}")


def selection(root: Eval, qualifiers: list[Qualifier], *, cost: int) -> Eval:
    """Evaluate the root, then apply each qualifier. Each that is applied costs 1, on top of `cost`."""
    if qualifiers and all(each.constant and not each.optional for each in qualifiers):
        return _constant([each.key for each in qualifiers], root, _steps(qualifiers), cost)
    steps = _steps(qualifiers)

    def evaluate(frame: list[Any]) -> Any:
        frame[0] += cost
        value = root(frame)
        return steps(frame, value) if qualifiers else value

    return evaluate


def presence(root: Eval, qualifiers: list[Qualifier]) -> Eval:
    """Like `selection`, but the last qualifier only asks whether something is there."""
    before, last = _steps(qualifiers[:-1]), qualifiers[-1]

    def evaluate(frame: list[Any]) -> Any:
        value = before(frame, root(frame))
        optional = type(value) is Optional
        if optional:
            if not value.has_value:
                return False
            value = value.value
        found, _ = find(value, last.key)
        frame[0] += found or not optional
        return found

    return evaluate


def _constant(
    keys: list[Any], root: Eval, steps: Callable[[list[Any], Any], Any], cost: int
) -> Eval:
    """All keys are constants: walk along them, and do it step by step if that fails."""
    total = len(keys) + cost

    def evaluate(frame: list[Any]) -> Any:
        value = start = root(frame)
        for key in keys:
            if type(value) is not StringMap:
                break
            value = value.values.get(key, value.default)
        else:
            if value is not None:
                frame[0] += total
                return value
        frame[0] += cost
        return steps(frame, start)

    return evaluate


def _steps(qualifiers: list[Qualifier]) -> Callable[[list[Any], Any], Any]:
    def apply(frame: list[Any], value: Any) -> Any:
        optional = type(value) is Optional
        if optional:
            if not value.has_value:
                return value
            value = value.value
        for each in qualifiers:
            optional = optional or each.optional
            if not optional:
                frame[0] += 1
            key = each.key if each.constant else checked_key(each.key(frame))
            found, inner = find(value, key)
            if found:
                frame[0] += optional
                value = inner
            elif optional:
                return NONE
            else:
                raise missing(value, key)
        return Optional(value) if optional else value

    return apply
