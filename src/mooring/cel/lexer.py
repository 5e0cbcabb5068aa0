"""From text to tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from mooring.cel.errors import CelCompileError


class Token(NamedTuple):
    #: `ident`, `quoted` (an identifier in backticks), `int`, `uint`, `float`, `string`, `bytes`,
    #: `end`, or for operators and keywords the text itself.
    kind: str
    text: str
    position: int


_ESCAPED = (
    r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
)
_STRING = (
    r'(?:[rR]"""(?s:.*?)"""'
    r"|[rR]'''(?s:.*?)'''"
    rf'|"""(?:{_ESCAPED}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPED}|[^\\])*?'''"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*'"
    rf'|"(?:{_ESCAPED}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPED}|[^\\'\n\r])*')"
)
_TOKEN = re.compile(
    rf"""
    (?P<space>(?:[\t\ \r\n\f]|//[^\n]*)+)
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<bytes>[bB]{_STRING})
    |(?P<string>{_STRING})
    |(?P<ident>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/\ ]+`)
    |(?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
_KEYWORDS = frozenset(("in", "true", "false", "null"))


def tokens_of(text: str) -> list[Token]:
    """All tokens, with one of kind `end` at the end."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise syntax_error(
                text, position, f"Syntax error: token recognition error at: '{text[position]}'"
            )
        kind, found = match.lastgroup or "", match.group()
        if kind != "space":
            if kind == "operator" or (kind == "ident" and found in _KEYWORDS):
                kind = found
            tokens.append(Token(kind, found, position))
        position = match.end()
    tokens.append(Token("end", "<EOF>", len(text)))
    return tokens


def syntax_error(text: str, position: int, message: str) -> CelCompileError:
    """The error with line, column and the line itself, as the reference shows it."""
    before = text[:position]
    line = before.count("\n") + 1
    column = position - (before.rfind("\n") + 1)
    shown = text.split("\n")[line - 1].replace("\t", " ") if text else ""
    return CelCompileError(
        f"compilation failed: ERROR: <input>:{line}:{column + 1}: {message}\n"
        f" | {shown}\n | {'.' * column}^"
    )


_PLAIN = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ESCAPE = re.compile(
    r"\\(?:(?P<hex>[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<plain>.))",
    re.DOTALL,
)


def string_of(token: str) -> str:
    """The value of a string literal. Raises ValueError if an escape has none."""
    body, raw = _body(token)
    if raw or "\\" not in body:
        return body

    def character(match: re.Match[str]) -> str:
        code = _code(match)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError("invalid unicode code point")
        return chr(code)

    return _ESCAPE.sub(character, body)


def bytes_of(token: str) -> bytes:
    """The value of a bytes literal: escapes are bytes, other characters are written as UTF-8."""
    body, raw = _body(token[1:])
    if raw or "\\" not in body:
        return body.encode()
    found = bytearray()
    position = 0
    for match in _ESCAPE.finditer(body):
        found += body[position : match.start()].encode()
        if (match["hex"] or "")[:1] in ("u", "U"):
            raise ValueError("unable to unescape string")
        found.append(_code(match))
        position = match.end()
    return bytes(found + body[position:].encode())


def _body(token: str) -> tuple[str, bool]:
    """What is between the quotes, and whether escapes mean nothing in it."""
    token = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = token[0] in "rR"
    if raw:
        token = token[1:]
    width = 3 if len(token) >= 6 and token[:3] in ('"""', "'''") else 1
    return token[width:-width], raw


def _code(match: re.Match[str]) -> int:
    if match["hex"]:
        return int(match["hex"][1:], 16)
    if match["octal"]:
        return int(match["octal"], 8)
    return _PLAIN.get(match["plain"], ord(match["plain"]))
