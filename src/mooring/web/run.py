"""A run that has ended, with its simulation: it answers the questions of the page."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mooring.explain.counterfactuals import Counterfactuals, find_counterfactuals
from mooring.explain.explanation import CannotAnswer, Explainer, Explanation
from mooring.explain.measures import Measures, Shapes, measure, shapes_of
from mooring.explain.past_decision import PastDecision, placed_by
from mooring.explain.what_if import DecisionView, WhatIf
from mooring.garbage import seldom_collecting
from mooring.objects.pod import Pod
from mooring.scheduler.decision import Decision
from mooring.sim.report import SimulationReport, build_report
from mooring.sim.simulation import Simulation
from mooring.web.places import Places
from mooring.web.run_spec import RunSpec

#: Called with the number of attempts so far.
OnProgress = Callable[[int], None]


@dataclass(slots=True)
class Run:
    """A run that has ended, with its simulation. Questions do not change it."""

    run_spec: RunSpec
    #: By pod index: the last stored version of each pod, whose derived values are already computed.
    pods: list[Pod]
    simulation: Simulation
    places: Places
    report: SimulationReport
    shapes: Shapes
    measures: Measures
    #: Wall-clock time.
    took_s: float

    @classmethod
    def of(
        cls,
        run_spec: RunSpec,
        on_progress: OnProgress,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> Run:
        """Raises InputError, ConfigError and other errors of a simulation."""
        started = stopwatch()

        def count(decision: Decision) -> None:
            on_progress(simulation.summary.decisions)

        with seldom_collecting():
            simulation = run_spec.simulation(count)
            simulation.run(until_s=run_spec.until_s)
            report = build_report(simulation)
            places = Places.of(simulation.journal.facts, run_spec)
        shapes = shapes_of(run_spec.pods)
        infos = simulation.scheduler.cluster.infos.values()
        return cls(
            run_spec=run_spec,
            pods=_as_stored(run_spec, simulation),
            simulation=simulation,
            places=places,
            report=report,
            shapes=shapes,
            measures=measure(infos, shapes),
            took_s=stopwatch() - started,
        )

    def summary(self) -> dict[str, object]:
        report = self.report
        return {
            "nodes": report.nodes,
            "pods": len(self.places.start),
            "alreadyPlaced": report.already_placed,
            "placed": len(report.placements),
            "pending": len(report.unplaced),
            "finished": len(report.finished),
            "preempted": sum(len(each.victims) for each in report.preemptions),
            "elapsedSeconds": report.elapsed_s,
            "attempts": self.simulation.summary.decisions,
            "tookSeconds": round(self.took_s, 3),
        }

    def placed_by(self, key: str) -> PastDecision | None:
        """The decision that placed the pod; None if none did. Raises CannotAnswer if there is no such pod."""
        if key not in self.places.pod_index:
            raise CannotAnswer(f"there is no pod {key!r} in this run")
        if not self.places.node_index:
            raise CannotAnswer("the cluster has no nodes, so there is nothing to explain")
        return placed_by(self.simulation, self.pods[self.places.pod_index[key]].uid)

    def explain(self, key: str, seen: DecisionView | None) -> Explanation:
        """`seen` is the decision that `placed_by` returned, in full. Raises CannotAnswer."""
        pod = self.pods[self.places.pod_index[key]]
        if pod.finished and seen is None:
            raise CannotAnswer(f"pod {key} has finished, so it needs no node")
        return Explainer(self._what_if, seen=seen).explain(key)

    def counterfactuals(
        self, key: str, *, budget_s: float, timer: Callable[[], float]
    ) -> Counterfactuals:
        """Raises CannotAnswer."""
        return find_counterfactuals(self._what_if, key, budget_s=budget_s, timer=timer)

    def close(self) -> None:
        self.simulation.close()

    @property
    def _what_if(self) -> WhatIf:
        return WhatIf(self.simulation)


def _as_stored(run_spec: RunSpec, simulation: Simulation) -> list[Pod]:
    bound = (each.bound for each in simulation.summary.placements.values())
    stored = {each.pod: each.assumed for each in bound}
    stored |= {pod.key: pod for pod in simulation.api.all(Pod)}
    return [stored.get(pod.key, pod) for pod in run_spec.pods]
