"""Time as a parameter: virtual in a simulation, real in production."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer: ...


async def sleep(clock: Clock, delay_s: float) -> None:
    """Wait on this clock."""
    woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    timer = clock.call_later(delay_s, lambda: None if woken.done() else woken.set_result(None))
    try:
        await woken
    finally:
        timer.cancel()
