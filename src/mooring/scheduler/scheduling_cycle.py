"""Finding a node for one pod: PreFilter → Filter → PreScore → Score → Normalize → pick.

Extenders have their say after Filter and after Score.

This is the part of a cycle that only looks. It changes neither the cluster nor the queue, so
explanations and what-if questions run it as often as they like.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Mask
from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import ExtenderError, MooringError
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import PostFilterResult
from mooring.framework.status import SUCCESS, Code, Status
from mooring.objects.pod import Pod
from mooring.runtime.filtering import NOT_ASKED, FilterMatrix
from mooring.runtime.framework import Framework, PreFilterOutcome
from mooring.runtime.plugin_calls import PluginFailure
from mooring.runtime.ranking import Rankings
from mooring.runtime.scoring import ScoreMatrix
from mooring.scheduler.choosing import TieBreak
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.extenders import EXTENDER, Extenders, Survivors, bare
from mooring.scheduler.refusals import Refusals

_LOG = logging.getLogger(__name__)

#: Below this many nodes all are looked at, whatever the percentage; and never fewer are wanted.
FEWEST_NODES_TO_FIND = 100


class NoNodesError(MooringError):
    """There is not a single node."""

    def __init__(self) -> None:
        super().__init__("no nodes available to schedule pods")


_PASSED = PreFilterOutcome(SUCCESS)


class _Held(NamedTuple):
    """A node that was held for a pod, and why it does not take it."""

    row: int
    status: Status


def _no_rows() -> NDArray[np.intp]:
    return np.empty(0, np.intp)


@dataclass(slots=True)
class Decision:
    """Where a pod goes, or why nowhere, with everything that led there."""

    pod: Pod
    pre_filter: PreFilterOutcome
    diagnosis: Diagnosis
    #: The node taken; None if none fits.
    node_name: str | None = None
    #: How many nodes are feasible.
    feasible_count: int = 0
    #: intp[...]: the feasible rows, and the best of them; empty if a kept ranking decided.
    feasible: NDArray[np.intp] = field(default_factory=_no_rows)
    winners: NDArray[np.intp] = field(default_factory=_no_rows)
    #: None where there was nothing to compare (one feasible node, or none), or a kept ranking decided.
    scores: ScoreMatrix | None = None
    #: How many nodes were looked at.
    evaluated: int = 0
    #: Whether plugins score the nodes as if they were empty; see `extenders.Survivors`.
    bare: bool = False
    #: What PostFilter did for a pod that fits nowhere; None until then, or if it did nothing.
    post_filter: PostFilterResult | None = None
    #: What the attempt at a twin came to, if this decision is that twin's; then PostFilter is not asked.
    conclusion: Status | None = None


@dataclass(slots=True)
class SearchStart:
    """Where the next search starts, in the snapshot's order; one for all profiles."""

    position: int = 0

    def advance(self, processed: int, nodes: int) -> None:
        self.position = (self.position + processed) % nodes


@dataclass(slots=True)
class NodeSearch:
    """How a profile looks for nodes."""

    tie_break: TieBreak
    #: What is kept for a pod's twins: where they fit, and that they fit nowhere. None evaluates every
    #: pod in full.
    rankings: Rankings | None = None
    refusals: Refusals | None = None
    #: 0 looks at every node: a pass over all costs less than the reference's sample.
    percentage_of_nodes: int = 0
    start: SearchStart = field(default_factory=SearchStart)
    extenders: Extenders = field(default_factory=Extenders)

    def schedule_pod(
        self, framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> Decision:
        """Raises NoNodesError, or PluginFailure or ExtenderError if one of those fails."""
        if not len(snapshot):
            raise NoNodesError
        kept = self._from_refusal(state, pod, snapshot) or self._from_ranking(state, pod, snapshot)
        if kept is not None:
            return kept
        decision = self.find_nodes_that_fit(framework, state, pod, snapshot)
        feasible = decision.feasible
        decision.feasible_count = len(feasible)
        if not len(feasible):
            if self.refusals is not None:
                self.refusals.keep(decision, state)
            return decision
        if len(feasible) == 1:
            decision.winners = feasible
        else:
            decision.scores = self.prioritize(framework, state, decision)
            decision.winners = _best(decision.scores)
        row = self.tie_break(decision.winners, snapshot)
        decision.node_name = snapshot.columns.names[row]
        return decision

    def _from_refusal(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Decision | None:
        """The decision about a pod of the same class that fits nowhere, if it still holds."""
        if self.refusals is None:
            return None
        known = self.refusals.recall(state, pod, snapshot)
        return replace(known[0], pod=pod, conclusion=known[1]) if known is not None else None

    def _from_ranking(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Decision | None:
        """The same choice as by evaluating in full, if it can be had for less."""
        if self.rankings is None or pod.nominated_node_name:
            return None
        # What the plugins leave in a state counts only if this is where the answer comes from.
        tried = CycleState(record_plugin_metrics=state.record_plugin_metrics)
        choice = self.rankings.choose(tried, pod, snapshot)
        if choice is None:
            return None
        state.adopt(tried)
        return Decision(
            pod,
            _PASSED,
            Diagnosis(snapshot),
            node_name=snapshot.columns.names[choice.row],
            feasible_count=choice.feasible,
            evaluated=len(snapshot),
        )

    def find_nodes_that_fit(
        self, framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> Decision:
        outcome = framework.run_pre_filters(state, pod, snapshot)
        diagnosis = Diagnosis(snapshot, unschedulable_plugins=set(outcome.narrowed_by))
        decision = Decision(pod, outcome, diagnosis)
        if not outcome.status.ok:
            diagnosis.absent = outcome.status
            diagnosis.pre_filter_message = outcome.status.message
            diagnosis.blame(outcome.status)
            return decision
        held = self._try_nominated_node(decision, framework, state, snapshot)
        if len(decision.feasible):
            return decision
        looked_at = _candidates(outcome, snapshot, diagnosis)
        matrix = framework.run_filters(state, pod, snapshot, looked_at)
        diagnosis.matrix = matrix
        self._take_feasible(decision, matrix, looked_at, scoring=self._compares(framework))
        processed = decision.evaluated
        if held is not None and matrix.refused_by[held.row] == NOT_ASKED:
            matrix.refuse(held.row, held.status)
            processed += 1
        self.start.advance(processed, len(snapshot))
        self._pass_extenders(decision)
        if not len(decision.feasible):
            for status, _ in matrix.refusals():
                diagnosis.blame(status)
        return decision

    def _try_nominated_node(
        self, decision: Decision, framework: Framework, state: CycleState, snapshot: Snapshot
    ) -> _Held | None:
        """A node held for the pod is tried first, and taken if it fits; else why plugins refuse it.

        What goes wrong here is no more than logged: the search of all nodes has the last word.
        """
        pod = decision.pod
        node = snapshot.get(pod.nominated_node_name) if pod.nominated_node_name else None
        if node is None:
            return None
        try:
            status = framework.filter_node(state, pod, node, snapshot)
            if not status.ok:
                return _Held(node.row, status)
            survivors = self._ask_extenders(decision, np.array([node.row], np.intp))
        except (PluginFailure, ExtenderError) as error:
            _LOG.warning("node %s nominated for %s: %s", node.name, pod.key, error)
            return None
        decision.feasible = survivors.rows
        decision.evaluated = 1
        return None

    def _pass_extenders(self, decision: Decision) -> None:
        """Raises ExtenderError."""
        survivors = self._ask_extenders(decision, decision.feasible)
        if survivors.removed_by:
            decision.diagnosis.unschedulable_plugins.add(EXTENDER)
        decision.diagnosis.removed_by = survivors.removed_by
        decision.feasible = survivors.rows
        decision.bare = survivors.bare

    def _ask_extenders(self, decision: Decision, rows: NDArray[np.intp]) -> Survivors:
        diagnosis = decision.diagnosis
        survivors = self.extenders.filter(decision.pod, diagnosis.snapshot, rows)
        diagnosis.by_extenders |= survivors.statuses
        return survivors

    def _take_feasible(
        self, decision: Decision, matrix: FilterMatrix, looked_at: Mask, *, scoring: bool
    ) -> None:
        snapshot = matrix.snapshot
        candidates = int(np.count_nonzero(looked_at))
        wanted = self._number_to_find(candidates, scoring=scoring)
        decision.evaluated = candidates
        if wanted >= candidates:
            decision.feasible = np.flatnonzero(matrix.feasible)
            return
        # In the snapshot's order from where the last search ended, up to one node more than wanted.
        in_order = np.roll(snapshot.rows, -self.start.position)
        in_order = in_order[looked_at[in_order]]
        feasible = matrix.feasible[in_order]
        found = np.cumsum(feasible)
        processed = int(np.searchsorted(found, wanted + 1))
        decision.feasible = in_order[:processed][feasible[:processed]]
        decision.evaluated = processed
        if self.extenders.filter_any:
            # Should they refuse all of these, the pod fits nowhere, and nothing is known of the rest.
            matrix.forget(in_order[processed:])

    def _number_to_find(self, nodes: int, *, scoring: bool) -> int:
        if not self.percentage_of_nodes:
            return nodes
        if not scoring:
            return 1
        if nodes < FEWEST_NODES_TO_FIND:
            return nodes
        return max(FEWEST_NODES_TO_FIND, nodes * self.percentage_of_nodes // 100)

    def _compares(self, framework: Framework) -> bool:
        """Whether more than one feasible node is of any use."""
        extenders = self.extenders
        return bool(
            framework.points[Point.SCORE] or extenders.filter_any or extenders.prioritize_any
        )

    def prioritize(
        self, framework: Framework, state: CycleState, decision: Decision
    ) -> ScoreMatrix:
        pod, snapshot, feasible = decision.pod, decision.diagnosis.snapshot, decision.feasible
        framework.run_pre_scores(state, pod, snapshot, feasible)
        seen_as = bare(snapshot, feasible) if decision.bare else None
        scores = framework.run_scores(state, pod, snapshot, feasible, seen_as)
        self.extenders.add_scores(pod, snapshot, scores)
        return scores


def _best(scores: ScoreMatrix) -> NDArray[np.intp]:
    best: NDArray[np.intp] = scores.rows[scores.total == scores.total.max()]
    return best


def _candidates(outcome: PreFilterOutcome, snapshot: Snapshot, diagnosis: Diagnosis) -> Mask:
    columns = snapshot.columns
    alive = columns.alive[: columns.size]
    if outcome.node_names is None:
        return alive
    plugins = " ".join(sorted(outcome.narrowed_by))
    diagnosis.absent = Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{plugins}]",))
    looked_at = np.zeros_like(alive)
    rows = [columns.row_of[name] for name in outcome.node_names if name in snapshot]
    looked_at[rows] = True
    return looked_at
