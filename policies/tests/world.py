"""A scheduler with one policy in it: tests call the policy by hand, or let the scheduler work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar, cast

from mooring.cluster.snapshot import Snapshot
from mooring.config import load_config
from mooring.objects.meta import KubeObject
from mooring.objects.pod import DEFAULT_SCHEDULER
from tests.engine import Engine

P = TypeVar("P")

#: The time at which the clock of a World stands.
START = datetime.fromtimestamp(1000.0, UTC)


class World(Generic[P]):
    """A cluster of these objects, and the policy as its configuration builds it."""

    def __init__(
        self,
        policy: type[P],
        *objects: KubeObject,
        args: Mapping[str, Any] | None = None,
        sorts_queue: bool = False,
        disabled: Iterable[str] = (),
        keep_answers: bool = True,
    ) -> None:
        name = cast(Any, policy).name
        plugins: dict[str, Any] = {
            "multiPoint": {
                "enabled": [{"name": name}],
                "disabled": [{"name": each} for each in disabled],
            }
        }
        if sorts_queue:
            plugins["queueSort"] = {"enabled": [{"name": name}], "disabled": [{"name": "*"}]}
        config = load_config(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [
                    {
                        "schedulerName": DEFAULT_SCHEDULER,
                        "plugins": plugins,
                        "pluginConfig": [{"name": name, "args": args}] if args is not None else [],
                    }
                ],
            }
        )
        self.engine = Engine(
            *objects,
            config=config,
            plugins={name: cast(Any, policy)},
            keep_answers=keep_answers,
            one_for_all=keep_answers,
        )
        self.scheduler = self.engine.scheduler
        self.clock = self.engine.clock
        self.framework = self.scheduler.frameworks[DEFAULT_SCHEDULER]
        calls = (call for calls in self.framework.points.values() for call in calls)
        self.policy: P = next(call.plugin for call in calls if isinstance(call.plugin, policy))

    @property
    def snapshot(self) -> Snapshot:
        return self.scheduler.cluster.snapshot()

    def add(self, *objects: KubeObject) -> None:
        for obj in objects:
            self.scheduler.added(obj)

    def schedule_all(self) -> dict[str, str]:
        """Try every pod that is ready; where each pod is."""
        while self.scheduler.schedule_one():
            pass
        return self.engine.placements()
