"""A premise that has been run, with its engine at hand: what the page asks of it is answered from here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mooring.explain.counterfactuals import Counterfactuals, find_counterfactuals
from mooring.explain.explanation import CannotAnswer, Explanation, Inquiry
from mooring.explain.measures import Measures, Shapes, measure, shapes_of
from mooring.explain.world import Look, World
from mooring.garbage import seldom_collecting
from mooring.objects.pod import Pod
from mooring.scheduler.scheduling_cycle import Decision
from mooring.sim.report import SimulationReport, build_report
from mooring.sim.simulation import Simulation
from mooring.web.chronicle import Chronicle
from mooring.web.moment import Attempt, Moment, only_placing
from mooring.web.premise import Premise

#: Told how many attempts were made.
OnProgress = Callable[[int], None]


@dataclass(slots=True)
class Run:
    """Questions leave no trace in it."""

    premise: Premise
    #: By pod index, each as it was stored last: what is derived from it has been worked out.
    pods: list[Pod]
    simulation: Simulation
    chronicle: Chronicle
    report: SimulationReport
    shapes: Shapes
    measures: Measures
    #: In their order.
    attempts: list[Attempt]
    #: Whether the cluster of any moment follows from who had been given which node until then.
    only_placing: bool
    #: On the wall clock.
    took_s: float

    @classmethod
    def of(
        cls,
        premise: Premise,
        on_progress: OnProgress,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> Run:
        """Raises InputError, ConfigError and what else a simulation can fail with."""
        started = stopwatch()
        attempts: list[Attempt] = []

        def count(decision: Decision) -> None:
            attempts.append(Attempt(decision.pod.key, decision.node_name, decision.feasible_count))
            on_progress(len(attempts))

        with seldom_collecting():
            simulation = premise.simulation(count)
            chronicle = Chronicle.follow(simulation, premise)
            simulation.run(until_s=premise.until_s)
            report = build_report(simulation)
        shapes = shapes_of(premise.pods)
        infos = simulation.scheduler.cluster.infos.values()
        return cls(
            premise=premise,
            pods=_as_stored(premise, simulation),
            simulation=simulation,
            chronicle=chronicle,
            report=report,
            shapes=shapes,
            measures=measure(infos, shapes),
            attempts=attempts,
            only_placing=only_placing(simulation, chronicle, attempts),
            took_s=stopwatch() - started,
        )

    def summary(self) -> dict[str, object]:
        report = self.report
        return {
            "nodes": report.nodes,
            "pods": len(self.chronicle.start),
            "alreadyPlaced": report.already_placed,
            "placed": len(report.placements),
            "pending": len(report.pending),
            "finished": len(report.finished),
            "preempted": sum(len(each.victims) for each in report.preemptions),
            "elapsedSeconds": report.elapsed_s,
            "attempts": len(self.attempts),
            "tookSeconds": round(self.took_s, 3),
        }

    def placed_by(self, key: str) -> Moment | None:
        """The decision that placed the pod; None if none did. Raises CannotAnswer without such a pod."""
        if key not in self.chronicle.pod_index:
            raise CannotAnswer(f"there is no pod {key!r} in this run")
        if not self.chronicle.node_index:
            raise CannotAnswer("there is no node in this cluster, so there is nothing to explain")
        uid = self.pods[self.chronicle.pod_index[key]].uid
        known = self._world.pod(key)
        assumed = known is not None and self._world.cluster.is_assumed(known)
        if uid not in self.simulation.story.stays and not assumed:
            return None
        return self._moment(key, uid)

    def explain(self, key: str, seen: Look | None) -> Explanation:
        """`seen` is the decision that `placed_by` tells of. Raises CannotAnswer."""
        pod = self.pods[self.chronicle.pod_index[key]]
        if pod.finished and seen is None:
            raise CannotAnswer(f"pod {key} has run to its end, so no node is looked for")
        return Inquiry(self._world, seen=seen).explain(key)

    def counterfactuals(
        self, key: str, *, budget_s: float, timer: Callable[[], float]
    ) -> Counterfactuals:
        """Raises CannotAnswer."""
        return find_counterfactuals(self._world, key, budget_s=budget_s, timer=timer)

    def close(self) -> None:
        self.simulation.close()

    def _moment(self, key: str, uid: str) -> Moment:
        """Of the last decision that gave the pod a node."""
        attempts = self.attempts
        place = max(i for i, each in enumerate(attempts) if each.pod == key and each.node)
        last = attempts[place]
        assert last.node is not None
        before = {each.pod: each.node for each in attempts[:place] if each.node is not None}
        return Moment(
            pod=key,
            uid=uid,
            number=self.simulation.story.attempts[uid],
            node=last.node,
            feasible=last.feasible,
            before=before if self.only_placing else None,
        )

    @property
    def _world(self) -> World:
        return World(self.simulation)


def _as_stored(premise: Premise, simulation: Simulation) -> list[Pod]:
    stored = {stay.pod.key: stay.pod for stay in simulation.story.stays.values()}
    stored |= {pod.key: pod for pod in simulation.api.all(Pod)}
    return [stored.get(pod.key, pod) for pod in premise.pods]
