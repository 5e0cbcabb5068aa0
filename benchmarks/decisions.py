"""Decisions per second of the scheduling cycle, in process, every node looked at.

    python benchmarks/decisions.py [--nodes 1000 5000] [--pods 500] [--output json]

A decision is what `schedule_one` does for a pod that fits: pop, filter and score all nodes, choose, assume.
Binding writes nowhere. Each workload is checked before it is timed: every pod must be placed, and
constraints must hold. Machines differ and are noisy, so next to each figure stands a ratio: how many plain
passes of NumPy over the same columns (fit, least allocated, argmax) one decision costs in the same run.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mooring.config import default_config
from mooring.framework.clock import Timer
from mooring.framework.metrics import Metrics
from mooring.objects.manifests import decode_object
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.plugins.registry import default_registry
from mooring.scheduler.event_handlers import EventHandlers
from mooring.scheduler.scheduler import Scheduler, Surroundings
from mooring.sim.silence import SilentWriter

ZONES = 10


@dataclass(frozen=True, slots=True)
class Result:
    workload: str
    nodes: int
    pods: int
    decisions_per_s: float
    #: Median of a decision, over the median of the NumPy pass of the same run.
    passes_per_decision: float


class StoppedClock:
    def now(self) -> float:
        return 0.0

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        raise NotImplementedError("nothing waits in this benchmark")


def discard(work: Coroutine[Any, Any, None]) -> None:
    work.close()


def make_scheduler(nodes: int) -> tuple[Scheduler, EventHandlers]:
    scheduler = Scheduler(
        default_config(),
        Surroundings(
            clock=StoppedClock(),
            writer=SilentWriter(),
            spawn=discard,
            registry=default_registry(),
            metrics=Metrics(),
        ),
    )
    handlers = EventHandlers(scheduler)
    for i in range(nodes):
        handlers.added(make_node(i))
    return scheduler, handlers


def make_node(i: int) -> KubeObject:
    return decode_object(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"node-{i:05d}",
                "labels": {
                    "kubernetes.io/hostname": f"node-{i:05d}",
                    "topology.kubernetes.io/zone": f"zone-{i % ZONES}",
                },
            },
            "status": {"allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110"}},
        }
    )


def make_pods(prefix: str, count: int, spec: dict[str, Any]) -> Iterator[Pod]:
    for i in range(count):
        pod = decode_object(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{prefix}-{i}",
                    "namespace": "default",
                    "uid": f"{prefix}-{i}",
                    "labels": {"app": prefix},
                },
                "spec": {
                    "containers": [
                        {
                            "name": "app",
                            "image": "app",
                            "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}},
                        }
                    ],
                    **spec,
                },
            }
        )
        assert isinstance(pod, Pod)
        yield pod


WORKLOADS: dict[str, dict[str, Any]] = {
    "plain": {},
    "zone-spread": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "zone-spread"}},
            }
        ]
    },
    "hostname-anti-affinity": {
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"app": "hostname-anti-affinity"}},
                    }
                ]
            }
        }
    },
}


def measure(workload: str, nodes: int, pods: int) -> Result:
    scheduler, handlers = make_scheduler(nodes)
    warm_up = min(20, pods)
    for pod in make_pods(workload, pods + warm_up, WORKLOADS[workload]):
        handlers.added(pod)
    for _ in range(warm_up):
        scheduler.schedule_one()
    baseline_s = numpy_pass(scheduler)
    times_s = []
    for _ in range(pods):
        started = time.perf_counter()
        scheduler.schedule_one()
        times_s.append(time.perf_counter() - started)
    check(workload, scheduler, pods + warm_up)
    return Result(
        workload,
        nodes,
        pods,
        decisions_per_s=round(pods / sum(times_s), 1),
        passes_per_decision=round(statistics.median(times_s) / baseline_s, 2),
    )


def check(workload: str, scheduler: Scheduler, pods: int) -> None:
    """A run that went wrong is not worth timing."""
    placed = list(scheduler.cluster.pods.values())
    assert len(placed) == pods, f"{workload}: {len(placed)} of {pods} pods placed"
    if workload == "zone-spread":
        zones = Counter(int(pod.node_name[5:]) % ZONES for pod in placed)
        assert max(zones.values()) - min(zones.values()) <= 1, zones
    if workload == "hostname-anti-affinity":
        assert len({pod.node_name for pod in placed}) == pods
    scheduler.cluster.validate()


def numpy_pass(scheduler: Scheduler) -> float:
    """The yardstick: fit, least allocated over two resources, argmax; median seconds."""
    columns = scheduler.cluster.snapshot().columns
    allocatable = columns.allocatable[:2, : columns.size].copy()
    requested = columns.non_zero[:2, : columns.size].copy()
    request = np.array([[100], [200 << 20]])
    times_s = []
    for _ in range(50):
        started = time.perf_counter()
        free = allocatable - requested
        fits = (free >= request).all(axis=0)
        scores = ((free - request) * 100 // allocatable).sum(axis=0) // 2
        np.where(fits, scores, -1).argmax()
        times_s.append(time.perf_counter() - started)
    return statistics.median(times_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--output", choices=["table", "json"], default="table")
    options = parser.parse_args()
    results = [
        measure(workload, nodes, min(options.pods, nodes - 20))
        for nodes in options.nodes
        for workload in WORKLOADS
    ]
    if options.output == "json":
        machine = f"{platform.machine()}, Python {platform.python_version()}"
        print(json.dumps({"machine": machine, "results": [asdict(r) for r in results]}, indent=2))
        return
    print(f"{'workload':<24}{'nodes':>7}{'pods':>7}{'decisions/s':>14}{'NumPy passes each':>20}")
    for result in results:
        print(
            f"{result.workload:<24}{result.nodes:>7}{result.pods:>7}"
            f"{result.decisions_per_s:>14,.0f}{result.passes_per_decision:>20}"
        )


if __name__ == "__main__":
    main()
