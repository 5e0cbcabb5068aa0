"""Where the API server is and how it knows us: what a client needs, wherever it came from."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

#: More do not make an API server faster that answers at once, and each costs a handshake.
MOST_CONNECTIONS = 32


async def nobody() -> str | None:
    """No credentials: none are needed, or a client certificate has them."""
    return None


async def keep() -> None:
    """For credentials that never change."""


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server, as seen by one user; `credentials` makes them."""

    #: `https://host:port`, perhaps with a path before all others, without a slash at the end.
    server: str
    #: None trusts the certificates that the machine trusts. A renewed certificate is loaded into this one.
    ssl_context: ssl.SSLContext | None = None
    #: The Authorization header of a request made now; asked for each one, so it must be quick.
    authorization: Callable[[], Awaitable[str | None]] = nobody
    #: Told that the API server did not accept the credentials: get others if there are any.
    renew: Callable[[], Awaitable[None]] = keep
    #: The name in the server's certificate, where it is not the host's.
    tls_server_name: str | None = None
    #: How many requests are under way at once, each on a connection of its own; more while answers are slow.
    most_connections: int = MOST_CONNECTIONS
    #: An HTTP proxy to go through.
    proxy: str | None = None
    #: Makes connected sockets that do not block, instead of TCP to the server; a test breaks them.
    open_socket: Callable[[], Awaitable[socket.socket]] | None = None
