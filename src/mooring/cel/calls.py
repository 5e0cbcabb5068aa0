"""How calls are evaluated: operands first, with errors in them, then the function itself."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from mooring.cel import costs
from mooring.cel.attributes import Eval
from mooring.cel.costs import FAILED, Cost
from mooring.cel.errors import NO_OVERLOAD, CelError
from mooring.cel.values import Optional, UInt, equal

_Implementation = Callable[..., Any]


def conjunction(terms: list[Eval]) -> Eval:
    return _logic(terms, deciding=False)


def disjunction(terms: list[Eval]) -> Eval:
    return _logic(terms, deciding=True)


def _logic(terms: list[Eval], *, deciding: bool) -> Eval:
    """The first term that decides wins, even over errors before it; else the first error counts."""
    other = not deciding

    def evaluate(frame: list[Any]) -> Any:
        failure: CelError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CelError as error:
                failure = failure or error
                continue
            if value is deciding:
                return deciding
            if value is not other and failure is None:
                failure = CelError(NO_OVERLOAD)
        if failure is not None:
            raise failure
        return other

    return evaluate


def equality(left: Eval, right: Eval) -> Eval:
    def evaluate(frame: list[Any]) -> Any:
        one, two = _both(frame, left, right, costs.equality)
        return _equal(frame, one, two)

    return evaluate


def equality_with_constant(left: Eval, two: Any) -> Eval:
    """Equality with a constant on the right: the most common test of all."""

    def evaluate(frame: list[Any]) -> Any:
        try:
            one = left(frame)
        except CelError:
            frame[0] += costs.equality((FAILED, two), FAILED)
            raise
        return _equal(frame, one, two)

    return evaluate


def _equal(frame: list[Any], one: Any, two: Any) -> bool:
    if type(one) is str and type(two) is str:
        shorter = len(one) if len(one) < len(two) else len(two)
        frame[0] += (shorter + 9) // 10
        return one == two
    frame[0] += costs.equality((one, two), None)
    same = equal(one, two)
    if same is None:
        raise CelError(NO_OVERLOAD)
    return same


def inequality(left: Eval, right: Eval) -> Eval:
    def evaluate(frame: list[Any]) -> Any:
        one, two = _both(frame, left, right, costs.shorter)
        frame[0] += costs.shorter((one, two), None)
        return equal(one, two) is not True

    return evaluate


def _both(frame: list[Any], left: Eval, right: Eval, cost: Cost | None) -> tuple[Any, Any]:
    """Both operands. The second is evaluated even if the first fails, and the first error counts."""
    try:
        one = left(frame)
    except CelError:
        two: Any = FAILED
        with suppress(CelError):
            two = right(frame)
        if cost is not None:
            frame[0] += cost((FAILED, two), FAILED)
        raise
    try:
        return one, right(frame)
    except CelError:
        if cost is not None:
            frame[0] += cost((one, FAILED), FAILED)
        raise


def fixed_cost_call(implementation: _Implementation, args: list[Eval], *, absorb: bool) -> Eval:
    """A call that costs 1. With `absorb`, an argument that fails gives true."""
    if not args:

        def nullary(frame: list[Any]) -> Any:
            frame[0] += 1
            return implementation()

        return nullary
    if len(args) == 1:
        only = args[0]

        def absorbing(frame: list[Any]) -> Any:
            frame[0] += 1
            try:
                return implementation(only(frame))
            except CelError:
                return True

        def unary(frame: list[Any]) -> Any:
            frame[0] += 1
            return implementation(only(frame))

        return absorbing if absorb else unary
    left, right = args

    def binary(frame: list[Any]) -> Any:
        frame[0] += 1
        one, two = _both(frame, left, right, None)
        return implementation(one, two)

    return binary


def varying_cost_call(implementation: _Implementation, args: list[Eval], cost: Cost) -> Eval:
    """A call of one or two arguments whose cost depends on them or on the result."""
    if len(args) == 1:
        only = args[0]

        def unary(frame: list[Any]) -> Any:
            try:
                one = only(frame)
            except CelError:
                frame[0] += cost((FAILED,), FAILED)
                raise
            return _called(frame, implementation, (one,), cost)

        return unary
    left, right = args

    def binary(frame: list[Any]) -> Any:
        return _called(frame, implementation, _both(frame, left, right, cost), cost)

    return binary


def _called(
    frame: list[Any], implementation: _Implementation, args: tuple[Any, ...], cost: Cost
) -> Any:
    try:
        result = implementation(*args)
    except CelError:
        frame[0] += cost(args, FAILED)
        raise
    frame[0] += cost(args, result)
    return result


def variadic_call(implementation: _Implementation, args: list[Eval], cost: Cost | None) -> Eval:
    """Arguments are evaluated until one fails. Only if that is the last one the call costs something."""
    last = len(args) - 1

    def evaluate(frame: list[Any]) -> Any:
        values: list[Any] = []
        for position, arg in enumerate(args):
            try:
                values.append(arg(frame))
            except CelError:
                if position == last:
                    frame[0] += 1 if cost is None else cost((*values, FAILED), FAILED)
                raise
        if cost is None:
            frame[0] += 1
            return implementation(*values)
        return _called(frame, implementation, tuple(values), cost)

    return evaluate


def optional_or(left: Eval, right: Eval, *, unwrap: bool) -> Eval:
    """`or` and `orValue`: free of cost. What is not an optional is passed on as it is."""

    def evaluate(frame: list[Any]) -> Any:
        value = left(frame)
        if type(value) is not Optional:
            return value
        if value.has_value:
            return value.value if unwrap else value
        return right(frame)

    return evaluate


_HASHABLE = frozenset((str, int, UInt, float, bool))


def membership(item: Eval, items: list[Any]) -> Eval | Literal[False] | None:
    """`in` a constant list: a lookup in a set, free of cost. False if the list is empty.

    None if the list has items that cannot be looked up.
    """
    if not items:
        return False
    if not all(type(each) in _HASHABLE for each in items):
        return None
    known = {(type(each) is bool, each) for each in items if each == each}

    def evaluate(frame: list[Any]) -> Any:
        value = item(frame)
        kind = type(value)
        if kind is bytes:
            raise CelError("internal error: runtime error: hash of unhashable type types.Bytes")
        return kind in _HASHABLE and (kind is bool, value) in known

    return evaluate
