"""Who may ask: whoever has the token, from a page of this server, by the name of this server.

The token stands in the address that is printed, and is exchanged at once for a cookie that no script can read
and no other site can send. `Host` is checked so that no foreign name can be made to lead here, `Origin` and
`Sec-Fetch-Site` so that no foreign page can ask.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "::1"))
#: A shorter token could be found by trying.
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
    """The rules of one server."""

    token: str
    #: Names by which the page may be reached; beside these, any plain IP address if `anywhere`.
    names: frozenset[str] = LOOPBACK_NAMES
    #: Whether the server listens beyond this machine.
    anywhere: bool = False
    #: What the cookie holds: not the token itself, and another one for each server.
    secret: str = field(default_factory=new_token)

    def is_token(self, given: str) -> bool:
        return _same(given, self.token)

    def knows(self, *, cookie: str, authorization: str) -> bool:
        """Whether the request is by someone who had the token."""
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
    """Of a Host header: without the port, which may be another one on the way here."""
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
