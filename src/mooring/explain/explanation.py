"""Why a pod is on its node or pending: the decision, on the cluster of its moment.

The pod decides which moment that is:

- The simulation placed the pod: the matrix is copied at the moment of the decision.
- The pod is pending: the cluster at the end of the simulation.
- The pod had a node from the start: the cluster at the end, as if the pod were scheduled again.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import MooringError
from mooring.explain.devices import MOST_NODES, DeviceReason, device_reasons, needs_devices
from mooring.explain.frames import Frame
from mooring.explain.matrix import Matrix, NodeView
from mooring.explain.story import CHOICE, Step, gate_step, given_up_step, steps_of
from mooring.explain.what_if import DecisionView, WhatIf
from mooring.garbage import seldom_collecting
from mooring.objects.admission import Refused
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.well_known import POD_SCHEDULED
from mooring.scheduler.decision import Decision, NoProfileError
from mooring.sim.recorder import gated_by, waits_for
from mooring.sim.report import IGNORED
from mooring.sim.simulation import SimOptions, Simulation
from mooring.sim.summary import PlacedPod

_MOST_SUGGESTIONS = 5
#: Names that are less similar than this are not suggested.
_ALIKE = 0.6
#: Measuring similarity takes time. With more names than this, only names that contain the text are compared;
_MOST_COMPARED = 20_000
#: if there are none, names that start with this many of its letters.
_TELLING = 4

#: The extension points that a placed pod passes after its node is chosen.
_AFTER_CHOICE = (
    (Point.RESERVE, "Reserve"),
    (Point.PERMIT, "Permit"),
    (Point.PRE_BIND, "PreBind"),
    (Point.BIND, "Bind"),
)


#: In the story of a pod that would fit alone.
_GROUP = "group"


class CannotAnswer(MooringError):
    """The question is about an object that does not exist."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer for one pod."""

    #: `namespace/name`.
    pod: str
    #: placed, unschedulable, gated, ignored, terminating, waiting (for its binding), schedulable (it would
    #: fit); finished, preempted or deleted if it is no longer on the node that it got.
    state: str
    #: The node where it is or would go; "" if none.
    node: str
    #: Which cluster the matrix is about.
    as_of: str
    #: Why it fits on no node, in one line; "" if it fits.
    message: str
    story: tuple[Step, ...]
    #: None if no profile has the pod's scheduler name.
    matrix: Matrix | None
    #: The difference between the best score and the next lower score.
    margin: int | None = None
    #: The nodes that share the best score.
    tied: tuple[str, ...] = ()
    #: Why its claims get no devices, if no node has them; the reason of most devices first.
    devices: tuple[DeviceReason, ...] = ()

    @property
    def fits(self) -> bool:
        return bool(self.node)

    @property
    def device_nodes(self) -> int:
        """On how many nodes devices were looked at."""
        return min(len(self.matrix), MOST_NODES) if self.devices and self.matrix else 0

    @property
    def waits_for_group(self) -> bool:
        """Whether it would fit alone, but not its pod group."""
        return self._refused_at() == _GROUP

    @property
    def is_refused_later(self) -> bool:
        """Whether a node would take it, and it was refused after that: with its group, or by a plugin."""
        return self._refused_at() in (_GROUP, CHOICE)

    def _refused_at(self) -> str:
        last = self.story[-1] if self.story else None
        return last.point if last is not None and last.outcome == "rejected" else ""

    def node_view(self, name: str) -> NodeView:
        """One node in full. Raises CannotAnswer if there is no such node."""
        names = self.matrix.nodes if self.matrix is not None else ()
        if self.matrix is None or name not in names:
            raise CannotAnswer(unknown("node", name, names))
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
            "devices": [asdict(reason) for reason in self.devices],
            "devicesOfNodes": self.device_nodes,
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
class Explainer:
    """Explains the pods of a simulated cluster; the end of a `with` closes the simulation."""

    what_if: WhatIf
    #: The decision that placed the watched pod; None if no decision did.
    seen: DecisionView | None = None
    as_read: bool = False

    def __enter__(self) -> Explainer:
        return self

    def __exit__(self, *_: object) -> None:
        self.what_if.close()

    def explain(self, key: str) -> Explanation:
        """Raises CannotAnswer, PluginFailure and ExtenderError."""
        what_if = self.what_if
        pod = pod_of(what_if, key)
        if pod.scheduler_name not in what_if.scheduler.frameworks:
            profiles = ", ".join(what_if.scheduler.frameworks)
            why = f"{NoProfileError(pod)}; the configuration has {profiles}"
            return _ignored(pod, IGNORED, why)
        if pod.terminating and not pod.node_name:
            why = "it is being deleted, and schedulers leave such a pod alone"
            return _ignored(pod, "terminating", why)
        placed = what_if.simulation.summary.placements.get(pod.uid)
        seen = self.seen if self.seen is not None and self.seen.pod.key == key else None
        if placed is not None and seen is not None:
            return _placed(seen, placed)
        if pod.node_name:
            return _if_scheduled_again(what_if.look_without(pod), pod)
        if what_if.cluster.is_assumed(pod) and seen is not None:
            return _assumed(seen, what_if, pod)
        explanation = _not_placed(what_if, pod, as_read=self.as_read)
        if explanation.fits or not needs_devices(what_if.cluster, pod):
            return explanation
        return replace(explanation, devices=tuple(device_reasons(what_if.cluster, pod)))


def explainer_for(
    objects: Iterable[KubeObject],
    options: SimOptions | None = None,
    *,
    watched: str = "",
    until_s: float | None = None,
    as_read: bool = False,
) -> Explainer:
    """Simulate and keep the decision that places the pod `watched`. With `as_read`, place no pod.

    Raises InputError and ConfigError.
    """
    options = options or SimOptions()
    if as_read:
        with seldom_collecting():
            return Explainer(WhatIf.as_read(objects, options), as_read=True)
    seen: list[DecisionView] = []
    also = options.on_decision

    def watch(decision: Decision) -> None:
        if decision.pod.key == watched and decision.node_name is not None:
            seen[:] = [what_if.look(decision.pod, decision)]
        if also is not None:
            also(decision)

    simulation = Simulation(replace(options, on_decision=watch, keeps_reasons=True))
    what_if = WhatIf(simulation)
    try:
        with seldom_collecting():
            simulation.load(objects)
            simulation.run(until_s=until_s)
    except BaseException:
        simulation.close()
        raise
    return Explainer(what_if, seen[0] if seen else None)


def pod_of(what_if: WhatIf, key: str) -> Pod:
    """The pod as it is at the end, or as it was on its node. Raises CannotAnswer if there is neither."""
    bound = (each.bound for each in what_if.simulation.summary.placements.values())
    pod = what_if.scheduler.pod(key) or next(
        (each.assumed for each in bound if each.pod == key), None
    )
    if pod is None:
        raise CannotAnswer(f"pod {key} does not exist at the end of the simulation")
    return pod


def check_nodes(objects: Iterable[KubeObject]) -> None:
    """Raises CannotAnswer if there are no nodes."""
    if not any(isinstance(obj, Node) for obj in objects):
        raise CannotAnswer(
            "the cluster has no nodes, so there is nothing to explain;"
            " add nodes with --nodes 3xm5.xlarge, or the output of `kubectl get nodes -o yaml`"
        )


def find_pod(objects: Sequence[KubeObject], name: str) -> str:
    """The `namespace/name` of the pod. Raises CannotAnswer with similar names."""
    check_nodes(objects)
    pods = {obj.key: obj for obj in objects if isinstance(obj, Pod)}
    found = [name] if name in pods else [key for key, pod in pods.items() if pod.name == name]
    if not found:
        raise CannotAnswer(unknown("pod", name, list(pods)))
    if len(found) > 1:
        raise CannotAnswer(
            f"{len(found)} pods are called {name!r}; name one of {', '.join(sorted(found)[:10])}"
        )
    if pods[found[0]].finished:
        raise CannotAnswer(f"pod {found[0]} has finished, so it needs no node")
    return found[0]


def check_created(refused: Iterable[Refused], name: str) -> None:
    """Raises CannotAnswer if the pod of this name would be refused, and so does not exist."""
    for each in refused:
        if isinstance(each.object, Pod) and name in (each.object.key, each.object.name):
            raise CannotAnswer(f"pod {each.object.key} would not be created: {each.reason}")


def unknown(what: str, name: str, known: Sequence[str]) -> str:
    """That there is no such object, with similar names."""
    text = f"there is no {what} {name!r}"
    alike = _alike(name, known)
    if alike:
        return f"{text}; did you mean {' or '.join(alike)}?"
    if not known:
        return f"{text}: the cluster has no {what}s"
    return f"{text} among {len(known):,} {what}{'' if len(known) == 1 else 's'}"


def _alike(name: str, known: Sequence[str]) -> list[str]:
    """The most similar names, with or without namespace. Pods whose controller has the name come first."""
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


# The states of a pod


def _ignored(pod: Pod, state: str, why: str) -> Explanation:
    step = Step("queue", "rejected", why)
    return Explanation(pod.key, state, "", "nothing was evaluated", why, (step,), None)


def _placed(view: DecisionView, placed: PlacedPod) -> Explanation:
    node = placed.bound.node
    end = f"bound to {node} {_at(placed.bound.at_s)}"
    if placed.ended_s is not None:
        end += f"; {placed.ended} {_at(placed.ended_s)}"
    story = (gate_step(None, ""), *steps_of(view), *_binding(view, end))
    state = "placed" if placed.ended is None else placed.ended.value
    return _explanation(view, state, "as the cluster was at the decision", story, node)


def _assumed(view: DecisionView, what_if: WhatIf, pod: Pod) -> Explanation:
    assert view.chosen is not None
    held = f"waiting {waits_for(what_if.scheduler, pod)} to be bound to {view.chosen}"
    story = (gate_step(None, ""), *steps_of(view), Step("Permit", "waiting", held))
    return _explanation(view, "waiting", "as the cluster was at the decision", story, view.chosen)


def _if_scheduled_again(view: DecisionView, pod: Pod) -> Explanation:
    there = Step("queue", "reached", f"it had node {pod.node_name} from the start; no decision")
    steps: tuple[Step, ...] = (there, *steps_of(view))
    if view.chosen != pod.node_name:
        now = view.chosen or "no node"
        steps += (Step("today", "reached", f"if it were scheduled again, it would go to {now}"),)
    as_of = "as the cluster is at the end, without this pod"
    return replace(_explanation(view, "placed", as_of, steps, pod.node_name), message="")


def _not_placed(what_if: WhatIf, pod: Pod, *, as_read: bool) -> Explanation:
    gate = what_if.scheduler.gate(pod)
    said = gated_by(pod, gate.plugin) if gate is not None else ""
    view = what_if.look_and_preempt(pod)
    story = (gate_step(gate, said), *steps_of(view))
    as_of = "as the files say" if as_read else "as the cluster is at the end of the simulation"
    if gate is not None:
        explanation = _explanation(view, "gated", as_of, story, "")
        return replace(explanation, message=said)
    if view.chosen is not None and not as_read and (told := _told(pod)):
        if step := _refused_later(what_if, pod, view.chosen, told):
            explanation = _explanation(view, "unschedulable", as_of, (*story, step), "")
            return replace(explanation, message=told)
    state = "unschedulable" if view.chosen is None else "schedulable"
    return _explanation(view, state, as_of, story, view.chosen or "")


def _told(pod: Pod) -> str:
    """What the pod was told when it was refused; "" if it was not."""
    condition = pod.condition(POD_SCHEDULED)
    return condition.message if condition is not None and condition.status == "False" else ""


def _refused_later(what_if: WhatIf, pod: Pod, chosen: str, told: str) -> Step | None:
    """How a pod that fits alone was refused with its group, or after its node had been chosen."""
    if what_if.scheduler.group_questions is not None and pod.group_key:
        text = f"it fits on {chosen}, but its group does not fit: see podgroup/{pod.group_key}"
        return Step(_GROUP, "rejected", text)
    queued = what_if.scheduler.queue.get(pod.key)
    if queued is None or not queued.given_up:
        return None
    by = ", ".join(sorted(queued.rejectors))
    return given_up_step(queued.given_up, f"{by}: {told}" if by else told)


def _explanation(
    view: DecisionView, state: str, as_of: str, story: tuple[Step, ...], node: str
) -> Explanation:
    message = view.fit_error
    if view.post_filtering is not None and view.post_filtering.message:
        message = f"{message} {view.post_filtering.message}"
    return Explanation(
        pod=view.pod.key,
        state=state,
        node=node,
        as_of=as_of,
        message=message,
        story=story,
        matrix=view.matrix,
        margin=view.margin,
        tied=view.tied,
    )


def _binding(view: DecisionView, end: str) -> Iterator[Step]:
    for point, title in _AFTER_CHOICE:
        plugins = view.plugins.get(point, ())
        if plugins:
            text = end if title == "Bind" else "passed"
            yield Step(title, "passed", f"{', '.join(plugins)}: {text}")


def _at(seconds: float) -> str:
    return f"at {seconds:g}s of virtual time"
