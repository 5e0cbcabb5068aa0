"""Virtual time: an event loop whose clock jumps to the next timer.

Plugins can be coroutines and can await `asyncio.sleep`, so a simulation runs a real event loop that never
waits. The loop uses no sockets and no wall clock. Callbacks of the same time run in the order in which they
were requested, so every run of the same input is equal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that never waits: when nothing is ready, its time jumps forward."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        # The base class polls this for I/O; here, it moves the time.
        self._selector = self
        #: Called when nothing is ready; true stops the loop before the time moves.
        self.stops_when: Callable[[], bool] | None = None

    def time(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass while a callback runs. Timers that become due run after it."""
        self._now += seconds

    def select(self, timeout: float | None) -> list[object]:
        """The base class calls this when nothing is ready for `timeout` seconds; None means forever."""
        if timeout is None or (timeout > 0 and self.stops_when is not None and self.stops_when()):
            self.stop()
        elif timeout > 0:
            # Set the time of the timer; adding differences would drift.
            scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
            self._now = max(self._now, scheduled[0].when())
        return []

    def _process_events(self, events: list[object]) -> None:
        """There is no I/O."""

    def _write_to_self(self) -> None:
        """No other thread wakes this one."""


class VirtualClock:
    """Virtual time for the scheduler, in seconds since the epoch."""

    def __init__(self, loop: VirtualLoop, epoch_s: float) -> None:
        self._loop = loop
        self.epoch_s = epoch_s

    def now(self) -> float:
        return self.epoch_s + self._loop.time()

    @property
    def elapsed_s(self) -> float:
        return self._loop.time()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(max(0.0, delay_s), callback)
