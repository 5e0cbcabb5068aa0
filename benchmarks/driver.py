"""A scheduler in process: what a benchmark needs around it, and no more.

Objects go in through an API in memory, which tells the scheduler of them as a watch does. Bindings, status
patches and evictions are carried out when the benchmark says so (`settle`), inside or outside of what it
times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from mooring.config import default_config
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.plugins.registry import default_registry
from mooring.runtime.metrics import Metrics
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine
from mooring.scheduler.writes import carry_out
from mooring.sim.api import SimApi
from mooring.sim.clock import VirtualClock, VirtualLoop

_START_S = 1_767_225_600.0


class Driver:
    """A scheduler, the API it writes to, and virtual time."""

    def __init__(self, objects: Iterable[KubeObject] = (), *, keep_answers: bool = True) -> None:
        self._loop = VirtualLoop()
        clock = VirtualClock(self._loop, _START_S)
        self.api = SimApi(self._loop, clock)
        self._tasks: set[asyncio.Task[None]] = set()
        self.scheduler = Engine(
            default_config(),
            Dependencies(
                clock=clock,
                writer=self.api,
                spawn=self._spawn,
                registry=default_registry(),
                metrics=Metrics(),
                carry_out=lambda writes: carry_out(writes, self.api, self._spawn),
                keep_answers=keep_answers,
            ),
        )
        self.api.watch(self.scheduler)
        self.create(objects)

    def create(self, objects: Iterable[KubeObject]) -> None:
        for obj in objects:
            self.api.create(obj)
        self.settle()

    def delete(self, objects: Iterable[KubeObject]) -> None:
        for obj in objects:
            self.api.delete(obj)
        self.settle()

    def settle(self) -> None:
        """Carry out all that was begun, and let the scheduler hear of it."""
        self._loop.run_forever()
        self.api.events.clear()

    def placements(self) -> dict[str, str]:
        """The node of every pod that has one, by `namespace/name`."""
        return {pod.key: pod.node_name for pod in self.scheduler.cluster.pods.values()}

    def pod(self, name: str) -> Pod | None:
        """A pod as the API shows it."""
        return self.api.get(Pod, f"default/{name}")

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()
        self.scheduler.close()
        self._loop.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work, name="scheduler")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
