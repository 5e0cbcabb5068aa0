"""The dry run of preemption: which pods must leave a node so that another pod fits there.

On a copy of each node, all pods of lower priority are removed. If the pod then fits, they are put
back one by one as long as it still fits: first those that a disruption budget protects, and within
that the most important first. Pods that cannot be put back are the victims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from mooring.objects.pod import Pod
from mooring.plugin import (
    DryRun,
    MooringError,
    NodeInfo,
    NodeTrial,
    PluginFailure,
    Snapshot,
    Status,
    failure,
    unresolvable,
)
from mooring.plugin.args import DefaultPreemptionArgs
from mooring.plugins.default_preemption.budgets import Budgets

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
class VictimSearch:
    """The search for one pod's victims, one node at a time."""

    filters: DryRun
    budgets: Budgets
    #: Whether a pod of lower priority may be evicted from a node; None if all may.
    is_eligible: Callable[[NodeInfo, Pod], bool] | None
    #: Sorts pods from most to least important.
    by_importance: Callable[[Iterable[Pod]], list[Pod]]
    #: Node name → how many of its potential victims each budget covers, by the budget's key. Only for nodes
    #: where the order of the victims was asked for.
    covered: dict[str, dict[str, int]] = field(default_factory=dict, kw_only=True)

    @property
    def pod(self) -> Pod:
        return self.filters.pod

    @property
    def snapshot(self) -> Snapshot:
        return self.filters.snapshot

    def on_node(self, node: NodeInfo) -> Outcome:
        potential = self.potential_victims(node)
        if not potential:
            return NO_VICTIMS
        try:
            return self._select_victims(self.filters.on_node(node), potential)
        except PluginFailure as error:
            return error.as_status()

    def potential_victims(self, node: NodeInfo) -> list[Pod]:
        priority, is_eligible = self.pod.priority, self.is_eligible
        lower = [pod for pod in node.pods.values() if pod.priority < priority]
        return lower if is_eligible is None else [pod for pod in lower if is_eligible(node, pod)]

    def split(
        self, node_name: str, potential: Sequence[Pod]
    ) -> tuple[Sequence[Pod], Sequence[Pod]]:
        """The potential victims that a budget protects, and the others, the most important first."""
        covered = self.covered[node_name] = {}
        return self.budgets.split(self.by_importance(potential), covered)

    def _select_victims(self, trial: NodeTrial, potential: Sequence[Pod]) -> Outcome:
        """Raises PluginFailure."""
        for pod in potential:
            trial.remove(pod)
        status = trial.filter()
        if not status.ok:
            return status
        violating, others = self.split(trial.node.name, potential)
        victims = [pod for pod in violating if not _reprieve(trial, pod)]
        violations = len(victims)
        victims += [pod for pod in others if not _reprieve(trial, pod)]
        return outcome(
            trial.node.name,
            self.by_importance(victims) if violating and others else victims,
            violations,
        )


def _reprieve(trial: NodeTrial, pod: Pod) -> bool:
    """Put the pod back, unless the preemptor then does not fit. Return whether it stays."""
    trial.add(pod)
    fits = trial.filter().ok
    if not fits:
        trial.remove(pod)
    return fits


def outcome(node_name: str, victims: Sequence[Pod], violations: int) -> Outcome:
    """If all pods can stay, the pod should have fitted without preemption: an error."""
    if not victims:
        return failure(MooringError(NO_VICTIM_NEEDED.format(node_name)))
    return Candidate(node_name, tuple(victims), violations)
