"""Classes of characters in regular expressions, as ranges of code points."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache

#: Ranges of code points, in no order.
Ranges = list[tuple[int, int]]

_DIGITS: Ranges = [(48, 57)]
_SPACES: Ranges = [(9, 10), (12, 13), (32, 32)]
_WORDS: Ranges = [(48, 57), (65, 90), (95, 95), (97, 122)]
PERL = {"d": _DIGITS, "s": _SPACES, "w": _WORDS}
POSIX: dict[str, Ranges] = {
    "alnum": [(48, 57), (65, 90), (97, 122)],
    "alpha": [(65, 90), (97, 122)],
    "ascii": [(0, 127)],
    "blank": [(9, 9), (32, 32)],
    "cntrl": [(0, 31), (127, 127)],
    "digit": _DIGITS,
    "graph": [(33, 126)],
    "lower": [(97, 122)],
    "print": [(32, 126)],
    "punct": [(33, 47), (58, 64), (91, 96), (123, 126)],
    "space": [(9, 13), (32, 32)],
    "upper": [(65, 90)],
    "word": _WORDS,
    "xdigit": [(48, 57), (65, 70), (97, 102)],
}
LAST = 0x10FFFF
#: Where characters are assigned, planes for private use aside.
_ASSIGNED = ((0, 0x33FFF), (0xE0000, 0xE01FF))
_PRIVATE = ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))


@lru_cache(maxsize=64)
def unicode_class(name: str) -> tuple[tuple[int, int], ...]:
    """The ranges of a general category; raises KeyError if there is none of that name."""
    if name == "Any":
        return ((0, LAST),)
    if name not in _CATEGORIES:
        return _script(name)
    found = _ranges_where(lambda code: _category(code).startswith(name))
    return found + _PRIVATE if name in ("C", "Co") else found


def _script(name: str) -> tuple[tuple[int, int], ...]:
    """A few scripts, as the names of characters tell them."""
    if name not in _SCRIPTS:
        raise KeyError(name)
    prefix = _SCRIPTS[name]
    return _ranges_where(
        lambda code: (
            unicodedata.name(chr(code), "").startswith(prefix)
            and unicodedata.category(chr(code))[0] in "LMN"
        )
    )


_CATEGORIES = frozenset(
    (
        *("C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn"),
        *("N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk"),
        *("Sm", "So", "Z", "Zl", "Zp", "Zs"),
    )
)
_SCRIPTS = {
    "Latin": "LATIN ",
    "Greek": "GREEK ",
    "Cyrillic": "CYRILLIC ",
    "Hebrew": "HEBREW ",
    "Arabic": "ARABIC ",
    "Han": "CJK ",
    "Hiragana": "HIRAGANA ",
    "Katakana": "KATAKANA ",
    "Hangul": "HANGUL ",
    "Thai": "THAI ",
    "Armenian": "ARMENIAN ",
    "Devanagari": "DEVANAGARI ",
}


def _ranges_where(holds: Callable[[int], bool]) -> tuple[tuple[int, int], ...]:
    found: Ranges = []
    for low, high in _ASSIGNED:
        start = -1
        for code in range(low, high + 2):
            if code <= high and holds(code):
                start = code if start < 0 else start
            elif start >= 0:
                found.append((start, code - 1))
                start = -1
    return tuple(found)


def _category(code: int) -> str:
    """The general category. Code points that mean nothing are in none, as in Go."""
    category = unicodedata.category(chr(code))
    return "" if category == "Cn" else category


def negated(ranges: Ranges) -> Ranges:
    found: Ranges = []
    following = 0
    for low, high in sorted(ranges):
        if low > following:
            found.append((following, low - 1))
        following = max(following, high + 1)
    if following <= LAST:
        found.append((following, LAST))
    return found


def folded(ranges: Ranges) -> Ranges:
    """With the other case of each letter. Ranges that are too wide to go through have both already."""
    found = list(ranges)
    for low, high in ranges:
        if high - low > 1000:
            continue
        for code in range(low, high + 1):
            letter = chr(code)
            found += [(ord(other), ord(other)) for other in _cases(letter) if other != letter]
    return found


_ODD_CASES = {"k": "\u212a", "s": "\u017f", "\u00e5": "\u212b"}


def _cases(letter: str) -> list[str]:
    cases = [letter.lower(), letter.upper(), _ODD_CASES.get(letter.lower(), letter)]
    return [each for each in cases if len(each) == 1]
