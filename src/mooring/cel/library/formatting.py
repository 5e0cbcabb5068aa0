"""`"%s is %d".format([...])`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from mooring.cel.errors import CelError
from mooring.cel.values import UInt, format_g, is_list, is_map, type_name

_PRECISION = 6
_SUPERSCRIPT = str.maketrans("+-0123456789", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SPECIAL = ("NaN", "Infinity", "-Infinity")
_NOT_FOR_STRING = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
    "durations, and timestamps"
)
#: What each clause says about a value that it cannot show, without the name of the type.
_COMPLAINTS = {
    "s": _NOT_FOR_STRING,
    "d": "decimal clause can only be used on integers",
    "f": "fixed-point clause can only be used on doubles",
    "e": "scientific clause can only be used on doubles",
    "b": "only integers and bools can be formatted as binary",
    "x": "only integers, byte buffers, and strings can be formatted as hex",
    "o": "octal clause can only be used on integers",
}
#: The types that each clause takes, as far as the checker can tell.
CLAUSE_TYPES = {
    "s": frozenset(
        (
            *("list", "map", "int", "uint", "double", "bool", "string", "timestamp", "bytes"),
            *("duration", "type", "null"),
        )
    ),
    "d": frozenset(("int", "uint")),
    "f": frozenset(("double", "string")),
    "e": frozenset(("double", "string")),
    "b": frozenset(("int", "uint", "bool")),
    "x": frozenset(("int", "uint", "string", "bytes")),
    "o": frozenset(("int", "uint")),
}

Clause = Callable[[int, str, int | None], str]


def complaint(clause: str, name: str) -> CelError:
    return CelError(f"error during formatting: {_COMPLAINTS[clause.lower()]}, was given {name}")


def interpolate(template: str, count: int, show: Clause) -> str:
    """Replace each clause by what `show` says for position, letter and precision.

    `count` is the number of arguments. Raises CelError.
    """
    made: list[str] = []
    position = argument = 0
    while position < len(template):
        if template[position] != "%":
            made.append(template[position])
            position += 1
            continue
        if template[position + 1 : position + 2] == "%":
            made.append("%")
            position += 2
            continue
        if argument >= count:
            raise CelError(f"index {argument} out of range")
        if position + 1 >= len(template):
            raise CelError("unexpected end of string")
        position, letter, precision = _clause(template, position + 1)
        made.append(show(argument, letter, precision))
        argument += 1
    return "".join(made)


def _clause(template: str, position: int) -> tuple[int, str, int | None]:
    parse = "could not parse formatting clause: "
    precision: int | None = None
    if template[position] == ".":
        match = re.compile("[0-9]*").match(template, position + 1)
        assert match is not None
        position = match.end()
        if position >= len(template):
            raise CelError(
                f"{parse}error while parsing precision: could not find end of precision specifier"
            )
        if not match.group():
            raise CelError(
                f"{parse}error while parsing precision: error while converting precision to "
                'integer: strconv.Atoi: parsing "": invalid syntax'
            )
        if len(match.group()) > 4:
            raise CelError(f"{parse}error while parsing precision: too large")
        precision = int(match.group())
    letter = template[position]
    if letter not in "sdfebxXo":
        raise CelError(f'{parse}unrecognized formatting clause "{letter}"')
    return position + 1, letter, precision


def format_string(template: str, args: list[Any]) -> str:
    def show(position: int, letter: str, precision: int | None) -> str:
        return _SHOW[letter](args[position], precision)

    return interpolate(template, len(args), show)


def _string(value: Any, precision: int | None) -> str:
    try:
        return plain_text(value)
    except CelError as error:
        raise CelError(f"error during formatting: {error}") from None


def plain_text(value: Any) -> str:
    """What `%s` shows."""
    if is_list(value):
        return "[" + ", ".join(map(_nested, value)) + "]"
    if is_map(value):
        pairs = sorted((_key(key), _nested(each)) for key, each in value.items())
        return "{" + ", ".join(f"{key}:{each}" for key, each in pairs) + "}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return format_g(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise CelError(
                'could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string'
            ) from None
    if isinstance(value, str | int) or hasattr(value, "nanos"):
        return str(value)
    if type_name(value) == "type":
        return str(value.name)
    raise CelError(f"{_NOT_FOR_STRING}, was given {type_name(value)}")


def _key(key: Any) -> str:
    if not isinstance(key, str | int):
        raise CelError(f"no formatting function for map key of type {type_name(key)}")
    return quoted(key) if isinstance(key, str) else plain_text(key)


def _nested(value: Any) -> str:
    """A value inside a list or map, as it would be written in an expression."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bytes):
        return "b" + quoted(plain_text(value))
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return quoted(format_g(value))
        return f"{value:.{_PRECISION}f}"
    if hasattr(value, "nanos"):
        return f"{type_name(value).rpartition('.')[2].lower()}({quoted(str(value))})"
    if not (
        value is None
        or isinstance(value, int)
        or is_list(value)
        or is_map(value)
        or type_name(value) == "type"
    ):
        raise CelError(f"no formatting function for {type_name(value)}")
    return plain_text(value)


_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def quoted(text: str) -> str:
    """A string as Go quotes it."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character == " " or (character.isprintable() and not character.isspace()):
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _decimal(value: Any, precision: int | None) -> str:
    if type(value) not in (int, UInt):
        raise complaint("d", type_name(value))
    return str(int(value))


def _number(value: Any, clause: str) -> float:
    if isinstance(value, str) and value in _SPECIAL:
        return float(value)
    if not isinstance(value, float):
        raise complaint(clause, type_name(value))
    return value


def _unusual(value: float) -> str | None:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return None


def _fixed(value: Any, precision: int | None) -> str:
    number = _number(value, "f")
    return _unusual(number) or f"{number:,.{_PRECISION if precision is None else precision}f}"


def _scientific(value: Any, precision: int | None) -> str:
    number = _number(value, "e")
    shown = _unusual(number)
    if shown is None:
        mantissa, _, exponent = f"{number:.{_PRECISION}e}".partition("e")
        shown = f"{mantissa}×10{exponent.lstrip('+').translate(_SUPERSCRIPT)}"
    # What the template gives as precision is a width to the reference.
    return shown.rjust(_PRECISION if precision is None else precision)


def _binary(value: Any, precision: int | None) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, int):
        raise complaint("b", type_name(value))
    return f"{int(value):b}"


def _hex(value: Any, precision: int | None) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool) or not isinstance(value, int):
        raise complaint("x", type_name(value))
    return f"{int(value):x}"


def _octal(value: Any, precision: int | None) -> str:
    if isinstance(value, bool) or not isinstance(value, int):
        raise complaint("o", type_name(value))
    return f"{int(value):o}"


_SHOW: dict[str, Callable[[Any, int | None], str]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "X": lambda value, precision: _hex(value, precision).upper(),
    "o": _octal,
}
