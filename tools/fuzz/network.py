"""Connections in memory between a scheduler and the API server, which can be broken in every way.

What is written on one side comes out on the other after a delay, in order, in pieces of any size. A
connection can be cut after any byte in either direction, and it can fall silent: then nothing comes through,
and the client's kernel notices after some time, as TCP keep-alive does.
"""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from typing import Any, Protocol

from tools.fuzz.loop import WORLD, FuzzLoop

#: How long it takes a kernel to notice that nobody answers (`live.stream.keep_alive`).
_KEEP_ALIVE_S = 45.0
#: Timers of the same time go off in any order, so what must come later comes a little later.
_GRAIN_S = 1e-9


class Receiver(Protocol):
    """The server's end of a connection."""

    def received(self, data: bytes) -> None: ...
    def lost(self) -> None: ...


class Faults(Protocol):
    """What a network asks of the swarm."""

    rng: random.Random

    def happens(self, fault: str) -> bool: ...
    def delay_s(self, fault: str) -> float:
        """A delay of this kind: usually short, and long if the fault happens."""
        ...


class Wire:
    """One connection. Both directions are FIFO."""

    def __init__(self, loop: FuzzLoop, faults: Faults, owner: Any) -> None:
        self._loop = loop
        self._faults = faults
        #: The process that has the client's end.
        self.owner = owner
        self.client = MemorySocket(self)
        self.server: Receiver | None = None
        self.is_open = True
        self._silent = False
        #: When what was sent last comes out: up (to the server) and down.
        self._up_at = self._down_at = 0.0
        #: How many more bytes come through before the connection is cut; None for all.
        self._up_left: int | None = None
        self._down_left: int | None = None
        if faults.happens("cut the request"):
            self._up_left = self._bytes()
        if faults.happens("cut the answer"):
            self._down_left = self._bytes()

    def up(self, data: bytes) -> None:
        """From the client to the server."""
        if not self._silent and self._faults.happens("silent connection"):
            self.silence()
        if self._silent or not self.is_open:
            return
        data, is_cut = self._passes(data, self._up_left)
        if self._up_left is not None:
            self._up_left -= len(data)
        delay_s = self._faults.delay_s("slow request")
        self._up_at = max(self._up_at + _GRAIN_S, self._loop.time() + delay_s)
        self._at(self._up_at, self._deliver_up, data)
        if is_cut:
            self._at(self._up_at + _GRAIN_S, self.cut)

    def down(self, data: bytes) -> None:
        """From the server to the client."""
        if self._silent or not self.is_open:
            return
        data, is_cut = self._passes(data, self._down_left)
        if self._down_left is not None:
            self._down_left -= len(data)
        delay_s = self._faults.delay_s("slow answer")
        self._down_at = max(self._down_at + _GRAIN_S, self._loop.time() + delay_s)
        self._at(self._down_at, self._deliver_down, data)
        if is_cut:
            self._at(self._down_at + _GRAIN_S, self.cut)

    def cut(self) -> None:
        """Both sides learn of it at once; what is on the way is lost."""
        if self.is_open:
            self.is_open = False
            self.client.lost(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"))
            if self.server is not None:
                self.server.lost()

    def closed_by_client(self) -> None:
        """What was sent before that still arrives."""
        self._at(max(self._up_at + _GRAIN_S, self._loop.time()), self._end)

    def _end(self) -> None:
        if self.is_open:
            self.is_open = False
            if self.server is not None:
                self.server.lost()

    def closed_by_server(self) -> None:
        """After what was sent before that."""
        self._at(max(self._down_at + _GRAIN_S, self._loop.time()), self._end_of_answers)

    def _end_of_answers(self) -> None:
        if self.is_open:
            self.is_open = False
            self.client.lost(None)

    def silence(self) -> None:
        self._silent = True
        self._at(self._loop.time() + _KEEP_ALIVE_S, self.cut)

    def _deliver_up(self, data: bytes) -> None:
        if self.is_open and self.server is not None:
            self.server.received(data)

    def _deliver_down(self, data: bytes) -> None:
        if self.is_open and not self._silent:
            self.client.came(data)

    def _passes(self, data: bytes, left: int | None) -> tuple[bytes, bool]:
        if left is None or len(data) < left:
            return data, False
        return data[:left], True

    def _bytes(self) -> int:
        """Within the first request or answer most often."""
        return int(
            self._faults.rng.choice([0, 1, 20, 150, 400, 1000, 5000]) * self._faults.rng.random()
        )

    def _at(self, when: float, callback: Callable[..., None], *args: Any) -> None:
        self._loop.call_at(when, callback, *args, context=WORLD)


class MemorySocket:
    """What `live.stream.Stream` uses of a socket that does not block."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._data = bytearray()
        self._lost = False
        self._error: OSError | None = None
        self._closed = False
        #: The callback that `add_writer` has scheduled.
        self.writer: Any = None

    @property
    def readable(self) -> bool:
        return (bool(self._data) or self._lost) and not self._wire.owner.dead

    def came(self, data: bytes) -> None:
        self._data += data
        self._wire._loop.has_data(self)

    def lost(self, error: OSError | None) -> None:
        self._lost = True
        self._error = error
        if error is not None:
            # A reset throws away what was not read yet.
            self._data.clear()
        self._wire._loop.has_data(self)

    def send(self, data: bytes) -> int:
        if self._error is not None:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        size = len(data)
        if self._wire._faults.happens("short write"):
            size = self._wire._faults.rng.randrange(size + 1)
        self._wire.up(bytes(data[:size]))
        return size

    def recv_into(self, buffer: memoryview) -> int:
        if self._data:
            size = min(len(buffer), len(self._data))
            if self._wire._faults.happens("short read"):
                size = self._wire._faults.rng.randint(1, size)
            buffer[:size] = self._data[:size]
            del self._data[:size]
            return size
        if self._error is not None:
            raise self._error
        if self._lost:
            return 0
        raise BlockingIOError

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wire.closed_by_client()
