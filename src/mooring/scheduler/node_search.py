"""Finding a node for one pod: PreFilter → Filter → PreScore → Score → Normalize → pick.

Extenders have their say after Filter and after Score.

This is the part of a scheduling cycle that changes nothing: neither the cluster nor the queue. Explanations
and what-if questions run it as often as they like.
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
from mooring.errors import ExtenderError
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Code, Status
from mooring.objects.devices import DeviceClass
from mooring.objects.pod import Pod
from mooring.runtime.evaluation import Evaluation, Filtered, PreFilterOutcome
from mooring.runtime.evaluations import Evaluations
from mooring.runtime.filtering import NOT_ASKED
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import PluginFailure
from mooring.runtime.question import Question
from mooring.scheduler.choosing import TieBreak, first_by_name
from mooring.scheduler.decision import Decision, NoNodesError
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.extenders import EXTENDER, Extenders, Survivors, bare
from mooring.scheduler.refusals import Refusals

_LOG = logging.getLogger(__name__)

#: With fewer nodes than this, all are looked at, and the search never wants fewer feasible nodes.
FEWEST_NODES_TO_FIND = 100


class _Held(NamedTuple):
    """A node that was held for a pod, and why it does not take it."""

    row: int
    status: Status


@dataclass(slots=True)
class SearchStart:
    """Where the next search starts, in the snapshot's order; one for all profiles."""

    position: int = 0

    def advance(self, processed: int, nodes: int) -> None:
        self.position = (self.position + processed) % nodes


@dataclass(frozen=True, slots=True)
class PlacedCopies:
    """The places of copies of a pod."""

    #: The node of each copy, in order.
    node_names: list[str]
    #: Why a further copy fits nowhere; "" if no further one was asked for.
    fit_error: str = ""


@dataclass(slots=True)
class NodeSearch:
    """How a profile looks for nodes."""

    tie_break: TieBreak
    #: What plugins answered about pods that they treat alike; None asks every plugin each time.
    evaluations: Evaluations | None = None
    #: What is known of pods that fit nowhere; None finds it out each time.
    refusals: Refusals | None = None
    #: 0 looks at every node: a pass over all costs less than the reference's sample.
    percentage_of_nodes: int = 0
    start: SearchStart = field(default_factory=SearchStart)
    extenders: Extenders = field(default_factory=Extenders)

    def copy(self) -> NodeSearch:
        """The same search; where it ends does not move the start of the next attempt."""
        return replace(self, start=SearchStart(self.start.position))

    def in_full(self) -> NodeSearch:
        """Look at every node, ask every plugin, and break ties by name."""
        return NodeSearch(first_by_name, extenders=self.extenders)

    def without_refusals(self) -> NodeSearch:
        """The same search, which finds out each time why a pod fits nowhere."""
        return replace(self, refusals=None)

    def schedule_pod(
        self,
        framework: Framework,
        state: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        within: Mask | None = None,
    ) -> Decision:
        """Raises NoNodesError, or PluginFailure or ExtenderError if one of those fails.

        within
            bool[row]: the rows of the placement that the pod must go to. PreFilter and preemption
            see all nodes. Only for a search `without_refusals`.
        """
        if not snapshot.order or (within is not None and not within.any()):
            raise NoNodesError
        known = self.refusals.recall(state, pod) if self.refusals is not None else None
        if known is not None:
            return known
        evaluation = self._evaluation_for(framework, pod)
        question = Question(state, pod, snapshot)
        decision = self._find_nodes(evaluation, question, within)
        feasible = decision.feasible
        decision.feasible_count = len(feasible)
        if not len(feasible):
            return decision
        if len(feasible) == 1:
            row = int(feasible[0])
        else:
            row = self._prioritize(evaluation, question, decision)
        decision.node_name = snapshot.columns.names[row]
        return decision

    def place_copies(
        self, framework: Framework, pod: Pod, snapshot: Snapshot, most: int
    ) -> PlacedCopies | None:
        """As `schedule_pod` for one copy after the other; None if that takes one decision each.

        Raises PluginFailure.
        """
        if (
            self.evaluations is None
            or self.percentage_of_nodes
            or len(self.extenders)
            or framework.nominator.has_any
            or not len(snapshot)
            # Host ports are no sums, and devices are not among the columns.
            or pod.host_ports
            or any(True for _ in snapshot.listers.all(DeviceClass))
            or not pod.held.keys() <= snapshot.columns.resources.keys()
        ):
            return None
        evaluation = self.evaluations.of(pod, keep=True)
        question = Question(CycleState(), pod, snapshot)
        outcome = evaluation.run_pre_filters(question)
        if not outcome.status.ok or outcome.node_names is not None:
            return None
        filtered = evaluation.run_filters(question)
        copies = evaluation.place_copies(question, filtered, most)
        if copies is None:
            return None
        names = snapshot.columns.names
        node_names = [names[row] for row in copies.rows]
        if len(node_names) == most:
            return PlacedCopies(node_names)
        filtered.matrix().refuse(copies.refused)
        return PlacedCopies(node_names, Diagnosis(snapshot, filtered).fit_error)

    def find_nodes_that_fit(
        self, framework: Framework, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> Decision:
        """PreFilter and Filter alone: no node is chosen."""
        evaluation = self._evaluation_for(framework, pod)
        return self._find_nodes(evaluation, Question(state, pod, snapshot))

    def _evaluation_for(self, framework: Framework, pod: Pod) -> Evaluation:
        if self.evaluations is None:
            return Evaluation.in_full(framework, self.tie_break.keys)
        return self.evaluations.of(pod)

    def _find_nodes(
        self, evaluation: Evaluation, question: Question, within: Mask | None = None
    ) -> Decision:
        state, pod, snapshot = question.state, question.pod, question.snapshot
        outcome = evaluation.run_pre_filters(question)
        diagnosis = Diagnosis(snapshot, unschedulable_plugins=set(outcome.narrowed_by))
        if within is not None:
            diagnosis.within = int(np.count_nonzero(within))
        decision = Decision(pod, outcome, diagnosis)
        if not outcome.status.ok:
            diagnosis.absent = outcome.status
            diagnosis.pre_filter_message = outcome.status.message
            diagnosis.blame(outcome.status)
            if self.refusals is not None:
                self.refusals.keep(decision, state)
            return decision
        held = None
        if pod.nominated_node_name:
            held = self._try_nominated_node(decision, evaluation, state, snapshot, within)
            if len(decision.feasible):
                return decision
        looked_at = _candidates(outcome, snapshot, diagnosis)
        if within is not None:
            looked_at = within if looked_at is None else looked_at & within
        filtered = evaluation.run_filters(question, looked_at)
        if self.refusals is not None and not filtered.count:
            known = self.refusals.recall_verdicts(decision, evaluation, filtered)
            if known is not None:
                return known
        diagnosis.filtered = filtered
        decision.feasible = filtered.rows
        nodes = len(snapshot.order)
        decision.evaluated = nodes if looked_at is None else int(np.count_nonzero(looked_at))
        if self.percentage_of_nodes:
            self._sample(decision, filtered, looked_at, scoring=self._compares(evaluation))
        processed = decision.evaluated
        if held is not None and diagnosis.matrix.refused_by[held.row] == NOT_ASKED:
            diagnosis.matrix.refuse({held.row: held.status})
            processed += 1
        self.start.advance(processed, nodes)
        if self.extenders.any:
            self._pass_extenders(decision)
        if not len(decision.feasible):
            for status, _ in diagnosis.matrix.refusals():
                diagnosis.blame(status)
            if self.refusals is not None:
                self.refusals.keep(decision, state, evaluation, filtered.version)
        return decision

    def _try_nominated_node(
        self,
        decision: Decision,
        evaluation: Evaluation,
        state: CycleState,
        snapshot: Snapshot,
        within: Mask | None,
    ) -> _Held | None:
        """A node held for the pod is tried first, and taken if it fits; else why plugins refuse it.

        What goes wrong here is no more than logged: the search of all nodes has the last word.
        """
        pod = decision.pod
        node = snapshot.get(pod.nominated_node_name)
        if node is None or (within is not None and not within[node.row]):
            return None
        try:
            status = evaluation.framework.filter_node(state, pod, node, snapshot)
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

    def _sample(
        self, decision: Decision, filtered: Filtered, looked_at: Mask | None, *, scoring: bool
    ) -> None:
        """Leave only as many feasible nodes as the configuration wants to find."""
        snapshot, candidates = decision.diagnosis.snapshot, decision.evaluated
        wanted = self._number_to_find(candidates, scoring=scoring)
        if wanted >= candidates:
            return
        # In the snapshot's order from where the last search ended, up to one node more than wanted.
        in_order = np.roll(snapshot.rows, -self.start.position)
        if looked_at is not None:
            in_order = in_order[looked_at[in_order]]
        feasible = filtered.ok[in_order]
        found = np.cumsum(feasible)
        processed = int(np.searchsorted(found, wanted + 1))
        decision.feasible = in_order[:processed][feasible[:processed]]
        decision.evaluated = processed
        if self.extenders.filter_any:
            # Should they refuse all of these, the pod fits nowhere, and nothing is known of the rest.
            filtered.matrix().forget(in_order[processed:])

    def _number_to_find(self, nodes: int, *, scoring: bool) -> int:
        if not scoring:
            return 1
        if nodes < FEWEST_NODES_TO_FIND:
            return nodes
        return max(FEWEST_NODES_TO_FIND, nodes * self.percentage_of_nodes // 100)

    def _compares(self, evaluation: Evaluation) -> bool:
        """Whether more than one feasible node is of any use."""
        extenders = self.extenders
        return bool(
            evaluation.framework.points[Point.SCORE]
            or extenders.filter_any
            or extenders.prioritize_any
        )

    def _prioritize(self, evaluation: Evaluation, question: Question, decision: Decision) -> int:
        """The row to take."""
        pod, snapshot, feasible = question.pod, question.snapshot, decision.feasible
        seen_as = bare(snapshot, feasible) if decision.bare else None
        decision.scored = evaluation.run_scores(question, feasible, seen_as)
        if not self.extenders.prioritize_any:
            return decision.scored.best
        self.extenders.add_scores(pod, snapshot, decision.scored.matrix)
        return self.tie_break(decision.winners, snapshot)


def _candidates(outcome: PreFilterOutcome, snapshot: Snapshot, diagnosis: Diagnosis) -> Mask | None:
    """bool[row]: the rows to look at; None for all of them."""
    columns = snapshot.columns
    if outcome.node_names is None:
        return None
    plugins = " ".join(sorted(outcome.narrowed_by))
    diagnosis.absent = Status(Code.UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{plugins}]",))
    looked_at = np.zeros(columns.size, np.bool_)
    rows = [columns.row_of[name] for name in outcome.node_names if name in snapshot]
    looked_at[rows] = True
    return looked_at
