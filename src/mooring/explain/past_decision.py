"""A decision of a run, made again on the cluster of its moment, and checked against what the journal says.

The sure way is to run again up to the decision. Where nothing but pods coming to nodes has happened until
then, the cluster of that moment is put together instead. That takes as long as reading it, because no earlier
pod has to be decided on again. The decision shows whether it is the same cluster: if it comes out otherwise,
the run is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import takewhile

from mooring.config.types import KubeSchedulerConfiguration
from mooring.errors import MooringError
from mooring.explain.world import Look, World
from mooring.garbage import seldom_collecting
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.scheduler.decision import Decision
from mooring.scheduler.journal import DECISIONS, Decided, FactKind
from mooring.sim.simulation import SimOptions, Simulation

OnDecision = Callable[[Decision], None]

#: Plugins from elsewhere may remember things of their own.
_BUILT_IN = "mooring.plugins."


class DecidedOtherwise(MooringError):
    """A run that was repeated did not come to a decision that was recorded."""

    def __init__(self, recorded: Decided, again: Decided | None) -> None:
        super().__init__(
            f"attempt {recorded.number} at pod {recorded.pod} chose {_choice(recorded)}, but"
            f" {_choice(again)} when the run was repeated; a plugin or an extender does not answer"
            " the same each time"
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
    #: The facts that the journal keeps. It takes decisions to show them again.
    keeps: AbstractSet[FactKind] = DECISIONS

    def options(self, on_decision: OnDecision | None = None) -> SimOptions:
        return SimOptions(
            config=self.config, seed=self.seed, on_decision=on_decision, keeps=self.keeps
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
    """A decision as the journal tells of it."""

    decided: Decided
    #: Who was given which node before; None if more than that had happened.
    before: dict[str, str] | None


def placed_by(simulation: Simulation, uid: str) -> PastDecision | None:
    """The last decision that gave the pod a node; None if none did, or its node did not take it."""
    cluster = simulation.scheduler.cluster
    known = cluster.pods.get(uid)
    if uid not in simulation.summary.placements and not (known and cluster.is_assumed(known)):
        return None
    choices = [each for each in simulation.journal.decisions if each.uid == uid and each.node]
    return past_decision(simulation, choices[-1]) if choices else None


def past_decision(simulation: Simulation, decided: Decided) -> PastDecision:
    """Any decision that the simulation's journal has."""
    if not only_placing(simulation):
        return PastDecision(decided, None)
    earlier = takewhile(lambda each: each is not decided, simulation.journal.decisions)
    return PastDecision(decided, {each.pod: each.node for each in earlier if each.node})


def only_placing(simulation: Simulation) -> bool:
    """Whether the cluster of any moment follows from the nodes that pods had been given until then."""
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


def decide_again(source: RunInput, past: PastDecision) -> Look:
    """The decision in full. Raises DecidedOtherwise if it does not come out as it was recorded."""
    with seldom_collecting():
        if past.before is not None:
            look = _put_together(source, past.decided, past.before)
            if look is not None:
                return look
        return run_again(source, (past.decided,))[past.decided]


def _put_together(source: RunInput, decided: Decided, before: dict[str, str]) -> Look | None:
    """None if it does not lead to the same decision."""
    pods = (obj for obj in source.objects if isinstance(obj, Pod))
    pod = next((each for each in pods if each.uid == decided.uid), None)
    if pod is None:
        return None
    there = (_then(obj, before) for obj in source.objects)
    world = World.as_read((obj for obj in there if obj is not None), source.options())
    try:
        look = world.look(pod)
    finally:
        world.close()
    fitting = int((look.matrix.verdicts == 0).sum())
    same = (look.chosen or "", fitting) == (decided.node, decided.feasible)
    return look if same else None


def _then(obj: KubeObject, before: dict[str, str]) -> KubeObject | None:
    """Pods that waited are left out: they have no part in what becomes of another."""
    if not isinstance(obj, Pod) or obj.node_name:
        return obj
    return obj.placed_on(before[obj.key]) if obj.key in before else None


def run_again(source: RunInput, wanted: Iterable[Decided]) -> dict[Decided, Look]:
    """Repeat the run up to the last of these decisions. Raises DecidedOtherwise."""
    left = {(each.uid, each.number): each for each in wanted}
    looks: dict[Decided, Look] = {}
    otherwise: list[DecidedOtherwise] = []

    def watch(decision: Decision) -> None:
        again = simulation.summary.last_decision
        assert again is not None
        recorded = left.pop((again.uid, again.number), None)
        if recorded is None:
            return
        if again == recorded:
            looks[recorded] = World(simulation).look(decision.pod, decision)
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
    return looks
