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


def selection(root: Eval, qualifiers: list[Qualifier], *, test: bool) -> Eval:
    """Evaluate the root, then apply each qualifier. Each that is applied costs 1.

    With `test`, the last qualifier only asks whether something is there.
    """
    if not qualifiers:
        return root
    if all(each.constant and not each.optional for each in qualifiers):
        keys = [each.key for each in qualifiers]
        slow = _general(root, qualifiers, test)
        return _test_constant(keys, root, slow) if test else _constant(keys, root, slow)
    return _general_of(root, qualifiers, test)


_Slow = Callable[[list[Any], Any], Any]


def _general_of(root: Eval, qualifiers: list[Qualifier], test: bool) -> Eval:
    general = _general(root, qualifiers, test)
    return lambda frame: general(frame, root(frame))


def _constant(keys: list[Any], root: Eval, slow: _Slow) -> Eval:
    """All keys are constants: walk along them, and do it step by step if that fails."""
    cost = len(keys)

    def evaluate(frame: list[Any]) -> Any:
        value = start = root(frame)
        for key in keys:
            if type(value) is StringMap:
                value = value._values.get(key, value.default)
                if value is None:
                    return slow(frame, start)
            else:
                return slow(frame, start)
        frame[0] += cost
        return value

    return evaluate


def _test_constant(keys: list[Any], root: Eval, slow: _Slow) -> Eval:
    before, last, cost = keys[:-1], keys[-1], len(keys)

    def evaluate(frame: list[Any]) -> Any:
        value = start = root(frame)
        for key in before:
            if type(value) is not StringMap:
                return slow(frame, start)
            value = value._values.get(key, value.default)
            if value is None:
                return slow(frame, start)
        if type(value) is not StringMap:
            return slow(frame, start)
        frame[0] += cost
        return value.find(last)[0]

    return evaluate


def _general(root: Eval, qualifiers: list[Qualifier], test: bool) -> _Slow:
    last = qualifiers[-1]

    def evaluate(frame: list[Any], value: Any) -> Any:
        optional = type(value) is Optional
        if optional:
            if not value.has_value:
                return not test and value
            value = value.value
        for each in qualifiers:
            optional = optional or each.optional
            if not optional:
                frame[0] += 1
            key = each.key if each.constant else checked_key(each.key(frame))
            found, inner = find(value, key)
            if test and each is last:
                frame[0] += optional and found
                return found
            if found:
                frame[0] += optional
                value = inner
            elif optional:
                return NONE
            else:
                raise missing(value, key)
        return Optional(value) if optional else value

    return evaluate
