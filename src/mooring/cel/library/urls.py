"""URLs, read as Go reads them."""

from __future__ import annotations

import re
from typing import Any

from mooring.cel.environment import Function, Overload
from mooring.cel.errors import CelError
from mooring.cel.library.formatting import quoted
from mooring.cel.types import BOOL, STRING, list_of, map_of, struct
from mooring.cel.values import Map, Opaque

TYPE = struct("kubernetes.URL")

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_IN_PATH = _UNRESERVED | frozenset("$&+,/:;=@")
_IN_HOST = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_IN_USER = _UNRESERVED | frozenset("$&+,;=")
_IN_FRAGMENT = _UNRESERVED | frozenset("$&+,/:;=?@!()*'")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)


class _ParseError(Exception):
    """What is wrong with a URL, in Go's words."""


class Url(Opaque):
    """A URL in its parts."""

    __slots__ = (
        "force_query",
        "fragment",
        "host",
        "opaque",
        "path",
        "query",
        "raw_path",
        "scheme",
        "user",
    )
    type_name = TYPE.name

    def __init__(self, text: str, *, via_request: bool) -> None:
        fragment = ""
        if not via_request:
            text, _, fragment = text.partition("#")
        self.scheme = self.host = self.opaque = self.path = self.raw_path = self.query = ""
        self.user: str | None = None
        self.force_query = False
        self._parse(text, via_request)
        self.fragment = _unescape(fragment, "fragment") if fragment else ""

    def _parse(self, rest: str, via_request: bool) -> None:
        if any(ord(each) < 0x20 or ord(each) == 0x7F for each in rest):
            raise _ParseError("net/url: invalid control character in URL")
        if not rest and via_request:
            raise _ParseError("empty url")
        if rest == "*":
            self.path = "*"
            return
        scheme, rest = _split_scheme(rest)
        self.scheme = scheme.lower()
        if rest.endswith("?") and rest.count("?") == 1:
            self.force_query = True
            rest = rest[:-1]
        else:
            rest, _, self.query = rest.partition("?")
        if not rest.startswith("/"):
            if self.scheme:
                self.opaque = rest
                return
            if via_request:
                raise _ParseError("invalid URI for request")
            if ":" in rest.partition("/")[0]:
                raise _ParseError("first path segment in URL cannot contain colon")
        if (self.scheme or (not via_request and not rest.startswith("///"))) and rest.startswith(
            "//"
        ):
            authority, slash, path = rest[2:].partition("/")
            rest = slash + path
            self._authority(authority)
        self.path = _unescape(rest, "path")
        self.raw_path = "" if _escape(self.path, _IN_PATH) == rest else rest

    def _authority(self, authority: str) -> None:
        user, at, host = authority.rpartition("@")
        self.host = _host(host)
        if not at:
            return
        if not all(each in _UNRESERVED or each in "!$&'()*+,;=%:@" for each in user):
            raise _ParseError("net/url: invalid userinfo")
        name, colon, password = user.partition(":")
        shown = _escape(_unescape(name, "user"), _IN_USER)
        self.user = f"{shown}:{_escape(_unescape(password, 'user'), _IN_USER)}" if colon else shown

    def escaped_path(self) -> str:
        if self.raw_path and _valid_encoded(self.raw_path):
            return self.raw_path
        return "*" if self.path == "*" else _escape(self.path, _IN_PATH)

    def hostname(self) -> str:
        host = self.host
        colon = host.rfind(":")
        if colon != -1 and _is_port(host[colon:]):
            host = host[:colon]
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    def port(self) -> str:
        colon = self.host.rfind(":")
        return self.host[colon + 1 :] if colon != -1 and _is_port(self.host[colon:]) else ""

    def query_values(self) -> Map:
        found: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            if not part or ";" in part:
                continue
            key, _, value = part.partition("=")
            try:
                key = _unescape(key.replace("+", " "), "query")
                value = _unescape(value.replace("+", " "), "query")
            except _ParseError:
                continue
            found.setdefault(key, []).append(value)
        return Map(found.items())

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            path = self.escaped_path()
            if self.scheme or self.host or self.user is not None:
                if self.host or self.path or self.user is not None:
                    text += "//"
                if self.user is not None:
                    text += self.user + "@"
                text += _escape(self.host, _IN_HOST)
            if path and not path.startswith("/") and self.host:
                text += "/"
            text += path
        if self.force_query or self.query:
            text += "?" + self.query
        return f"{text}#{_escape(self.fragment, _IN_FRAGMENT)}" if self.fragment else text

    def equals(self, other: Any) -> bool | None:
        return str(self) == str(other) if isinstance(other, Url) else None


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise _ParseError("missing protocol scheme")
    match = _SCHEME.match(text)
    return (match[1], text[match.end() :]) if match else ("", text)


def _is_port(text: str) -> bool:
    return not text or bool(re.fullmatch(":[0-9]*", text, re.ASCII))


def _host(host: str) -> str:
    if host.startswith("["):
        closing = host.rfind("]")
        if closing < 0:
            raise _ParseError("missing ']' in host")
        if not _is_port(host[closing + 1 :]):
            raise _ParseError(f"invalid port {quoted(host[closing + 1 :])} after host")
        zone = host[:closing].find("%25")
        if zone >= 0:
            return (
                _unescape(host[:zone], "host")
                + _unescape(host[zone:closing], "zone")
                + host[closing:]
            )
    elif ":" in host and not _is_port(host[host.rfind(":") :]):
        raise _ParseError(f"invalid port {quoted(host[host.rfind(':') :])} after host")
    return _unescape(host, "host")


def _unescape(text: str, mode: str) -> str:
    found = bytearray()
    position = 0
    while position < len(text):
        character = text[position]
        if character == "%":
            code = text[position + 1 : position + 3]
            if len(code) < 2 or not re.fullmatch("[0-9a-fA-F]{2}", code):
                raise _ParseError(f"invalid URL escape {quoted(text[position : position + 3])}")
            # Go allows only bytes beyond ASCII, and `%25`, to be escaped in a host.
            if mode == "host" and int(code[0], 16) < 8 and code != "25":
                raise _ParseError(f"invalid URL escape {quoted(text[position : position + 3])}")
            found.append(int(code, 16))
            position += 3
            continue
        if mode == "host" and ord(character) < 0x80 and character not in _IN_HOST:
            raise _ParseError(f"invalid character {quoted(character)} in host name")
        found += character.encode()
        position += 1
    return found.decode("utf-8", "surrogateescape")


def _escape(text: str, allowed: frozenset[str]) -> str:
    return "".join(
        each
        if each in allowed
        else "".join(f"%{byte:02X}" for byte in each.encode("utf-8", "surrogateescape"))
        for each in text
    )


def _valid_encoded(path: str) -> bool:
    return all(each in _IN_PATH or each in "!'()*[]%" for each in path)


def parse(text: str) -> Url:
    try:
        Url(text, via_request=True)
        return Url(text, via_request=False)
    except _ParseError as error:
        raise CelError(
            f"URL parse error during conversion from string: {parse_text(text, error)}"
        ) from None


def parse_text(text: str, error: Exception) -> str:
    return f"parse {quoted(text)}: {error}"


def request_error(text: str) -> str | None:
    """What is wrong with a URL of a request; None if it is right."""
    try:
        Url(text, via_request=True)
    except _ParseError as error:
        return parse_text(text, error)
    return None


def _member(name: str, overload: str, read: Any, result: Any = STRING) -> Function:
    return Function(name, [Overload(overload, (TYPE,), result, read, member=True)])


FUNCTIONS = [
    Function("url", [Overload("string_to_url", (STRING,), TYPE, parse)]),
    Function(
        "isURL",
        [Overload("is_url_string", (STRING,), BOOL, lambda text: request_error(text) is None)],
    ),
    _member("getScheme", "url_get_scheme", lambda url: url.scheme),
    _member("getHost", "url_get_host", lambda url: url.host),
    _member("getHostname", "url_get_hostname", Url.hostname),
    _member("getPort", "url_get_port", Url.port),
    _member("getEscapedPath", "url_get_escaped_path", Url.escaped_path),
    _member("getQuery", "url_get_query", Url.query_values, map_of(STRING, list_of(STRING))),
]
