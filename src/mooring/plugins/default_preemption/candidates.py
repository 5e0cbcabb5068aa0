"""The dry run of preemption: which pods must leave a node so that another pod fits there.

On a copy of each node, all pods of lower priority are removed. If the pod then fits, they are put
back one by one as long as it still fits: first those that a disruption budget protects, and within
that the most important first. Pods that cannot be put back are the victims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.args import DefaultPreemptionArgs
from mooring.errors import MooringError
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Status, failure, unresolvable
from mooring.objects.pod import Pod
from mooring.plugins.default_preemption.budgets import Budgets
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import PluginFailure

#: Users read this text in Events and in `kubectl describe`. It is the reference's, verbatim.
NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
NO_VICTIM_NEEDED = 'expected at least one victim pod on node "{}"'


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node where the pod would fit without some of its pods."""

    node_name: str
    #: The pods to evict, from most to least important; at least one.
    victims: tuple[Pod, ...]
    #: How many of these evictions violate a disruption budget.
    violations: int


#: The result of a trial: victims, or why preemption does not help.
Outcome = Candidate | Status


def candidates_wanted(nodes: int, args: DefaultPreemptionArgs) -> int:
    """How many candidates are enough, for this number of nodes."""
    share = nodes * args.min_candidate_nodes_percentage // 100
    return min(nodes, max(share, args.min_candidate_nodes_absolute))


@dataclass(frozen=True, slots=True)
class DryRun:
    """The dry run of one pod's preemption, one node at a time."""

    framework: Framework
    #: A clone, because filters may write to it.
    state: CycleState
    pod: Pod
    snapshot: Snapshot
    budgets: Budgets
    #: Whether a pod of lower priority may be evicted from a node; None if all may.
    is_eligible: Callable[[NodeInfo, Pod], bool] | None
    #: Sorts pods from most to least important.
    by_importance: Callable[[Iterable[Pod]], list[Pod]]

    def on_nodes(self, nodes: Iterable[NodeInfo]) -> Iterator[tuple[str, Outcome]]:
        return ((node.name, self.on_node(node)) for node in nodes)

    def on_node(self, node: NodeInfo) -> Outcome:
        potential = self.potential_victims(node)
        if not potential:
            return NO_VICTIMS
        trial = _Trial(self, node.copy(), self._state_for_one_node())
        try:
            return trial.select_victims(potential)
        except PluginFailure as error:
            return error.as_status()

    def potential_victims(self, node: NodeInfo) -> list[Pod]:
        priority, is_eligible = self.pod.priority, self.is_eligible
        lower = [pod for pod in node.pods.values() if pod.priority < priority]
        return lower if is_eligible is None else [pod for pod in lower if is_eligible(node, pod)]

    def _state_for_one_node(self) -> CycleState:
        """A clone, if a plugin updates its state when pods are added to or removed from a node."""
        return self.state.clone() if self.framework.hears_of_pods(self.state) else self.state


@dataclass(frozen=True, slots=True)
class _Trial:
    """A copy of a node and of its state, from which pods are removed and put back."""

    run: DryRun
    node: NodeInfo
    state: CycleState

    def select_victims(self, potential: Sequence[Pod]) -> Outcome:
        """Raises PluginFailure."""
        for pod in potential:
            self._remove(pod)
        status = self._filter()
        if not status.ok:
            return status
        violating, others = self.run.budgets.split(self.run.by_importance(potential))
        victims = [pod for pod in violating if not self._reprieve(pod)]
        violations = len(victims)
        victims += [pod for pod in others if not self._reprieve(pod)]
        return outcome(
            self.node.name,
            self.run.by_importance(victims) if violating and others else victims,
            violations,
        )

    def _reprieve(self, pod: Pod) -> bool:
        """Put the pod back, unless the preemptor then does not fit. Return whether it stays."""
        self.node.add_pod(pod)
        self.run.framework.run_add_pod(self.state, self.run.pod, pod, self.node)
        fits = self._filter().ok
        if not fits:
            self._remove(pod)
        return fits

    def _remove(self, pod: Pod) -> None:
        self.node.remove_pod(pod)
        self.run.framework.run_remove_pod(self.state, self.run.pod, pod, self.node)

    def _filter(self) -> Status:
        """A filter that returns an error refuses the node, like any other status."""
        run = self.run
        try:
            return run.framework.filter_node(self.state, run.pod, self.node, run.snapshot)
        except PluginFailure as error:
            return error.as_status()


def outcome(node_name: str, victims: Sequence[Pod], violations: int) -> Outcome:
    """If all pods can stay, the pod should have fitted without preemption: an error."""
    if not victims:
        return failure(MooringError(NO_VICTIM_NEEDED.format(node_name)))
    return Candidate(node_name, tuple(victims), violations)
