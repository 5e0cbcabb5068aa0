"""Comprehensions, and entries that may be missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mooring.cel import costs
from mooring.cel.attributes import Eval
from mooring.cel.errors import COST_LIMIT, CelAbort, CelError
from mooring.cel.values import (
    Map,
    MutableList,
    MutableMap,
    Optional,
    go_type,
    is_list,
    is_map,
    text_of,
)

#: An accumulator that has not been read yet, or an entry that is not there.
UNSET: Final[Any] = object()


def parsed_constant(
    implementation: Callable[..., Any], text: Any, cost: costs.Cost | None
) -> Eval | None:
    """A constant in all but cost. None if it fails, which has to show when it is evaluated."""
    try:
        value = implementation(text)
    except CelError:
        return None
    if getattr(value, "mutable", False):
        return None
    price = 1 if cost is None else cost((text,), value)

    def evaluate(frame: list[Any]) -> Any:
        frame[0] += price
        return value

    return evaluate


def optional_entry(name: str, value: Any) -> Any:
    """What an optional entry holds; UNSET for none."""
    if not isinstance(value, Optional):
        raise CelError(
            f"cannot initialize optional entry '{name}' from non-optional value {text_of(value)}"
        )
    return value.value if value.has_value else UNSET


def binding(slot: int, result: Eval) -> Eval:
    """`cel.bind`: nothing to walk over, and the value is computed when it is read first."""

    def evaluate(frame: list[Any]) -> Any:
        frame[slot] = UNSET
        return finished(result(frame))

    return evaluate


def finished(value: Any) -> Any:
    if type(value) is MutableList:
        return list(value)
    if type(value) is MutableMap:
        return Map(value.items())
    return value


def singles(value: Any) -> list[tuple[Any, Any]]:
    if is_list(value):
        return [(item, None) for item in value]
    if is_map(value):
        return [(key, None) for key in value.keys()]  # noqa: SIM118
    raise CelError(f"got '{go_type(value)}', expected iterable type")


def pairs(value: Any) -> list[tuple[Any, Any]]:
    if is_list(value):
        return list(enumerate(value))
    if is_map(value):
        return list(value.items())
    raise CelError(f"unsupported comprehension range type: {go_type(value)}")


def walk(
    slots: tuple[int, int, int],
    items_of: Callable[[Any], list[tuple[Any, Any]]],
    proceed: Eval | None,
    step: Eval,
    limit: int,
) -> Callable[[list[Any], Any], None]:
    accumulator, first, second = slots

    def loop(frame: list[Any], value: Any) -> None:
        frame[accumulator] = UNSET
        for frame[first], frame[second] in items_of(value):
            if proceed is not None and not proceed(frame):
                return
            try:
                frame[accumulator] = step(frame)
            except CelError as error:
                # An accumulator that is an error stays one, unless `||` or `&&` absorbs it.
                frame[accumulator] = error
            if frame[0] > limit:
                raise CelAbort(COST_LIMIT)

    return loop
