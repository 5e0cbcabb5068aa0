"""A shadow at a real cluster, from the first list until it is told to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mooring.config import KubeSchedulerConfiguration
from mooring.errors import MooringError
from mooring.live.clock import WallClock
from mooring.live.connection import Connection
from mooring.live.driver import Driver, DriverParts
from mooring.live.metrics import LiveMetrics
from mooring.live.resources import kinds_to_watch
from mooring.live.session import open_session
from mooring.live.shadow import Comparison, ReadOnlyWriter, Shadow


@dataclass(frozen=True, slots=True)
class ShadowOptions:
    """When to stop; whichever comes first."""

    for_s: float | None = None
    pods: int | None = None


@dataclass(frozen=True, slots=True)
class ShadowReport:
    compared: int
    agreed: int
    by_verdict: dict[str, int]

    def to_data(self) -> dict[str, Any]:
        return {"compared": self.compared, "agreed": self.agreed, "verdicts": self.by_verdict}


class ShadowFailed(MooringError):
    """The shadow could not go on."""


async def run_shadow(
    config: KubeSchedulerConfiguration,
    connect: Callable[[], Awaitable[Connection]],
    options: ShadowOptions,
    tell: Callable[[Comparison], None],
) -> ShadowReport:
    """Compare until it is time to stop. Raises MooringError if the cluster cannot be watched."""
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def end(problem: str = "") -> None:
        if not ended.done():
            ended.set_result(problem)

    def compared(comparison: Comparison) -> None:
        tell(comparison)
        if options.pods is not None and shadow.compared >= options.pods:
            end()

    _on_signals(end)
    clock = WallClock()
    parts = DriverParts(
        clock=clock,
        writer=ReadOnlyWriter(),
        metrics=LiveMetrics(),
        on_fatal=end,
    )
    driver = Driver(config, parts)
    shadow = Shadow(driver, compared)
    try:
        async with open_session(await connect(), config.client_connection, clock) as session:
            session.watch(kinds_to_watch(driver.scheduler), shadow, end)
            synced = asyncio.ensure_future(session.synced())
            await asyncio.wait((synced, ended), return_when=asyncio.FIRST_COMPLETED)
            synced.cancel()
            shadow.ready = True
            with suppress(TimeoutError):
                async with asyncio.timeout(options.for_s):
                    await asyncio.shield(ended)
            await session.stop()
    finally:
        driver.close()
    if ended.done() and ended.result():
        raise ShadowFailed(ended.result())
    verdicts = {verdict.value: count for verdict, count in shadow.tally.most_common()}
    return ShadowReport(shadow.compared, shadow.agreed, verdicts)


def _on_signals(end: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end)
