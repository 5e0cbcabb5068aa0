"""A scheduler whose attempts are made one by one, with a writer that remembers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from mooring.config import KubeSchedulerConfiguration, load_config
from mooring.framework.api import Event, PodStatusPatch
from mooring.framework.silent_writer import SilentWriter
from mooring.objects.pod import Pod
from mooring.runtime.metrics import Metrics
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine
from mooring.scheduler.writes import Writes, carry_out
from tests.clock import FakeClock
from tests.engine import registry_with
from tests.makers import make_node


class Recorder(SilentWriter):
    """A writer that remembers."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.patches: list[tuple[str, PodStatusPatch]] = []
        self.bound: list[tuple[str, str]] = []

    async def bind(self, pod: Pod, node_name: str) -> None:
        self.bound.append((pod.key, node_name))

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        self.patches.append((pod.key, patch))

    def record_event(self, event: Event) -> None:
        self.events.append(event)


class World:
    def __init__(self, *plugins: type, config: KubeSchedulerConfiguration | None = None) -> None:
        self.clock = FakeClock()
        self.writer = Recorder()
        #: What the scheduler had to write, attempt by attempt.
        self.writes: list[Writes] = []
        self.spawned: list[Coroutine[Any, Any, None]] = []
        self.scheduler = Engine(
            config or config_with(*(plugin.__name__ for plugin in plugins)),
            Dependencies(
                clock=self.clock,
                writer=self.writer,
                spawn=self.spawned.append,
                registry=registry_with({plugin.__name__: plugin for plugin in plugins}),
                metrics=Metrics(),
                carry_out=self._carry_out,
            ),
        )
        self.handlers = self.scheduler

    def _carry_out(self, writes: Writes) -> None:
        self.writes.append(writes)
        carry_out(writes, self.writer, self.spawned.append)

    def with_node(self, name: str = "n", **offers: Any) -> World:
        self.handlers.added(make_node(name, **offers))
        return self

    def attempt(self, pod: Pod) -> None:
        self.handlers.added(pod)
        assert self.schedule_one()

    def schedule_one(self) -> bool:
        """An attempt, and all that it sets going: nothing in these tests waits."""
        worked = self.scheduler.schedule_one()
        while self.spawned:
            asyncio.run(self.spawned.pop(0))
        return worked

    @property
    def condition(self) -> tuple[str, str]:
        """(reason, message) of the last condition written."""
        conditions = [p.condition for _, p in self.writer.patches if p.condition is not None]
        return conditions[-1].reason, conditions[-1].message

    def where(self, pod: Pod) -> str:
        queue = self.scheduler.queue
        places = {
            "active": queue.active_pods(),
            "backoff": queue.backoff_pods(),
            "unschedulable": queue.unschedulable_pods(),
        }
        found = [name for name, pods in places.items() if any(q.uid == pod.uid for q in pods)]
        return found[0] if found else "nowhere"


def config_with(*names: str, **profile: Any) -> KubeSchedulerConfiguration:
    plugins = {"multiPoint": {"enabled": [{"name": name} for name in names]}}
    return load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": plugins, **profile}],
        }
    )
