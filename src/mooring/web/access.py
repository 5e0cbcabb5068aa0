"""Access to the page: a request needs the token, a host name of this server, and a page of this server.

The printed address contains the token. The first request exchanges it for a cookie that scripts cannot read
and other sites cannot send. Checking `Host` stops DNS rebinding; checking `Origin` and `Sec-Fetch-Site`
stops requests from other pages.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))
#: A shorter token could be guessed.
SHORTEST_TOKEN = 16


def new_token() -> str:
    return secrets.token_urlsafe(32)


def is_loopback(address: str) -> bool:
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Access:
    """The access rules of one server."""

    token: str
    #: The allowed host names; with `anywhere`, every IP address is allowed too.
    names: frozenset[str] = LOOPBACK_NAMES
    #: Whether other machines can reach the server.
    anywhere: bool = False
    #: The value of the cookie: not the token itself, and different for each server.
    secret: str = field(default_factory=new_token)

    def is_token(self, given: str) -> bool:
        return _same(given, self.token)

    def knows(self, *, cookie: str, authorization: str) -> bool:
        """Whether the request has the cookie or the token."""
        scheme, _, token = authorization.partition(" ")
        by_header = scheme.lower() == "bearer" and self.is_token(token.strip())
        return _same(cookie, self.secret) or by_header

    def refuses_host(self, host: str) -> bool:
        name = host_name(host)
        if name in self.names:
            return False
        return not (self.anywhere and _is_address(name))

    def refuses_origin(self, headers: Mapping[str, str], host: str) -> bool:
        origin = headers.get("Origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return True
        return headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin")


def host_name(host: str) -> str:
    """The name in a Host header, without the port: a forwarded port can differ."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
