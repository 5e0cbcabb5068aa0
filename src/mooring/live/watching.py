"""A watch: one connection, and an answer without an end that comes line by line.

Each line is handed on in the same turn of the event loop in which it is read. There is no task to wake: the
watch hears several things of each pod, and waking cost as much as decoding what was heard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httptools

from mooring.errors import Unanswered
from mooring.live.lane import Answer
from mooring.live.stream import Endpoint, Pace, Stream

OnLine = Callable[[bytes], None]


async def watch(
    endpoint: Endpoint,
    request: bytes,
    on_line: OnLine,
    *,
    on_open: Callable[[], object],
    timeout_s: float,
    pace: Pace | None = None,
    paced: set[Stream] | None = None,
) -> Answer | None:
    """Return when the server ends the watch; a refusal, if it did not agree to it.

    While it is open, a watch with a pace is in `paced`.

    Raises Unanswered when it breaks off, and whatever `on_line` raises.
    """
    watching = _Watching(on_line, on_open)
    stream = await endpoint.open(watching.received, watching.lost, pace=pace)
    if pace is not None and paced is not None:
        paced.add(stream)
    try:
        async with asyncio.timeout(timeout_s):
            stream.write(request)
            return await watching.ended
    except TimeoutError as error:
        raise Unanswered("no answer in time", maybe_done=True) from error
    finally:
        if paced is not None:
            paced.discard(stream)
        stream.close()


class Lines:
    """Puts lines together, however they are cut."""

    def __init__(self) -> None:
        #: The beginning of a line whose end has not come yet.
        self._pieces: list[bytes] = []

    def __bool__(self) -> bool:
        """Whether a line has begun."""
        return bool(self._pieces)

    def split(self, text: bytes) -> list[bytes]:
        """The lines that end in this text, without their ends."""
        *lines, rest = text.split(b"\n")
        if lines and self._pieces:
            lines[0] = b"".join((*self._pieces, lines[0]))
            self._pieces = []
        if rest:
            self._pieces.append(rest)
        return lines


class _Watching:
    """The answer to one request for a watch."""

    def __init__(self, on_line: OnLine, on_open: Callable[[], object]) -> None:
        self._on_line = on_line
        self._on_open = on_open
        self._parser = httptools.HttpResponseParser(self)
        self._status = 0
        self._lines = Lines()
        #: What a read has brought, until it is handed on.
        self._bodies: list[bytes] = []
        self._is_complete = False
        self.ended: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()

    # Called by the stream

    def received(self, data: memoryview) -> bool:
        """Whether a line has to go on."""
        if self.ended.done():
            return False
        try:
            self._parser.feed_data(data)
            if 0 < self._status < 300:
                # Not from within the parser, which would hide what the listener raises.
                bodies, self._bodies = self._bodies, []
                for body in bodies:
                    for line in self._lines.split(body):
                        self._on_line(line)
        except httptools.HttpParserError as error:
            self.ended.set_exception(Unanswered(f"not HTTP: {error}", maybe_done=True))
        except Exception as error:
            self.ended.set_exception(error)
        else:
            if self._is_complete:
                self.ended.set_result(self._refusal())
        return bool(self._lines)

    def lost(self, error: Exception | None) -> None:
        if not self.ended.done():
            problem = str(error) if error else "the connection broke off"
            self.ended.set_exception(Unanswered(problem, maybe_done=True))

    def _refusal(self) -> Answer | None:
        return None if self._status < 300 else Answer(self._status, b"".join(self._bodies))

    # Called by the parser

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()
        if self._status < 300:
            self._on_open()

    def on_body(self, body: bytes) -> None:
        self._bodies.append(body)

    def on_message_complete(self) -> None:
        self._is_complete = True
