"""Resource quantities (`100m`, `1.5Gi`, `12e6`) with the API's exact arithmetic.

A quantity is an integer times a power of ten. The API server holds small ones in an int64 and the
others in a big decimal, and the two convert to int64 differently when they do not fit: the small
form yields 0, the big form keeps the low 64 bits. `wide` remembers which form a value would have,
because both answers can be seen in scheduling decisions.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)

#: The texts are the API server's, since users search for them.
WRONG_FORMAT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
WRONG_SUFFIX = "unable to parse quantity's suffix"
WRONG_NUMBER = "unable to parse numeric part of quantity"

_PARTS = re.compile(r"([+-]?)([0-9]*)(?:(\.)([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FINEST = -9
_INT64_DIGITS = 18
#: Beyond 10**64 every nonzero quantity overflows int64 alike, so larger exponents change nothing.
_LARGEST = 64
_LONGEST_TEXT = 1024


class Quantity:
    """`unscaled * 10**scale`, exactly. Equal quantities may be spelled differently."""

    __slots__ = ("scale", "unscaled", "wide")

    def __init__(self, unscaled: int = 0, scale: int = 0, wide: bool = False) -> None:
        self.unscaled = unscaled
        self.scale = scale
        self.wide = wide

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        scale = min(self.scale, other.scale)
        return self._at(scale) == other._at(scale)

    def __hash__(self) -> int:
        return hash(self._at(_FINEST))

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    @property
    def value(self) -> int:
        """The whole number at or above this quantity (away from zero), as int64."""
        return self._scaled(0)

    @property
    def milli_value(self) -> int:
        """The number of thousandths, rounded away from zero, as int64."""
        return self._scaled(-3)

    def plus(self, other: Quantity) -> Quantity:
        if not self.wide and not other.wide:
            if other.unscaled == 0:
                return self
            if self.unscaled == 0:
                return other
        scale = min(self.scale, other.scale)
        total = self._at(scale) + other._at(scale)
        wide = self.wide or other.wide or not MIN_INT64 <= total <= MAX_INT64
        return Quantity(total, scale, wide)

    def exceeds(self, other: Quantity) -> bool:
        scale = min(self.scale, other.scale)
        return self._at(scale) > other._at(scale)

    def _at(self, scale: int) -> int:
        return int(self.unscaled * 10 ** (self.scale - scale))

    def _scaled(self, scale: int) -> int:
        if self.scale >= scale:
            exact = self._at(scale)
        else:
            exact = _away_from_zero(self.unscaled, 10 ** (scale - self.scale))
        if MIN_INT64 <= exact <= MAX_INT64:
            return exact
        return wrap_int64(exact) if self.wide else 0

    def __str__(self) -> str:
        """The shortest decimal spelling; for people, not for round trips of the original text."""
        digits, scale = self.unscaled, self.scale
        while digits and digits % 10 == 0:
            digits, scale = digits // 10, scale + 1
        while scale % 3:
            digits, scale = digits * 10, scale - 1
        for suffix, exponent in _DECIMAL.items():
            if exponent == scale:
                return f"{digits}{suffix}"
        return f"{digits}e{scale}"


ZERO = Quantity()


def parse_quantity(text: str) -> Quantity:
    """Read a quantity as the API does; raises ValueError with the API's text."""
    parsed = _parse(text)
    if isinstance(parsed, str):
        raise ValueError(f"{parsed}: {text!r}" if len(text) <= 64 else parsed)
    return parsed


def wrap_int64(number: int) -> int:
    """Keep the low 64 bits as a signed number, as int64 arithmetic does on overflow."""
    return (number + 2**63) % 2**64 - 2**63


@lru_cache(maxsize=65_536)
def _parse(text: str) -> Quantity | str:
    parts = _PARTS.fullmatch(text)
    if not text or parts is None:
        return WRONG_FORMAT
    if len(text) > _LONGEST_TEXT:
        return WRONG_NUMBER
    sign, digits, point, fraction, suffix = parts.groups()
    whole, decimals = digits.lstrip("0"), fraction or ""
    factor = _suffix_factor(suffix)
    if factor is None:
        return WRONG_SUFFIX
    base, exponent = factor
    if not digits and not decimals and (point or suffix):
        return WRONG_NUMBER
    unscaled = int(whole + decimals or "0") * (-1 if sign == "-" else 1)
    places = len(decimals)
    if base == 10:
        quantity = Quantity(unscaled, exponent - places)
        fits = max(len(whole), 1) + places <= _INT64_DIGITS and exponent - places >= _FINEST
        return quantity if fits else _rounded_to_nanos(quantity)
    quantity = Quantity(unscaled * 2**exponent, -places)
    # The API's own estimate of what is safe in 64 bits; exact values on both sides of it agree.
    fits = not decimals and 15 - max(len(whole), 1) - int(exponent * 3 / 10) - 1 >= 0
    if fits and abs(quantity.unscaled) <= MAX_INT64:
        return quantity
    return _capped(_rounded_to_nanos(quantity))


def _suffix_factor(suffix: str) -> tuple[int, int] | None:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return 2, _BINARY[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or len(exponent[1]) > _INT64_DIGITS:
        return None
    return 10, max(-_LONGEST_TEXT, min(int(exponent[1]), _LARGEST))


def _rounded_to_nanos(quantity: Quantity) -> Quantity:
    """The big-decimal form, in which nothing finer than a nano is kept."""
    if quantity.scale >= _FINEST:
        return Quantity(quantity.unscaled, quantity.scale, True)
    finer = 10 ** min(_FINEST - quantity.scale, _LONGEST_TEXT)
    return Quantity(_away_from_zero(quantity.unscaled, finer), _FINEST, True)


def _capped(quantity: Quantity) -> Quantity:
    limit = Quantity(MAX_INT64, 0, True)
    if quantity.exceeds(limit):
        return limit
    lowest = Quantity(-MAX_INT64, 0, True)
    return lowest if lowest.exceeds(quantity) else quantity


def _away_from_zero(number: int, divisor: int) -> int:
    quotient = -(-abs(number) // divisor)
    return quotient if number >= 0 else -quotient
