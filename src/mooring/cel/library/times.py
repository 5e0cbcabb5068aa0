"""Timestamps and durations, to the nanosecond and with the reference's limits."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import total_ordering
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import INT_OVERFLOW, TIMESTAMP_OVERFLOW, CelError
from mooring.cel.types import DURATION, INT, STRING, TIMESTAMP
from mooring.cel.values import MAX_INT, MIN_INT, check_int, format_f, register

_SECOND = 10**9
_EARLIEST_S, _LATEST_S = -62135596800, 253402300799
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@total_ordering
class Duration:
    """A span of time."""

    __slots__ = ("nanos",)
    zero_nanos = 0

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self.nanos == other.nanos

    def __lt__(self, other: Duration) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(("duration", self.nanos))

    def __str__(self) -> str:
        return format_f(self.seconds) + "s"

    @property
    def seconds(self) -> float:
        whole, rest = _divide(self.nanos, _SECOND)
        return float(whole) + float(rest) / 1e9


@total_ordering
class Timestamp:
    """A point in time. The offset from UTC shows only when it is made into a string."""

    __slots__ = ("nanos", "offset_s")
    #: Go takes the first second of the year 1 for no time at all.
    zero_nanos = _EARLIEST_S * _SECOND

    def __init__(self, nanos: int, offset_s: int = 0) -> None:
        #: Since 1970 in UTC.
        self.nanos = nanos
        self.offset_s = offset_s

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timestamp) and self.nanos == other.nanos

    def __lt__(self, other: Timestamp) -> bool:
        return self.nanos < other.nanos

    def __hash__(self) -> int:
        return hash(("timestamp", self.nanos))

    def __str__(self) -> str:
        seconds, nanos = divmod(self.nanos, _SECOND)
        year, local = _local(seconds + self.offset_s)
        text = f"{year:04d}{local:-%m-%dT%H:%M:%S}"
        if nanos:
            text += f".{nanos:09d}".rstrip("0")
        if not self.offset_s:
            return text + "Z"
        minutes = abs(self.offset_s) // 60
        return f"{text}{'-' if self.offset_s < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


register(Duration, "google.protobuf.Duration")
register(Timestamp, "google.protobuf.Timestamp")


def _divide(value: int, by: int) -> tuple[int, int]:
    """Quotient and rest as Go has them: the quotient is cut off, not rounded down."""
    quotient = abs(value) // by
    quotient = -quotient if value < 0 else quotient
    return quotient, value - quotient * by


#: Python knows the years 1 to 9999; an offset may lead a bit beyond. 400 years are whole weeks.
_CYCLE_S = 400 * 365 * 86400 + 97 * 86400


def _local(seconds: int) -> tuple[int, datetime]:
    """The year, and the rest of date and time (in another year of the calendar's cycle, if need be)."""
    shift = 0
    if seconds < _EARLIEST_S:
        shift = 1
    elif seconds > _LATEST_S:
        shift = -1
    found = _EPOCH + timedelta(seconds=seconds + shift * _CYCLE_S)
    return found.year - 400 * shift, found


_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_PART = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def parse_duration(text: str) -> Duration | None:
    sign = -1 if text[:1] == "-" else 1
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    total, position = 0, 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None or not (match[1] or match[3]):
            return None
        unit = _UNITS[match[4]]
        amount = int(match[1] or 0) * unit
        if match[3]:
            amount += _fraction(match[3], unit)
        total += amount
        if amount > 2**63 or total > 2**63:
            return None
        position = match.end()
    if not rest or (total > MAX_INT and sign > 0):
        return None
    return Duration(sign * total)


def _fraction(digits: str, unit: int) -> int:
    """The part after the point, by way of a double as in Go; digits that do not fit are dropped."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > MAX_INT // 10:
            break
        longer = value * 10 + int(digit)
        if longer > 2**63:
            break
        value, scale = longer, scale * 10
    return int(float(value) * (float(unit) / scale))


_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII
)


def parse_timestamp(text: str) -> Timestamp | None:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    # The year 0 exists for Go, and is before all that a timestamp may hold.
    shift = 400 if year == 0 else 0
    try:
        found = datetime(year + shift, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    seconds = int((found - _EPOCH).total_seconds()) - (_CYCLE_S if shift else 0)
    offset = 0
    if match[8] != "Z":
        hours, minutes = int(match[8][1:3]), int(match[8][4:6])
        if hours > 24 or minutes >= 60:
            return None
        offset = (hours * 60 + minutes) * (-60 if match[8][0] == "-" else 60)
    seconds -= offset
    if not _EARLIEST_S <= seconds <= _LATEST_S:
        raise CelError(TIMESTAMP_OVERFLOW)
    return Timestamp(seconds * _SECOND + int((match[7] or "0")[:9].ljust(9, "0")), offset)


def timestamp_of_seconds(seconds: int) -> Timestamp:
    if not _EARLIEST_S <= seconds <= _LATEST_S:
        raise CelError(TIMESTAMP_OVERFLOW)
    return Timestamp(seconds * _SECOND)


def add(time: Timestamp, nanos: int) -> Timestamp:
    moved = time.nanos + nanos
    if not _EARLIEST_S <= moved // _SECOND <= _LATEST_S:
        raise CelError(TIMESTAMP_OVERFLOW)
    return Timestamp(moved, time.offset_s)


def subtract_duration(time: Timestamp, duration: Duration) -> Timestamp:
    return add(time, check_int(-duration.nanos))


def between(left: Timestamp, right: Timestamp) -> Duration:
    """Left minus right, in steps that can overflow one by one."""
    (first_s, first), (second_s, second) = divmod(left.nanos, _SECOND), divmod(right.nanos, _SECOND)
    scaled = (first_s - second_s) * _SECOND
    if not MIN_INT <= scaled <= MAX_INT:
        raise CelError(INT_OVERFLOW)
    return Duration(check_int(scaled + first - second))


def _zone(name: str) -> tzinfo:
    if ":" not in name:
        if name in ("", "UTC"):
            return UTC
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise CelError(f"unknown time zone {name}") from None
    hours, _, minutes = name.partition(":")
    for part in (hours, minutes):
        if not re.fullmatch(r"[+-]?[0-9]+", part, re.ASCII):
            raise CelError(f'strconv.Atoi: parsing "{part}": invalid syntax')
    offset = int(hours) * 60 + (-int(minutes) if name.startswith("-") else int(minutes))
    try:
        return timezone(timedelta(minutes=offset))
    except ValueError:
        raise CelError(f"unsupported time zone offset {name}") from None


def _parts(time: Timestamp, zone: str) -> tuple[int, datetime]:
    seconds = time.nanos // _SECOND
    # A day from the ends of the calendar, so that no offset leads beyond them.
    safe = min(max(seconds, _EARLIEST_S + 86400), _LATEST_S - 86400)
    offset = _local(safe)[1].astimezone(_zone(zone)).utcoffset() or timedelta()
    return _local(seconds + int(offset.total_seconds()))


def _getter(name: str, overload: str, read: Any, duration: Any = None) -> Function:
    def plain(time: Timestamp) -> int:
        return int(read(time, *_parts(time, "UTC")))

    def zoned(time: Timestamp, zone: str) -> int:
        return int(read(time, *_parts(time, zone)))

    function = Function(
        name,
        [
            Overload(overload, (TIMESTAMP,), INT, plain, member=True),
            Overload(f"{overload}_with_tz", (TIMESTAMP, STRING), INT, zoned, member=True),
        ],
    )
    if duration is not None:
        function.overloads.append(
            Overload(
                overload.replace("timestamp", "duration"), (DURATION,), INT, duration, member=True
            )
        )
    return function


def _whole(unit: int) -> Any:
    """How many whole units a duration has, by way of a double as in the reference."""

    def read(duration: Duration) -> int:
        whole, rest = _divide(duration.nanos, unit)
        return int(float(whole) + float(rest) / float(unit))

    return read


FUNCTIONS = [
    _getter("getFullYear", "timestamp_to_year", lambda time, year, at: year),
    _getter("getMonth", "timestamp_to_month", lambda time, year, at: at.month - 1),
    _getter(
        "getDayOfYear",
        "timestamp_to_day_of_year",
        lambda time, year, at: at.timetuple().tm_yday - 1,
    ),
    _getter("getDayOfMonth", "timestamp_to_day_of_month", lambda time, year, at: at.day - 1),
    _getter("getDate", "timestamp_to_day_of_month_1_based", lambda time, year, at: at.day),
    _getter("getDayOfWeek", "timestamp_to_day_of_week", lambda time, year, at: at.isoweekday() % 7),
    _getter(
        "getHours", "timestamp_to_hours", lambda time, year, at: at.hour, _whole(3600 * _SECOND)
    ),
    _getter(
        "getMinutes", "timestamp_to_minutes", lambda time, year, at: at.minute, _whole(60 * _SECOND)
    ),
    _getter(
        "getSeconds", "timestamp_to_seconds", lambda time, year, at: at.second, _whole(_SECOND)
    ),
    _getter(
        "getMilliseconds",
        "timestamp_to_milliseconds",
        lambda time, year, at: time.nanos % _SECOND // 10**6,
        lambda duration: _divide(duration.nanos, 10**6)[0],
    ),
]
