"""Whether binds are under way or being made, so that what can wait does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mooring.framework.clock import Clock, Timer
from mooring.live.rate_limit import RateLimiter

#: So many binds stand ready for the limit of requests; others are decided when one of these is made.
READY = 16

#: Binds are being made if one was made in this time.
BUSY_S = 1.0
#: While binds are being made, one refusal is told for so many of them, and so many before the first.
BINDS_FOR_A_REFUSAL = 8
_REFUSALS_AT_ONCE = 16
#: How long a refusal may wait for a moment in which no binds are being made.
REFUSAL_PATIENCE_S = 10.0
#: How often those that hold refusals back should ask again.
ASK_AGAIN_S = 0.1


class BindTraffic:
    """`with traffic:` around each bind; `quiet` waits for a moment without any."""

    def __init__(self, clock: Clock, limiter: RateLimiter | None = None) -> None:
        """`limiter` is the one that binds wait for, if there is a limit."""
        self._clock = clock
        self._limiter = limiter
        #: Told that there is room for more binds, if somebody was told that there is none.
        self.on_room: Callable[[], None] | None = None
        self._was_full = False
        self.under_way = 0
        #: How many were made, and when the last one.
        self.made = 0
        self._made_at = -BUSY_S
        self._waiting: list[asyncio.Future[None]] = []
        #: When one of those that wait loses patience, with one timer for all: binds end all the time.
        self._patience_ends = 0.0
        self._timer: Timer | None = None

    def __enter__(self) -> None:
        self.under_way += 1

    def __exit__(self, *_: object) -> None:
        self.under_way -= 1
        self.made += 1
        self._made_at = self._clock.now()
        if self._was_full:
            self._was_full = False
            if self.on_room is not None:
                self.on_room()
        if not self.under_way:
            self.wake()

    def has_room(self) -> bool:
        """Whether a pod that is placed now could be bound soon.

        If binds wait for the limit, a pod that is decided later is bound as soon, and knows more: places
        have become free meanwhile, and more important pods have come.
        """
        limiter = self._limiter
        self._was_full = limiter is not None and self.under_way >= READY and limiter.is_exhausted
        return not self._was_full

    @property
    def is_busy(self) -> bool:
        """Whether binds are being made."""
        return self._clock.now() < self._made_at + BUSY_S

    def wake(self) -> None:
        """Let those go on that wait for a moment without binds."""
        waiting, self._waiting = self._waiting, []
        for woken in waiting:
            if not woken.done():
                woken.set_result(None)

    async def quiet(self, patience_s: float) -> None:
        """Return when no bind is under way, or earlier; after this time at the latest."""
        if not self.under_way:
            return
        self._wake_by(self._clock.now() + patience_s)
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        await woken

    def _wake_by(self, time_s: float) -> None:
        if self._timer is not None:
            if self._patience_ends <= time_s:
                return
            self._timer.cancel()
        self._patience_ends = time_s
        self._timer = self._clock.call_later(time_s - self._clock.now(), self._patience_ended)

    def _patience_ended(self) -> None:
        self._timer = None
        self.wake()


class Refusals:
    """How many refusals may be told beside the binds: conditions have one of these, Events another.

    In a storm, as when all pods of a cluster are replaced, more pods are refused than bound, and most of
    them are bound or deleted soon after. Whatever the API server does for them, it does not do for binds.
    """

    def __init__(self, traffic: BindTraffic, clock: Clock) -> None:
        self._traffic = traffic
        self._clock = clock
        self._left = float(_REFUSALS_AT_ONCE)
        self._counted = 0

    def may_tell(self, since_s: float) -> bool:
        """Whether one that waits since this moment may be told; ask for each, the oldest first."""
        if not self._traffic.is_busy:
            self._left = float(_REFUSALS_AT_ONCE)
            self._counted = self._traffic.made
            return True
        if self._clock.now() >= since_s + REFUSAL_PATIENCE_S:
            return True
        made = self._traffic.made - self._counted
        self._counted += made
        self._left = min(float(_REFUSALS_AT_ONCE), self._left + made / BINDS_FOR_A_REFUSAL)
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True
