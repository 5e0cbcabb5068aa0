"""The nodes and pods of a run as columns. API.md describes the format.

Columns of 50,000 pods take two or three megabytes (a few hundred kilobytes compressed). A browser would need
seconds to read one object per pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mooring.explain.changes import taint_text
from mooring.explain.reasons import cause_data
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.requests import CPU, MEMORY, PODS
from mooring.objects.well_known import ZONE
from mooring.sim.report import unit_of
from mooring.web.codes import Codes
from mooring.web.places import WAITING
from mooring.web.run import Run
from mooring.web.timeline import opening_step
from mooring.web.workloads import workload_name

STATES = (
    "running",
    "unschedulable",
    "gated",
    "ignored",
    "waiting",
    "queued",
    "error",
    "finished",
    "preempted",
    "deleted",
)

#: Labels with more values than this are not useful for groups.
_MOST_GROUPS = 200


def map_data(run: Run) -> dict[str, Any]:
    strings: Codes[str] = Codes()
    strings.code("")
    label_sets: Codes[tuple[int, ...]] = Codes()
    resources = _resources(run)
    nodes = run.run_spec.nodes
    shapes: Codes[tuple[int, ...]] = Codes()
    data = {
        "resources": [{"name": name, "unit": unit_of(name)} for name in resources],
        "groupKeys": group_keys(nodes),
        **_nodes(run, nodes, resources, _Labels(strings, label_sets)),
        "pods": _pods(run, _Labels(strings, label_sets), resources, shapes),
        "states": STATES,
        "pending": _pending(run, strings),
        "opensAt": opening_step(run),
        "measures": run.measures.to_data(),
    }
    return {
        **data,
        "strings": strings.values,
        "labelSets": label_sets.values,
        "shapes": shapes.values,
    }


def group_keys(nodes: Iterable[Node]) -> list[str]:
    """The zone first, then labels with few values. Labels that are unique to each node are left out."""
    values: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for node in nodes:
        for key, value in node.labels.items():
            values.setdefault(key, set()).add(value)
            counts[key] += 1
    useful = [
        key
        for key, found in values.items()
        if len(found) <= _MOST_GROUPS and (len(found) < counts[key] or len(found) == 1)
    ]
    return sorted(
        useful, key=lambda key: (key != ZONE, len(values[key]) == 1, len(values[key]), key)
    )


class _Labels:
    def __init__(self, strings: Codes[str], sets: Codes[tuple[int, ...]]) -> None:
        self.strings = strings
        self._sets = sets

    def code(self, labels: Mapping[str, str]) -> int:
        return self._sets.code(
            tuple(self.strings.code(word) for pair in labels.items() for word in pair)
        )


def _resources(run: Run) -> list[str]:
    reported = [usage.resource for usage in run.report.totals]
    return reported or [CPU, MEMORY, PODS]


def _nodes(
    run: Run, nodes: Sequence[Node], resources: Sequence[str], labels: _Labels
) -> dict[str, Any]:
    taint_sets: Codes[tuple[str, ...]] = Codes()
    taint_sets.code(())
    usages = [each.usages for each in run.report.utilisation]
    columns = {
        "name": [node.name for node in nodes],
        "labels": [labels.code(node.labels) for node in nodes],
        "taints": [taint_sets.code(tuple(map(taint_text, node.taints))) for node in nodes],
        "cordoned": [int(node.spec.unschedulable) for node in nodes],
        "allocatable": [[each[r].allocatable for each in usages] for r in range(len(resources))],
        "requested": [[each[r].requested for each in usages] for r in range(len(resources))],
    }
    return {"nodes": columns, "taintSets": taint_sets.values}


def _pods(
    run: Run, labels: _Labels, resources: Sequence[str], shapes: Codes[tuple[int, ...]]
) -> dict[str, Any]:
    pods, strings = run.pods, labels.strings
    states = _states(run)
    return {
        "name": [pod.name for pod in pods],
        "namespace": [strings.code(pod.namespace) for pod in pods],
        "node": [max(place, WAITING) for place in run.places.places],
        "shape": [shapes.code(_shape(pod, resources)) for pod in pods],
        "priority": [pod.priority for pod in pods],
        "labels": [labels.code(pod.labels) for pod in pods],
        "state": [states.get(i, 0) for i in range(len(pods))],
        "workload": [strings.code(workload_name(pod)) for pod in pods],
    }


def _shape(pod: Pod, resources: Sequence[str]) -> tuple[int, ...]:
    held = pod.held
    return tuple(1 if name == PODS else held.get(name, 0) for name in resources)


def _states(run: Run) -> dict[int, int]:
    """Pod index → state, for pods that are not running."""
    index = run.places.pod_index
    states = {pod: STATES.index(how) for pod, how in run.places.ended.items()}
    for preemption in run.report.preemptions:
        states.update({index[each.pod]: STATES.index("preempted") for each in preemption.victims})
    for pod in run.run_spec.pods:
        if pod.finished:
            states[index[pod.key]] = STATES.index("finished")
    states.update({index[each.pod]: STATES.index(each.state) for each in run.report.unplaced})
    return states


def _pending(run: Run, strings: Codes[str]) -> dict[str, Any]:
    pending, places = run.report.unplaced, run.places
    plugins = run.plugins_by_reason()
    causes: Codes[str] = Codes()
    return {
        "pod": [places.pod_index[each.pod] for each in pending],
        "state": [STATES.index(each.state) for each in pending],
        "message": [strings.code(each.message) for each in pending],
        "cause": [causes.code(each.message) for each in pending],
        "causes": [cause_data(message, plugins) for message in causes.values],
        "plugins": [[strings.code(name) for name in each.plugins] for each in pending],
        "sinceSeconds": [each.since_s for each in pending],
        "attempts": [each.attempts for each in pending],
        "nominatedNode": [places.node_index.get(each.nominated_node, -1) for each in pending],
    }
