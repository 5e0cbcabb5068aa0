"""The short way to the API server: small requests over a few connections that are kept open.

Every pod costs a bind and an Event, and each of them takes three to four times as much processor time through
aiohttp. Only what such requests need is spoken: HTTP/1.1, one request at a time a connection, bodies of a
known length going out. Parsing is left to httptools.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass

import httptools

from mooring.errors import Unanswered
from mooring.live.connection import MOST_CONNECTIONS
from mooring.live.line import Line, Priority
from mooring.live.stream import Endpoint, Stream

#: The longest answer that is taken: a page of a list may be long, but not without end.
MOST_BYTES = 1 << 30

#: A parser would call back for each header of each answer; only a refusal is searched for this one.
_RETRY_AFTER = re.compile(rb"(?i)\r\nretry-after:[ \t]*([^\r\n]*)")
_END_OF_HEAD = b"\r\n\r\n"

_NEVER = float("inf")

#: An answer that takes longer than this may be on the way, and not in the making.
SLOW_S = 0.1
#: How many times as many connections there may be while answers are slow.
MOST_WHEN_SLOW = 8


@dataclass(slots=True)
class Answer:
    """What came back, whatever it means."""

    status: int
    body: bytes
    #: The header Retry-After as it stands; None without one.
    retry_after: bytes | None = None


class Lane:
    """Connections to one server. A request gets a free connection, or waits for one.

    While answers are slow and requests wait, each answer makes room for one connection more: a server that is
    far away, or waits for something else, has as many requests at once as it takes to keep it busy.
    """

    def __init__(self, endpoint: Endpoint, most_connections: int = MOST_CONNECTIONS) -> None:
        self._endpoint = endpoint
        self._most_connections = most_connections
        self._loop = asyncio.get_running_loop()
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        #: Connections that are open or about to be.
        self._places_taken = 0
        #: Each is given a connection, or None for the right to open one.
        self._line: Line[_Connection | None] = Line()
        #: One for all connections: it goes off when the first answer that is waited for is late.
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def send(
        self, request: bytes, *, timeout_s: float, priority: Priority = Priority.NORMAL
    ) -> Answer:
        """Send one whole request and wait for the answer. Raises Unanswered."""
        connection = await self._take(priority)
        while not connection.usable:
            self._put_back(connection)
            connection = await self._take(priority)
        asked_s = self._loop.time()
        try:
            return await connection.ask(request, timeout_s)
        finally:
            if self._loop.time() >= asked_s + SLOW_S:
                self._widen()
            self._put_back(connection)

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._open):
            connection.close()

    async def _take(self, priority: Priority) -> _Connection:
        if self._idle:
            # The one used last: it is warm in every cache.
            return self._idle.pop()
        if self._places_taken < self._most_connections:
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
        """A connection is gone; one that this lane did not open is ignored."""
        if connection not in self._open:
            return
        self._open.remove(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._leave_place()

    def _widen(self) -> None:
        most = self._most_connections * MOST_WHEN_SLOW
        if self._places_taken < most and not self._closed and self._hand_on(None):
            self._places_taken += 1

    def _leave_place(self) -> None:
        if not self._hand_on(None):
            self._places_taken -= 1

    def _hand_on(self, given: _Connection | None) -> bool:
        """Whether a request was waiting for it."""
        turn = self._line.next()
        if turn is None:
            return False
        turn.set_result(given)
        return True

    async def _connect(self) -> _Connection:
        """In a place that was taken for it; the place is left if this fails."""
        try:
            if self._closed:
                raise Unanswered(
                    f"{self._endpoint.authority}: the client is closed", maybe_done=False
                )
            connection = _Connection(self, self._endpoint.authority)
            connection.stream = await self._endpoint.open(connection.received, connection.lost)
        except BaseException:
            self._leave_place()
            raise
        self._open.add(connection)
        return connection

    # Answers that are late

    def expect_answer_by(self, time_s: float) -> None:
        if self._timer is not None:
            if self._timer.when() <= time_s:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(time_s, self._look_for_late)

    def _look_for_late(self) -> None:
        self._timer = None
        now_s = self._loop.time()
        for connection in list(self._open):
            if connection.answer_by_s <= now_s:
                connection.is_late()
        next_s = min((connection.answer_by_s for connection in self._open), default=_NEVER)
        if next_s < _NEVER:
            self.expect_answer_by(next_s)


class _Connection:
    """One connection: a question, its answer, and then the next."""

    def __init__(self, lane: Lane, authority: str) -> None:
        self._lane = lane
        self._authority = authority
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self.stream: Stream
        self._answer: asyncio.Future[Answer] | None = None
        self._timeout_s = 0.0
        #: By the loop's time; never while no answer is waited for.
        self.answer_by_s = _NEVER
        #: What has come of the answer up to the end of its headers, and perhaps a little more.
        self._head = b""
        self._has_head = False
        self._pieces: list[bytes] = []
        self._size = 0
        #: Whether it may be asked again.
        self.usable = True

    async def ask(self, request: bytes, timeout_s: float) -> Answer:
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._answer = answer
        self._timeout_s = timeout_s
        self.answer_by_s = self._loop.time() + timeout_s
        self._lane.expect_answer_by(self.answer_by_s)
        try:
            self.stream.write(request)
            return await answer
        finally:
            self.answer_by_s = _NEVER
            if answer.cancelled():
                # The request was cancelled. Its answer must not be taken for that of the next one.
                self.close()
            self._answer = None

    def is_late(self) -> None:
        self.answer_by_s = _NEVER
        self._fail(f"no answer within {self._timeout_s:g} s")

    def close(self) -> None:
        self.usable = False
        self.stream.close()

    def _fail(self, problem: str) -> None:
        self.usable = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Unanswered(f"{self._authority}: {problem}", maybe_done=True))

    # Called by the stream

    def received(self, data: memoryview) -> bool:
        """Whether the answer has to go on."""
        if not self._has_head:
            self._head += data
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(f"not HTTP: {error}")
            self.close()
        return bool(self._head)

    def lost(self, error: Exception | None) -> None:
        self._fail(str(error) if error else "the connection was closed before the answer")
        self._lane.lost(self)

    # Called by the parser

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, body: bytes) -> None:
        self._pieces.append(body)
        self._size += len(body)
        if self._size > MOST_BYTES:
            self._fail(f"the answer is longer than {MOST_BYTES} bytes")
            self.close()

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        answer = Answer(status, b"".join(self._pieces))
        if status >= 300:
            head, _, _ = self._head.partition(_END_OF_HEAD)
            found = _RETRY_AFTER.search(head)
            answer.retry_after = found[1] if found else None
        self._pieces = []
        self._size = 0
        self._head = b""
        self._has_head = False
        if not self._parser.should_keep_alive() or status == 401:
            # With a 401, the certificate of this connection may be what was not accepted.
            self.usable = False
        if self._answer is None:
            # An answer without a request: what comes next cannot be trusted.
            self.close()
        elif not self._answer.done():
            self._answer.set_result(answer)
