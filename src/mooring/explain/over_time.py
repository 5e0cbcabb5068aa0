"""Replay a trace, and measure the cluster over time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mooring.explain.measures import ResourceMeasures, Shapes, measure_resources, shapes_of
from mooring.sim.build_report import build_report
from mooring.sim.report import Pending, SimulationReport
from mooring.sim.simulation import SimOptions
from mooring.sim.summary import RunSummary
from mooring.sim.traces.replay import Replay
from mooring.sim.traces.trace import Trace

#: A sample is taken this much later, so that pods that arrive at its moment are placed.
_A_MOMENT_S = 0.001


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster at one moment."""

    at_s: float
    #: Totals since the start.
    arrived: int
    ended: int
    preempted: int
    #: At this moment.
    running: int
    pending: int
    nodes_in_use: int
    resources: tuple[ResourceMeasures, ...]


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long the placed pods waited for their node, in seconds of virtual time."""

    mean_s: float
    median_s: float
    p99_s: float
    longest_s: float


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The result of a replayed trace."""

    trace: str
    notes: tuple[str, ...]
    nodes: int
    arrived: int
    placed: int
    #: Pods that left without having had a node.
    never_placed: int
    preempted: int
    pending: tuple[Pending, ...]
    elapsed_s: float
    decisions: int
    #: Wall-clock time.
    took_s: float
    waiting: Waiting | None
    samples: tuple[Sample, ...]
    errors: tuple[str, ...]

    def to_data(self) -> dict[str, Any]:
        waiting = self.waiting
        return {
            "trace": self.trace,
            "notes": list(self.notes),
            "summary": {
                "nodes": self.nodes,
                "arrived": self.arrived,
                "placed": self.placed,
                "neverPlaced": self.never_placed,
                "preempted": self.preempted,
                "pending": len(self.pending),
                "elapsedSeconds": self.elapsed_s,
                "decisions": self.decisions,
                "tookSeconds": round(self.took_s, 3),
                "waitingSeconds": None
                if waiting is None
                else {
                    "mean": waiting.mean_s,
                    "median": waiting.median_s,
                    "p99": waiting.p99_s,
                    "longest": waiting.longest_s,
                },
            },
            "pending": [{"pod": each.pod, "message": each.message} for each in self.pending],
            "samples": [_sample_data(sample) for sample in self.samples],
            "errors": list(self.errors),
        }


def replay(
    trace: Trace,
    options: SimOptions | None = None,
    *,
    samples: int = 200,
    pods_end: bool = True,
    until_s: float | None = None,
    also_at: Sequence[float] = (),
    stopwatch: Callable[[], float] = time.perf_counter,
) -> ReplayReport:
    """Replay to the end or to `until_s`, and measure at `samples` moments. Raises ConfigError.

    `also_at` are further moments, in seconds.
    """
    ends_s = trace.ends_s if pods_end else trace.last_arrival_s
    if until_s is not None:
        ends_s = min(ends_s, until_s)
    shapes = shapes_of(each.pod for each in trace.pods)
    taken: list[Sample] = []
    started = stopwatch()
    with Replay(trace, options, pods_end=pods_end) as simulation:

        def sample(at_s: float) -> None:
            taken.append(_sample(simulation, at_s, shapes))

        evenly = (ends_s * i / max(samples - 1, 1) for i in range(samples))
        for at_s in sorted((*evenly, *also_at)):
            simulation.clock.call_later(at_s + _A_MOMENT_S, partial(sample, at_s))
        simulation.run(until_s=None if until_s is None else until_s + 2 * _A_MOMENT_S)
        report = build_report(simulation)
        return _report(trace, simulation, report, tuple(taken), stopwatch() - started)


def _sample(simulation: Replay, at_s: float, shapes: Shapes) -> Sample:
    scheduler = simulation.scheduler
    infos = [info for info in scheduler.cluster.infos.values() if info.node is not None]
    pods = scheduler.pods()
    counts = [len(info.pods.values()) for info in infos]
    return Sample(
        at_s=round(at_s, 3),
        arrived=simulation.arrived,
        ended=simulation.ended,
        preempted=len(simulation.summary.preempted),
        running=sum(counts),
        pending=sum(1 for pod in pods if not pod.node_name and not pod.finished),
        nodes_in_use=len(counts) - counts.count(0),
        resources=measure_resources(infos, shapes),
    )


def _report(
    trace: Trace,
    simulation: Replay,
    report: SimulationReport,
    samples: tuple[Sample, ...],
    took_s: float,
) -> ReplayReport:
    summary = simulation.summary
    return ReplayReport(
        trace=trace.name,
        notes=trace.notes,
        nodes=len(trace.nodes),
        arrived=simulation.arrived,
        placed=len(summary.placements),
        never_placed=simulation.arrived - len(summary.placements) - len(report.unplaced),
        preempted=len(summary.preempted),
        pending=report.unplaced,
        elapsed_s=report.elapsed_s,
        decisions=summary.decisions,
        took_s=took_s,
        waiting=waiting_of(summary),
        samples=samples,
        errors=report.errors,
    )


def waiting_of(summary: RunSummary) -> Waiting | None:
    """None if no pod was placed."""
    bound = (each.bound for each in summary.placements.values())
    waits = np.array([each.at_s - summary.of(each.uid).arrived_s for each in bound])
    if not len(waits):
        return None
    found = (waits.mean(), np.median(waits), np.quantile(waits, 0.99), waits.max())
    return Waiting(*(round(float(each), 3) for each in found))


def _sample_data(sample: Sample) -> dict[str, Any]:
    return {
        "atSeconds": sample.at_s,
        "arrived": sample.arrived,
        "ended": sample.ended,
        "preempted": sample.preempted,
        "running": sample.running,
        "pending": sample.pending,
        "nodesInUse": sample.nodes_in_use,
        "resources": {
            each.resource: {
                "utilisation": each.utilisation,
                "imbalance": each.imbalance,
                "fragmentation": each.fragmentation,
            }
            for each in sample.resources
        },
    }
