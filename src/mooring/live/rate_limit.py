"""How many requests a second mooring makes at most: `clientConnection.qps` and `burst`.

A bucket of `burst` tokens that `qps` tokens a second flow into; a request takes one, or waits in a `Line`.

Conditions may have to leave a share of the bucket to requests that matter more. Where binds come as fast as
tokens do, each token that a condition took from an empty bucket would make all later binds wait.

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
#: Alarms go off at whole multiples of one of these times, where several tokens come in it: of the longest in
#: which no more tokens come than requests wait.
_BATCHES_S = (0.2, 0.1, 0.05)


class RateLimiter:
    """A token bucket with a line before it."""

    def __init__(
        self, qps: float, burst: int, clock: Clock, *, reserved_share: float = 0.0
    ) -> None:
        """`reserved_share` is what conditions and Events leave of the bucket to others."""
        assert qps > 0, "a limit of nothing a second lets nothing through"
        self._qps = qps
        self._burst = max(1, burst)
        #: How many tokens that is. A bucket of one token has none to spare.
        self._reserved = (self._burst - 1) * reserved_share
        self._clock = clock
        self._tokens = float(self._burst)
        self._counted_at = clock.now()
        #: Each is resolved once a token has been taken for it.
        self._line: Line[None] = Line()
        self._timer: Timer | None = None
        #: When the timer goes off, if there is one.
        self._due = 0.0

    @property
    def is_exhausted(self) -> bool:
        """Whether requests wait, and not only for tokens that are reserved for others."""
        return self._timer is not None and self._tokens < _WHOLE

    @property
    def batch_s(self) -> float:
        """How far alarms are apart. The bucket must not run over meanwhile."""
        waiting = self._line.count(Priority.NORMAL) or self._line.count(Priority.EVENT)
        most_s = self._burst / 2 / self._qps
        for batch_s in _BATCHES_S:
            if batch_s <= most_s and batch_s * self._qps <= waiting:
                return batch_s
        return min(_BATCHES_S[-1], most_s)

    async def take(self, priority: Priority = Priority.NORMAL) -> None:
        """Return when a request may be made."""
        self._refill()
        if not self._line and self._tokens >= self._needed(priority):
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
        while (least := self._least_important()) is not None:
            turn = self._line.next(least)
            if turn is None:
                break
            self._tokens -= 1.0
            turn.set_result(None)
        if self._line:
            self._set_timer()

    def _set_timer(self) -> None:
        """For the first token that somebody waits for; whoever comes later may need it earlier."""
        due = self._counted_at + self._next_alarm_s()
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = self._clock.call_later(due - self._counted_at, self._alarm)

    def _needed(self, priority: Priority) -> float:
        """How many tokens there must be for a request."""
        return _WHOLE if priority <= Priority.NORMAL else _WHOLE + self._reserved

    def _least_important(self) -> Priority | None:
        """The lowest priority that there is a token for; None if there is none."""
        if self._tokens < _WHOLE:
            return None
        return Priority.EVENT if self._tokens >= _WHOLE + self._reserved else Priority.NORMAL

    def _next_alarm_s(self) -> float:
        """How long until the next token for one that waits, or the next few."""
        needed = 1.0 if self._line.has(Priority.NORMAL) else 1.0 + self._reserved
        missing_s = max((needed - self._tokens) / self._qps, _GRAIN_S)
        batch_s = self.batch_s
        if batch_s * self._qps <= 1.0:
            return missing_s
        at = self._counted_at + missing_s
        return missing_s + -at % batch_s

    def _alarm(self) -> None:
        self._timer = None
        self._serve()

    def _refill(self) -> None:
        now = self._clock.now()
        # The wall's clock may be set back: then no time has passed.
        elapsed_s = max(0.0, now - self._counted_at)
        self._counted_at = now
        self._tokens = min(float(self._burst), self._tokens + elapsed_s * self._qps)


def limiter_of(
    connection: ClientConnectionConfiguration, clock: Clock, *, reserved_share: float = 0.0
) -> RateLimiter | None:
    """The limit that a configuration asks for; None for a negative qps, which means no limit."""
    if connection.qps < 0:
        return None
    qps, burst = connection.qps or 50.0, connection.burst or 100
    return RateLimiter(qps, burst, clock, reserved_share=reserved_share)
