"""Resource quantities (`100m`, `1.5Gi`, `12e6`) with the API's exact arithmetic.

A quantity is an integer times a power of ten. The API server holds small ones in an int64 and the
others in a big decimal, and the two turn into an int64 differently when they do not fit: the big form
keeps the low 64 bits; the small form does so for a few powers of ten and yields 0 for all others.
`wide` says which form a value has, because decisions depend on it.

The API server writes a quantity in the format that it was read in: binary (`1Gi`), exponent (`1e9`) or
decimal (`1G`). The class of a quantity tells the format; `canonical` is that text.
"""

from __future__ import annotations

import re
from functools import lru_cache

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)

#: The texts of the API server, verbatim: users search for them.
WRONG_FORMAT = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
WRONG_SUFFIX = "unable to parse quantity's suffix"
WRONG_NUMBER = "unable to parse numeric part of quantity"

_PARTS = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FINEST = -9
_MILLI = -3
_INT64_DIGITS = 18
#: The powers of ten by which the small form multiplies in one step, with overflow.
_ONE_STEP = frozenset((1, 2, 3, 6, 9))
_LONGEST_TEXT = 1024
#: Larger exponents make no difference in 64 bits.
_LARGEST_EXPONENT = 4096


class Quantity:
    """`unscaled * 10**scale`, exactly. Equal quantities may be written differently."""

    __slots__ = ("scale", "unscaled", "wide")

    def __init__(self, unscaled: int = 0, scale: int = 0, wide: bool = False) -> None:
        self.unscaled = unscaled
        self.scale = scale
        self.wide = wide

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        if self is other:
            return True
        scale = min(self.scale, other.scale)
        return self._at(scale) == other._at(scale)

    def __hash__(self) -> int:
        return hash(self._at(_FINEST))

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    @property
    def value(self) -> int:
        """This quantity rounded away from zero to an integer, as int64."""
        return self._scaled(0)

    @property
    def milli_value(self) -> int:
        """The number of thousandths, rounded away from zero, as int64."""
        return self._scaled(_MILLI)

    @property
    def nanos(self) -> int:
        """The exact number of units of 10**-9, the finest that a quantity can have."""
        return self._at(_FINEST)

    @property
    def canonical(self) -> str:
        """The text that the API server writes for this quantity."""
        return str(self)

    @property
    def negative(self) -> bool:
        return self.unscaled < 0

    def fits(self, scale: int = 0) -> bool:
        """Whether the number of units of `10**scale` fits 64 bits."""
        if self.scale <= scale:
            return bool(abs(self.unscaled) <= MAX_INT64 * 10 ** (scale - self.scale))
        return abs(self._at(scale)) <= MAX_INT64

    def plus(self, other: Quantity) -> Quantity:
        if not self.wide and not other.wide:
            if other.unscaled == 0:
                return self
            if self.unscaled == 0:
                return other
        scale = min(self.scale, other.scale)
        mine, others = self._at(scale), other._at(scale)
        small = not self.wide and not other.wide and all(map(_is_int64, (mine, others)))
        return Quantity(mine + others, scale, not (small and _is_int64(mine + others)))

    def exceeds(self, other: Quantity) -> bool:
        scale = min(self.scale, other.scale)
        return self._at(scale) > other._at(scale)

    def rounded_up(self, scale: int = _MILLI) -> Quantity:
        """This quantity without anything finer than `10**scale`, rounded away from zero."""
        if self.scale >= scale:
            return Quantity(self._at(scale), scale, True) if self.wide else self
        return Quantity(
            _away_from_zero(self.unscaled, 10 ** (scale - self.scale)), scale, self.wide
        )

    def _at(self, scale: int) -> int:
        return int(self.unscaled * 10 ** (self.scale - scale))

    def _scaled(self, scale: int) -> int:
        if self.scale == scale and not self.wide and MIN_INT64 <= self.unscaled <= MAX_INT64:
            # As most of them are: `100m` of cpu, `1Gi` of memory.
            return self.unscaled
        return self._scaled_wide(scale) if self.wide else self._scaled_small(scale)

    def _scaled_small(self, scale: int) -> int:
        if self.scale < scale:
            return _away_from_zero(self.unscaled, 10 ** (scale - self.scale))
        exact = self._at(scale)
        if _is_int64(exact):
            return exact
        return wrap_int64(exact) if self.scale - scale in _ONE_STEP else 0

    def _scaled_wide(self, scale: int) -> int:
        """The reference rounds the big form towards plus infinity, or worse for negative numbers."""
        if self.scale > scale:
            # A double beyond int64 becomes the lowest int64 when converted.
            factor = (
                10 ** (self.scale - scale) if self.scale - scale <= _INT64_DIGITS else MIN_INT64
            )
            return wrap_int64(wrap_int64(self.unscaled) * factor)
        divisor = int(10 ** (scale - self.scale))
        if self.unscaled < MAX_INT64 and divisor <= 10**_INT64_DIGITS:
            low = wrap_int64(self.unscaled)
            quotient = abs(low) // divisor * (1 if low >= 0 else -1)
            return quotient + (1 if low % divisor else 0)
        quotient, remainder = divmod(self.unscaled, divisor)
        return wrap_int64(wrap_int64(quotient) + (1 if remainder else 0))

    def __str__(self) -> str:
        """The shortest decimal form; it may differ from the original text."""
        digits, scale = self._shortest()
        for suffix, exponent in _DECIMAL.items():
            if exponent == scale:
                return f"{digits}{suffix}"
        return f"{digits}e{scale}"

    def _shortest(self) -> tuple[int, int]:
        """The digits without zeros at the end, and an exponent that is a multiple of three."""
        digits, scale = self.unscaled, self.scale
        if digits == 0:
            return 0, 0
        while digits % 10 == 0:
            digits, scale = digits // 10, scale + 1
        while scale % 3:
            digits, scale = digits * 10, scale - 1
        return digits, scale


class BinaryQuantity(Quantity):
    """A quantity that was written with a binary suffix."""

    __slots__ = ()

    @property
    def canonical(self) -> str:
        whole, rest = divmod(self.nanos, 10**-_FINEST)
        if rest or abs(whole) < 1024:
            return str(self)
        power = 0
        while whole % 1024 == 0 and power < len(_BINARY):
            whole, power = whole // 1024, power + 1
        return f"{whole}{('', *_BINARY)[power]}"


class ExponentQuantity(Quantity):
    """A quantity that was written with an exponent."""

    __slots__ = ()

    @property
    def canonical(self) -> str:
        digits, scale = self._shortest()
        return f"{digits}e{scale}" if scale else str(digits)


ZERO = Quantity()


@lru_cache(maxsize=65_536)
def parse_quantity(text: str) -> Quantity:
    """Read a quantity as the API does; raises ValueError with the API's text."""
    parsed = _parse(text)
    if isinstance(parsed, str):
        raise ValueError(f"{parsed}: {text!r}" if len(text) <= 64 else parsed)
    return parsed


def wrap_int64(number: int) -> int:
    """Keep the low 64 bits as a signed number, as int64 arithmetic does on overflow."""
    # The first branch is the common case.
    return number if MIN_INT64 <= number <= MAX_INT64 else (number + 2**63) % 2**64 - 2**63


def _parse(text: str) -> Quantity | str:
    parts = _PARTS.fullmatch(text)
    if not text or parts is None:
        return WRONG_FORMAT
    if len(text) > _LONGEST_TEXT:
        return WRONG_NUMBER
    sign, digits, fraction, suffix = parts.groups()
    whole, decimals = digits.lstrip("0"), fraction or ""
    factor = _suffix_factor(suffix)
    if factor is None:
        return WRONG_SUFFIX
    base, exponent = factor
    unscaled = int(whole + decimals or "0") * (-1 if sign == "-" else 1)
    if base == 10:
        written = ExponentQuantity if suffix[:1] in ("e", "E") and suffix != "E" else Quantity
        quantity = written(unscaled, exponent - len(decimals))
        small = (
            max(len(whole), 1) + len(decimals) <= _INT64_DIGITS
            and exponent - len(decimals) >= _FINEST
        )
    else:
        quantity = BinaryQuantity(unscaled * 2**exponent, -len(decimals))
        # The API's estimate of what fits 64 bits. Both forms give the same value there.
        small = not decimals and 15 - max(len(whole), 1) - int(exponent * 3 / 10) - 1 >= 0
    if small and _is_int64(quantity.unscaled):
        return quantity
    if not digits and not decimals and suffix:
        # The small form reads a suffix alone (`m`, `.k`) as zero; the big form needs a digit.
        return WRONG_NUMBER
    wide = _capped(_wide(quantity)) if base == 2 else _wide(quantity)
    return type(quantity)(wide.unscaled, wide.scale, True)


def _suffix_factor(suffix: str) -> tuple[int, int] | None:
    if suffix in _DECIMAL:
        return 10, _DECIMAL[suffix]
    if suffix in _BINARY:
        return 2, _BINARY[suffix]
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or len(exponent[1]) > _INT64_DIGITS:
        return None
    return 10, max(-_LARGEST_EXPONENT, min(int(exponent[1]), _LARGEST_EXPONENT))


def _wide(quantity: Quantity) -> Quantity:
    """The big-decimal form, which rounds to nanos."""
    if quantity.unscaled == 0:
        return Quantity(0, max(quantity.scale, _FINEST), True)
    return Quantity(quantity.unscaled, quantity.scale, True).rounded_up(_FINEST)


def _capped(quantity: Quantity) -> Quantity:
    limit = Quantity(MAX_INT64, 0, True)
    if quantity.exceeds(limit):
        return limit
    lowest = Quantity(-MAX_INT64, 0, True)
    return lowest if lowest.exceeds(quantity) else quantity


def _is_int64(number: int) -> bool:
    return MIN_INT64 <= number <= MAX_INT64


def _away_from_zero(number: int, divisor: int) -> int:
    quotient = -(-abs(number) // divisor)
    return quotient if number >= 0 else -quotient
