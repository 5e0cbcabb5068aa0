"""A cluster at one moment, with an engine that can be asked about it as often as one likes.

The engine is that of a simulation: one that has run, so that everything is placed, or one that was only
told of the objects. Questions leave no trace: what they change, they change in a trial (`Engine.trial`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.explain.matrix import Matrix, matrix_of
from mooring.explain.post_filter import PostFiltering, ask_post_filter
from mooring.framework.applied_changes import with_devices
from mooring.framework.changes import Change
from mooring.framework.cycle_state import CycleState
from mooring.framework.node_changes import AddNodes
from mooring.framework.status import Status
from mooring.objects.devices import ResourceClaim
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolumeClaim
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import PluginFailure
from mooring.scheduler.decision import Decision
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
    #: The Score plugins that had nothing to say about a pod like this one.
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


class _Nodes(Mapping[str, Node]):
    """The nodes of a cluster by name, without a copy: most changes look at one of them or at none."""

    def __init__(self, infos: Mapping[str, NodeInfo]) -> None:
        self._infos = infos

    def __getitem__(self, name: str) -> Node:
        node = self._infos[name].node
        if node is None:
            raise KeyError(name)
        return node

    def __iter__(self) -> Iterator[str]:
        return (name for name, info in self._infos.items() if info.node is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


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
        simulation.scheduler.load(simulation.in_gangs(objects))
        return cls(simulation)

    def close(self) -> None:
        self.simulation.close()

    def snapshot(self) -> Snapshot:
        return self.cluster.snapshot()

    # Questions

    def look(self, pod: Pod, decision: Decision | None = None) -> DecisionView:
        """Decide on the pod in full, or take a decision that was just taken.

        Raises PluginFailure, ExtenderError, and NoNodesError if there are no nodes.
        """
        framework = self.scheduler.framework(pod)
        if decision is None or not decision.diagnosis.has_verdicts:
            taken = decision.node_name if decision is not None else None
            decision = self.scheduler.decide_in_full(pod)
            decision.node_name = taken or decision.node_name
        return _look(framework, decision)

    def look_without(self, pod: Pod) -> DecisionView:
        """Decide on a pod that has a node, as if it had none."""
        # NodeName would refuse every other node.
        unplaced = pod.placed_on("")
        with self.scheduler.trial():
            if pod.uid in self.cluster.pods:
                self.cluster.remove_pod(pod)
            return self.look(unplaced)

    def look_and_preempt(self, pod: Pod) -> DecisionView:
        """As `look`; if the pod fits nowhere, what preemption would do, without doing it."""
        framework = self.scheduler.framework(pod)
        state = CycleState()
        decision = self.scheduler.decide_in_full(pod, state)
        look = _look(framework, decision)
        if decision.node_name is not None:
            return look
        return replace(look, post_filtering=ask_post_filter(framework, state, decision))

    def fits(self, pod: Pod, changes: Sequence[Change] = ()) -> bool:
        """Whether the pod would be let in and fit somewhere, were these changes made."""
        with self.changed(changes):
            changed = on_pod(pod, changes)
            try:
                return self.scheduler.gate(changed) is None and self.scheduler.fits(changed)
            except PluginFailure:
                return False

    def destination(self, pod: Pod, changes: Sequence[Change]) -> tuple[str, int]:
        """Where the pod would go with these changes, and how many nodes would take it."""
        with self.changed(changes):
            changed = on_pod(pod, changes)
            decision = self.scheduler.decide_in_full(changed)
            return decision.node_name or "", decision.feasible_count

    @contextmanager
    def changed(self, changes: Sequence[Change]) -> Iterator[None]:
        """A trial with the changes that concern nodes, other pods and other objects."""
        with self.scheduler.trial():
            for change in changes:
                self._make(change)
            yield

    def _make(self, change: Change) -> None:
        cluster = self.cluster
        if change.node_name:
            info = cluster.infos[change.node_name]
            assert info.node is not None
            cluster.update_node(change.on_node(info.node))
        gone = set(change.removed_pods)
        for pod in [pod for pod in cluster.pods.values() if pod.key in gone] if gone else ():
            cluster.remove_pod(pod)
        listers = cluster.listers
        for key in change.changed_claims:
            claim = listers.get(PersistentVolumeClaim, key)
            if claim is not None:
                listers.put(change.on_claim(claim))
        for key in change.resource_claims:
            resource_claim = listers.get(ResourceClaim, key)
            if resource_claim is not None:
                listers.put(change.on_resource_claim(resource_claim))
        pods = (
            {change.like: list(cluster.infos[change.like].pods.values())}
            if isinstance(change, AddNodes)
            else {}
        )
        slices = cluster.device_pools.slices.slices
        for obj in with_devices(change, change.added(self.nodes(), pods), slices):
            if isinstance(obj, Node):
                cluster.add_node(obj)
            elif isinstance(obj, Pod):
                cluster.add_pod(obj)
            else:
                listers.put(obj)

    def nodes(self) -> Mapping[str, Node]:
        return _Nodes(self.cluster.infos)


def on_pod(pod: Pod, changes: Sequence[Change]) -> Pod:
    for change in changes:
        pod = change.on_pod(pod)
    return pod


def _look(framework: Framework, decision: Decision) -> DecisionView:
    matrix = matrix_of(decision)
    outcome, scores = decision.pre_filter, decision.scores
    names = decision.diagnosis.snapshot.columns.names
    return DecisionView(
        pod=decision.pod,
        profile=framework.profile_name,
        matrix=matrix,
        pre_filter=outcome.status,
        left_by_pre_filter=None if outcome.node_names is None else len(outcome.node_names),
        narrowed_by=tuple(sorted(outcome.narrowed_by)),
        skipped_scores=frozenset(framework.names_at(Point.SCORE)).difference(
            scores.plugins if scores is not None else ()
        ),
        chosen=decision.node_name,
        tied=tuple(sorted(names[row] for row in decision.winners.tolist())),
        fit_error="" if decision.node_name is not None else decision.diagnosis.fit_error,
        plugins={point: tuple(framework.names_at(point)) for point in framework.points},
    )
