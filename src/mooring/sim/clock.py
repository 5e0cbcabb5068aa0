"""Virtual time: an event loop whose clock jumps to the next thing that is due.

Plugins may be coroutines, and may well await `asyncio.sleep`; so simulation runs a real event loop and only
takes the waiting out of it. Nothing here touches a socket or the wall clock, and callbacks due at the
same time run in the order they were asked for, so a run repeats itself exactly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop that never waits: where nothing is ready, time moves on instead."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        # What the base class polls for I/O; here it is where time passes.
        self._selector = self
        #: Asked whenever all that is due has been done; true stops the loop before time passes.
        self.stops_when: Callable[[], bool] | None = None

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> list[object]:
        """Called by the base class when nothing is ready for `timeout` seconds; None is for ever."""
        if timeout is None or (timeout > 0 and self.stops_when is not None and self.stops_when()):
            self.stop()
        elif timeout > 0:
            # To the timer itself, not by the difference to it: sums of differences drift.
            scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
            self._now = max(self._now, scheduled[0].when())
        return []

    def _process_events(self, events: list[object]) -> None:
        """There is no I/O, so there are none."""

    def _write_to_self(self) -> None:
        """There is no other thread to wake this one."""


class VirtualClock:
    """The scheduler's view of virtual time, as seconds since the epoch."""

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
