"""A run that has ended, with its simulation: it answers the questions of the page."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mooring.cluster.device_usage import DeviceUsage
from mooring.explain.attempts import Attempt, attempts_of, explain_attempt
from mooring.explain.counterfactuals import Counterfactuals, find_counterfactuals
from mooring.explain.device_measures import measure_devices
from mooring.explain.explanation import CannotAnswer, Explainer, Explanation
from mooring.explain.measures import Measures, Shapes, measure, shapes_of
from mooring.explain.past_decision import PastDecision, past_decision, placed_by
from mooring.explain.reasons import learn_plugins
from mooring.explain.story import Step
from mooring.explain.what_if import DecisionView, WhatIf
from mooring.garbage import seldom_collecting
from mooring.objects.devices import ResourceClaim, ResourceSlice
from mooring.objects.pod import Pod
from mooring.scheduler.decision import Decision
from mooring.scheduler.journal import Fact, FactKind, Preempted
from mooring.sim.build_report import build_report
from mooring.sim.report import SimulationReport
from mooring.sim.simulation import Simulation
from mooring.web.places import Places
from mooring.web.released_claims import ReleasedClaims
from mooring.web.run_spec import RunSpec

_ENDS = (FactKind.PREEMPTED, FactKind.FINISHED, FactKind.DELETED)
#: The scheduler does not try such a pod, and tries it after all.
_HELD, _LET_GO = (FactKind.GATED, FactKind.IGNORED), (FactKind.QUEUED, FactKind.DECIDED)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is."""

    #: The pods that need a node at the start and are not held back, and how many of them were tried.
    waiting: int
    tried: int
    attempts: int
    virtual_s: float
    #: Where the pods are so far.
    places: Places

    @property
    def total(self) -> int | None:
        """None once every pod was tried: nobody knows how much is left."""
        return self.waiting if self.tried < self.waiting else None

    @property
    def done(self) -> int:
        return self.attempts if self.total is None else self.tried

    @property
    def text(self) -> str:
        if self.total is not None:
            return "placing pods"
        return f"retrying, at {self.virtual_s:.0f}s of virtual time, attempt"


OnProgress = Callable[[RunProgress], None]


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
    #: The reason for which nodes were rejected → the plugin that gave it.
    plugins_by_reason: dict[str, str]
    #: The claims that gave devices back; see `devices_of_pods`.
    released: Sequence[ResourceClaim] = ()
    #: UID → the facts about the pod and the evictions for it; filled at the first question.
    _facts: dict[str, list[Fact]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        run_spec: RunSpec,
        on_progress: OnProgress,
        stopwatch: Callable[[], float] = time.perf_counter,
    ) -> Run:
        """Raises InputError, ConfigError and other errors of a simulation."""
        started = stopwatch()

        waiting = sum(1 for pod in run_spec.pods if not pod.node_name and not pod.finished)
        tried = 0
        places = Places.of((), run_spec)
        held: set[str] = set()
        followed = 0
        plugins: dict[str, str] = {}
        released = ReleasedClaims()

        def follow() -> None:
            nonlocal followed
            facts = simulation.journal.facts[followed:]
            places.follow(facts)
            followed += len(facts)
            for fact in facts:
                if fact.what in _HELD:
                    held.add(fact.uid)
                elif fact.what in _LET_GO:
                    held.discard(fact.uid)

        def count(decision: Decision) -> None:
            nonlocal tried
            follow()
            summary = simulation.summary
            if summary.last_decision is not None and summary.last_decision.number == 1:
                tried += 1
            if decision.node_name is None:
                learn_plugins(decision.diagnosis, plugins)
            at_s = simulation.clock.elapsed_s
            on_progress(RunProgress(waiting - len(held), tried, summary.decisions, at_s, places))

        with seldom_collecting():
            simulation = run_spec.simulation(count)
            if any(isinstance(obj, ResourceSlice) for obj in run_spec.objects):
                simulation.api.watch(released)
            simulation.run(until_s=run_spec.until_s)
            report = build_report(simulation)
            follow()
        shapes = shapes_of(run_spec.pods)
        cluster = simulation.scheduler.cluster
        return cls(
            run_spec=run_spec,
            pods=_as_stored(run_spec, simulation),
            simulation=simulation,
            places=places,
            report=report,
            shapes=shapes,
            measures=measure(cluster.infos.values(), shapes, measure_devices(cluster)),
            took_s=stopwatch() - started,
            plugins_by_reason=plugins,
            released=released.claims,
        )

    def devices_of_pods(self, usage: DeviceUsage) -> dict[str, dict[str, int]]:
        """Pod → class → how many devices it has, or had while it was there. `usage` is of the end."""
        return usage.held_by_pods(self.released)

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

    def pod(self, key: str) -> Pod:
        """Raises CannotAnswer if there is no such pod."""
        if key not in self.places.pod_index:
            raise CannotAnswer(f"there is no pod {key!r} in this run")
        return self.pods[self.places.pod_index[key]]

    def facts_of(self, uid: str) -> list[Fact]:
        """What happened to the pod, and the evictions that made room for it."""
        if not self._facts:
            for fact in self.simulation.journal.facts:
                self._facts.setdefault(fact.uid, []).append(fact)
                if isinstance(fact, Preempted) and fact.preemptor is not None:
                    self._facts.setdefault(fact.preemptor.uid, []).append(fact)
        return self._facts.get(uid, [])

    def attempts(self, key: str) -> list[Attempt]:
        """Raises CannotAnswer."""
        uid = self.pod(key).uid
        return attempts_of(self.facts_of(uid), uid)

    def past_decision(self, key: str, number: int | None = None) -> PastDecision | None:
        """The decision that the pod's page shows: attempt `number`, else the one that placed the pod.

        If none placed it, the last attempt at a pod that is gone; None for other pods, which are judged on
        the cluster at the end. Raises CannotAnswer.
        """
        pod, attempts = self.pod(key), self.attempts(key)
        if not self.places.node_index:
            raise CannotAnswer("the cluster has no nodes, so there is nothing to explain")
        if number is not None:
            wanted = [each for each in attempts if each.decided.number == number]
            if not wanted:
                raise CannotAnswer(f"there was no attempt {number} at pod {key}")
            return past_decision(self.simulation, wanted[0].decided)
        past = placed_by(self.simulation, pod.uid)
        if past is None and attempts and self.simulation.scheduler.pod(key) is None:
            return past_decision(self.simulation, attempts[-1].decided)
        return past

    def explain(
        self, key: str, seen: DecisionView | None, number: int | None = None
    ) -> Explanation:
        """`seen` is the decision that `past_decision` returned, in full. Raises CannotAnswer."""
        pod = self.pod(key)
        if number is not None and seen is not None:
            attempt = next(each for each in self.attempts(key) if each.decided.number == number)
            return explain_attempt(seen, attempt)
        if pod.uid in self.simulation.summary.placements and seen is not None:
            return Explainer(self._what_if, seen=seen).explain(key)
        if self.simulation.scheduler.pod(key) is None or pod.finished:
            return self._of_gone(pod, seen)
        return Explainer(self._what_if, seen=seen).explain(key)

    def _of_gone(self, pod: Pod, seen: DecisionView | None) -> Explanation:
        """A pod that no decision placed, and that is no longer there."""
        state, at_end = self._end_of(pod)
        if seen is not None:
            explanation = explain_attempt(seen, self.attempts(pod.key)[-1])
            return replace(explanation, state=state, node="", story=(*explanation.story, at_end))
        node = pod.node_name
        came = f"it had node {node} from the start; no decision" if node else "it was never tried"
        story = (Step("queue", "reached", came), at_end)
        return Explanation(pod.key, state, node, "nothing was evaluated", "", story, None)

    def _end_of(self, pod: Pod) -> tuple[str, Step]:
        ends = [fact for fact in self.facts_of(pod.uid) if fact.what in _ENDS]
        evictions = [fact for fact in ends if isinstance(fact, Preempted) and fact.uid == pod.uid]
        ended = evictions[0] if evictions else next((e for e in ends if e.uid == pod.uid), None)
        if ended is None:
            return "finished", Step("end", "reached", "it had finished before the simulation began")
        text = f"{ended.what.value} at {ended.at_s:g}s of virtual time {ended.message}".rstrip()
        return ended.what.value, Step("end", "reached", text)

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
