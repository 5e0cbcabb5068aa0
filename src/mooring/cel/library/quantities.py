"""Quantities (`quantity("1.5Gi")`)."""

from __future__ import annotations

from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import CelError
from mooring.cel.types import BOOL, DOUBLE, INT, STRING, struct
from mooring.cel.values import MAX_INT, MIN_INT, Opaque
from mooring.objects.quantity import Quantity, parse_quantity

TYPE = struct("kubernetes.Quantity")


class QuantityValue(Opaque):
    """A quantity of the API.

    The reference holds wide quantities by reference: `add` and `sub` change the one that they are
    called on, too. Both share a cell then. It also cannot compare something with their results.
    """

    __slots__ = ("_cell", "computed")
    type_name = TYPE.name

    def __init__(self, quantity: Quantity) -> None:
        self._cell = [quantity]
        #: Whether it is a result of `add` or `sub`.
        self.computed = False

    @property
    def quantity(self) -> Quantity:
        return self._cell[0]

    @property
    def mutable(self) -> bool:
        """Whether `add` and `sub` change it."""
        return bool(self.quantity.wide)

    def plus(self, other: Quantity) -> QuantityValue:
        total = QuantityValue(self.quantity.plus(other))
        total.computed = True
        if self.quantity.wide:
            self._cell[0] = total.quantity
            total._cell = self._cell
        return total

    def __str__(self) -> str:
        return str(self.quantity)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuantityValue) and self.quantity == other.quantity

    def __hash__(self) -> int:
        return hash(self.quantity)

    def equals(self, other: Any) -> bool | None:
        if not isinstance(other, QuantityValue) or other.computed:
            return None
        return self.quantity == other.quantity

    def compare(self, other: QuantityValue) -> int:
        mine, its = self.quantity, other.quantity
        if mine.scale == its.scale:
            return (mine.unscaled > its.unscaled) - (mine.unscaled < its.unscaled)
        if mine.exceeds(its):
            return 1
        return -1 if its.exceeds(mine) else 0


def _parse(text: str) -> QuantityValue:
    try:
        return QuantityValue(parse_quantity(text))
    except ValueError as error:
        raise CelError(str(error).rsplit(": '", 1)[0].rsplit(': "', 1)[0]) from None


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


def _sign(value: QuantityValue) -> int:
    unscaled = value.quantity.unscaled
    return (unscaled > 0) - (unscaled < 0)


def _is_integer(value: QuantityValue) -> bool:
    """Whether the form in which it is held is an integer: `1000m` is none."""
    quantity = value.quantity
    if quantity.wide or quantity.scale < 0:
        return False
    return bool(MIN_INT <= quantity.unscaled * 10**quantity.scale <= MAX_INT)


def _as_integer(value: QuantityValue) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return int(value.quantity.unscaled * 10**value.quantity.scale)


def _as_float(value: QuantityValue) -> float:
    base = float(value.quantity.unscaled)
    scale = value.quantity.scale
    return base * float(f"1e{scale}") if scale else base


def _negative(quantity: Quantity) -> Quantity:
    return Quantity(-quantity.unscaled, quantity.scale, quantity.wide)


def _member(name: str, overload: str, args: Any, result: Any, implementation: Any) -> Function:
    return Function(name, [Overload(overload, (TYPE, *args), result, implementation, member=True)])


FUNCTIONS = [
    Function("quantity", [Overload("string_to_quantity", (STRING,), TYPE, _parse)]),
    Function("isQuantity", [Overload("is_quantity_string", (STRING,), BOOL, _is_quantity)]),
    Function("sign", [Overload("quantity_sign", (TYPE,), INT, _sign)]),
    _member(
        "isGreaterThan", "quantity_is_greater_than", (TYPE,), BOOL, lambda a, b: a.compare(b) > 0
    ),
    _member("isLessThan", "quantity_is_less_than", (TYPE,), BOOL, lambda a, b: a.compare(b) < 0),
    _member("compareTo", "quantity_compare_to", (TYPE,), INT, QuantityValue.compare),
    _member("asApproximateFloat", "quantity_get_float", (), DOUBLE, _as_float),
    _member("asInteger", "quantity_get_int", (), INT, _as_integer),
    _member("isInteger", "quantity_is_integer", (), BOOL, _is_integer),
    _member("add", "quantity_add", (TYPE,), TYPE, lambda a, b: a.plus(b.quantity)),
    _member("add", "quantity_add_int", (INT,), TYPE, lambda a, b: a.plus(Quantity(b))),
    _member("sub", "quantity_sub", (TYPE,), TYPE, lambda a, b: a.plus(_negative(b.quantity))),
    _member("sub", "quantity_sub_int", (INT,), TYPE, lambda a, b: a.plus(Quantity(-b))),
]
