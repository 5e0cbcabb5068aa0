"""Keeps an engine going on an event loop: attempts while there are pods to try, flushes when they are due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class DriveLoop:
    """What simulations and live schedulers drive alike; they say what an attempt is and when time passes."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        attempt: Callable[[], bool],
        on_idle: Callable[[], None] = lambda: None,
        turn_s: float = 0.0,
    ) -> None:
        """`attempt` tries a pod, or says that there is none to try now; then `on_idle` is called.

        After so many seconds of attempts, watches and bindings get their turn.
        """
        self._loop = loop
        self._attempt = attempt
        self._on_idle = on_idle
        self._turn_s = turn_s
        self._awake = False
        #: By period; those that are set.
        self._timers: dict[int, asyncio.TimerHandle] = {}

    def wake(self) -> None:
        """Make attempts from the next turn of the event loop on."""
        if not self._awake:
            self._awake = True
            self._loop.call_soon(self._make_attempts)

    def flush_at(self, when_s: float, period_s: int, flush: Callable[[], None]) -> None:
        """Flush at this time of the event loop, unless a flush of this period is due already."""
        if period_s not in self._timers:
            self._timers[period_s] = self._loop.call_at(when_s, self._flush, period_s, flush)

    def stop(self) -> None:
        """Flush no more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _make_attempts(self) -> None:
        until_s = self._loop.time() + self._turn_s
        try:
            while self._attempt():
                if self._loop.time() >= until_s:
                    self._loop.call_soon(self._make_attempts)
                    return
        except BaseException:
            # Whatever ended this attempt, more can be made.
            self._awake = False
            raise
        self._awake = False
        self._on_idle()

    def _flush(self, period_s: int, flush: Callable[[], None]) -> None:
        del self._timers[period_s]
        flush()
        self.wake()
