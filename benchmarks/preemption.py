"""How long it takes to decide on preemption, in a full cluster, for one pod that matters more.

    python benchmarks/preemption.py --nodes 5000 --pods 20000

Each situation is decided twice: by the plugin as it is, and node by node (a subclass that overrides a hook
with what the hook does anyway, which is how one gets the plain path). The two answers must be equal before
anything is timed. A time is the median of the decisions taken after the first one, which counts every
node; the first is given too. It is processor time, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from mooring.cluster.node_info import NodeInfo
from mooring.config import default_config
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.framework.clock import Timer
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import PluginFactory, PostFilterResult
from mooring.framework.silent_writer import SilentWriter
from mooring.framework.status import Status
from mooring.objects.meta import ObjectMeta
from mooring.objects.node import Node, NodeStatus
from mooring.objects.pod import (
    Affinity,
    Container,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from mooring.objects.quantity import parse_quantity
from mooring.objects.selectors import LabelSelector
from mooring.plugins import registry as plugin_registry
from mooring.plugins.default_preemption import DefaultPreemption, PreemptionDetail
from mooring.runtime.metrics import Metrics
from mooring.runtime.registry import Registry
from mooring.scheduler.decision import Decision
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine

_START = datetime(2026, 1, 1, tzinfo=UTC)
_CPU_PER_NODE_MILLI = 8000
_HIGH = 1000

Answer = tuple[PostFilterResult | None, Status]


class NodeByNode(DefaultPreemption):
    """The plain path: with a hook of its own, nothing can be known of many nodes at once."""

    def is_eligible_pod(self, node: NodeInfo, victim: Pod, preemptor: Pod) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Situation:
    """How the pods of the cluster, and the pod that comes, are made."""

    name: str
    says: str
    #: The priority of the n-th pod of a node.
    priority: Callable[[int], int]
    #: What the pod that comes asks for, as a share of a node.
    share: float = 0.4
    affinity: Affinity | None = None


_APART = Affinity(
    pod_anti_affinity=PodAffinity(
        required=[
            PodAffinityTerm(
                label_selector=LabelSelector(match_labels={"app": "critical"}),
                topology_key="kubernetes.io/hostname",
            )
        ]
    )
)

SITUATIONS = (
    Situation("room", "every node has enough pods of lower priority", lambda n: n % 3),
    Situation(
        "hopeless",
        "one pod of each node could go, which is not enough",
        lambda n: 0 if n == 0 else _HIGH,
        share=0.9,
    ),
    Situation("equals", "no pod has a lower priority", lambda n: _HIGH),
    Situation(
        "apart",
        "as room, for a pod with anti-affinity, which columns do not show",
        lambda n: n % 3,
        affinity=_APART,
    ),
)


@dataclass(frozen=True, slots=True)
class Measured:
    situation: str
    nodes: int
    pods: int
    says: str
    candidates: int
    first_ms: float
    decided_ms: float
    node_by_node_ms: float
    #: Of `decided_ms`: reading which nodes were refused in a way that preemption may undo.
    reading_statuses_ms: float

    @property
    def ratio(self) -> float:
        return self.node_by_node_ms / self.decided_ms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20_000, help="bound pods, spread evenly")
    parser.add_argument("--repeat", type=int, default=7, help="decisions to take the median of")
    parser.add_argument("--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    results = [
        measure(situation, options.nodes, options.pods, options.repeat) for situation in SITUATIONS
    ]
    write = _write_json if options.output == "json" else _write_table
    write(results)
    return 0


def measure(situation: Situation, nodes: int, pods: int, repeat: int) -> Measured:
    decision, state, fast = _attempt(situation, nodes, pods, DefaultPreemption)
    plain_decision, plain_state, plain = _attempt(situation, nodes, pods, NodeByNode)

    def decide() -> Answer:
        return fast.decide(state, decision.pod, decision.diagnosis)

    def decide_node_by_node() -> Answer:
        return plain.decide(plain_state, plain_decision.pod, plain_decision.diagnosis)

    first_s, answer = _timed(decide)
    if _as_data(answer) != _as_data(decide_node_by_node()):
        raise SystemExit(f"{situation.name}: many nodes at once do not say what each node says")
    status = answer[1]
    return Measured(
        situation=situation.name,
        nodes=nodes,
        pods=pods,
        says=status.message or "success",
        candidates=len(_detail(answer).candidates),
        first_ms=1000 * first_s,
        decided_ms=1000 * _median_s(decide, repeat),
        node_by_node_ms=1000 * _median_s(decide_node_by_node, max(1, repeat // 2)),
        reading_statuses_ms=1000
        * _median_s(lambda: decision.diagnosis.nodes_with(2), max(1, repeat // 2)),
    )


def _attempt(
    situation: Situation, nodes: int, pods: int, plugin: type[DefaultPreemption]
) -> tuple[Decision, CycleState, DefaultPreemption]:
    """A cluster in which the pod was just found to fit nowhere."""
    scheduler = _scheduler(plugin)
    each = max(1, pods // nodes)
    for i in range(nodes):
        scheduler.cluster.add_node(_node(f"node-{i}"))
        for n in range(min(each, pods - i * each)):
            scheduler.cluster.add_pod(
                _pod(
                    f"pod-{i}-{n}",
                    node=f"node-{i}",
                    cpu_milli=_CPU_PER_NODE_MILLI // each,
                    priority=situation.priority(n),
                    started=_START - timedelta(minutes=(7 * i + n) % 1000),
                )
            )
    pod = _pod(
        "critical",
        cpu_milli=int(_CPU_PER_NODE_MILLI * situation.share),
        priority=_HIGH,
        affinity=situation.affinity,
    )
    scheduler.observed_pods[pod.key] = pod
    (profile,) = scheduler.frameworks
    framework, state = scheduler.frameworks[profile], CycleState()
    decision = scheduler.searches[profile].schedule_pod(
        framework, state, pod, scheduler.cluster.snapshot()
    )
    if decision.node_name is not None:
        raise SystemExit(f"{situation.name}: the pod fits on {decision.node_name}; too few --pods")
    (preemption,) = (
        call.plugin
        for call in framework.points[Point.POST_FILTER]
        if isinstance(call.plugin, DefaultPreemption)
    )
    return decision, state, preemption


class _StoppedClock:
    def now(self) -> float:
        return _START.timestamp()

    def call_later(self, delay_s: float, callback: object) -> Timer:
        raise NotImplementedError("nothing waits here")


def _not_run(work: Coroutine[Any, Any, None]) -> None:
    work.close()


def _scheduler(plugin: type[DefaultPreemption]) -> Engine:
    classes: Mapping[str, PluginFactory] = {
        **plugin_registry.BUILT_IN,
        "DefaultPreemption": plugin,
    }
    return Engine(
        default_config(),
        Dependencies(
            clock=_StoppedClock(),
            writer=SilentWriter(),
            spawn=_not_run,
            registry=Registry(classes, installed={}),
            metrics=Metrics(),
        ),
    )


def _node(name: str) -> Node:
    allocatable = {
        "cpu": parse_quantity(f"{_CPU_PER_NODE_MILLI}m"),
        "memory": parse_quantity("32Gi"),
        "pods": parse_quantity("110"),
    }
    return Node(
        metadata=ObjectMeta(name=name, uid=name, labels={"kubernetes.io/hostname": name}),
        status=NodeStatus(allocatable=allocatable),
    )


def _pod(
    name: str,
    *,
    cpu_milli: int,
    priority: int,
    node: str = "",
    started: datetime | None = None,
    affinity: Affinity | None = None,
) -> Pod:
    requests = {"cpu": parse_quantity(f"{cpu_milli}m"), "memory": parse_quantity("256Mi")}
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=name, labels={"app": "web"}),
        spec=PodSpec(
            node_name=node,
            priority=priority,
            affinity=affinity,
            containers=[Container(resources=ResourceRequirements(requests=requests))],
        ),
        status=PodStatus(start_time=started),
    )


def _detail(answer: Answer) -> PreemptionDetail:
    result = answer[0]
    assert result is not None
    assert isinstance(result.detail, PreemptionDetail)
    return result.detail


def _as_data(answer: Answer) -> object:
    detail = _detail(answer)
    return (
        answer[1],
        detail.nominated_node,
        detail.tied,
        detail.rejected,
        {
            name: ([pod.key for pod in candidate.victims], candidate.violations)
            for name, candidate in detail.candidates.items()
        },
    )


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def _median_s(work: Callable[[], Any], repeat: int) -> float:
    return statistics.median(_timed(work)[0] for _ in range(repeat))


def _write_json(results: list[Measured]) -> None:
    data = [{**asdict(result), "ratio": result.ratio} for result in results]
    json.dump(data, sys.stdout, indent=2)
    print()


def _write_table(results: list[Measured]) -> None:
    print(f"{results[0].nodes} nodes, {results[0].pods} bound pods; milliseconds a decision")
    print(f"{'situation':<12}{'first':>9}{'then':>9}{'by node':>9}{'ratio':>7}   of it statuses")
    for r in results:
        print(
            f"{r.situation:<12}{r.first_ms:>9.1f}{r.decided_ms:>9.1f}{r.node_by_node_ms:>9.1f}"
            f"{r.ratio:>7.1f}   {r.reading_statuses_ms:>6.1f}   {r.candidates} candidates"
        )


if __name__ == "__main__":
    sys.exit(main())
