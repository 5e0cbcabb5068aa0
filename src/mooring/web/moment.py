"""The moment of a run at which a pod was placed, looked at again.

The sure way is to run once more up to there. Where nothing but pods coming to nodes has happened until then,
the cluster of that moment can be put together instead, which takes as long as reading it: no pod that came
before has to be decided on again. Whether it is the same cluster is checked by what came of the decision.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.explain.world import Look, World
from mooring.garbage import seldom_collecting
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.scheduler.scheduling_cycle import Decision
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.story import What
from mooring.web.chronicle import ABSENT, Chronicle
from mooring.web.premise import Premise

#: Plugins from elsewhere may remember things of their own.
_BUILT_IN = "mooring.plugins."
_MORE_THAN_PLACING = frozenset((What.NOMINATED, What.WAITING, What.PREEMPTED, What.CLAIM_BOUND))


@dataclass(frozen=True, slots=True)
class Attempt:
    """A decision as far as it is kept."""

    pod: str
    #: None if there was none.
    node: str | None
    #: How many nodes fitted.
    feasible: int


@dataclass(frozen=True, slots=True)
class Moment:
    """The decision that placed a pod."""

    pod: str
    uid: str
    #: The how manieth about this pod.
    number: int
    node: str
    feasible: int
    #: Who was given which node before; None if more than that had happened.
    before: dict[str, str] | None


def only_placing(simulation: Simulation, chronicle: Chronicle, attempts: list[Attempt]) -> bool:
    """Whether nothing has changed the cluster of a run but pods that were given nodes, and kept them."""
    config = simulation.scheduler.config
    placed = sum(1 for each in attempts if each.node is not None)
    return (
        not config.extenders
        and placed == len(simulation.story.stays)
        and ABSENT not in chronicle.moved_to
        and not any(each.what in _MORE_THAN_PLACING for each in simulation.story.timeline)
        and all(
            type(call.plugin).__module__.startswith(_BUILT_IN)
            for framework in simulation.scheduler.frameworks.values()
            for call in framework.plugins.values()
        )
    )


def look_at(premise: Premise, moment: Moment) -> Look | None:
    """The decision in full; None if the run does not come to it."""
    with seldom_collecting():
        look = _put_together(premise, moment)
        return look if look is not None else _run_again(premise, moment)


def _put_together(premise: Premise, moment: Moment) -> Look | None:
    """None if it cannot be, or did not lead to the same decision."""
    before = moment.before
    if before is None:
        return None
    pod = next((each for each in premise.pods if each.uid == moment.uid), None)
    if pod is None:
        return None
    there = (_then(obj, before) for obj in premise.objects)
    options = SimOptions(config=premise.config, seed=premise.seed)
    world = World.as_read((obj for obj in there if obj is not None), options)
    try:
        look = world.look(pod)
    finally:
        world.close()
    fitting = int((look.matrix.verdicts == 0).sum())
    return look if (look.chosen, fitting) == (moment.node, moment.feasible) else None


def _then(obj: KubeObject, before: dict[str, str]) -> KubeObject | None:
    """Pods that waited are left out: they have no part in what becomes of another."""
    if not isinstance(obj, Pod) or obj.node_name:
        return obj
    return obj.placed_on(before[obj.key]) if obj.key in before else None


def _run_again(premise: Premise, moment: Moment) -> Look | None:
    seen: list[Look] = []

    def watch(decision: Decision) -> None:
        if decision.pod.uid != moment.uid:
            return
        if decision.node_name is not None:
            seen[:] = [World(again).look(decision.pod, decision)]
        if again.story.attempts[moment.uid] >= moment.number:
            again.loop.stop()

    again = premise.simulation(watch)
    try:
        again.run(until_s=premise.until_s)
    finally:
        again.close()
    return seen[0] if seen else None
