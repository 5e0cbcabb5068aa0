"""The wall's time, for a scheduler that runs in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


class WallClock:
    """The `framework.clock.Clock` of production; timers need a running event loop."""

    def now(self) -> float:
        return time.time()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(max(0.0, delay_s), callback)
