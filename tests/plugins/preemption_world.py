"""A cluster with its scheduler, in which preemption can be tried out and watched."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from mooring.config import load_config
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import ApiError, NotFound
from mooring.framework.api import Event, PodStatusPatch
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import PluginFactory, PostFilterResult
from mooring.framework.silent_writer import SilentWriter
from mooring.framework.status import Status
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugins import registry as built_in
from mooring.plugins.default_preemption import DefaultPreemption, PreemptionDetail
from mooring.runtime.framework import Framework
from mooring.runtime.metrics import Metrics
from mooring.runtime.registry import Registry
from mooring.scheduler.decision import Decision
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine
from mooring.scheduler.writes import carry_out
from tests.clock import FakeClock

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def at(minute: float) -> datetime:
    """A time, in minutes since the beginning."""
    return EPOCH + timedelta(minutes=minute)


class RecordingWriter(SilentWriter):
    """Writes down what it is asked to write; some pods' deletion or patch fails, or finds no pod."""

    def __init__(self) -> None:
        #: (what, `namespace/name`) of every write, in order.
        self.calls: list[tuple[str, str]] = []
        self.patches: dict[str, PodStatusPatch] = {}
        self.events: list[Event] = []
        self.failing: set[tuple[str, str]] = set()
        self.gone: set[tuple[str, str]] = set()

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        await self._write("patch", pod)
        self.patches[pod.key] = patch

    async def delete_pod(self, pod: Pod) -> None:
        await self._write("delete", pod)

    def record_event(self, event: Event) -> None:
        self.events.append(event)

    async def _write(self, what: str, pod: Pod) -> None:
        # As a real writer does, give way to others before the answer is there.
        await asyncio.sleep(0)
        self.calls.append((what, pod.key))
        if (what, pod.key) in self.gone:
            raise NotFound(f"pod {pod.key} not found")
        if (what, pod.key) in self.failing:
            raise ApiError(f"{what} of {pod.key} failed")


@dataclass
class World:
    """Nodes, pods and other objects; a pod that is not on a node is known but not queued."""

    nodes: Iterable[Node] = ()
    pods: Iterable[Pod] = ()
    others: Iterable[KubeObject] = ()
    args: dict[str, int] | None = None
    preemption: PluginFactory = DefaultPreemption
    extra: dict[str, PluginFactory] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = FakeClock(EPOCH.timestamp() + 3600)
        self.writer = RecordingWriter()
        #: Work that the scheduler started and that was not run yet.
        self.started: list[Coroutine[Any, Any, None]] = []
        self.scheduler = Engine(
            load_config(self._config()),
            Dependencies(
                clock=self.clock,
                writer=self.writer,
                spawn=self.started.append,
                registry=self._registry(),
                metrics=Metrics(),
                carry_out=lambda writes: carry_out(writes, self.writer, self.started.append),
                keep_answers=False,
            ),
        )
        self.handlers = self.scheduler
        for node in self.nodes:
            self.scheduler.cluster.add_node(node)
        for obj in self.others:
            self.scheduler.cluster.listers.put(obj)
        for pod in self.pods:
            self.add(pod)

    @property
    def framework(self) -> Framework:
        return self.scheduler.frameworks["default-scheduler"]

    @property
    def plugin(self) -> DefaultPreemption:
        (found,) = (
            call.plugin
            for call in self.framework.points[Point.POST_FILTER]
            if isinstance(call.plugin, DefaultPreemption)
        )
        return found

    def add(self, pod: Pod) -> None:
        self.scheduler.observed_pods[pod.key] = pod
        if pod.node_name:
            self.scheduler.cluster.add_pod(pod)
        else:
            self.scheduler.nominator.add(pod)

    def attempt(self, pod: Pod) -> tuple[Decision, CycleState]:
        """Look for a node; the pod exists from then on."""
        self.scheduler.observed_pods.setdefault(pod.key, pod)
        state = CycleState()
        search = self.scheduler.searches["default-scheduler"]
        snapshot = self.scheduler.cluster.snapshot()
        return search.schedule_pod(self.framework, state, pod, snapshot), state

    def decide(self, pod: Pod) -> tuple[PostFilterResult | None, Status]:
        """What preemption would do for a pod that fits nowhere."""
        decision, state = self.attempt(pod)
        assert decision.node_name is None, f"{pod.key} fits on {decision.node_name}"
        return self.plugin.decide(state, pod, decision.diagnosis)

    def post_filter(self, pod: Pod) -> tuple[PostFilterResult | None, Status]:
        decision, state = self.attempt(pod)
        assert decision.node_name is None, f"{pod.key} fits on {decision.node_name}"
        return self.framework.run_post_filters(state, pod, decision.diagnosis)

    def detail(self, pod: Pod) -> PreemptionDetail:
        result, _ = self.decide(pod)
        assert result is not None
        assert isinstance(result.detail, PreemptionDetail)
        return result.detail

    async def run_started(self) -> None:
        while self.started:
            await self.started.pop(0)

    def _config(self) -> dict[str, Any]:
        args = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "DefaultPreemptionArgs",
            **(self.args or {}),
        }
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "default-scheduler",
                    "pluginConfig": [{"name": "DefaultPreemption", "args": args}],
                    "plugins": {
                        "multiPoint": {
                            "enabled": [{"name": name} for name in self.extra],
                        }
                    },
                }
            ],
        }

    def _registry(self) -> Registry:
        classes = {
            **built_in.BUILT_IN,
            "DefaultPreemption": self.preemption,
            **self.extra,
        }
        return Registry(classes, installed={})


def names(pods: Iterable[Pod]) -> list[str]:
    return [pod.name for pod in pods]
