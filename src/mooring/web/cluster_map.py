"""The nodes and pods of a run as columns. API.md describes the format.

Columns of 50,000 pods take two or three megabytes (a few hundred kilobytes compressed). A browser would need
seconds to read one object per pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mooring.cluster.device_classes import DEVICE_CLASS_PREFIX
from mooring.cluster.device_usage import DeviceUsage
from mooring.explain.reasons import cause_data
from mooring.framework.changes import taint_text
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from mooring.objects.requests import CPU, MEMORY, PODS, amounts
from mooring.objects.well_known import ZONE
from mooring.sim.report import Pending, unit_of
from mooring.web.codes import Codes
from mooring.web.devices import map_devices
from mooring.web.places import WAITING, Places
from mooring.web.run import Run
from mooring.web.run_spec import RunSpec
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
    usage = DeviceUsage(run.simulation.scheduler.cluster)
    data = {
        "resources": [{"name": name, "unit": unit_of(name)} for name in resources],
        "groupKeys": group_keys(nodes),
        "groupBy": first_group_key(nodes),
        **_nodes(nodes, _Labels(strings, label_sets), _usages(run, resources)),
        "pods": _pods(
            run.pods,
            _Labels(strings, label_sets),
            _Shapes(resources, run.devices_of_pods(usage), shapes),
            places=run.places.places,
            states=_states(run),
        ),
        "devices": map_devices(run.places, usage.devices, strings),
        "states": STATES,
        "pending": _pending(run, strings),
        "gangs": _gangs(run),
        "opensAt": opening_step(run),
        "measures": run.measures.to_data(),
    }
    return {
        **data,
        "strings": strings.values,
        "labelSets": label_sets.values,
        "shapes": shapes.values,
    }


def start_map_data(run_spec: RunSpec) -> dict[str, Any]:
    """The cluster as it is put in, to be looked at while the simulation runs."""
    strings: Codes[str] = Codes()
    strings.code("")
    label_sets: Codes[tuple[int, ...]] = Codes()
    shapes: Codes[tuple[int, ...]] = Codes()
    labels = _Labels(strings, label_sets)
    nodes, pods, places = run_spec.nodes, run_spec.pods, Places.of((), run_spec)
    asked = sorted({name for pod in pods for name, amount in pod.held.items() if amount})
    resources = [CPU, MEMORY, PODS, *(name for name in asked if name not in (CPU, MEMORY, PODS))]
    finished = STATES.index("finished")
    states = {i: finished for i, pod in enumerate(pods) if pod.finished}
    states |= {i: STATES.index("queued") for i, at in enumerate(places.start) if at == WAITING}
    data = {
        "resources": [{"name": name, "unit": unit_of(name)} for name in resources],
        "groupKeys": group_keys(nodes),
        "groupBy": first_group_key(nodes),
        **_nodes(nodes, labels, _start_usages(nodes, pods, places, resources)),
        "pods": _pods(
            pods, labels, _Shapes(resources, {}, shapes), places=places.start, states=states
        ),
        "start": places.start,
        "devices": map_devices(places, (), strings),
        "states": STATES,
        "pending": _pending_columns((), places, {}, strings),
        "gangs": [],
        "opensAt": None,
        "measures": None,
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


def first_group_key(nodes: Sequence[Node]) -> str:
    """What the map is grouped by until somebody chooses; empty if all nodes would be in one group."""
    key = next(iter(group_keys(nodes)), "")
    alike = len({node.labels.get(key) for node in nodes}) < 2
    return "" if alike and key != ZONE else key


class _Labels:
    def __init__(self, strings: Codes[str], sets: Codes[tuple[int, ...]]) -> None:
        self.strings = strings
        self._sets = sets

    def code(self, labels: Mapping[str, str]) -> int:
        return self._sets.code(
            tuple(self.strings.code(word) for pair in labels.items() for word in pair)
        )


class _Shapes:
    """What pods hold of each resource; of device classes, what they have or had."""

    def __init__(
        self,
        resources: Sequence[str],
        devices: Mapping[str, Mapping[str, int]],
        shapes: Codes[tuple[int, ...]],
    ) -> None:
        self._resources = resources
        #: Pod key → device class → devices.
        self._devices = devices
        self._shapes = shapes

    def code(self, pod: Pod) -> int:
        return self._shapes.code(tuple(self._amount(pod, name) for name in self._resources))

    def _amount(self, pod: Pod, resource: str) -> int:
        if resource.startswith(DEVICE_CLASS_PREFIX):
            return self._devices.get(pod.key, {}).get(resource.removeprefix(DEVICE_CLASS_PREFIX), 0)
        return 1 if resource == PODS else pod.held.get(resource, 0)


def _resources(run: Run) -> list[str]:
    reported = [usage.resource for usage in run.report.totals]
    return reported or [CPU, MEMORY, PODS]


class _Usages(NamedTuple):
    """By resource, then node."""

    allocatable: list[list[int]]
    requested: list[list[int]]


def _usages(run: Run, resources: Sequence[str]) -> _Usages:
    usages = [each.usages for each in run.report.utilisation]
    return _Usages(
        [[each[r].allocatable for each in usages] for r in range(len(resources))],
        [[each[r].requested for each in usages] for r in range(len(resources))],
    )


def _start_usages(
    nodes: Sequence[Node], pods: Sequence[Pod], places: Places, resources: Sequence[str]
) -> _Usages:
    capacities = [{**amounts(node.status.allocatable), PODS: _pods_allowed(node)} for node in nodes]
    requested = [[0] * len(nodes) for _ in resources]
    for pod, place in zip(pods, places.start, strict=True):
        if place >= 0:
            for r, name in enumerate(resources):
                requested[r][place] += 1 if name == PODS else pod.held.get(name, 0)
    return _Usages([[each.get(name, 0) for each in capacities] for name in resources], requested)


def _pods_allowed(node: Node) -> int:
    allowed = node.status.allocatable.get(PODS)
    return 0 if allowed is None else allowed.value


def _nodes(nodes: Sequence[Node], labels: _Labels, usages: _Usages) -> dict[str, Any]:
    taint_sets: Codes[tuple[str, ...]] = Codes()
    taint_sets.code(())
    columns = {
        "name": [node.name for node in nodes],
        "labels": [labels.code(node.labels) for node in nodes],
        "taints": [taint_sets.code(tuple(map(taint_text, node.taints))) for node in nodes],
        "cordoned": [int(node.spec.unschedulable) for node in nodes],
        "allocatable": usages.allocatable,
        "requested": usages.requested,
    }
    return {"nodes": columns, "taintSets": taint_sets.values}


def _pods(
    pods: Sequence[Pod],
    labels: _Labels,
    shapes: _Shapes,
    *,
    places: Sequence[int],
    states: Mapping[int, int],
) -> dict[str, Any]:
    strings = labels.strings
    return {
        "name": [pod.name for pod in pods],
        "namespace": [strings.code(pod.namespace) for pod in pods],
        "node": [max(place, WAITING) for place in places],
        "shape": [shapes.code(pod) for pod in pods],
        "priority": [pod.priority for pod in pods],
        "labels": [labels.code(pod.labels) for pod in pods],
        "state": [states.get(i, 0) for i in range(len(pods))],
        "workload": [strings.code(workload_name(pod)) for pod in pods],
        "gang": [strings.code(pod.group_key) for pod in pods],
    }


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


def _gangs(run: Run) -> list[dict[str, Any]]:
    """The pod groups that have pods, in the order of their names."""
    named = {pod.group_key for pod in run.pods}
    listers = run.simulation.scheduler.cluster.listers
    gangs = []
    for group in sorted(listers.all(PodGroup), key=lambda group: group.key):
        if group.key in named:
            condition = group.condition(POD_GROUP_SCHEDULED)
            gangs.append(
                {
                    "name": group.key,
                    "minCount": group.min_count,
                    "topologyKey": group.topology_key,
                    "message": condition.message if condition is not None else "",
                }
            )
    return gangs


def _pending(run: Run, strings: Codes[str]) -> dict[str, Any]:
    return _pending_columns(run.report.unplaced, run.places, run.plugins_by_reason, strings)


def _pending_columns(
    pending: Sequence[Pending], places: Places, plugins: dict[str, str], strings: Codes[str]
) -> dict[str, Any]:
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
