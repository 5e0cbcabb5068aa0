"""Durations in the notation of Go (`5m0s`, `1.5h`), which the configuration uses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from mooring.objects.quantity import MAX_INT64

_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # micro sign
    "μs": 1_000,  # Greek letter mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_SECOND_NS = _UNITS_NS["s"]
_PIECE = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time, exact to the nanosecond."""

    nanoseconds: int = 0

    @property
    def seconds(self) -> float:
        return self.nanoseconds / _SECOND_NS

    def __bool__(self) -> bool:
        return self.nanoseconds != 0

    def __str__(self) -> str:
        """Go's shortest form: `1h0m0s`, `1m30s`, `1.5s`, `20ms`, `0s`."""
        if not self.nanoseconds:
            return "0s"
        sign = "-" if self.nanoseconds < 0 else ""
        size_ns = abs(self.nanoseconds)
        if size_ns < _SECOND_NS:
            unit = next(unit for unit in ("ms", "µs", "ns") if size_ns >= _UNITS_NS[unit])
            return f"{sign}{_decimal(size_ns, _UNITS_NS[unit])}{unit}"
        minutes, rest_ns = divmod(size_ns, _UNITS_NS["m"])
        hours, minutes = divmod(minutes, 60)
        larger = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
        return f"{sign}{larger}{_decimal(rest_ns, _SECOND_NS)}s"


def seconds(count: int) -> Duration:
    return Duration(count * _SECOND_NS)


def parse_duration(text: str) -> Duration:
    """Read Go's notation. Raises ValueError with Go's message."""
    sign = -1 if text.startswith("-") else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    if not rest:
        raise ValueError(f'time: invalid duration "{text}"')
    total_ns = 0
    while rest:
        piece = _PIECE.match(rest)
        if piece is None or not (piece[1] or piece[2]):
            raise ValueError(f'time: invalid duration "{text}"')
        if not piece[3]:
            raise ValueError(f'time: missing unit in duration "{text}"')
        if piece[3] not in _UNITS_NS:
            raise ValueError(f'time: unknown unit "{piece[3]}" in duration "{text}"')
        amount = Fraction(f"{piece[1] or 0}.{piece[2] or 0}")
        total_ns += int(amount * _UNITS_NS[piece[3]])
        rest = rest[piece.end() :]
    if total_ns > MAX_INT64 + (sign < 0):
        raise ValueError(f'time: invalid duration "{text}"')
    return Duration(sign * total_ns)


def _decimal(amount_ns: int, unit_ns: int) -> str:
    """`amount / unit` without trailing zeros; exact, as every unit is a power of ten."""
    whole, part = divmod(amount_ns, unit_ns)
    digits = str(part).zfill(len(str(unit_ns)) - 1).rstrip("0") if part else ""
    return f"{whole}.{digits}" if digits else str(whole)
