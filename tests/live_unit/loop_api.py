"""A driver on the test's own event loop, with the simulation's API server behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mooring.config import KubeSchedulerConfiguration, default_config
from mooring.framework.api import ApiWriter
from mooring.live.clock import WallClock
from mooring.live.driver import Driver, DriverParts
from mooring.live.metrics import LiveMetrics
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.scheduler.choosing import SeededSpread, TieBreak
from mooring.sim.api import SimApi
from tests.engine import registry_with


class Cluster:
    """An API server in memory, and a driver that watches it."""

    def __init__(
        self,
        *objects: KubeObject,
        config: KubeSchedulerConfiguration | None = None,
        writer: Callable[[SimApi], ApiWriter] = lambda api: api,
        plugins: dict[str, type] | None = None,
        may_write: Callable[[], bool] = lambda: True,
        tie_break: TieBreak | None = None,
    ) -> None:
        self.api = SimApi(asyncio.get_running_loop(), WallClock())
        self.metrics = LiveMetrics()
        self.fatal: list[str] = []
        parts = DriverParts(
            clock=WallClock(),
            writer=writer(self.api),
            metrics=self.metrics,
            may_write=may_write,
            on_fatal=self.fatal.append,
            make_registry=lambda: registry_with(plugins),
            tie_break=tie_break or SeededSpread(0),
        )
        self.driver = Driver(config or default_config(), parts)
        self.api.watch(self.driver)
        for obj in objects:
            self.api.create(obj)

    def node_of(self, name: str) -> str:
        pod = self.api.get(Pod, f"default/{name}")
        assert pod is not None
        return pod.node_name

    async def until(self, holds: Callable[[], object], what: str = "it holds") -> None:
        """Let the loop turn until something holds; fails if it takes too long."""
        async with asyncio.timeout(10):
            while not holds():  # noqa: ASYNC110 - there is nothing to be told by
                await asyncio.sleep(0)
        assert holds(), what

    async def turns(self, count: int = 50) -> None:
        for _ in range(count):
            await asyncio.sleep(0)
