"""Why a pod is where it is, or nowhere: the decision, on the cluster as it was when it was taken.

Which cluster that is, depends on what became of the pod:

- placed during the simulation: the matrix is copied at that very moment, from the running engine;
- not placed: as things stand at the end, which is what the pod is waiting for to change;
- on a node from the start: as things stand at the end, as if it had to be placed anew.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import MooringError
from mooring.explain.frames import Frame
from mooring.explain.matrix import Matrix, NodeView
from mooring.explain.story import Step, gate_step, steps_of
from mooring.explain.world import Look, World
from mooring.garbage import seldom_collecting
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.scheduler.decision import Decision, NoProfileError
from mooring.sim.recorder import gated_by, waits_for
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.summary import PlacedPod

_MOST_SUGGESTIONS = 5
#: Below this likeness, a name is no suggestion.
_ALIKE = 0.6
#: Comparing by likeness takes time; of more names than this, only those that contain the text are tried,
_MOST_COMPARED = 20_000
#: or, without any, those that begin with as many of its letters.
_TELLING = 4

#: What a placed pod passes after its node is chosen.
_AFTER_CHOICE = (
    (Point.RESERVE, "Reserve"),
    (Point.PERMIT, "Permit"),
    (Point.PRE_BIND, "PreBind"),
    (Point.BIND, "Bind"),
)


class CannotAnswer(MooringError):
    """The question is about something that is not there."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for one pod."""

    #: `namespace/name`.
    pod: str
    #: placed, unschedulable, gated, ignored, waiting (for its binding), schedulable (it would fit).
    state: str
    #: Where it is, or where it would go; "" if nowhere.
    node: str
    #: Which cluster the matrix is about.
    as_of: str
    #: Why it fits nowhere, in one line; "" if it fits.
    message: str
    story: tuple[Step, ...]
    #: None if no profile looks after the pod.
    matrix: Matrix | None
    #: By how many points the best node leads the next one that is not as good.
    margin: int | None = None
    #: The equally good nodes.
    tied: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return self.state in ("placed", "waiting", "schedulable")

    def node_view(self, name: str) -> NodeView:
        """One node in full. Raises CannotAnswer if there is no such node."""
        names = self.matrix.nodes if self.matrix is not None else ()
        if self.matrix is None or name not in names:
            raise CannotAnswer(_unknown("node", name, names))
        return self.matrix.node(name)

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "pod": self.pod,
            "state": self.state,
            "fits": self.fits,
            "node": self.node or None,
            "asOf": self.as_of,
            "message": self.message,
            "story": [asdict(step) for step in self.story],
            "refusals": [],
            "margin": self.margin,
            "tied": list(self.tied),
            "nodes": [],
        }
        if self.matrix is not None:
            data["refusals"] = [
                {**asdict(each), "count": len(each.nodes)} for each in self.matrix.refusals()
            ]
            data["nodes"] = self.matrix.to_data()
        return data

    def to_frame(self) -> Frame:
        """Node × plugin. Raises MissingFrames, and CannotAnswer if nothing was evaluated."""
        if self.matrix is None:
            raise CannotAnswer(f"{self.pod}: {self.message}")
        return self.matrix.to_frame()


@dataclass(slots=True)
class Inquiry:
    """A cluster to ask about, and what was seen on the way there; the end of a `with` closes it."""

    world: World
    #: The decision that placed the pod that was watched for; None if it was not placed.
    seen: Look | None = None
    as_read: bool = False

    def __enter__(self) -> Inquiry:
        return self

    def __exit__(self, *_: object) -> None:
        self.world.close()

    def explain(self, key: str) -> Explanation:
        """Raises CannotAnswer, and whatever a plugin or an extender fails with."""
        world = self.world
        pod = pod_of(world, key)
        if pod.scheduler_name not in world.scheduler.frameworks:
            return _not_looked_at(pod, "ignored", str(NoProfileError(pod)))
        placed = world.simulation.summary.placements.get(pod.uid)
        if placed is not None and self.seen is not None:
            return _placed(self.seen, placed)
        if pod.node_name:
            return _as_if_anew(world.look_without(pod), pod)
        if world.cluster.is_assumed(pod) and self.seen is not None:
            return _assumed(self.seen, world, pod)
        return _not_placed(world, pod, as_read=self.as_read)


def inquire(
    objects: Iterable[KubeObject],
    options: SimOptions | None = None,
    *,
    watched: str = "",
    until_s: float | None = None,
    as_read: bool = False,
) -> Inquiry:
    """Simulate, keeping the decision that places the pod `watched`; or only read, and place nothing.

    Raises InputError and ConfigError.
    """
    options = options or SimOptions()
    if as_read:
        with seldom_collecting():
            return Inquiry(World.as_read(objects, options), as_read=True)
    seen: list[Look] = []
    also = options.on_decision

    def watch(decision: Decision) -> None:
        if decision.pod.key == watched and decision.node_name is not None:
            seen[:] = [world.look(decision.pod, decision)]
        if also is not None:
            also(decision)

    simulation = Simulation(replace(options, on_decision=watch))
    world = World(simulation)
    try:
        with seldom_collecting():
            simulation.load(objects)
            simulation.run(until_s=until_s)
    except BaseException:
        simulation.close()
        raise
    return Inquiry(world, seen[0] if seen else None)


def pod_of(world: World, key: str) -> Pod:
    """The pod as it is, or as it was on its node. Raises CannotAnswer if it never had one and is gone."""
    bound = (each.bound for each in world.simulation.summary.placements.values())
    pod = world.scheduler.pod(key) or next(
        (each.assumed for each in bound if each.pod == key), None
    )
    if pod is None:
        raise CannotAnswer(f"pod {key} is not there at the end of the simulation")
    return pod


def find_pod(objects: Sequence[KubeObject], name: str) -> str:
    """The `namespace/name` that is meant. Raises CannotAnswer with what is like it."""
    if not any(isinstance(obj, Node) for obj in objects):
        raise CannotAnswer(
            "there is no node in this cluster, so there is nothing to explain;"
            " add what `kubectl get nodes -o yaml` prints"
        )
    pods = {obj.key: obj for obj in objects if isinstance(obj, Pod)}
    found = [name] if name in pods else [key for key, pod in pods.items() if pod.name == name]
    if not found:
        raise CannotAnswer(_unknown("pod", name, list(pods)))
    if len(found) > 1:
        raise CannotAnswer(
            f"{len(found)} pods are called {name!r}: {', '.join(sorted(found)[:10])}"
        )
    if pods[found[0]].finished:
        raise CannotAnswer(f"pod {found[0]} has run to its end, so no node is looked for")
    return found[0]


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    text = f"there is no {what} {name!r}"
    alike = _alike(name, known)
    if alike:
        return f"{text}; did you mean {' or '.join(alike)}?"
    return (
        f"{text} among {len(known):,} {what}s" if known else f"{text}: there are no {what}s at all"
    )


def _alike(name: str, known: Sequence[str]) -> list[str]:
    """The likest names, with or without their namespace; first of all those of a controller's pods."""
    made = [
        each
        for each in known
        if each.startswith(f"{name}-") or each.rpartition("/")[2].startswith(f"{name}-")
    ]
    if made:
        return sorted(made)[:_MOST_SUGGESTIONS]
    if len(known) > _MOST_COMPARED:
        bare = name.rpartition("/")[2]
        beginning = bare[:_TELLING]
        known = [each for each in known if bare in each] or [
            each for each in known if each.rpartition("/")[2].startswith(beginning)
        ]
        known = known[:_MOST_COMPARED]
    if "/" in name:
        close = difflib.get_close_matches(name, known, _MOST_SUGGESTIONS, _ALIKE)
        if close:
            return close
    by_name: dict[str, list[str]] = {}
    for key in known:
        by_name.setdefault(key.rpartition("/")[2], []).append(key)
    bare = name.rpartition("/")[2]
    close = difflib.get_close_matches(bare, by_name, _MOST_SUGGESTIONS, _ALIKE)
    return [key for each in close for key in by_name[each]][:_MOST_SUGGESTIONS]


# What became of the pod


def _not_looked_at(pod: Pod, state: str, why: str) -> Explanation:
    step = Step("queue", "refused", why)
    return Explanation(pod.key, state, "", "nothing was evaluated", why, (step,), None)


def _placed(look: Look, placed: PlacedPod) -> Explanation:
    node = placed.bound.node
    end = f"bound to {node} {_at(placed.bound.at_s)}"
    if placed.ended_s is not None:
        end += f"; {placed.ended} {_at(placed.ended_s)}"
    story = (gate_step(None, ""), *steps_of(look), *_binding(look, end))
    return _of_look(look, "placed", "as the cluster was when it was decided", story, node)


def _assumed(look: Look, world: World, pod: Pod) -> Explanation:
    assert look.chosen is not None
    held = f"waiting {waits_for(world.scheduler, pod)} to be bound to {look.chosen}"
    story = (gate_step(None, ""), *steps_of(look), Step("Permit", "refused", held))
    return _of_look(look, "waiting", "as the cluster was when it was decided", story, look.chosen)


def _as_if_anew(look: Look, pod: Pod) -> Explanation:
    there = Step("queue", "reached", f"it came with its node {pod.node_name}; nothing was decided")
    steps: tuple[Step, ...] = (there, *steps_of(look))
    if look.chosen != pod.node_name:
        anew = look.chosen or "nowhere"
        steps += (Step("today", "reached", f"placed anew, it would go to {anew}"),)
    as_of = "as the cluster is at the end, without this pod"
    return replace(_of_look(look, "placed", as_of, steps, pod.node_name), message="")


def _not_placed(world: World, pod: Pod, *, as_read: bool) -> Explanation:
    gate = world.scheduler.gate(pod)
    said = gated_by(pod, gate.plugin) if gate is not None else ""
    look = world.look_and_preempt(pod)
    story = (gate_step(gate, said), *steps_of(look))
    as_of = "as the files say" if as_read else "as the cluster is at the end of the simulation"
    if gate is not None:
        explanation = _of_look(look, "gated", as_of, story, "")
        return replace(explanation, message=said)
    state = "unschedulable" if look.chosen is None else "schedulable"
    return _of_look(look, state, as_of, story, look.chosen or "")


def _of_look(look: Look, state: str, as_of: str, story: tuple[Step, ...], node: str) -> Explanation:
    message = look.fit_error
    if look.post_filtering is not None and look.post_filtering.message:
        message = f"{message} {look.post_filtering.message}"
    return Explanation(
        pod=look.pod.key,
        state=state,
        node=node,
        as_of=as_of,
        message=message,
        story=story,
        matrix=look.matrix,
        margin=look.margin,
        tied=look.tied,
    )


def _binding(look: Look, end: str) -> Iterator[Step]:
    for point, title in _AFTER_CHOICE:
        plugins = look.plugins.get(point, ())
        if plugins:
            text = end if title == "Bind" else "passed"
            yield Step(title, "passed", f"{', '.join(plugins)}: {text}")


def _at(seconds: float) -> str:
    return f"at {seconds:g}s of virtual time"
