"""Regular expressions: the syntax of RE2, leftmost-first matches, and time linear in the text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.cel.library import re2
from mooring.cel.library.re2 import Pattern
from mooring.cel.library.re2_syntax import PatternError


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[", "missing closing ]: `[`"),
        ("a)", "unexpected ): `a)`"),
        ("(a", "missing closing ): `(a`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\y", r"invalid escape sequence: `\y`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_what_re2_refuses(pattern, text):
    with pytest.raises(PatternError) as caught:
        Pattern(pattern)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a|ab", "xab", ["a"]),
        ("a+?", "aaa", ["a", "a", "a"]),
        ("x*", "axb", ["", "x", ""]),
        (r"[^ ]*$", "a bc", ["bc"]),
        ("^$", "", [""]),
        (r"(?i)straße|K", "STRAßE\u212a", ["STRAßE", "\u212a"]),
        (r"\pL+", "日本 go1", ["日本", "go"]),
        (r"(?m)^.$", "a\nbc\nd", ["a", "d"]),
        (r"\bfoo\b", "foo food foo", ["foo", "foo"]),
        ("a$", "a\n", []),
        (r"[[:digit:]_-]+", "a1_-b", ["1_-"]),
        (r"\Qa.b\E", "axb a.b", ["a.b"]),
    ],
)
def test_matches(pattern, text, found):
    assert list(Pattern(pattern).find_all(text, -1)) == found


_ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "^", "$", r"\b", "(?:)"])
_PATTERNS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "{1,2}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=300, deadline=None)
@given(_PATTERNS, st.text("ab\n ", max_size=8))
def test_the_machine_matches_where_python_matches(pattern, text):
    """Python's matcher is a second opinion, on texts so short that it cannot run away."""
    machine = Pattern(pattern)
    machine._python = None
    expected = re.search(pattern.replace("$", r"\Z"), text, re.ASCII)
    found = machine.search(text)
    assert (found is None) == (expected is None)
    # Python goes on with an empty repetition once more than RE2 does: only the begin is the same there.
    if found is not None and expected is not None:
        assert found[0] == expected.start()


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 2000 + "b"),
        ("(a|aa)+$", "a" * 2000 + "b"),
        ("(x+x+)+y", "x" * 2000),
        ("a*a*a*a*b", "a" * 1000),
    ],
)
def test_no_pattern_takes_exponential_time(pattern, text):
    started = time.perf_counter()
    assert Pattern(pattern).search(text) is None
    assert time.perf_counter() - started < 20


def test_machines_that_are_too_large_are_refused():
    with pytest.raises((PatternError, re2.TooLarge)):
        Pattern("((a{100}){100}){100}")
