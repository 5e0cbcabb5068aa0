"""What a plugin in Python costs at 5,000 nodes, by how it is written.

    python -m benchmarks.plugin_cost [--nodes 5000]

One policy in five forms: a Filter on a label and a Score that counts pods. All forms must place every pod
alike, or nothing is printed. Processor time of a decision, and its ratio to the default profile, which takes
turns with it in the same run.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping

import numpy as np

from benchmarks import answers
from benchmarks.manifests import Template, make_node
from mooring.config import load_config
from mooring.framework.silent_writer import SilentWriter
from mooring.objects.pod import Pod
from mooring.objects.well_known import ZONE
from mooring.plugin import (
    SUCCESS,
    Columns,
    CycleState,
    Depends,
    Handle,
    Ints,
    NodeInfo,
    PodsColumn,
    Rows,
    RowVerdicts,
    Status,
    by_mask,
    unresolvable,
)
from mooring.plugins.registry import BUILT_IN
from mooring.runtime.metrics import Metrics
from mooring.runtime.registry import Registry
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine
from mooring.sim.clock import VirtualClock, VirtualLoop

CLOSED_ZONE = "zone-3"
CLOSED = unresolvable("node(s) are in a closed zone")
COLUMN = "measured_pods"
KINDS = 4


def is_measured(pod: Pod) -> bool:
    return pod.name.startswith("pod-")


class PerNode:
    """A method for a node, and nothing more."""

    name = "Policy"

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return CLOSED if node.labels.get(ZONE) == CLOSED_ZONE else SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return max(0, 100 - 10 * len(node.pods))


class ByRows(PerNode):
    """All rows at once as well."""

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        zones = columns.label(ZONE)
        return by_mask(zones.codes[rows] != zones.code_of(CLOSED_ZONE), CLOSED)

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores: Ints = np.maximum(0, 100 - 10 * columns.pod_count[rows])
        return scores


class _Declared:
    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {}


class PerNodeDeclared(_Declared, PerNode):
    """Per node, with a declared dependence."""


class ByRowsDeclared(_Declared, ByRows):
    """Rows, with a declared dependence."""


class OwnColumn(ByRowsDeclared):
    """The same with a column of its own, which counts the same pods."""

    own_columns = (PodsColumn(COLUMN, of=is_measured),)

    def __init__(self, args: object, handle: Handle) -> None:
        self._pods = handle.column(COLUMN)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return max(0, 100 - 10 * int(self._pods.at(node)))

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        scores: Ints = np.maximum(0, 100 - 10 * columns.own(COLUMN)[rows])
        return scores


FORMS: dict[str, type | None] = {
    "the default profile": None,
    "per node": PerNode,
    "rows": ByRows,
    "per node, declared dependence": PerNodeDeclared,
    "rows, declared dependence": ByRowsDeclared,
    "rows, declared dependence, own column": OwnColumn,
}


class Trial:
    """One form on a cluster of its own."""

    def __init__(self, plugin: type | None, nodes: int) -> None:
        enabled = [{"name": "Policy", "weight": 2}] if plugin is not None else []
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
        }
        known = dict(BUILT_IN)
        if plugin is not None:
            known["Policy"] = plugin
        self._engine = Engine(
            load_config(config),
            Dependencies(
                clock=VirtualClock(VirtualLoop(), 0.0),
                writer=SilentWriter(),
                spawn=lambda work: work.close(),
                registry=Registry(known, installed={}),
                metrics=Metrics(),
            ),
        )
        self._engine.load(make_node(i) for i in range(nodes))
        self._templates = [
            Template({"app": f"app-{kind}"}, cpu_milli=100 + 10 * kind) for kind in range(KINDS)
        ]
        self.placed: dict[str, str] = {}
        self._count = 0

    def round(self, pods: int) -> float:
        """Place pods of several kinds in turn; processor seconds for one of them."""
        made = []
        for _ in range(pods):
            made.append(self._templates[self._count % KINDS].pod(f"pod-{self._count:06d}"))
            self._count += 1
        started = time.process_time()
        for pod in made:
            node = self._engine.decide(pod).node_name
            if node is not None:
                self._engine.cluster.add_pod(pod.placed_on(node))
                self.placed[pod.name] = node
        return (time.process_time() - started) / pods


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20, help="pods of one round")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    trials = {form: Trial(plugin, options.nodes) for form, plugin in FORMS.items()}
    spent: dict[str, list[float]] = {form: [] for form in trials}
    for number in range(options.rounds + 1):
        for form, trial in trials.items():
            spent_s = trial.round(options.pods)
            # The first round fills what is kept.
            if number:
                spent[form].append(spent_s)
    policies = [trial.placed for form, trial in trials.items() if FORMS[form] is not None]
    for placed in policies[1:]:
        answers.same_as(policies[0], placed)
    base = statistics.median(spent["the default profile"])
    print(
        f"{options.nodes:,} nodes, {options.rounds} rounds of {options.pods} pods of {KINDS} kinds\n"
    )
    print("| | µs a decision | fastest and slowest round | ratio |")
    print("|---|---:|---:|---:|")
    for form, values in spent.items():
        us = [value * 1e6 for value in values]
        middle = statistics.median(us)
        ratio = middle / 1e6 / base
        print(f"| {form} | {middle:,.0f} | {min(us):,.0f} … {max(us):,.0f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
