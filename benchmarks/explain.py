"""How long explanations take: the answer to "why?" on a cluster of many nodes, and its parts.

    python -m benchmarks.explain --nodes 1000 5000

A cluster of as many nodes, half of them full, with a pod that fits and one that fits nowhere. The engine is
there already, as it is when somebody asks twice; what it takes to read and simulate a cluster is measured
elsewhere. Each time is the median of several, in seconds of processor time. The answers are checked first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from mooring.explain.counterfactuals import find_counterfactuals
from mooring.explain.explanation import Explainer, explainer_for
from mooring.objects.manifests import decode_object
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

_PENDING, _FITTING = "default/pending", "default/fitting"


@dataclass(frozen=True, slots=True)
class Times:
    """Of one size of cluster."""

    nodes: int
    pending_s: float
    fitting_s: float
    one_node_s: float
    json_s: float
    counterfactuals_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 1000, 5000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="figures for programs")
    arguments = parser.parse_args()
    found = [measure(nodes, arguments.repeats) for nodes in arguments.nodes]
    if arguments.json:
        json.dump([asdict(each) for each in found], sys.stdout, indent=2)
        return
    print(
        f"{'nodes':>6} {'pending':>9} {'fitting':>9} {'one node':>9} {'as JSON':>9} {'would fit if':>13}"
    )
    for each in found:
        print(
            f"{each.nodes:>6,} {each.pending_s:>8.3f}s {each.fitting_s:>8.3f}s"
            f" {each.one_node_s:>8.3f}s {each.json_s:>8.3f}s {each.counterfactuals_s:>12.3f}s"
        )


def measure(nodes: int, repeats: int) -> Times:
    with explainer_for(list(cluster(nodes)), as_read=True) as explainer:
        check(explainer, nodes)
        last = f"n-{nodes - 1:05}"
        return Times(
            nodes=nodes,
            pending_s=timed(lambda: explainer.explain(_PENDING), repeats),
            fitting_s=timed(lambda: explainer.explain(_FITTING), repeats),
            one_node_s=timed(lambda: explainer.explain(_PENDING).node_view(last), repeats),
            json_s=timed(lambda: explainer.explain(_PENDING).to_data(), repeats),
            counterfactuals_s=timed(
                lambda: find_counterfactuals(explainer.what_if, _PENDING, budget_s=60.0), repeats
            ),
        )


def check(explainer: Explainer, nodes: int) -> None:
    """What is measured must be the answer."""
    pending, fitting = explainer.explain(_PENDING), explainer.explain(_FITTING)
    assert not pending.fits
    assert pending.matrix is not None
    assert len(pending.to_data()["nodes"]) == nodes
    assert fitting.fits
    assert fitting.node


def timed(work: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def cluster(nodes: int) -> Iterator[KubeObject]:
    """Three zones, every tenth node tainted, every other one full."""
    for i in range(nodes):
        name = f"n-{i:05}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"z-{i % 3}"}
        taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}] if i % 10 == 0 else []
        yield decode_object(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": name, "uid": name, "labels": labels},
                "spec": {"taints": taints},
                "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
            }
        )
        if i % 2:
            yield pod(f"filling-{i}", cpu="7", node=name)
    yield pod("pending", cpu="9")
    yield pod("fitting", cpu="2")


def pod(name: str, *, cpu: str, node: str = "") -> KubeObject:
    """Spread over the zones, so that the slower plugins take part."""
    spread = {
        "maxSkew": 5,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "asked"}},
    }
    obj = decode_object(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": name,
                "labels": {"app": "filling" if node else "asked"},
            },
            "spec": {
                "nodeName": node,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}],
                "topologySpreadConstraints": [] if node else [spread],
            },
        }
    )
    assert isinstance(obj, Pod)
    return obj


if __name__ == "__main__":
    main()
