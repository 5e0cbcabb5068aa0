"""A cluster at one moment, with an engine that can be asked about it as often as one likes.

The engine is that of a simulation: one that has run, so that everything is placed, or one that was only
told of the objects. Questions leave no trace: what they change, they put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import MooringError
from mooring.explain.changes import AddNodes, Change
from mooring.explain.matrix import Matrix, matrix_of
from mooring.explain.post_filter import PostFiltering, ask_post_filter
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Status
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import PluginFailure
from mooring.scheduler.choosing import first_by_name
from mooring.scheduler.scheduling_cycle import Decision, NodeSearch, SearchStart
from mooring.sim.recorder import no_profile
from mooring.sim.simulation import SimOptions, Simulation


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One decision in full, as data that no longer depends on the cluster."""

    pod: Pod
    profile: str
    matrix: Matrix
    #: What PreFilter said, and the nodes it left; None leaves all.
    pre_filter: Status
    left_by_pre_filter: int | None
    narrowed_by: tuple[str, ...]
    #: The plugins that had nothing to say about a pod like this one.
    skipped_filters: frozenset[str]
    skipped_scores: frozenset[str]
    #: The node that was taken; None if none fits.
    chosen: str | None
    #: The equally good nodes, by name; more than one were told apart by the tie-break.
    tied: tuple[str, ...]
    #: The message of a pod that fits nowhere; "" if it fits.
    fit_error: str
    #: The plugins at each point, in order.
    plugins: dict[Point, tuple[str, ...]]
    #: None if the pod fits, or PostFilter was not asked.
    post_filtering: PostFiltering | None = None

    @property
    def margin(self) -> int | None:
        """By how much the best node leads the next one that is not as good; None if there is none."""
        totals = self.matrix.totals
        behind = totals[totals < totals[0]] if len(totals) else totals
        return int(totals[0] - behind[0]) if len(behind) else None


class WhatIf:
    """Ask what would become of a pod, as things stand."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.scheduler = simulation.scheduler
        self.cluster = simulation.scheduler.cluster

    @classmethod
    def as_read(cls, objects: Iterable[KubeObject], options: SimOptions | None = None) -> WhatIf:
        """What the objects say and nothing more: no pod is placed. Close its simulation when done."""
        simulation = Simulation(options)
        scheduler = simulation.scheduler
        waiting: list[Pod] = []
        for obj in objects:
            if isinstance(obj, Node):
                scheduler.cluster.add_node(obj)
            elif not isinstance(obj, Pod):
                scheduler.cluster.listers.put(obj)
            elif obj.node_name and not obj.finished:
                # Past the handlers: no pod waits yet that could be glad of it.
                scheduler.cluster.add_pod(obj)
                scheduler.observed_pods[obj.key] = obj
            elif not obj.finished:
                waiting.append(obj)
        for pod in waiting:
            simulation.handlers.added(pod)
        return cls(simulation)

    def close(self) -> None:
        self.simulation.close()

    def snapshot(self) -> Snapshot:
        return self.cluster.snapshot()

    def pod(self, key: str) -> Pod | None:
        return self.scheduler.observed_pods.get(key)

    def framework(self, pod: Pod) -> Framework | None:
        """None if no profile goes by the pod's scheduler name."""
        return self.scheduler.frameworks.get(pod.scheduler_name)

    # Questions

    def look(self, pod: Pod, decision: Decision | None = None) -> DecisionView:
        """Decide on the pod in full, or take a decision that was just taken.

        Raises PluginFailure, ExtenderError, and NoNodesError if there are no nodes.
        """
        framework = self._framework(pod)
        if decision is None or not decision.diagnosis.has_verdicts:
            taken = decision.node_name if decision is not None else None
            decision, _ = self._decide(framework, pod)
            decision.node_name = taken or decision.node_name
        return _look(framework, decision)

    def look_without(self, pod: Pod) -> DecisionView:
        """Decide on a pod that has a node, as if it had none."""
        # NodeName would refuse every other node.
        anew = pod.placed_on("")
        known = self.cluster.pods.get(pod.uid)
        if known is None:
            return self.look(anew)
        self.cluster.remove_pod(known)
        try:
            return self.look(anew)
        finally:
            self.cluster.add_pod(known)

    def look_and_preempt(self, pod: Pod) -> DecisionView:
        """As `look`; if the pod fits nowhere, what preemption would do, without doing it."""
        framework = self._framework(pod)
        decision, state = self._decide(framework, pod)
        look = _look(framework, decision)
        if decision.node_name is not None:
            return look
        return replace(look, post_filtering=ask_post_filter(framework, state, decision))

    def gate(self, pod: Pod) -> Status | None:
        """The PreEnqueue that keeps the pod from being tried; None if none does."""
        framework = self._framework(pod)
        for call in framework.points[Point.PRE_ENQUEUE]:
            assert call.pre_enqueue is not None
            with call.guard("PreEnqueue", 'running PreEnqueue plugin "{name}"', CycleState()):
                status: Status | None = call.pre_enqueue(pod)
            if status is not None and not status.ok:
                return status.by(call.name)
        return None

    def fits(self, pod: Pod, changes: Sequence[Change] = ()) -> bool:
        """Whether the pod would be let in and fit somewhere, were these changes made."""
        with self.changed(changes):
            changed = on_pod(pod, changes)
            try:
                if self.gate(changed) is not None:
                    return False
                framework = self._framework(changed)
                decision = self._search(framework).find_nodes_that_fit(
                    framework, CycleState(), _unnominated(changed), self.snapshot()
                )
            except PluginFailure:
                return False
            return bool(len(decision.feasible))

    def destination(self, pod: Pod, changes: Sequence[Change]) -> tuple[str, int]:
        """Where the pod would go with these changes, and how many nodes would take it."""
        with self.changed(changes):
            changed = on_pod(pod, changes)
            decision, _ = self._decide(self._framework(changed), changed)
            return decision.node_name or "", decision.feasible_count

    @contextmanager
    def changed(self, changes: Sequence[Change]) -> Iterator[None]:
        """Make the changes that concern nodes and other pods; put everything back at the end."""
        undo: list[KubeObject | tuple[str, KubeObject]] = []
        try:
            for change in changes:
                self._make(change, undo)
            yield
        finally:
            for step in reversed(undo):
                self._put_back(step)

    def _make(self, change: Change, undo: list[KubeObject | tuple[str, KubeObject]]) -> None:
        cluster = self.cluster
        if change.node_name:
            info = cluster.infos[change.node_name]
            assert info.node is not None
            changed = change.on_node(info.node)
            if changed is not info.node:
                undo.append(info.node)
                cluster.update_node(changed)
            gone = set(change.removed_pods)
            for pod in [pod for pod in info.pods.values() if pod.key in gone]:
                undo.append(pod)
                cluster.remove_pod(pod)
        if isinstance(change, AddNodes):
            of_template = list(cluster.infos[change.like].pods.values())
            for obj in change.added(self.nodes(), {change.like: of_template}):
                undo.append(("added", obj))
                if isinstance(obj, Node):
                    cluster.add_node(obj)
                elif isinstance(obj, Pod):
                    cluster.add_pod(obj)

    def _put_back(self, step: KubeObject | tuple[str, KubeObject]) -> None:
        match step:
            case Node():
                self.cluster.update_node(step)
            case Pod():
                self.cluster.add_pod(step)
            case (_, Node() as node):
                self.cluster.remove_node(node.name)
            case (_, Pod() as pod):
                self.cluster.remove_pod(pod)

    def nodes(self) -> dict[str, Node]:
        infos = self.cluster.infos
        return {name: info.node for name, info in infos.items() if info.node is not None}

    # The engine

    def _framework(self, pod: Pod) -> Framework:
        framework = self.framework(pod)
        if framework is None:
            raise MooringError(no_profile(pod))
        return framework

    def _decide(self, framework: Framework, pod: Pod) -> tuple[Decision, CycleState]:
        state = CycleState()
        search = self._search(framework)
        return search.schedule_pod(framework, state, _unnominated(pod), self.snapshot()), state

    def _search(self, framework: Framework) -> NodeSearch:
        """Over every node and in full: what was kept of other attempts knows the outcome only.

        It starts where the next attempt starts, and does not move that place.
        """
        search = self.scheduler.searches[framework.profile_name]
        return replace(
            search,
            evaluations=None,
            refusals=None,
            percentage_of_nodes=0,
            tie_break=first_by_name,
            start=SearchStart(search.start.position),
        )


def on_pod(pod: Pod, changes: Sequence[Change]) -> Pod:
    for change in changes:
        pod = change.on_pod(pod)
    return pod


def _unnominated(pod: Pod) -> Pod:
    """A node that is held for the pod would be tried first, and the others not be looked at."""
    return pod.with_status(nominated_node_name="") if pod.nominated_node_name else pod


def _look(framework: Framework, decision: Decision) -> DecisionView:
    matrix = matrix_of(decision)
    outcome, scores = decision.pre_filter, decision.scores
    names = decision.diagnosis.snapshot.columns.names
    asked = [column.plugin for column in matrix.filters]
    return DecisionView(
        pod=decision.pod,
        profile=framework.profile_name,
        matrix=matrix,
        pre_filter=outcome.status,
        left_by_pre_filter=None if outcome.node_names is None else len(outcome.node_names),
        narrowed_by=tuple(sorted(outcome.narrowed_by)),
        skipped_filters=frozenset(framework.names_at(Point.FILTER)).difference(asked),
        skipped_scores=frozenset(framework.names_at(Point.SCORE)).difference(
            scores.plugins if scores is not None else ()
        ),
        chosen=decision.node_name,
        tied=tuple(sorted(names[row] for row in decision.winners.tolist())),
        fit_error="" if decision.node_name is not None else decision.diagnosis.fit_error,
        plugins={point: tuple(framework.names_at(point)) for point in framework.points},
    )
