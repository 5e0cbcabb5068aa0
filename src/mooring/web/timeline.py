"""A run over virtual time: the places of pods, the events, and the measures of the cluster."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.device_classes import DEVICE_CLASS_PREFIX
from mooring.cluster.device_usage import DeviceUsage
from mooring.explain.measures import ResourceMeasures, measure_amounts
from mooring.explain.reasons import cause_data
from mooring.objects.pod import Pod
from mooring.objects.requests import PODS
from mooring.scheduler.journal import FactKind
from mooring.web.codes import Codes
from mooring.web.places import WAITING
from mooring.web.run import Run

#: A browser cannot hold more events.
_MOST_EVENTS = 200_000
#: The most and the fewest moments to measure; larger clusters get fewer.
_MOST_SAMPLES, _FEWEST_SAMPLES = 400, 40
_MOST_CELLS = 40_000_000
#: If fewer than this part of the pods are left at the end, the page opens at a fuller moment.
_MUCH_EMPTIER = 0.5


def timeline_data(run: Run) -> dict[str, Any]:
    places = run.places
    return {
        "endSeconds": run.report.elapsed_s,
        "start": places.start,
        "changes": {
            "atSeconds": _rounded(places.at_s),
            "pod": places.pods,
            "node": places.moved_to,
        },
        "samples": _samples(run),
        "events": _events(run),
    }


def _rounded(times: Sequence[float]) -> list[float]:
    return [round(each, 6) for each in times]


# Events


def _events(run: Run) -> dict[str, Any]:
    places = run.places
    shown = places.timeline[:_MOST_EVENTS]
    kinds: Codes[str] = Codes()
    strings: Codes[str] = Codes()
    strings.code("")
    plugins = run.plugins_by_reason
    columns = {
        "step": places.steps[:_MOST_EVENTS],
        "atSeconds": _rounded([each.at_s for each in shown]),
        "kind": [kinds.code(each.what.value) for each in shown],
        "pod": [places.pod_index.get(each.pod, -1) for each in shown],
        "node": [places.node_index.get(each.node, -1) for each in shown],
        "message": [strings.code(each.message) for each in shown],
    }
    return {
        **columns,
        "kinds": kinds.values,
        "strings": strings.values,
        "causes": [cause_data(message, plugins) for message in strings.values],
        "leftOut": len(places.timeline) - len(shown),
    }


# The moment to open at


def opening_step(run: Run) -> int | None:
    """The step with the most pods on nodes if the cluster is much emptier at the end; None for the end."""
    places = np.array(run.places.start, np.int64)
    running = np.count_nonzero(places >= 0)
    best, best_step = running, 0
    for step, (pod, place) in enumerate(zip(run.places.pods, run.places.moved_to, strict=True), 1):
        running += int(place >= 0) - int(places[pod] >= 0)
        places[pod] = place
        if running >= best:
            best, best_step = running, step
    return best_step if running < best * _MUCH_EMPTIER else None


# Measures


def _samples(run: Run) -> dict[str, Any]:
    steps = _moments(run)
    states = list(_states_at(run, steps))
    at_s = [0.0, *run.places.at_s]
    timeline = run.places.timeline
    evicted = [fact.at_s for fact in timeline if fact.what is FactKind.PREEMPTED]
    finished = [fact.at_s for fact in timeline if fact.what is FactKind.FINISHED]
    times = [at_s[step] for step in steps]
    return {
        "step": steps,
        "atSeconds": _rounded(times),
        "running": [state.running for state in states],
        "pending": [state.pending for state in states],
        "preempted": [bisect_right(evicted, each) for each in times],
        "finished": [bisect_right(finished, each) for each in times],
        "nodesInUse": [state.nodes_in_use for state in states],
        "resources": {
            resource: {
                kind: [getattr(state.resources[i], kind) for state in states]
                for kind in ("utilisation", "imbalance", "fragmentation")
            }
            for i, resource in enumerate(run.shapes.resources)
        }
        | _device_samples(run, steps),
    }


def _device_samples(run: Run, steps: Sequence[int]) -> dict[str, Any]:
    """The share of each class's devices that pods have; of devices no more is known of every moment."""
    offered = {
        each.resource: each.allocatable
        for each in run.report.totals
        if each.resource.startswith(DEVICE_CLASS_PREFIX) and each.allocatable
    }
    if not offered:
        return {}
    of_pods = run.devices_of_pods(DeviceUsage(run.simulation.scheduler.cluster))
    amounts = [of_pods.get(pod.key, {}) for pod in run.pods]
    unknown = [None] * len(steps)
    samples: dict[str, Any] = {}
    for resource, capacity in offered.items():
        name = resource.removeprefix(DEVICE_CLASS_PREFIX)
        held = np.array([each.get(name, 0) for each in amounts], np.int64)
        used = [int(held[places >= 0].sum()) for places in _places_at(run, steps)]
        samples[resource] = {
            # A claim that pods share one after the other counts for both of them for a moment.
            "utilisation": [round(min(each / capacity, 1.0), 4) for each in used],
            "imbalance": unknown,
            "fragmentation": unknown,
        }
    return samples


def _moments(run: Run) -> list[int]:
    """Steps, evenly spaced over time and over the changes, because often all changes have the same time."""
    at_s = run.places.at_s
    count = _how_many(run) // 2
    last = len(at_s)
    by_step = {round(i * last / max(count - 1, 1)) for i in range(count)}
    end_s = at_s[-1] if at_s else 0.0
    by_time = {bisect_right(at_s, i * end_s / max(count - 1, 1)) for i in range(count)}
    # By time, a moment is what its second came to.
    settled = {bisect_right(at_s, at_s[step - 1] if step else 0.0) for step in by_step}
    return sorted(by_step | settled | by_time | {0, last})


def _how_many(run: Run) -> int:
    cells = len(run.shapes.weights) * len(run.shapes.resources) * len(run.places.node_index)
    return max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, _MOST_CELLS // max(cells, 1)))


class _State(NamedTuple):
    resources: tuple[ResourceMeasures, ...]
    running: int
    nodes_in_use: int
    pending: int


def _states_at(run: Run, steps: Sequence[int]) -> Iterator[_State]:
    resources = run.shapes.resources
    allocatable = _allocatable(run)
    held = _held(run.pods, resources)
    for places in _places_at(run, steps):
        placed = np.flatnonzero(places >= 0)
        counts = np.bincount(places[placed], minlength=allocatable.shape[1]).astype(np.int64)
        requested = np.zeros_like(allocatable)
        for r in range(len(resources)):
            np.add.at(requested[r], places[placed], held[r, placed])
        yield _State(
            measure_amounts(allocatable, requested, run.shapes),
            len(placed),
            int(np.count_nonzero(counts)),
            int(np.count_nonzero(places == WAITING)),
        )


def _places_at(run: Run, steps: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """int64[pod]: where each pod is after so many changes; the same array each time."""
    moves = run.places
    places = np.array(moves.start, np.int64)
    pods, moved_to = np.array(moves.pods, np.int64), np.array(moves.moved_to, np.int64)
    done = 0
    for step in steps:
        # If a pod moved twice, the later move is applied last.
        places[pods[done:step]] = moved_to[done:step]
        done = step
        yield places


def _allocatable(run: Run) -> NDArray[np.int64]:
    """int64[resource, node]."""
    infos = [run.simulation.scheduler.cluster.infos[name] for name in run.places.node_index]
    rows = [
        [info.allowed_pods if name == PODS else info.allocatable.get(name, 0) for info in infos]
        for name in run.shapes.resources
    ]
    return np.array(rows, np.int64).reshape(len(rows), len(infos))


def _held(pods: Sequence[Pod], resources: Sequence[str]) -> NDArray[np.int64]:
    """int64[resource, pod]."""
    rows = [[1 if name == PODS else pod.held.get(name, 0) for pod in pods] for name in resources]
    return np.array(rows, np.int64).reshape(len(rows), len(pods))
