"""The short way to the API server: small requests over a few connections that are kept open.

Every pod costs a bind and an Event, and each of them takes 185 µs of CPU through aiohttp and 80 µs here
(https over loopback, one after the other). Only what such requests need is spoken: HTTP/1.1, one request at
a time a connection, bodies of a known length going out. Parsing is left to httptools.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httptools

from mooring.errors import Unanswered
from mooring.live.line import Line, Priority

CONNECT_TIMEOUT_S = 10.0

#: More do not make an API server faster, and each costs a handshake.
MOST_CONNECTIONS = 32

#: The longest answer that is taken: a page of a list may be long, but not without end.
MOST_BYTES = 1 << 30

_PORTS = {"http": 80, "https": 443}
_RETRY_AFTER = b"retry-after"


@dataclass(slots=True)
class Answer:
    """What came back, whatever it means."""

    status: int
    body: bytes
    #: The header Retry-After as it stands; None without one.
    retry_after: bytes | None = None


class Lane:
    """Connections to one server; who asks gets one that is free, or waits for his turn."""

    def __init__(
        self, server: str, tls: ssl.SSLContext | None, *, tls_server_name: str | None = None
    ) -> None:
        parts = urlsplit(server)
        self._host = parts.hostname or ""
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._tls = tls or ssl.create_default_context()
        self._tls_name = tls_server_name or self._host
        #: `host:port`, as a request names whom it is for.
        self.authority = parts.netloc.rpartition("@")[2]
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        #: Connections that are open or about to be.
        self._places_taken = 0
        #: Each is given a connection, or None for the right to open one.
        self._line: Line[_Connection | None] = Line()
        self._closed = False

    async def send(
        self, request: bytes, *, timeout_s: float, priority: Priority = Priority.NORMAL
    ) -> Answer:
        """Send one whole request and wait for the answer. Raises Unanswered."""
        connection = await self._take(priority)
        while not connection.usable:
            self._put_back(connection)
            connection = await self._take(priority)
        try:
            return await connection.ask(request, timeout_s)
        finally:
            self._put_back(connection)

    def close(self) -> None:
        self._closed = True
        for connection in list(self._open):
            connection.close()

    async def _take(self, priority: Priority) -> _Connection:
        if self._idle:
            # The one used last: it is warm in every cache.
            return self._idle.pop()
        if self._places_taken < MOST_CONNECTIONS:
            self._places_taken += 1
            return await self._connect()
        turn = self._line.join(priority)
        try:
            connection = await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # Called up and called off at once: the next one may have it.
                given = turn.result()
                if given is None:
                    self._leave_place()
                else:
                    self._put_back(given)
            raise
        return await self._connect() if connection is None else connection

    def _put_back(self, connection: _Connection) -> None:
        if not connection.usable or self._closed:
            connection.close()
        elif not self._hand_on(connection):
            self._idle.append(connection)

    def lost(self, connection: _Connection) -> None:
        """Of one that never was one of these, nothing is known here."""
        if connection not in self._open:
            return
        self._open.remove(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._leave_place()

    def _leave_place(self) -> None:
        if not self._hand_on(None):
            self._places_taken -= 1

    def _hand_on(self, given: _Connection | None) -> bool:
        """Whether somebody was waiting for it."""
        turn = self._line.next()
        if turn is None:
            return False
        turn.set_result(given)
        return True

    async def _connect(self) -> _Connection:
        """In a place that was taken for it; the place is left if this fails."""
        try:
            connection = await self._open_connection()
            if not connection.usable:
                raise Unanswered(f"{self.authority}: closed at once", maybe_done=False)
        except BaseException:
            self._leave_place()
            raise
        self._open.add(connection)
        return connection

    async def _open_connection(self) -> _Connection:
        if self._closed:
            raise Unanswered(f"{self.authority}: the client is closed", maybe_done=False)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                transport, connection = await loop.create_connection(
                    lambda: _Connection(self),
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._tls_name if self._tls is not None else None,
                )
        except TimeoutError as error:
            raise Unanswered(
                f"{self.authority}: no connection within {CONNECT_TIMEOUT_S:g} s", maybe_done=False
            ) from error
        except (OSError, ssl.SSLError) as error:
            raise Unanswered(f"{self.authority}: {error}", maybe_done=False) from error
        keep_alive(transport.get_extra_info("socket"))
        return connection


class _Connection(asyncio.Protocol):
    """One connection: a question, its answer, and then the next."""

    def __init__(self, lane: Lane) -> None:
        self._lane = lane
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: Any = None
        self._answer: asyncio.Future[Answer] | None = None
        self._status = 0
        self._pieces: list[bytes] = []
        self._size = 0
        self._retry_after: bytes | None = None
        #: Whether it may be asked again.
        self.usable = True

    async def ask(self, request: bytes, timeout_s: float) -> Answer:
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._answer = answer
        timer = self._loop.call_later(timeout_s, self._fail, f"no answer within {timeout_s:g} s")
        try:
            self._transport.write(request)
            return await answer
        finally:
            timer.cancel()
            if answer.cancelled():
                # Nobody waits for the answer, but it would come: not to be taken for the next one's.
                self.close()
            self._answer = None

    def close(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, problem: str) -> None:
        self.usable = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(
                Unanswered(f"{self._lane.authority}: {problem}", maybe_done=True)
            )

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"not HTTP: {error}")
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(str(error) if error else "the connection was closed before the answer")
        self._lane.lost(self)

    # Called by the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == _RETRY_AFTER:
            self._retry_after = value

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._size += len(body)
        if self._size > MOST_BYTES:
            self._fail(f"the answer is longer than {MOST_BYTES} bytes")
            self.close()

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        answer = Answer(status, b"".join(self._pieces), self._retry_after)
        self._pieces = []
        self._size = 0
        self._retry_after = None
        if not self._parser.should_keep_alive() or status == 401:
            # With a 401, the certificate of this connection may be what was not accepted.
            self.usable = False
        if self._answer is None:
            # An answer that nobody asked for: whatever comes next cannot be trusted.
            self.close()
        elif not self._answer.done():
            self._answer.set_result(answer)


def keep_alive(sock: socket.socket) -> None:
    """Notice within a minute that the other side is gone, however silent the line is."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5)
