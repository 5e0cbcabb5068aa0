"""Whether binds are under way, so that what can wait does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mooring.framework.clock import Clock
from mooring.live.rate_limit import RateLimiter

#: So many binds stand ready for the limit of requests; others are decided when one of these is made.
READY = 16


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
        self._waiting: list[asyncio.Future[None]] = []

    def __enter__(self) -> None:
        self.under_way += 1

    def __exit__(self, *_: object) -> None:
        self.under_way -= 1
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

    def wake(self) -> None:
        """Let those go on that wait for a moment without binds."""
        self._wake(*self._waiting)
        self._waiting.clear()

    async def quiet(self, patience_s: float) -> None:
        """Return when no bind is under way, but wait no longer than this."""
        if not self.under_way:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        timer = self._clock.call_later(patience_s, lambda: self._wake(woken))
        try:
            await woken
        finally:
            timer.cancel()
            if woken in self._waiting:
                self._waiting.remove(woken)

    @staticmethod
    def _wake(*waiting: asyncio.Future[None]) -> None:
        for woken in waiting:
            if not woken.done():
                woken.set_result(None)
