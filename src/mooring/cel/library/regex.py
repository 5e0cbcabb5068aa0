"""`matches`, `find` and `findAll`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import COST_LIMIT, NO_OVERLOAD, CelAbort, CelError
from mooring.cel.library.re2 import Pattern, TooLarge
from mooring.cel.library.re2_syntax import PatternError
from mooring.cel.types import BOOL, INT, STRING, list_of

#: More than any evaluation can afford: characters of the text times characters of the pattern.
_MOST_STEPS = 100_000_000


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """The pattern. Raises CelError with Go's text."""
    try:
        return Pattern(text)
    except PatternError as error:
        raise CelError(f"error parsing regexp: {error}") from None
    except TooLarge:
        raise CelError(f"error parsing regexp: expression too large: `{text}`") from None


def constant_pattern(function: str, pattern: Pattern) -> Callable[..., Any]:
    """The function for a pattern that is known when the program is made."""

    def matches(text: Any, _: Any) -> bool:
        return pattern.search(_string(text)) is not None

    def find(text: Any, _: Any) -> str:
        return _found(pattern, _string(text))

    def find_all(text: Any, _: Any, limit: Any = -1) -> list[str]:
        if type(limit) is not int:
            raise CelError(NO_OVERLOAD)
        return list(pattern.find_all(_string(text), limit))

    return {"matches": matches, "find": find, "findAll": find_all}[function]


def _string(text: Any) -> str:
    if type(text) is not str:
        raise CelError(NO_OVERLOAD)
    return text


def _found(pattern: Pattern, text: str) -> str:
    found = pattern.search(text)
    return "" if found is None else text[found[0] : found[1]]


def _affordable(text: str, pattern: str) -> None:
    if (len(text) + 1) * len(pattern) > _MOST_STEPS:
        raise CelAbort(COST_LIMIT)


def _matches(text: str, pattern: Any) -> bool:
    pattern = _string(pattern)
    _affordable(text, pattern)
    return compile_pattern(pattern).search(text) is not None


def _legal(text: str, pattern: str) -> Pattern:
    _affordable(text, pattern)
    try:
        return compile_pattern(pattern)
    except CelError as error:
        raise CelError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    return _found(_legal(text, pattern), text)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return list(_legal(text, pattern).find_all(text, limit))


_STRINGS = list_of(STRING)
FUNCTIONS = [
    Function(
        "matches",
        [
            Overload("matches", (STRING, STRING), BOOL),
            Overload("matches_string", (STRING, STRING), BOOL, member=True),
        ],
        singleton=_matches,
        operand=lambda text: type(text) is str,
    ),
    Function(
        "find", [Overload("string_find_string", (STRING, STRING), STRING, _find, member=True)]
    ),
    Function(
        "findAll",
        [
            Overload("string_find_all_string", (STRING, STRING), _STRINGS, _find_all, member=True),
            Overload(
                "string_find_all_string_int",
                (STRING, STRING, INT),
                _STRINGS,
                _find_all,
                member=True,
                variadic=True,
            ),
        ],
    ),
]
