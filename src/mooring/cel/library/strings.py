"""Functions of strings. Positions count characters (code points)."""

from __future__ import annotations

import re
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import COST_LIMIT, CelAbort, CelError
from mooring.cel.library.formatting import format_string
from mooring.cel.types import DYN, INT, STRING, list_of
from mooring.cel.values import text_of

_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
#: What Go takes for white space.
_SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
    "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
#: Replacing can make a string much longer at little cost. This is what memory allows.
_LONGEST = 20_000_000
_QUOTED = re.compile('[\a\b\f\n\r\t\v\\\\"]')
_ESCAPES = dict(
    zip('\a\b\f\n\r\t\v\\"', ("a", "b", "f", "n", "r", "t", "v", "\\", '"'), strict=True)
)


def _out_of_range(position: int) -> CelError:
    return CelError(f"index out of range: {position}")


def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise _out_of_range(position)
    return text[position : position + 1]


def _index_of(text: str, part: str, offset: int = 0) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return -1 if offset >= len(text) else text.find(part, offset)


def _last_index_of(text: str, part: str) -> int:
    if not part:
        return len(text)
    if len(text.encode()) < len(part.encode()):
        return -1
    return _last_index_before(text, part, len(text) - 1)


def _last_index_before(text: str, part: str, offset: int) -> int:
    if not part:
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    if offset >= len(text):
        return -1
    return text.rfind(part, 0, min(offset, len(text) - len(part)) + len(part))


def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    found = text.count(old) if count < 0 else min(text.count(old), count)
    if len(text) + found * len(new) > _LONGEST:
        raise CelAbort(COST_LIMIT)
    return text.replace(old, new, max(count, -1))


def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if separator:
        return text.split(separator, count - 1 if count > 0 else -1)
    if count < 0 or count > len(text):
        return list(text)
    return [*text[: count - 1], text[count - 1 :]]


def _substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for position in (start, end):
        if not 0 <= position <= len(text):
            raise _out_of_range(position)
    return text[start:end]


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if not isinstance(item, str):
            raise CelError(f"join: invalid input: {text_of(item)}")
    return separator.join(items)


def _quote(text: str) -> str:
    return '"' + _QUOTED.sub(lambda match: "\\" + _ESCAPES[match.group()], text) + '"'


def _members(name: str, *overloads: tuple[str, tuple[Any, ...], Any, Any]) -> Function:
    return Function(
        name,
        [
            Overload(each, args, result, implementation, member=True, variadic=len(args) > 2)
            for each, args, result, implementation in overloads
        ],
    )


_STRINGS = list_of(STRING)
FUNCTIONS = [
    _members("charAt", ("string_char_at_int", (STRING, INT), STRING, _char_at)),
    _members(
        "indexOf",
        ("string_index_of_string", (STRING, STRING), INT, _index_of),
        ("string_index_of_string_int", (STRING, STRING, INT), INT, _index_of),
    ),
    _members(
        "lastIndexOf",
        ("string_last_index_of_string", (STRING, STRING), INT, _last_index_of),
        ("string_last_index_of_string_int", (STRING, STRING, INT), INT, _last_index_before),
    ),
    _members(
        "lowerAscii", ("string_lower_ascii", (STRING,), STRING, lambda text: text.translate(_LOWER))
    ),
    _members(
        "upperAscii", ("string_upper_ascii", (STRING,), STRING, lambda text: text.translate(_UPPER))
    ),
    _members("trim", ("string_trim", (STRING,), STRING, lambda text: text.strip(_SPACES))),
    _members(
        "replace",
        ("string_replace_string_string", (STRING, STRING, STRING), STRING, _replace),
        ("string_replace_string_string_int", (STRING, STRING, STRING, INT), STRING, _replace),
    ),
    _members(
        "split",
        ("string_split_string", (STRING, STRING), _STRINGS, _split),
        ("string_split_string_int", (STRING, STRING, INT), _STRINGS, _split),
    ),
    _members(
        "substring",
        ("string_substring_int", (STRING, INT), STRING, _substring),
        ("string_substring_int_int", (STRING, INT, INT), STRING, _substring_range),
    ),
    _members(
        "join",
        ("list_join", (_STRINGS,), STRING, _join),
        ("list_join_string", (_STRINGS, STRING), STRING, _join),
    ),
    Function(
        "format",
        [
            Overload(
                "string_format",
                (STRING, list_of(DYN)),
                STRING,
                format_string,
                member=True,
                variadic=True,
            )
        ],
    ),
    Function("strings.quote", [Overload("strings_quote", (STRING,), STRING, _quote)]),
]
