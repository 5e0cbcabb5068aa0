"""How many requests a second mooring makes at most: `clientConnection.qps` and `burst`.

A bucket of `burst` tokens that `qps` tokens a second flow into; a request takes one, or waits in a `Line`.

Requests that wait are let through a few at a time, at times that all limiters share: to wake up for each of
them costs more than to send it (docs/decisions/0013).
"""

from __future__ import annotations

import asyncio

from mooring.config.types import ClientConnectionConfiguration
from mooring.framework.clock import Clock, Timer
from mooring.live.line import Line, Priority

#: Sums of small shares fall short of a whole token by a hair.
_WHOLE = 1.0 - 1e-6
#: No alarm is set earlier than a clock can tell.
_GRAIN_S = 0.0005
#: Alarms go off at whole multiples of this time, where several tokens come in it.
_BATCH_S = 0.05


class RateLimiter:
    """A token bucket with a line before it."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        assert qps > 0, "a limit of nothing a second lets nothing through"
        self._qps = qps
        self._burst = max(1, burst)
        #: How far alarms are apart. The bucket must not run over meanwhile.
        self.batch_s = min(_BATCH_S, self._burst / 2 / qps)
        self._clock = clock
        self._tokens = float(self._burst)
        self._counted_at = clock.now()
        #: Each is resolved once a token has been taken for it.
        self._line: Line[None] = Line()
        self._timer: Timer | None = None

    @property
    def is_exhausted(self) -> bool:
        """Whether requests wait."""
        return self._timer is not None

    async def take(self, priority: Priority = Priority.NORMAL) -> None:
        """Return when a request may be made."""
        self._refill()
        if not self._line and self._tokens >= _WHOLE:
            self._tokens -= 1.0
            return
        turn = self._line.join(priority)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # The request got a token and was cancelled at once.
                self.give_back()
            raise

    def give_back(self) -> None:
        """A request that took a token is not made: the next one may have it."""
        self._tokens = min(float(self._burst), self._tokens + 1.0)
        self._serve()

    def _serve(self) -> None:
        """Give tokens to those that wait, and set a timer for the next token."""
        self._refill()
        while self._tokens >= _WHOLE and (turn := self._line.next()) is not None:
            self._tokens -= 1.0
            turn.set_result(None)
        if self._line and self._timer is None:
            self._timer = self._clock.call_later(self._next_alarm_s(), self._alarm)

    def _next_alarm_s(self) -> float:
        """How long until the next token, or the next few."""
        missing_s = max((1.0 - self._tokens) / self._qps, _GRAIN_S)
        if self.batch_s * self._qps <= 1.0:
            return missing_s
        at = self._counted_at + missing_s
        return missing_s + -at % self.batch_s

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
