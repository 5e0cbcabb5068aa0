"""Whether binds are under way, so that what can wait does."""

from __future__ import annotations

import asyncio

from mooring.framework.clock import Clock


class BindTraffic:
    """`with traffic:` around each bind; `quiet` waits for a moment without any."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.under_way = 0
        self._waiting: list[asyncio.Future[None]] = []

    def __enter__(self) -> None:
        self.under_way += 1

    def __exit__(self, *_: object) -> None:
        self.under_way -= 1
        if not self.under_way:
            self.wake()

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
