"""Evaluating a pod: PreFilter → Filter → PreScore → Score, doing again only what has changed.

An `Evaluation` serves all pods that every plugin of a profile treats alike. It owns the verdict on each row
and the score of each row, and knows which rows are out of date:

    refused_by[row]   the first plugin that refuses the row, of those whose answers are kept
    ok[row]           no such plugin refuses it
    total[row]        the weighted sum of the kept scores
    key[row]          total and tie-break in one number: the largest is the node to take; -1 where not ok

Plugins whose answers are not kept (they look at the rest of the cluster) are asked each time, on top of
this. A new evaluation is out of date everywhere, so its first use is a full pass; there is no other one.

Kept answers are asked for ahead of the order of the plugins. If a plugin fails, that order decides who fails,
so everything is asked once more in order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Ints, Mask, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import RANKS, Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import InvariantError
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends, PreFilterResult
from mooring.framework.status import SUCCESS, Code, Status
from mooring.framework.verdicts import UNKNOWN, RowVerdicts
from mooring.objects.pod import Pod
from mooring.runtime import filtering, scoring
from mooring.runtime.answers import Answers
from mooring.runtime.filtering import FEW_ROWS, NOT_ASKED, PASSED, FilterMatrix
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import Calls, PluginFailure
from mooring.runtime.scoring import PluginScores, ScoreMatrix

#: Bits for the place in the order of ties in `key`.
_RANK_BITS = (RANKS - 1).bit_length()

#: If more than this share of the rows changed, all rows are combined again.
_LARGEST_SHARE = 0.5

#: The order of ties: int64[row], the same array for the same snapshot.
TieKeys = Callable[[Snapshot], Ints]


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """What PreFilter came to: a status, and the nodes it leaves."""

    status: Status
    #: None leaves every node.
    node_names: frozenset[str] | None = None
    #: The plugins that left fewer nodes than there are.
    narrowed_by: frozenset[str] = frozenset()


_PASSED_BY_ALL = PreFilterOutcome(SUCCESS)


class _Step(NamedTuple):
    """A plugin at an extension point."""

    call: Calls
    #: None if the plugin is asked each time.
    answers: Answers | None


class Filtered:
    """Which nodes take the pod. `matrix` says why; ask for it before the cluster changes."""

    __slots__ = (
        "_complete",
        "_matrix",
        "_question",
        "_rows",
        "asked",
        "count",
        "nominated",
        "ok",
        "version",
    )

    def __init__(
        self,
        question: _Question,
        ok: Mask,
        count: int,
        *,
        rows: NDArray[np.intp] | None = None,
        matrix: FilterMatrix | None = None,
    ) -> None:
        self._question = question
        #: bool[row]
        self.ok = ok
        self.count = count
        #: Changes when a verdict does. None if a plugin was asked whose answers are not kept.
        self.version: int | None = None
        #: Place among the filters → what a plugin said whose answers are not kept.
        self.asked: dict[int, RowVerdicts] = {}
        #: Row → why it is refused with the pods that are nominated to it.
        self.nominated: dict[int, Status] = {}
        self._rows = rows
        self._matrix = matrix
        self._complete = matrix is not None

    @property
    def rows(self) -> NDArray[np.intp]:
        """intp[...]: the rows that are ok."""
        if self._rows is None:
            self._rows = np.flatnonzero(self.ok)
        return self._rows

    def matrix(self, *, complete: bool = False) -> FilterMatrix:
        """With `complete`, plugins that judge all rows at once are asked about rows that others refuse."""
        question = self._question
        if self._matrix is None:
            question.check()
        elif self._complete or not complete or not question.holds():
            return self._matrix
        self._complete = complete
        self._matrix = question.evaluation.filter_matrix(question, self, complete=complete)
        return self._matrix


class Scores:
    """How the feasible nodes score. Ask for `matrix` before the cluster changes."""

    __slots__ = ("_feasible", "_live", "_matrix", "_question", "best")

    def __init__(
        self,
        question: _Question,
        best: int,
        feasible: NDArray[np.intp],
        live: dict[str, PluginScores],
        matrix: ScoreMatrix | None = None,
    ) -> None:
        self._question = question
        #: The row with the highest total; the tie-break decides between equals.
        self.best = best
        self._feasible = feasible
        self._live = live
        self._matrix = matrix

    @property
    def matrix(self) -> ScoreMatrix:
        if self._matrix is None:
            question = self._question
            question.check()
            self._matrix = question.evaluation.score_matrix(question, self._feasible, self._live)
        return self._matrix


class _Question:
    """What was asked, and when."""

    __slots__ = ("_position", "evaluation", "pod", "snapshot", "state")

    def __init__(
        self, evaluation: Evaluation, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> None:
        self.evaluation = evaluation
        self.state = state
        self.pod = pod
        self.snapshot = snapshot
        self._position = evaluation.position

    def holds(self) -> bool:
        """Whether nothing has changed since."""
        return self._position == self.evaluation.position

    def check(self) -> None:
        """Raises InvariantError: what is kept now is about another moment."""
        if not self.holds():
            raise InvariantError(
                "a decision was asked for its reasons after the cluster had changed"
            )


class _KeptScore:
    """A kept Score plugin."""

    __slots__ = ("answers", "highest", "lowest", "normalized", "raw", "weight")

    def __init__(self, answers: Answers, weight: int, size: int) -> None:
        self.answers = answers
        self.weight = weight
        #: int64[row]: the raw scores that went into the totals. Others may have asked the plugin since.
        self.raw: Ints = np.zeros(size, np.int64)
        #: int64[row]; None if the plugin does not normalise.
        self.normalized: Ints | None = None
        if answers.call.normalize_scores is not None:
            self.normalized = np.zeros(size, np.int64)
        #: The extremes of `raw` over the rows that are ok: what normalising depends on.
        self.lowest = 0
        self.highest = 0


_NO_MASK: Mask = np.zeros(0, np.bool_)
_NO_INTS: Ints = np.zeros(0, np.int64)


class Evaluation:
    """All that is kept for the pods that the plugins treat alike."""

    def __init__(
        self,
        framework: Framework,
        tie_keys: TieKeys,
        cluster: Cluster | None = None,
        kept: dict[str, Answers] | None = None,
    ) -> None:
        """Without `kept`, every plugin is asked each time."""
        self.framework = framework
        self._tie_keys_of = tie_keys
        self._cluster = cluster
        kept = kept or {}
        self._pre_filters, self._filters, self._pre_scores, self._scores = (
            [_Step(call, kept.get(call.name)) for call in framework.points[point]]
            for point in (Point.PRE_FILTER, Point.FILTER, Point.PRE_SCORE, Point.SCORE)
        )
        self._by_usage = [a for a in kept.values() if a.depends == Depends.USAGE]
        #: Those of them that PreFilter did not tell to skip.
        self._used_by_usage: list[Answers] = []
        self._by_node = [a for a in kept.values() if a.depends != Depends.USAGE]
        self._depends_on_all_nodes = any(a.depends == Depends.NODES for a in self._by_node)
        self._node_position = -1
        self._size = -1
        # What PreFilter left, once every kept plugin was asked.
        self._settled = False
        self._values: dict[str, object] = {}
        self._skipped: frozenset[str] = frozenset()
        #: The PreFilter plugins that are asked each time, or had more to say than that all is well.
        self._unsettled: list[_Step] = []
        self._kept_filters: list[tuple[int, Answers]] = []
        self._usage_filters: list[tuple[int, Answers]] = []
        self._live_filters = [(i, s.call) for i, s in enumerate(self._filters) if s.answers is None]
        # The verdicts.
        self._combined = False
        self._usage_position = -1
        self._node_rows_position = -1
        #: Rows whose node object changed since the verdicts were brought up to date.
        self._changed_nodes: set[int] = set()
        #: Grows when a verdict changes.
        self._version = 0
        #: int16[row]: the place of the plugin among the filters, or PASSED, or NOT_ASKED.
        self._refused_by: NDArray[np.int16] = np.zeros(0, np.int16)
        #: int64[row]: the code of that plugin's verdict.
        self._codes: Ints = _NO_INTS
        self._ok: Mask = _NO_MASK
        self._ok_count = 0
        self._ok_rows: NDArray[np.intp] | None = None
        # The scores.
        self._used = False
        self._scored = False
        #: Rows that changed since they were scored; those of them whose node object did.
        self._stale_scores: set[int] = set()
        self._rescored_nodes: set[int] = set()
        self._normalizes = False
        self._score_values: dict[str, object] = {}
        self._skipped_scores: frozenset[str] = frozenset()
        self._kept_scores: list[_KeptScore] = []
        self._usage_scores: list[_KeptScore] = []
        self._live_scores: list[Calls] = []
        self._live_pre_scores: list[Calls] = []
        self._tie_keys: Ints = _NO_INTS
        self._total: Ints = _NO_INTS
        self._key: Ints = _NO_INTS

    @property
    def position(self) -> int:
        """Grows with every change in the cluster."""
        return self._cluster.usage_changes.position if self._cluster is not None else 0

    # PreFilter

    def run_pre_filters(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> PreFilterOutcome:
        """Raises PluginFailure."""
        with self.framework.timed("PreFilter") as told:
            self._catch_up(snapshot.columns.size)
            outcome = self._run_pre_filters(state, pod, snapshot)
            told.code = outcome.status.code
            return outcome

    def _run_pre_filters(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> PreFilterOutcome:
        steps = self._pre_filters
        skipped: set[str] = set()
        if self._settled:
            steps = self._unsettled
            state.take(self._values)
        names: frozenset[str] | None = None
        narrowed_by: list[str] = []
        rejection: Status | None = None
        for step in steps:
            result = self._pre_filter(step, state, pod, snapshot)
            if isinstance(result, PreFilterResult):
                narrowed_by.append(step.call.name)
                names = result.node_names if names is None else names & result.node_names
                if not names:
                    self._end_at(step, state, skipped)
                    return PreFilterOutcome(
                        Status(Code.UNRESOLVABLE, (_no_node_left(narrowed_by),)),
                        frozenset(),
                        frozenset(narrowed_by),
                    )
            elif result.code == Code.SKIP:
                skipped.add(step.call.name)
            elif result.code == Code.UNRESOLVABLE:
                self._end_at(step, state, skipped)
                return PreFilterOutcome(result.by(step.call.name))
            elif not result.ok:
                # The others still run: preemption needs what they compute.
                rejection = result.by(step.call.name)
        if not self._settled:
            self._settle()
        state.skip_filter = self._skipped.union(skipped) if skipped else self._skipped
        if rejection is None and names is None:
            return _PASSED_BY_ALL
        return PreFilterOutcome(rejection or SUCCESS, names, frozenset(narrowed_by))

    def _end_at(self, step: _Step, state: CycleState, skipped: set[str]) -> None:
        """PreFilter ends here: the plugins after this one were not asked, and leave nothing."""
        skipped = skipped | self._skipped if self._settled else skipped
        for later in self._pre_filters[self._pre_filters.index(step) + 1 :]:
            skipped.discard(later.call.name)
            if later.answers is not None:
                for key in later.answers.values:
                    state.delete(key)
        state.skip_filter = frozenset(skipped)

    def _pre_filter(
        self, step: _Step, state: CycleState, pod: Pod, snapshot: Snapshot
    ) -> PreFilterResult | Status:
        answers = step.answers
        if answers is None:
            return self.framework.pre_filter(step.call, state, pod, snapshot)
        if answers.pre_filter is None:
            before = state.values()
            answers.pre_filter = self.framework.pre_filter(step.call, state, pod, snapshot)
            answers.values |= state.written_since(before)
        else:
            state.take(answers.values)
        return answers.pre_filter

    def _settle(self) -> None:
        """Every kept PreFilter has answered: from now on their results are taken together."""
        self._settled = True
        self._values = {}
        skipped = set()
        self._unsettled = []
        for step in self._pre_filters:
            if step.answers is not None:
                self._values |= step.answers.values
            result = step.answers.pre_filter if step.answers is not None else None
            if isinstance(result, Status) and result.code == Code.SKIP:
                skipped.add(step.call.name)
            elif not (isinstance(result, Status) and result.ok):
                self._unsettled.append(step)
        self._skipped = frozenset(skipped)
        self._kept_filters = [
            (index, step.answers)
            for index, step in enumerate(self._filters)
            if step.answers is not None and step.call.name not in skipped
        ]
        self._usage_filters = [
            (index, answers)
            for index, answers in self._kept_filters
            if answers.depends == Depends.USAGE
        ]
        scoring_plugins = {step.call.name for step in self._scores}
        filtering_plugins = {answers.call.name for _, answers in self._usage_filters}
        self._used_by_usage = [
            answers
            for answers in self._by_usage
            if answers.call.name in scoring_plugins or answers.call.name in filtering_plugins
        ]

    def _catch_up(self, size: int) -> None:
        """Have the kept answers notice what changed."""
        if self._cluster is None:
            return
        position = self._cluster.node_changes.position
        if position != self._node_position or size != self._size:
            for answers in self._by_node:
                answers.catch_up(size)
            if self._depends_on_all_nodes:
                self._settled = self._combined = self._scored = False
            self._node_position, self._size = position, size
        for answers in self._used_by_usage if self._settled else self._by_usage:
            answers.catch_up(size)

    # Filter

    def run_filters(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, looked_at: Mask | None = None
    ) -> Filtered:
        """Judge the rows in `looked_at`, or all of them. Raises PluginFailure.

        A node must pass with the nominated pods that matter here, and again without them: they may
        never come. Few nodes have any, so all are judged without, and those few once more with.
        """
        with self.framework.timed("Filter") as told:
            filtered = None
            if looked_at is None and self._settled:
                try:
                    filtered = self._filter_with_kept(state, pod, snapshot)
                except PluginFailure:
                    self._combined = self._scored = False
            if filtered is None:
                columns = snapshot.columns
                every = columns.alive[: columns.size]
                filtered = self._filter_in_order(
                    state, pod, snapshot, every if looked_at is None else looked_at
                )
            told.code = Code.SUCCESS
            return filtered

    def _filter_in_order(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, looked_at: Mask
    ) -> Filtered:
        refused_by = np.full(len(looked_at), NOT_ASKED, np.int16)
        refused_by[looked_at] = PASSED
        open_rows = looked_at.copy()
        matrix = FilterMatrix(snapshot, [], [], refused_by)
        for step in self._filters:
            if step.call.name in state.skip_filter:
                continue
            if step.answers is None:
                verdicts = filtering.ask_each(step.call, state, pod, snapshot, open_rows)
            else:
                verdicts = step.answers.judge(state, pod, snapshot, open_rows).copy()
            refused = verdicts.codes != 0
            refused &= open_rows
            if refused.any():
                refused_by[refused] = len(matrix.plugins)
                open_rows &= ~refused
            matrix.plugins.append(step.call.name)
            matrix.verdicts.append(verdicts)
        if self.framework.nominator.has_any:
            refused_for = self.framework.rows_refused_for_nominated(state, pod, snapshot, looked_at)
            for row, status in refused_for.items():
                matrix.refuse(row, status)
            open_rows = matrix.feasible
        count = int(np.count_nonzero(open_rows))
        question = _Question(self, state, pod, snapshot)
        return Filtered(question, open_rows, count, matrix=matrix)

    def _filter_with_kept(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Filtered:
        """The kept verdicts, with those of the other plugins on top."""
        self._bring_up_to_date(state, pod, snapshot)
        filtered = Filtered(_Question(self, state, pod, snapshot), self._ok, self._ok_count)
        asked = filtered.asked
        for index, call in self._live_filters:
            if call.name not in state.skip_filter:
                verdicts = self._ask(index, call, state, pod, snapshot, asked)
                if verdicts is not None:
                    asked[index] = verdicts
                    # A row that this plugin was not asked about is refused by an earlier one.
                    filtered.ok = filtered.ok & (verdicts.codes == 0)
        if self.framework.nominator.has_any:
            alive = snapshot.columns.alive[: snapshot.columns.size]
            refused = self.framework.rows_refused_for_nominated(state, pod, snapshot, alive)
            if refused:
                filtered.nominated = refused
                filtered.ok = filtered.ok.copy()
                filtered.ok[list(refused)] = False
        if filtered.ok is self._ok:
            filtered._rows = self._rows()
            filtered.version = self._version
        else:
            filtered.count = int(np.count_nonzero(filtered.ok))
        return filtered

    def _ask(
        self,
        index: int,
        call: Calls,
        state: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        asked: dict[int, RowVerdicts],
    ) -> RowVerdicts | None:
        """A plugin that is asked each time; None if the plugins before it refuse every row."""
        if self._ok_count and call.filter_rows is not None:
            verdicts = filtering.ask_all(call, state, pod, snapshot)
            if verdicts is not None:
                return verdicts
        open_rows: Mask = (self._refused_by == PASSED) | (self._refused_by > index)
        for earlier in asked.values():
            open_rows &= earlier.codes == 0
        if not open_rows.any():
            return None
        return filtering.ask_each(call, state, pod, snapshot, open_rows)

    def filter_matrix(
        self, question: _Question, filtered: Filtered, *, complete: bool
    ) -> FilterMatrix:
        """The verdicts of all plugins, in their order."""
        state, snapshot, asked = question.state, question.snapshot, filtered.asked
        if complete:
            with contextlib.suppress(PluginFailure):
                self._ask_the_rest(state, question.pod, snapshot, asked)
        last = len(self._filters)
        first = np.where(self._refused_by == PASSED, last, self._refused_by)
        matrix = FilterMatrix(snapshot, [], [], first)
        # From the place among all filters to the place among those that were not skipped.
        places = np.full(last + 1, PASSED, np.int16)
        for index, step in enumerate(self._filters):
            if step.call.name in state.skip_filter:
                continue
            if index in asked:
                verdicts = asked[index]
                refused = (verdicts.codes != 0) & (verdicts.codes != UNKNOWN)
                np.minimum(first, index, out=first, where=refused)
            elif step.answers is not None and step.answers.verdicts is not None:
                verdicts = step.answers.verdicts.copy()
            else:
                verdicts = RowVerdicts(np.full(len(first), UNKNOWN), _passes)
            places[index] = len(matrix.plugins)
            matrix.plugins.append(step.call.name)
            matrix.verdicts.append(verdicts)
        matrix.refused_by = np.where(first >= 0, places[first], NOT_ASKED).astype(np.int16)
        for row, status in filtered.nominated.items():
            matrix.refuse(row, status)
        return matrix

    def _ask_the_rest(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, asked: dict[int, RowVerdicts]
    ) -> None:
        """Ask the plugins that judge all rows at once about rows that others refuse. Raises PluginFailure."""
        every = snapshot.columns.alive[: snapshot.columns.size]
        for index, step in enumerate(self._filters):
            if step.call.name in state.skip_filter or step.call.filter_rows is None:
                continue
            if step.answers is not None:
                step.answers.judge(state, pod, snapshot, every)
            elif index not in asked:
                verdicts = filtering.ask_all(step.call, state, pod, snapshot)
                if verdicts is not None:
                    asked[index] = verdicts

    # Keeping the verdicts

    def _bring_up_to_date(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
        """Raises PluginFailure; then nothing counts as up to date."""
        size = snapshot.columns.size
        if (
            self._cluster is None
            or not self._combined
            or len(self._ok) != size
            or self._tie_keys is not self._tie_keys_of(snapshot)
        ):
            self._combine(state, pod, snapshot)
            return
        changes = self._cluster.usage_changes
        rows = changes.since(self._usage_position)
        if rows is None or len(rows) > max(FEW_ROWS, size * _LARGEST_SHARE):
            self._combine(state, pod, snapshot)
            return
        if self._node_rows_position != self._cluster.node_changes.position:
            nodes = self._cluster.node_changes.since(self._node_rows_position)
            self._node_rows_position = self._cluster.node_changes.position
            if nodes is None:
                self._combine(state, pod, snapshot)
                return
            self._changed_nodes = set(nodes)
            self._rescored_nodes |= self._changed_nodes
        if len(rows) <= FEW_ROWS:
            for row in rows:
                self._redo_row(state, pod, snapshot, row)
        else:
            self._redo_rows(state, pod, snapshot, np.array(rows, np.intp))
        if self._changed_nodes:
            self._changed_nodes = set()
        self._usage_position = changes.position

    def _combine(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
        """All rows, from what the plugins answer."""
        columns = snapshot.columns
        self._combined = self._scored = False
        open_rows = columns.alive[: columns.size].copy()
        refused_by = np.full(columns.size, NOT_ASKED, np.int16)
        refused_by[open_rows] = PASSED
        codes: Ints = np.zeros(columns.size, np.int64)
        for index, answers in self._kept_filters:
            verdicts = answers.judge(state, pod, snapshot, open_rows)
            if not verdicts.refuses_any:
                continue
            refused = verdicts.codes != 0
            refused &= open_rows
            if refused.any():
                refused_by[refused] = index
                codes[refused] = verdicts.codes[refused]
                open_rows &= ~refused
        self._refused_by, self._codes, self._ok = refused_by, codes, open_rows
        self._ok_count = int(np.count_nonzero(open_rows))
        self._ok_rows = None
        self._tie_keys = self._tie_keys_of(snapshot)
        self._version += 1
        if self._cluster is not None:
            self._usage_position = self._cluster.usage_changes.position
            self._node_rows_position = self._cluster.node_changes.position
        self._changed_nodes = set()
        self._combined = True

    def _redo_row(self, state: CycleState, pod: Pod, snapshot: Snapshot, row: int) -> None:
        """One row, by the plain rules of its node."""
        refused_by, code = PASSED, 0
        was_ok = bool(self._ok[row])
        # What looks at nothing but the node let the row pass, and still does if only its pods changed.
        same_node = was_ok and row not in self._changed_nodes
        if not same_node and not snapshot.columns.alive[row]:
            refused_by = NOT_ASKED
        else:
            for index, answers in self._usage_filters if same_node else self._kept_filters:
                code = answers.judge_row(state, pod, snapshot, row)
                if code:
                    refused_by = index
                    break
        if refused_by == PASSED and was_ok:
            if self._scored:
                self._stale_scores.add(row)
            return
        if refused_by != self._refused_by[row] or code != self._codes[row]:
            self._version += 1
            self._refused_by[row], self._codes[row] = refused_by, code
        ok = refused_by == PASSED
        if ok != was_ok:
            self._ok[row] = ok
            self._ok_count += 1 if ok else -1
            self._ok_rows = None
        if self._scored and (ok or was_ok):
            self._stale_scores.add(row)

    def _redo_rows(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> None:
        """Many rows at once."""
        same_node = self._ok[rows]
        if self._changed_nodes:
            same_node &= ~np.isin(rows, list(self._changed_nodes))
        for row in rows[~same_node].tolist():
            self._redo_row(state, pod, snapshot, row)
        rows = rows[same_node]
        if self._scored:
            self._stale_scores.update(rows.tolist())
        for index, answers in self._usage_filters:
            codes = answers.judge_rows(state, pod, snapshot, rows)
            refused = codes != 0
            if refused.any():
                lost = rows[refused]
                self._refused_by[lost], self._codes[lost] = index, codes[refused]
                self._ok[lost] = False
                self._ok_count -= len(lost)
                self._ok_rows = None
                self._version += 1
                rows = rows[~refused]

    def _rows(self) -> NDArray[np.intp]:
        """intp[...]: the rows that are ok; found once for as long as they stay the same."""
        if self._ok_rows is None:
            self._ok_rows = np.flatnonzero(self._ok)
        return self._ok_rows

    # Score

    def run_scores(
        self,
        state: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        feasible: NDArray[np.intp],
        seen_as: Sequence[NodeInfo] | None = None,
    ) -> Scores:
        """PreScore and Score of the feasible rows. Raises PluginFailure.

        With `seen_as`, plugins that can score a node get these nodes to see instead of the rows.
        """
        # The first pod may be the only one of its kind: it is cheaper to score in order than to keep.
        if self._used and self._combined and seen_as is None:
            try:
                return self._score_with_kept(state, pod, snapshot, feasible)
            except PluginFailure:
                self._scored = False
        self._used = self._cluster is not None
        return self._score_in_order(state, pod, snapshot, feasible, seen_as)

    def _score_in_order(
        self,
        state: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        feasible: NDArray[np.intp],
        seen_as: Sequence[NodeInfo] | None,
    ) -> Scores:
        self._run_pre_scores(state, pod, snapshot, feasible)
        with self.framework.timed("Score") as told:
            matrix = ScoreMatrix(feasible, [], [], [], [], np.zeros(len(feasible), np.int64))
            rows = scoring.compact_rows(feasible, snapshot)
            for call, answers in self._scores:
                if call.name in state.skip_score:
                    continue
                if seen_as is not None and call.score is not None:
                    scores = scoring.score_nodes(call, state, pod, seen_as)
                elif answers is None:
                    scores = scoring.score_plugin(call, state, pod, snapshot, feasible)
                else:
                    raw = answers.score(state, pod, snapshot, rows)
                    scores = scoring.finished(call, state, pod, raw)
                matrix.add(call.name, self.framework.weights[call.name], scores)
            told.code = Code.SUCCESS
        best = matrix.rows[matrix.total == matrix.total.max()]
        row = int(best[np.argmax(self._tie_keys_of(snapshot)[best])])
        return Scores(_Question(self, state, pod, snapshot), row, feasible, {}, matrix)

    def _run_pre_scores(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, feasible: NDArray[np.intp]
    ) -> None:
        with self.framework.timed("PreScore") as told:
            skipped = set()
            rows = scoring.compact_rows(feasible, snapshot)
            for step in self._pre_scores:
                if self._pre_score(step, state, pod, snapshot, rows):
                    skipped.add(step.call.name)
            state.skip_score = frozenset(skipped)
            told.code = Code.SUCCESS

    def _pre_score(
        self, step: _Step, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows
    ) -> bool:
        """Whether the plugin has nothing to score."""
        answers = step.answers
        if answers is None:
            return self.framework.pre_score(step.call, state, pod, snapshot, rows)
        if answers.skips_score is None:
            before = state.values()
            answers.skips_score = self.framework.pre_score(step.call, state, pod, snapshot, rows)
            answers.values |= state.written_since(before)
        else:
            state.take(answers.values)
        return answers.skips_score

    def _score_with_kept(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, feasible: NDArray[np.intp]
    ) -> Scores:
        if self._scored:
            state.take(self._score_values)
            if self._stale_scores:
                self._rescore(state, pod, snapshot)
        else:
            self._build_scores(state, pod, snapshot)
        state.skip_score = self._skipped_scores
        live: dict[str, PluginScores] = {}
        if self._live_scores:
            self._ask_scores(state, pod, snapshot, feasible, live)
        question = _Question(self, state, pod, snapshot)
        all_ok = feasible is self._ok_rows
        if all_ok and not live:
            return Scores(question, int(self._key.argmax()), feasible, live)
        keys = self._total_over(state, pod, feasible, all_ok=all_ok)
        for name, scores in live.items():
            weight = self.framework.weights[name]
            keys += scores.normalized if weight == 1 else scores.normalized * weight
        keys <<= _RANK_BITS
        keys += self._tie_keys.take(feasible)
        return Scores(question, int(feasible[keys.argmax()]), feasible, live)

    def _ask_scores(
        self,
        state: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        feasible: NDArray[np.intp],
        live: dict[str, PluginScores],
    ) -> None:
        """The plugins whose scores are not kept."""
        skipped = []
        with self.framework.timed("PreScore") as told:
            rows = scoring.compact_rows(feasible, snapshot)
            for call in self._live_pre_scores:
                if self.framework.pre_score(call, state, pod, snapshot, rows):
                    skipped.append(call.name)
            told.code = Code.SUCCESS
        if skipped:
            state.skip_score = state.skip_score.union(skipped)
        calls = [call for call in self._live_scores if call.name not in skipped]
        if not calls:
            return
        with self.framework.timed("Score") as told:
            for call in calls:
                live[call.name] = scoring.score_plugin(call, state, pod, snapshot, feasible)
            told.code = Code.SUCCESS

    def score_matrix(
        self, question: _Question, feasible: NDArray[np.intp], live: dict[str, PluginScores]
    ) -> ScoreMatrix:
        """The scores of all plugins, in their order."""
        state, pod = question.state, question.pod
        matrix = ScoreMatrix(feasible, [], [], [], [], np.zeros(len(feasible), np.int64))
        for call, answers in self._scores:
            if call.name in state.skip_score:
                continue
            scores = live.get(call.name)
            if scores is None:
                assert answers is not None
                assert answers.raw is not None
                scores = scoring.finished(call, state, pod, answers.raw.take(feasible))
            matrix.add(call.name, self.framework.weights[call.name], scores)
        return matrix

    def _total_over(
        self, state: CycleState, pod: Pod, feasible: NDArray[np.intp], *, all_ok: bool
    ) -> Ints:
        """The kept totals of these rows, normalised over them and not over all that are ok."""
        total: Ints = self._total.take(feasible)
        if all_ok or len(feasible) == self._ok_count:
            return total
        for kept in self._kept_scores:
            if kept.normalized is None or kept.lowest == kept.highest:
                continue
            raw = kept.raw.take(feasible)
            if (int(raw.min()), int(raw.max())) != (kept.lowest, kept.highest):
                again = scoring.normalize(kept.answers.call, state, pod, raw)
                total += (again - kept.normalized.take(feasible)) * kept.weight
        return total

    # Keeping the scores

    def _build_scores(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
        """The kept scores of all rows that are ok."""
        compact = scoring.compact_rows(self._rows(), snapshot)
        framework, size = self.framework, snapshot.columns.size
        skipped = {
            step.call.name
            for step in self._pre_scores
            if step.answers is not None and self._pre_score(step, state, pod, snapshot, compact)
        }
        self._skipped_scores = frozenset(skipped)
        self._score_values = {}
        for step in self._pre_scores:
            if step.answers is not None:
                self._score_values |= step.answers.values
        self._live_pre_scores = [call for call, answers in self._pre_scores if answers is None]
        self._live_scores = [call for call, answers in self._scores if answers is None]
        self._kept_scores = [
            _KeptScore(answers, framework.weights[call.name], size)
            for call, answers in self._scores
            if answers is not None and call.name not in skipped
        ]
        self._normalizes = any(kept.normalized is not None for kept in self._kept_scores)
        self._usage_scores = [
            kept for kept in self._kept_scores if kept.answers.depends == Depends.USAGE
        ]
        self._total = np.zeros(size, np.int64)
        self._key = np.full(size, -1, np.int64)
        self._stale_scores.clear()
        self._rescored_nodes.clear()
        self._normalize_all(state, pod, snapshot)
        self._scored = True

    def _normalize_all(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
        """The totals of all rows that are ok, from their raw scores."""
        self._key[:] = -1
        if not self._ok_count:
            return
        rows = self._rows()
        compact = scoring.compact_rows(rows, snapshot)
        total: Ints = np.zeros(len(rows), np.int64)
        for kept in self._kept_scores:
            scores = kept.answers.score(state, pod, snapshot, compact)
            kept.raw[rows] = scores
            if kept.normalized is not None:
                kept.lowest, kept.highest = int(scores.min()), int(scores.max())
                scores = scoring.normalize(kept.answers.call, state, pod, scores)
                kept.normalized[rows] = scores
            scoring.check_range(kept.answers.call.name, scores)
            total += scores if kept.weight == 1 else scores * kept.weight
        self._total[rows] = total
        total <<= _RANK_BITS
        total += self._tie_keys.take(rows)
        self._key[rows] = total

    def _rescore(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
        """The rows that changed since they were scored. Raises PluginFailure."""
        stale = self._stale_scores
        if len(stale) > max(FEW_ROWS, len(self._ok) * _LARGEST_SHARE):
            self._scored = False
            self._build_scores(state, pod, snapshot)
            return
        if len(stale) <= FEW_ROWS:
            again = [self._rescore_row(state, pod, snapshot, row) for row in stale]
            moves_others = any(again)
        else:
            rows = np.fromiter(stale, np.intp, len(stale))
            moves_others = self._rescore_rows(state, pod, snapshot, rows)
        if moves_others:
            self._normalize_all(state, pod, snapshot)
        stale.clear()
        if self._rescored_nodes:
            self._rescored_nodes.clear()

    def _rescore_row(self, state: CycleState, pod: Pod, snapshot: Snapshot, row: int) -> bool:
        """Whether the scores of other rows may have changed as well."""
        was_ok = self._key[row] >= 0
        if not self._ok[row]:
            self._key[row] = -1
            return bool(was_ok) and self._was_extreme(np.array([row], np.intp))
        if was_ok and row not in self._rescored_nodes:
            return self._rescore_usage(state, pod, snapshot, row)
        moves_others = self._normalizes and not was_ok
        total = 0
        for kept in self._kept_scores:
            score = kept.answers.score_row(state, pod, snapshot, row)
            if kept.normalized is not None:
                # One new score of a plugin that normalises may move all the others.
                moves_others = moves_others or bool(score != kept.raw[row])
                score = int(kept.normalized[row])
            else:
                scoring.check_score(kept.answers.call.name, score)
                kept.raw[row] = score
            total += score * kept.weight
        self._total[row] = total
        self._key[row] = (total << _RANK_BITS) + int(self._tie_keys[row])
        return moves_others

    def _rescore_usage(self, state: CycleState, pod: Pod, snapshot: Snapshot, row: int) -> bool:
        """A row whose pods changed, and not its node: only some of the plugins look at those."""
        total = int(self._total[row])
        for kept in self._usage_scores:
            score = kept.answers.score_row(state, pod, snapshot, row)
            before = int(kept.raw[row])
            if score == before:
                continue
            if kept.normalized is not None:
                return True
            scoring.check_score(kept.answers.call.name, score)
            kept.raw[row] = score
            total += (score - before) * kept.weight
        self._total[row] = total
        self._key[row] = (total << _RANK_BITS) + int(self._tie_keys[row])
        return False

    def _rescore_rows(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> bool:
        """Whether the scores of other rows may have changed as well."""
        was_ok, ok = self._key[rows] >= 0, self._ok[rows]
        lost = rows[was_ok & ~ok]
        self._key[lost] = -1
        moves_others = len(lost) > 0 and self._was_extreme(lost)
        same_node = was_ok & ok
        if self._rescored_nodes:
            same_node &= ~np.isin(rows, list(self._rescored_nodes))
        for row in rows[ok & ~same_node].tolist():
            moves_others |= self._rescore_row(state, pod, snapshot, row)
        rows = rows[same_node]
        if not len(rows):
            return moves_others
        total = self._total[rows]
        for kept in self._usage_scores:
            scores = kept.answers.score(state, pod, snapshot, rows)
            if kept.normalized is not None:
                moves_others = moves_others or bool((scores != kept.raw[rows]).any())
                continue
            scoring.check_range(kept.answers.call.name, scores)
            change = scores - kept.raw[rows]
            total += change if kept.weight == 1 else change * kept.weight
            kept.raw[rows] = scores
        self._total[rows] = total
        self._key[rows] = (total << _RANK_BITS) + self._tie_keys[rows]
        return moves_others

    def _was_extreme(self, lost: NDArray[np.intp]) -> bool:
        """Whether normalising must be done again without these rows, which are no longer ok."""
        if not self._ok_count:
            return False
        for kept in self._kept_scores:
            if kept.normalized is None:
                continue
            gone = kept.raw[lost]
            if kept.lowest < int(gone.min()) and int(gone.max()) < kept.highest:
                continue
            raw = kept.raw.take(self._rows())
            if (int(raw.min()), int(raw.max())) != (kept.lowest, kept.highest):
                return True
        return False

    # Checking

    def validate(self, pod: Pod, snapshot: Snapshot) -> None:
        """Raise InvariantError unless what is kept is what a new evaluation of the pod finds out."""
        if self._cluster is None or not self._combined:
            return
        state, new = CycleState(), self._without_memory()
        self._bring_up_to_date_for(pod, snapshot)
        if not new.run_pre_filters(state, pod, snapshot).status.ok:
            return
        new._filter_with_kept(state, pod, snapshot)
        for what, kept, found in (
            ("which plugin refuses a node", self._refused_by, new._refused_by),
            ("which nodes are feasible", self._ok, new._ok),
        ):
            if not np.array_equal(kept, found):
                raise InvariantError(f"{what} was not kept up to date: {kept} is {found}")
        if self._ok_count != int(np.count_nonzero(new._ok)):
            raise InvariantError(f"{self._ok_count} nodes count as feasible, not {new._ok}")
        if self._scored and self._ok_count:
            new._build_scores(state, pod, snapshot)
            self._rescore(state, pod, snapshot)
            for what, numbers, expected in (
                ("total", self._total[self._ok], new._total[self._ok]),
                ("key", self._key, new._key),
            ):
                if not np.array_equal(numbers, expected):
                    raise InvariantError(f"the {what} was not kept: {numbers} is {expected}")
        for answers, again in self._pairs(new):
            answers.validate(again)

    def _bring_up_to_date_for(self, pod: Pod, snapshot: Snapshot) -> None:
        state = CycleState()
        self._catch_up(snapshot.columns.size)
        if self._run_pre_filters(state, pod, snapshot).status.ok:
            self._bring_up_to_date(state, pod, snapshot)

    def _without_memory(self) -> Evaluation:
        """Another evaluation for the same pods, which knows nothing yet."""
        assert self._cluster is not None
        kept = {
            answers.call.name: Answers(answers.call, answers.depends, self._cluster)
            for answers in (*self._by_usage, *self._by_node)
        }
        return Evaluation(self.framework, self._tie_keys_of, self._cluster, kept)

    def _pairs(self, new: Evaluation) -> Iterator[tuple[Answers, Answers]]:
        again = {answers.call.name: answers for answers in (*new._by_usage, *new._by_node)}
        for answers in (*self._by_usage, *self._by_node):
            yield answers, again[answers.call.name]


def _no_node_left(narrowed_by: Sequence[str]) -> str:
    if len(narrowed_by) == 1:
        return f"node(s) didn't satisfy plugin {narrowed_by[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously"


def _passes(code: int) -> Status:
    return SUCCESS
