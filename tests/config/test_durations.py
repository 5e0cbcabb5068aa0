from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.config import Duration, parse_duration

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("+0", 0),
        ("0s", 0),
        ("15s", 15 * SECOND),
        ("5m", 300 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("1.5h", 5400 * SECOND),
        (".5s", SECOND // 2),
        ("1.s", SECOND),
        ("-2s", -2 * SECOND),
        ("+2s", 2 * SECOND),
        ("10ms", 10_000_000),
        ("3us", 3_000),
        ("3µs", 3_000),
        ("3μs", 3_000),
        ("7ns", 7),
        ("0.3ns", 0),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_a_duration_is_read_as_go_reads_it(text, nanoseconds):
    assert parse_duration(text) == Duration(nanoseconds)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("s", 'time: invalid duration "s"'),
        ("5", 'time: missing unit in duration "5"'),
        ("1m5", 'time: missing unit in duration "1m5"'),
        ("5 s", 'time: unknown unit " s" in duration "5 s"'),
        ("3d", 'time: unknown unit "d" in duration "3d"'),
        ("9223372036854775808ns", 'time: invalid duration "9223372036854775808ns"'),
        ("٣s", 'time: invalid duration "٣s"'),
    ],
)
def test_what_is_no_duration_is_refused_in_the_words_of_go(text, problem):
    with pytest.raises(ValueError) as refusal:
        parse_duration(text)

    assert str(refusal.value) == problem


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (SECOND, "1s"),
        (3_300_000_000, "3.3s"),
        (300 * SECOND, "5m0s"),
        (600 * SECOND, "10m0s"),
        (3600 * SECOND, "1h0m0s"),
        (305 * SECOND + 1_000_000, "5m5.001s"),
        (-90 * SECOND, "-1m30s"),
        (-(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_a_duration_is_written_as_go_writes_it(nanoseconds, text):
    assert str(Duration(nanoseconds)) == text


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_written_reads_back_the_same(nanoseconds):
    assert parse_duration(str(Duration(nanoseconds))) == Duration(nanoseconds)


def test_a_duration_knows_its_seconds():
    assert parse_duration("1m0.25s").seconds == 60.25
