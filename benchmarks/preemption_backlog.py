"""How long preemption takes when many pods need room, from the first attempt to the last.

    python -m benchmarks.preemption_backlog [--nodes 5000 15000] [--pods 200] [--situations one-kind …]

Every node is full of pods of lower priority, and pods that matter more come all at once. Each tries, finds
victims, waits until they are gone and takes their place. Times are processor time: of the attempts (all of a
pod's), and of what happens between them (evictions, their events, the queue). At the end comes one pod of
another kind, of which nothing is known.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

import msgspec

from benchmarks.driver import Driver
from benchmarks.manifests import Template, affinity_term, make, make_node, node_name
from mooring.objects.kinds import PodDisruptionBudget
from mooring.objects.meta import KubeObject
from mooring.objects.well_known import HOSTNAME

_PRIORITY = 10
_BOUND_PER_NODE = 4
_BUDGETS = 20

_HIGH = Template({"app": "high"}, cpu_milli=3000, priority=_PRIORITY)
_OTHER = Template({"app": "other"}, cpu_milli=3100, priority=_PRIORITY)


def _apart(cpu_milli: int) -> Template:
    return Template(
        {"app": "apart"},
        cpu_milli=cpu_milli,
        priority=_PRIORITY,
        affinity={
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    affinity_term({"app": "apart"}, HOSTNAME)
                ]
            }
        },
    )


_APART, _OTHER_APART = _apart(3000), _apart(3100)


@dataclass(frozen=True, slots=True)
class Situation:
    name: str
    says: str
    #: The n-th pod that comes.
    template: Callable[[int], Template] = lambda _: _HIGH
    #: Whether the bound pods are covered by budgets, which change after each eviction.
    budgets: bool = False
    #: The pod of another kind that comes last.
    other: Template = _OTHER


def _kinds(count: int) -> Callable[[int], Template]:
    templates = [
        Template({"app": f"high-{i}"}, cpu_milli=2800 + i, priority=_PRIORITY) for i in range(count)
    ]
    return lambda n: templates[n % count]


SITUATIONS = {
    each.name: each
    for each in (
        Situation("one-kind", "the pods of one controller"),
        Situation("4-kinds", "the pods of four controllers, in turn", _kinds(4)),
        Situation("40-kinds", "the pods of forty controllers, in turn", _kinds(40)),
        Situation("budgets", "disruption budgets change after each eviction", budgets=True),
        Situation(
            "apart",
            "pods with anti-affinity, which columns do not show",
            lambda _: _APART,
            other=_OTHER_APART,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Measured:
    """Milliseconds of processor time."""

    situation: str
    nodes: int
    bound: int
    pods: int
    #: How many found a place.
    placed: int
    #: The first attempt of all.
    first_ms: float
    #: All other attempts, and what happens between attempts, by pod.
    attempts_ms: float
    between_ms: float
    longest_ms: float
    #: The first attempt of a pod of another kind, at the end.
    another_kind_ms: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[5000, 15_000])
    parser.add_argument("--pods", type=int, default=200, help="that need room")
    parser.add_argument(
        "--situations", nargs="+", choices=list(SITUATIONS), default=list(SITUATIONS)
    )
    parser.add_argument("--output", choices=["table", "json"], default="table")
    options = parser.parse_args(arguments)
    results = []
    for nodes in options.nodes:
        for name in options.situations:
            results.append(measure(SITUATIONS[name], nodes, options.pods))
            if options.output == "table":
                print(_line(results[-1]), flush=True)
    if options.output == "json":
        print(json.dumps([asdict(result) for result in results], indent=2))
    return 0


def measure(situation: Situation, nodes: int, pods: int) -> Measured:
    with Driver(_full_cluster(situation, nodes)) as driver:
        incoming = [situation.template(n).pod(f"pod-{n:05d}") for n in range(pods)]
        driver.create(incoming)
        attempts_s: list[float] = []
        between_s = 0.0
        budgets = _Budgets(driver) if situation.budgets else None
        while True:
            started = time.process_time()
            if not driver.scheduler.schedule_one():
                break
            attempts_s.append(time.process_time() - started)
            started = time.process_time()
            driver.settle()
            between_s += time.process_time() - started
            if budgets is not None:
                budgets.follow()
        placements = driver.placements()
        another_s = _first_of_another_kind(driver, situation)
        driver.scheduler.validate()
    return Measured(
        situation=situation.name,
        nodes=nodes,
        bound=nodes * _BOUND_PER_NODE,
        pods=pods,
        placed=sum(pod.key in placements for pod in incoming),
        first_ms=round(1000 * attempts_s[0], 2),
        attempts_ms=round(1000 * sum(attempts_s[1:]) / pods, 3),
        between_ms=round(1000 * between_s / pods, 3),
        longest_ms=round(1000 * max(attempts_s[1:]), 2),
        another_kind_ms=round(1000 * another_s, 2),
    )


def _first_of_another_kind(driver: Driver, situation: Situation) -> float:
    driver.create([situation.other.pod("of-another-kind")])
    # Or the time would depend on how much garbage the pods before have left.
    gc.collect()
    started = time.process_time()
    driver.scheduler.schedule_one()
    return time.process_time() - started


def _full_cluster(situation: Situation, nodes: int) -> Iterator[KubeObject]:
    templates = [Template({"app": f"low-{i}"}, cpu_milli=900) for i in range(_BUDGETS)]
    for i in range(nodes):
        yield make_node(i)
    for n in range(nodes * _BOUND_PER_NODE):
        pod = templates[n % _BUDGETS].pod(f"bound-{n:06d}")
        yield pod.placed_on(node_name(n % nodes))
    if situation.budgets:
        for i in range(_BUDGETS):
            yield make(
                {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": {"name": f"budget-{i}", "namespace": "default", "uid": f"b-{i}"},
                    "spec": {"selector": {"matchLabels": {"app": f"low-{i}"}}},
                    "status": {"disruptionsAllowed": 5 if i % 2 else 1000},
                }
            )


class _Budgets:
    """As the disruption controller, after victims are gone."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._left = self._count()

    def follow(self) -> None:
        left = self._count()
        api = self._driver.api
        for budget in list(api.all(PodDisruptionBudget)):
            app = f"low-{budget.name.removeprefix('budget-')}"
            gone = self._left[app] - left[app]
            if gone:
                allowed = max(0, budget.status.disruptions_allowed - gone)
                status = msgspec.structs.replace(budget.status, disruptions_allowed=allowed)
                api.update(msgspec.structs.replace(budget, status=status))
        self._left = left
        self._driver.settle()

    def _count(self) -> dict[str, int]:
        left = dict.fromkeys((f"low-{i}" for i in range(_BUDGETS)), 0)
        for pod in self._driver.scheduler.cluster.pods.values():
            app = pod.labels["app"]
            if app in left:
                left[app] += 1
        return left


def _line(m: Measured) -> str:
    return (
        f"{m.situation:<10}{m.nodes:>6} nodes{m.pods:>6} pods, {m.placed} placed: first {m.first_ms:.1f} ms, "
        f"then {m.attempts_ms:.2f} ms a pod, longest {m.longest_ms:.1f}, between {m.between_ms:.2f}; "
        f"first of another kind {m.another_kind_ms:.1f} ms"
    )


if __name__ == "__main__":
    sys.exit(main())
