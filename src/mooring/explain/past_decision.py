"""Make a decision of a run again, on the cluster of its moment, and check it against the journal.

The safe way is to repeat the run up to the decision. If the run has only placed pods until then, mooring
builds the cluster of that moment directly. That is faster, because no earlier pod has to be decided again. If
the decision on that cluster differs from the journal, mooring repeats the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import takewhile

from mooring.config.types import KubeSchedulerConfiguration
from mooring.errors import MooringError
from mooring.explain.what_if import DecisionView, WhatIf
from mooring.garbage import seldom_collecting
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.scheduler.decision import Decision
from mooring.scheduler.journal import DECISIONS, Decided, FactKind
from mooring.sim.simulation import SimOptions, Simulation

OnDecision = Callable[[Decision], None]

#: Other plugins may keep state of their own.
_BUILT_IN = "mooring.plugins."


class DecidedOtherwise(MooringError):
    """A repeated run did not repeat a recorded decision."""

    def __init__(self, recorded: Decided, again: Decided | None) -> None:
        super().__init__(
            f"attempt {recorded.number} at pod {recorded.pod} chose {_choice(recorded)}, but"
            f" {_choice(again)} when the run was repeated; a plugin or an extender does not always"
            " give the same answer"
        )


def _choice(decided: Decided | None) -> str:
    if decided is None:
        return "nothing"
    return f"{decided.node or 'no node'} of {decided.feasible} that fit"


@dataclass(frozen=True, slots=True)
class RunInput:
    """What a run starts from. The same input always leads to the same run."""

    objects: Sequence[KubeObject]
    config: KubeSchedulerConfiguration | None = None
    seed: int | None = None
    until_s: float | None = None
    #: The facts that the journal keeps. Decisions can be shown again only if it keeps them.
    keeps: AbstractSet[FactKind] = DECISIONS

    def options(self, on_decision: OnDecision | None = None) -> SimOptions:
        return SimOptions(
            config=self.config,
            seed=self.seed,
            on_decision=on_decision,
            keeps_reasons=on_decision is not None,
            keeps=self.keeps,
        )

    def simulation(self, on_decision: OnDecision) -> Simulation:
        """Ready to run, and to be closed afterwards. Raises ConfigError and InputError."""
        simulation = Simulation(self.options(on_decision))
        try:
            simulation.load(self.objects)
        except BaseException:
            simulation.close()
            raise
        return simulation


@dataclass(frozen=True, slots=True)
class PastDecision:
    """A decision in the journal."""

    decided: Decided
    #: Pod → the node that it got before; None if the run had done more than placing pods.
    before: dict[str, str] | None


def placed_by(simulation: Simulation, uid: str) -> PastDecision | None:
    """The last decision that gave the pod a node; None if none did, or if the pod was not bound."""
    cluster = simulation.scheduler.cluster
    known = cluster.pods.get(uid)
    if uid not in simulation.summary.placements and not (known and cluster.is_assumed(known)):
        return None
    choices = [each for each in simulation.journal.decisions if each.uid == uid and each.node]
    return past_decision(simulation, choices[-1]) if choices else None


def past_decision(simulation: Simulation, decided: Decided) -> PastDecision:
    """A decision in the simulation's journal."""
    if not only_placing(simulation):
        return PastDecision(decided, None)
    earlier = takewhile(lambda each: each is not decided, simulation.journal.decisions)
    return PastDecision(decided, {each.pod: each.node for each in earlier if each.node})


def only_placing(simulation: Simulation) -> bool:
    """Whether the placements alone determine the cluster of every moment."""
    summary, scheduler = simulation.summary, simulation.scheduler
    return (
        summary.only_placing
        and sum(1 for each in simulation.journal.decisions if each.node) == len(summary.placements)
        and not scheduler.config.extenders
        and all(
            type(call.plugin).__module__.startswith(_BUILT_IN)
            for framework in scheduler.frameworks.values()
            for call in framework.plugins.values()
        )
    )


def decide_again(source: RunInput, past: PastDecision) -> DecisionView:
    """The decision in full. Raises DecidedOtherwise if it differs from the recorded one."""
    with seldom_collecting():
        if past.before is not None:
            view = _from_placements(source, past.decided, past.before)
            if view is not None:
                return view
        return run_again(source, (past.decided,))[past.decided]


def _from_placements(
    source: RunInput, decided: Decided, before: dict[str, str]
) -> DecisionView | None:
    """The decision on a cluster built from the placements; None if it differs from the recorded one."""
    pods = (obj for obj in source.objects if isinstance(obj, Pod))
    pod = next((each for each in pods if each.uid == decided.uid), None)
    if pod is None:
        return None
    there = (_then(obj, before) for obj in source.objects)
    what_if = WhatIf.as_read((obj for obj in there if obj is not None), source.options())
    try:
        view = what_if.look(pod)
    finally:
        what_if.close()
    fitting = int((view.matrix.verdicts == 0).sum())
    same = (view.chosen or "", fitting) == (decided.node, decided.feasible)
    return view if same else None


def _then(obj: KubeObject, before: dict[str, str]) -> KubeObject | None:
    """The object as it was then. Waiting pods are left out: they do not affect the decision."""
    if not isinstance(obj, Pod) or obj.node_name:
        return obj
    return obj.placed_on(before[obj.key]) if obj.key in before else None


def run_again(source: RunInput, wanted: Iterable[Decided]) -> dict[Decided, DecisionView]:
    """Repeat the run up to the last of these decisions. Raises DecidedOtherwise."""
    left = {(each.uid, each.number): each for each in wanted}
    views: dict[Decided, DecisionView] = {}
    otherwise: list[DecidedOtherwise] = []

    def watch(decision: Decision) -> None:
        again = simulation.summary.last_decision
        assert again is not None
        recorded = left.pop((again.uid, again.number), None)
        if recorded is None:
            return
        if again == recorded:
            views[recorded] = WhatIf(simulation).look(decision.pod, decision)
        else:
            otherwise.append(DecidedOtherwise(recorded, again))
        if otherwise or not left:
            simulation.loop.stop()

    simulation = source.simulation(watch)
    try:
        simulation.run(until_s=source.until_s)
    finally:
        simulation.close()
    for recorded in left.values():
        otherwise.append(DecidedOtherwise(recorded, None))
    if otherwise:
        raise otherwise[0]
    return views
