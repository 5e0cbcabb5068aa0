"""What a plugin costs: decisions on a large cluster with it and without it, in processor time."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mooring.config import KubeSchedulerConfiguration
from mooring.framework.silent_writer import SilentWriter
from mooring.objects.decoding import decode_object
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.well_known import HOSTNAME, ZONE
from mooring.plugin_kit.subject import Subject
from mooring.plugin_kit.watch import Watch, watched
from mooring.plugin_kit.world import StillClock
from mooring.runtime.metrics import Metrics
from mooring.runtime.registry import Registry
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine

_KINDS = 3
_PODS_OF_A_KIND = 8
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor time of decisions, in microseconds."""

    nodes: int
    #: Decisions that were measured.
    decisions: int
    #: The default profile without the plugin, and with it.
    without_us: float
    with_us: float
    #: Method → what its calls cost for one decision.
    by_method_us: Mapping[str, float]

    @property
    def ratio(self) -> float:
        return self.with_us / self.without_us

    def to_data(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": round(self.ratio, 2)}


def measure_cost(subject: Subject, nodes: int) -> Cost:
    """Place pods of a few kinds, with the default profile and with the plugin beside it.

    A plugin of the default profile is compared with the profile without it. The two take turns, and the
    middle of several rounds counts: a machine is not equally fast all the time.
    """
    watch = Watch()
    config, objects = subject.beside_the_defaults(), _nodes(nodes)
    base = _Trial(subject.defaults_without(), subject.registry(), objects)
    own = _Trial(config, subject.registry(), objects)
    seen = _Trial(config, subject.registry(watched(subject.plugin, watch)), objects)
    try:
        for trial in (base, own, seen):
            trial.round()
        watch.reset()
        rounds = [(base.round(), own.round()) for _ in range(_ROUNDS)]
        for _ in range(_ROUNDS):
            seen.round()
    finally:
        for trial in (base, own, seen):
            trial.close()
    count = _KINDS * _PODS_OF_A_KIND
    return Cost(
        nodes=nodes,
        decisions=count * _ROUNDS,
        without_us=_middle_us([without for without, _ in rounds], count),
        with_us=_middle_us([with_it for _, with_it in rounds], count),
        by_method_us={
            method: round(spent.cpu_s * 1e6 / count / _ROUNDS, 1)
            for method, spent in sorted(watch.spent.items())
        },
    )


def _middle_us(rounds_s: Sequence[float], count: int) -> float:
    return round(statistics.median(rounds_s) * 1e6 / count, 1)


class _Trial:
    """One profile on a cluster of its own."""

    def __init__(
        self,
        config: KubeSchedulerConfiguration,
        registry: Registry,
        objects: Sequence[KubeObject],
    ) -> None:
        self._engine = _engine(config, registry)
        self._engine.load(objects)
        self._count = 0

    def round(self) -> float:
        """Place some pods of each kind; seconds of processor time."""
        self._count += 1
        pods = _pods(f"pod-{self._count}", _PODS_OF_A_KIND)
        gc.collect()
        started = time.process_time()
        for pod in pods:
            _place(self._engine, pod)
        return time.process_time() - started

    def close(self) -> None:
        self._engine.close()


def _place(engine: Engine, pod: Pod) -> None:
    decision = engine.decide(pod)
    if decision.node_name is not None:
        engine.cluster.add_pod(pod.placed_on(decision.node_name))


def _engine(config: KubeSchedulerConfiguration, registry: Registry) -> Engine:
    return Engine(
        config,
        Dependencies(
            clock=StillClock(),
            writer=SilentWriter(),
            spawn=lambda work: work.close(),
            registry=registry,
            metrics=Metrics(),
        ),
    )


def _nodes(count: int) -> Sequence[KubeObject]:
    size = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return [
        decode_object(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": f"node-{i:05d}",
                    "uid": f"node-{i:05d}",
                    "labels": {
                        HOSTNAME: f"node-{i:05d}",
                        ZONE: f"zone-{i % 10}",
                        "disk": "ab"[i % 2],
                    },
                },
                "spec": {},
                "status": {"allocatable": size},
            }
        )
        for i in range(count)
    ]


def _pods(prefix: str, of_a_kind: int) -> list[Pod]:
    """Kinds take turns, as they do in a cluster with several controllers."""
    pods = []
    for number in range(of_a_kind):
        for kind in range(_KINDS):
            name = f"{prefix}-{kind}-{number}"
            requests = {"cpu": f"{100 * (kind + 1)}m", "memory": "256Mi"}
            pod = decode_object(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": name,
                        "namespace": "default",
                        "uid": name,
                        "labels": {"app": f"app-{kind}"},
                    },
                    "spec": {
                        "containers": [
                            {"name": "app", "image": "app:1", "resources": {"requests": requests}}
                        ]
                    },
                }
            )
            assert isinstance(pod, Pod)
            pods.append(pod)
    return pods
