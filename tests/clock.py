"""Time that passes only when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class FakeTimer:
    """What `call_later` gives back."""

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeClock:
    """A clock that starts at `start` and stands still. Timers go off in order as it is advanced."""

    def __init__(self, start: float = 1000.0) -> None:
        self._now = start
        #: (when, sequence number, timer, callback) of every timer that has not gone off.
        self._timers: list[tuple[float, int, FakeTimer, Callable[[], None]]] = []
        self._timers_made = 0

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass, and everything happen that was to happen meanwhile."""
        until = self._now + seconds
        while self._timers and self._timers[0][0] <= until:
            when, _, timer, callback = heappop(self._timers)
            self._now = max(self._now, when)
            if not timer.cancelled:
                callback()
        self._now = until

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer()
        self._timers_made += 1
        heappush(self._timers, (self._now + delay_s, self._timers_made, timer, callback))
        return timer
