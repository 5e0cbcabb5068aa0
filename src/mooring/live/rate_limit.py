"""How many requests a second mooring makes at most: `clientConnection.qps` and `burst`.

A bucket of `burst` tokens that `qps` tokens a second flow into; a request takes one, or waits in line. Among
those that wait, binds go before all else and Events after it; equals go in the order they came.
"""

from __future__ import annotations

import asyncio
from enum import IntEnum
from heapq import heappop, heappush

from mooring.config.types import ClientConnectionConfiguration
from mooring.framework.clock import Clock, Timer

#: Sums of small shares fall short of a whole token by a hair.
_WHOLE = 1.0 - 1e-6
#: No alarm is set earlier than a clock can tell.
_GRAIN_S = 0.0005


class Priority(IntEnum):
    """Whose turn it is; the lower goes first."""

    BIND = 0
    NORMAL = 1
    EVENT = 2


class RateLimiter:
    """A token bucket with a line before it."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        assert qps > 0, "a limit of nothing a second lets nothing through"
        self._qps = qps
        self._burst = max(1, burst)
        self._clock = clock
        self._tokens = float(self._burst)
        self._counted_at = clock.now()
        #: (priority, number in line, woken once a token has been taken for it).
        self._line: list[tuple[Priority, int, asyncio.Future[None]]] = []
        self._arrivals = 0
        self._timer: Timer | None = None

    async def take(self, priority: Priority = Priority.NORMAL) -> None:
        """Return when a request may be made."""
        self._refill()
        if not self._line and self._tokens >= _WHOLE:
            self._tokens -= 1.0
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrivals += 1
        heappush(self._line, (priority, self._arrivals, turn))
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # Called up and called off at once: the next one may have the token.
                self._tokens += 1.0
                self._serve()
            raise

    def _serve(self) -> None:
        """Call up all that there are tokens for, and set the alarm for the next token."""
        self._refill()
        while self._line and (self._line[0][2].done() or self._tokens >= _WHOLE):
            _, _, turn = heappop(self._line)
            if not turn.done():
                self._tokens -= 1.0
                turn.set_result(None)
        if self._line and self._timer is None:
            missing_s = (1.0 - self._tokens) / self._qps
            self._timer = self._clock.call_later(max(missing_s, _GRAIN_S), self._alarm)

    def _alarm(self) -> None:
        self._timer = None
        self._serve()

    def _refill(self) -> None:
        now = self._clock.now()
        # The wall's clock may be set back: then no time has passed.
        elapsed_s = max(0.0, now - self._counted_at)
        self._counted_at = now
        self._tokens = min(float(self._burst), self._tokens + elapsed_s * self._qps)


def limiter_of(connection: ClientConnectionConfiguration, clock: Clock) -> RateLimiter | None:
    """The limit that a configuration asks for; None for a negative qps, which means no limit."""
    if connection.qps < 0:
        return None
    return RateLimiter(connection.qps or 50.0, connection.burst or 100, clock)
