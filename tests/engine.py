"""A scheduler without a driver: for tests that drive cycles by hand."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any

from mooring.config import KubeSchedulerConfiguration, default_config
from mooring.framework.interface import PluginFactory
from mooring.framework.silent_writer import SilentWriter
from mooring.objects.meta import KubeObject
from mooring.plugins.registry import BUILT_IN
from mooring.runtime.metrics import Metrics
from mooring.runtime.registry import Registry
from mooring.scheduler import engine
from mooring.scheduler.choosing import TieBreak, first_by_name
from mooring.scheduler.dependencies import Dependencies
from tests.clock import FakeClock


def discard(work: Coroutine[Any, Any, None]) -> None:
    """Binding and writing go nowhere: the test looks at what was decided."""
    work.close()


def registry_with(plugins: Mapping[str, PluginFactory] | None = None) -> Registry:
    return Registry({**BUILT_IN, **(plugins or {})}, installed={})


class Engine:
    """A scheduler and the handlers to tell it what happens."""

    def __init__(
        self,
        *objects: KubeObject,
        config: KubeSchedulerConfiguration | None = None,
        plugins: Mapping[str, PluginFactory] | None = None,
        keep_answers: bool = True,
        one_for_all: bool = True,
        tie_break: TieBreak = first_by_name,
        metrics: Metrics | None = None,
        keeps_reasons: bool = False,
    ) -> None:
        self.clock = FakeClock()
        self.decisions: list[Any] = []
        self.scheduler = engine.Engine(
            config or default_config(),
            Dependencies(
                clock=self.clock,
                writer=SilentWriter(),
                spawn=discard,
                registry=registry_with(plugins),
                metrics=metrics or Metrics(),
                tie_break=tie_break,
                keep_answers=keep_answers,
                one_for_all=one_for_all,
                keeps_reasons=keeps_reasons,
                on_decision=lambda _, decision: self.decisions.append(decision),
            ),
        )
        self.handlers = self.scheduler
        for obj in objects:
            self.handlers.added(obj)

    def placements(self) -> dict[str, str]:
        return {pod.key: pod.node_name for pod in self.scheduler.cluster.pods.values()}
