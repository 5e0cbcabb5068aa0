"""Run one cell, on a worker: simulate or replay, and measure.

The measures are described in `docs/sweep.md`. Those of resources are taken at the moment when the last pod
has arrived and was tried: later, pods end, and a cluster that is empty says nothing about a policy. Their
means over the whole run have the prefix `mean_`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

import mooring
from mooring.errors import MooringError
from mooring.explain.measures import ResourceMeasures, measure_resources, shapes_of
from mooring.explain.over_time import Sample, Waiting, replay, waiting_of
from mooring.garbage import seldom_collecting
from mooring.objects.pod import Pod
from mooring.sim.build_report import build_report
from mooring.sim.report import Pending
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.traces.drawn_load import draw_load
from mooring.sim.traces.trace import Trace
from mooring.sweep.work import SweepInput, Work, unpack_config, unpack_input

#: By name; None where there is nothing to measure, such as the waiting time if no pod was placed.
Measures = dict[str, float | None]

#: How many moments of a replay the means are taken over.
_SAMPLES = 50


class CellFailed(MooringError):
    """A cell whose run gives no measures."""


def run_cell(work: Work) -> Measures:
    """Raises CellFailed, ConfigError and InputError, and whatever a plugin raises when it is built."""
    if work.version != mooring.__version__:
        raise CellFailed(
            f"the worker has mooring {mooring.__version__}, and the sweep is made by {work.version};"
            " install the same version"
        )
    started = time.thread_time()
    chosen, given = unpack_config(work.config), unpack_input(work.input)
    options = SimOptions(config=chosen.config, seed=work.cell.seed)
    with seldom_collecting():
        if given.trace is None:
            measures = _simulated(given, options)
        else:
            measures = _replayed(given.trace, given, options, work)
    measures["cpu_seconds"] = round(time.thread_time() - started, 3)
    return measures


def _replayed(trace: Trace, given: SweepInput, options: SimOptions, work: Work) -> Measures:
    if work.cell.load is not None:
        drawn = draw_load(trace.pods, trace.nodes, load=work.cell.load, seed=work.cell.seed)
        trace = replace(trace, pods=drawn)
    last_s = trace.last_arrival_s
    report = replay(
        trace,
        options,
        samples=_SAMPLES if trace.ends_s else 1,
        pods_end=given.pods_end,
        until_s=given.until_s,
        also_at=(last_s,),
    )
    _check(report.errors, report.pending)
    measures: Measures = {
        "nodes": report.nodes,
        "pods": report.arrived,
        "placed": report.placed,
        "pending": len(report.pending),
        "never_placed": report.never_placed,
        "preempted": report.preempted,
        "decisions": report.decisions,
        "elapsed_seconds": report.elapsed_s,
        **_waiting(report.waiting),
    }
    samples = list(report.samples)
    at_last = next((each for each in samples if each.at_s == round(last_s, 3)), None)
    if at_last is not None:
        samples.remove(at_last)
        measures["nodes_in_use"] = at_last.nodes_in_use
        measures |= _resources(at_last.resources)
    return measures | _means(samples)


def _simulated(given: SweepInput, options: SimOptions) -> Measures:
    pods = [obj for obj in given.objects if isinstance(obj, Pod)]
    with Simulation(replace(options, tries_without_nodes=False)) as simulation:
        simulation.load(given.objects)
        simulation.run(until_s=given.until_s)
        report = build_report(simulation)
        _check(report.errors, report.unplaced)
        infos = [i for i in simulation.scheduler.cluster.infos.values() if i.node is not None]
        summary = simulation.summary
        return {
            "nodes": len(infos),
            "pods": len(pods),
            "placed": len(summary.placements),
            "pending": len(report.unplaced),
            "never_placed": 0,
            "preempted": len(summary.preempted),
            "decisions": summary.decisions,
            "elapsed_seconds": report.elapsed_s,
            **_waiting(waiting_of(summary)),
            "nodes_in_use": sum(1 for info in infos if info.pods),
            **_resources(measure_resources(infos, shapes_of(pods))),
        }


def _check(errors: Iterable[str], pending: Iterable[Pending]) -> None:
    """A run in which plugins crash measures the crashes."""
    found = [*errors, *(f"{each.pod}: {each.message}" for each in pending if each.state == "error")]
    if found:
        more = f" (and {len(found) - 1:,} more errors)" if len(found) > 1 else ""
        raise CellFailed(f"the run had errors: {found[0]}{more}")


def _waiting(waiting: Waiting | None) -> Measures:
    return {
        "waiting_mean_s": None if waiting is None else waiting.mean_s,
        "waiting_median_s": None if waiting is None else waiting.median_s,
        "waiting_p99_s": None if waiting is None else waiting.p99_s,
        "waiting_longest_s": None if waiting is None else waiting.longest_s,
    }


def _resources(resources: Iterable[ResourceMeasures]) -> Measures:
    measures: Measures = {}
    for each in resources:
        measures[f"utilisation.{each.resource}"] = each.utilisation
        measures[f"fragmentation.{each.resource}"] = each.fragmentation
        measures[f"imbalance.{each.resource}"] = each.imbalance
    return measures


def _means(samples: Iterable[Sample]) -> Measures:
    """Over moments that lie equally far apart."""
    values: dict[str, list[float]] = {}
    for sample in samples:
        for name, value in _resources(sample.resources).items():
            if value is not None and not name.startswith("imbalance."):
                values.setdefault(f"mean_{name}", []).append(value)
    return {name: round(float(np.mean(found)), 4) for name, found in values.items()}
