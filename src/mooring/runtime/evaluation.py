"""Evaluating a pod: PreFilter → Filter → PreScore → Score, doing again only what has changed.

An `Evaluation` serves all pods that every plugin of a profile treats alike. What plugins said is kept
(`answers`), and so is what follows from it: which rows pass (`kept_verdicts`) and how they score
(`kept_scores`). Plugins whose answers are not kept are asked each time, on top of this: those that look at
the rest of the cluster; and those that look at the pods of nodes, if the pod may be the only one of its kind.
A new evaluation knows nothing, so its first use is a full pass; there is no other one.

Kept answers are asked for ahead of the order of the plugins. If a plugin fails, that order decides who fails,
so everything is asked once more in order.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Ints, Mask, Rows
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.config.extension_points import ExtensionPoint as Point
from mooring.errors import InvariantError, check_kept
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends, PreFilterResult
from mooring.framework.status import SUCCESS, Code, Status
from mooring.framework.verdicts import UNKNOWN, RowVerdicts
from mooring.objects.pod import Pod
from mooring.runtime import filtering, scoring
from mooring.runtime.answers import Answers, sees_only_resources
from mooring.runtime.beside_nominated import BesideNominated
from mooring.runtime.copies import Copies, CopiesOfPod, FixedScores, skips_copies
from mooring.runtime.filtering import ALL_PASS, NOT_ASKED, PASSED, FilterMatrix
from mooring.runtime.framework import Framework
from mooring.runtime.kept_scores import RANK_BITS, KeptScores, TieKeys
from mooring.runtime.kept_verdicts import KeptVerdicts
from mooring.runtime.plugin_calls import Calls, PluginFailure
from mooring.runtime.question import Question
from mooring.runtime.scoring import PluginScores, ScoreMatrix
from mooring.runtime.shared_evaluation import PreFiltered, SharedEvaluation
from mooring.runtime.usage_columns import sees_usage_columns_only


@dataclass(frozen=True, slots=True)
class PreFilterOutcome:
    """The result of PreFilter: a status, and the nodes it leaves."""

    status: Status
    #: None leaves every node.
    node_names: frozenset[str] | None = None
    #: The plugins that left fewer nodes than there are.
    narrowed_by: frozenset[str] = frozenset()


_ALL_PASS = PreFilterOutcome(SUCCESS)


_NOTHING: dict[int, Any] = {}


class Filtered:
    """Which nodes take the pod. `matrix` says why; ask for it before the cluster changes."""

    __slots__ = (
        "_complete",
        "_evaluation",
        "_matrix",
        "_question",
        "_rows",
        "asked",
        "count",
        "nominated",
        "ok",
        "version",
        "within",
    )

    def __init__(self, evaluation: Evaluation, question: Question, ok: Mask, count: int) -> None:
        self._evaluation = evaluation
        self._question = question
        #: bool[row]
        self.ok = ok
        self.count = count
        #: Changes when a verdict does. None if a plugin refuses rows whose answers are not kept.
        self.version: int | None = None
        #: Place among the filters → what a plugin said whose answers are not kept.
        self.asked: dict[int, RowVerdicts] = _NOTHING
        #: Row → why it is refused with the pods that are nominated to it.
        self.nominated: dict[int, Status] = _NOTHING
        #: bool[row]: the rows that were looked at; None for all.
        self.within: Mask | None = None
        self._rows: NDArray[np.intp] | None = None
        self._matrix: FilterMatrix | None = None
        self._complete = False

    @property
    def rows(self) -> NDArray[np.intp]:
        """intp[...]: the rows that are ok."""
        if self._rows is None:
            self._rows = np.flatnonzero(self.ok)
        return self._rows

    def matrix(self, *, complete: bool = False) -> FilterMatrix:
        """With `complete`, plugins that judge all rows at once are asked about rows that others refuse."""
        holds = self._question.position == self._evaluation.position
        if self._matrix is None:
            _check(holds)
        elif self._complete or not complete or not holds:
            return self._matrix
        self._complete = complete
        self._matrix = self._evaluation.filter_matrix(self._question, self, complete=complete)
        return self._matrix

    def set_all(self, matrix: FilterMatrix) -> Filtered:
        self._matrix, self._complete = matrix, True
        return self

    def set_rows(self, rows: NDArray[np.intp]) -> None:
        self._rows = rows


class Scores:
    """How the feasible nodes score. Ask for `matrix` before the cluster changes."""

    __slots__ = ("_evaluation", "_feasible", "_live", "_matrix", "_question", "best")

    def __init__(
        self,
        evaluation: Evaluation,
        question: Question,
        best: int,
        feasible: NDArray[np.intp],
        live: dict[str, PluginScores],
        matrix: ScoreMatrix | None = None,
    ) -> None:
        """`live` are the scores of the plugins whose answers are not kept."""
        self._evaluation = evaluation
        self._question = question
        #: The row with the highest total; the tie-break decides between equals.
        self.best = best
        self._feasible = feasible
        self._live = live
        self._matrix = matrix

    def keep_matrix(self) -> None:
        """Make the matrix now, before the cluster changes."""
        self._matrix = self.matrix

    @property
    def matrix(self) -> ScoreMatrix:
        if self._matrix is None:
            _check(self._question.position == self._evaluation.position)
            self._matrix = self._evaluation.score_matrix(self._question, self._feasible, self._live)
        return self._matrix


def _check(holds: bool) -> None:
    if not holds:
        raise InvariantError("a decision was asked for its reasons after the cluster had changed")


class ScoredAmounts:
    """The scores of the states of rows, or of rows, as they count in the keys of rows."""

    __slots__ = ("_codes", "_scores")

    def __init__(self, scores: Ints, codes: NDArray[np.intp] | None) -> None:
        """`codes` are the states of rows."""
        self._scores = scores
        self._codes = codes

    def take(self, rows: Rows) -> Ints:
        """int64[row asked for]"""
        scores: Ints = (
            self._scores[rows] if self._codes is None else self._scores.take(self._codes[rows])
        )
        return scores


class Evaluation:
    """All that is kept for the pods that the plugins treat alike."""

    def __init__(self, shared: SharedEvaluation, by_usage: dict[str, Answers]) -> None:
        """`by_usage` are the kept answers of the plugins that look at the pods of a node.

        Plugins that are neither there nor in `shared` are asked each time.
        """
        self._shared = shared
        self.framework = shared.framework
        self._cluster = shared.cluster
        self._by_usage = by_usage
        self._kept: dict[str, Answers] = {**shared.kept, **by_usage}
        live = shared.live_beside(by_usage)
        self._live_filters, self._live_pre_scores, self._live_scores = live
        self._epoch = shared.epoch
        #: What the kept PreFilter plugins left; None until all of them were asked.
        self._pre_filtered: PreFiltered | None = None
        self._verdicts = _NO_VERDICTS
        #: What PreScore left, and the kept scores; None until they are asked for, or if all are out of date.
        self._kept_scores: KeptScores | None = None
        #: The verdicts on rows to which pods are nominated; None until there are some.
        self._beside_nominated: BesideNominated | None = None
        self._skips_score: frozenset[str] = frozenset()
        self._score_values: dict[str, object] = {}
        #: Whether a pod was scored before.
        self._used = False

    @classmethod
    def in_full(cls, framework: Framework, tie_keys: TieKeys) -> Evaluation:
        """Keeps nothing: every plugin is asked each time."""
        return cls(SharedEvaluation(framework, tie_keys), {})

    @property
    def shared(self) -> SharedEvaluation:
        return self._shared

    @property
    def position(self) -> int:
        """Grows with every change in the cluster."""
        return self._cluster.changes.pods.position if self._cluster is not None else 0

    # PreFilter

    def run_pre_filters(self, question: Question) -> PreFilterOutcome:
        """Raises PluginFailure."""
        if not self.framework.measures:
            return self._run_pre_filters(question)
        with self.framework.timed("PreFilter") as told:
            outcome = self._run_pre_filters(question)
            told.code = outcome.status.code
            return outcome

    def _run_pre_filters(self, question: Question) -> PreFilterOutcome:
        self._catch_up(question.size)
        question.position = self.position
        state, pod, snapshot = question.state, question.pod, question.snapshot
        framework = self.framework
        known = self._pre_filtered or self._shared.pre_filtered
        if known is not None:
            state.take(known.values)
        skipped: set[str] = set()
        names: frozenset[str] | None = None
        narrowed_by: list[str] = []
        rejection: Status | None = None
        for call in framework.points[Point.PRE_FILTER] if known is None else known.unsettled:
            answers = self._kept.get(call.name)
            if answers is None:
                result = framework.pre_filter(call, state, pod, snapshot)
            else:
                result = answers.ask_pre_filter(framework, question)
            if isinstance(result, PreFilterResult):
                narrowed_by.append(call.name)
                names = result.node_names if names is None else names & result.node_names
                if not names:
                    self._end_at(call, state, skipped, known)
                    return PreFilterOutcome(
                        Status(Code.UNRESOLVABLE, (_no_node_left(narrowed_by),)),
                        frozenset(),
                        frozenset(narrowed_by),
                    )
            elif result.code == Code.SKIP:
                skipped.add(call.name)
            elif result.code == Code.UNRESOLVABLE:
                self._end_at(call, state, skipped, known)
                return PreFilterOutcome(result.by(call.name))
            elif not result.ok:
                # The others still run: preemption needs what they compute.
                rejection = result.by(call.name)
        if known is None or known is not self._pre_filtered:
            known = self._settle(pod)
        state.skip_filter = known.skipped.union(skipped) if skipped else known.skipped
        if rejection is None and names is None:
            return _ALL_PASS
        return PreFilterOutcome(rejection or SUCCESS, names, frozenset(narrowed_by))

    def _end_at(
        self, call: Calls, state: CycleState, skipped: set[str], known: PreFiltered | None
    ) -> None:
        """PreFilter ends here: the plugins after this one were not asked, and leave nothing."""
        if known is not None:
            skipped = skipped | known.skipped
        calls = self.framework.points[Point.PRE_FILTER]
        later = calls[calls.index(call) + 1 :]
        for each in later:
            answers = self._kept.get(each.name)
            if answers is not None:
                for key in answers.values:
                    state.delete(key)
        state.skip_filter = frozenset(skipped.difference(each.name for each in later))

    def _settle(self, pod: Pod) -> PreFiltered:
        """Every kept PreFilter has answered: from now on their results are taken together."""
        shared, by_usage = self._shared, self._by_usage
        common = shared.pre_filtered or shared.settle()
        if not by_usage:
            self._pre_filtered, self._verdicts = common, shared.verdicts
            return common
        known = self._pre_filtered = PreFiltered(common.unsettled, self._kept, common)
        plan = shared.plan_beside(by_usage, known.skipped)
        filters = [(place, self._kept[name]) for place, name in plan.filters]
        self._verdicts = KeptVerdicts(
            filters,
            self._cluster,
            self._verdicts.version,
            shared.verdicts_for,
            by_sums=plan.by_sums,
            by_states=all(by_usage[name].see_only_resources(pod) for name in plan.by_usage),
        )
        return known

    def _catch_up(self, size: int) -> None:
        """Have the kept answers notice what changed."""
        if self._cluster is None:
            return
        shared = self._shared
        shared.catch_up(size)
        if shared.epoch != self._epoch:
            self._pre_filtered = self._kept_scores = None
            self._epoch = shared.epoch

    # Filter

    def run_filters(self, question: Question, looked_at: Mask | None = None) -> Filtered:
        """Judge the rows in `looked_at`, or all of them. Raises PluginFailure.

        A node must pass with the nominated pods that matter here, and again without them: they may
        never come. Few nodes have any, so all are judged without, and those few once more with.
        """
        if not self.framework.measures:
            return self._run_filters(question, looked_at)
        with self.framework.timed("Filter") as told:
            filtered = self._run_filters(question, looked_at)
            told.code = Code.SUCCESS
            return filtered

    def _run_filters(self, question: Question, looked_at: Mask | None) -> Filtered:
        if self._pre_filtered is not None and (looked_at is None or self._keeps_all(question)):
            try:
                return self._filter_with_kept(question, looked_at)
            except PluginFailure:
                self._forget()
        every = question.snapshot.columns.alive[: question.size]
        return self._filter_in_order(question, every if looked_at is None else looked_at)

    def _keeps_all(self, question: Question) -> bool:
        """Whether kept verdicts answer for some of the rows, too: no plugin is asked about the others.

        A pod that may go to one node only is judged in order: it has no use for kept scores.
        """
        skipped = question.state.skip_filter
        return self._used and all(call.name in skipped for _, call in self._live_filters)

    def _forget(self) -> None:
        self._verdicts.forget()
        self._shared.verdicts.forget()
        self._kept_scores = None

    def _filter_in_order(self, question: Question, looked_at: Mask) -> Filtered:
        state = question.state
        refused_by = np.full(len(looked_at), NOT_ASKED, np.int16)
        refused_by[looked_at] = PASSED
        open_rows = looked_at.copy()
        matrix = FilterMatrix(question.snapshot, [], [], refused_by)
        for call in self.framework.points[Point.FILTER]:
            if call.name in state.skip_filter:
                continue
            answers = self._kept.get(call.name)
            if answers is None:
                verdicts = filtering.ask_open(call, question, open_rows)
            else:
                kept = answers.judge(question, open_rows)
                answers.judge_the_rest(question)
                verdicts = kept.copy()
                if not answers.by_rows:
                    verdicts.codes[~open_rows] = UNKNOWN
            refused = verdicts.codes != 0
            refused &= open_rows
            refused_by[refused] = len(matrix.plugins)
            open_rows &= ~refused
            matrix.plugins.append(call.name)
            matrix.verdicts.append(verdicts)
        nominated = self._refused_for_nominated(question, looked_at)
        matrix.refuse(nominated)
        open_rows[list(nominated)] = False
        count = int(np.count_nonzero(open_rows))
        return Filtered(self, question, open_rows, count).set_all(matrix)

    def _refused_for_nominated(self, question: Question, looked_at: Mask) -> dict[int, Status]:
        framework, pod = self.framework, question.pod
        if not framework.nominator.has_any:
            return {}
        nominated = framework.nominated_rows(pod, question.snapshot)
        if not looked_at[list(nominated)].all():
            nominated = {row: pods for row, pods in nominated.items() if looked_at[row]}
        if not nominated:
            return {}
        calls = framework.filters_by_columns(question.state, pod)
        if calls is None or self._cluster is None or not self._keeps_rows_of(calls):
            return framework.rows_refused_for_nominated(question, nominated)
        if self._beside_nominated is None:
            self._beside_nominated = BesideNominated(framework, self._cluster)
        return self._beside_nominated.refused_rows(question, nominated)

    def _keeps_rows_of(self, calls: Sequence[Calls]) -> bool:
        """Whether what these plugins say of a row follows from its node and pods, and is kept."""
        kept = [self._kept.get(call.name) for call in calls]
        return all(
            answers is not None and answers.depends in (Depends.NODE, Depends.USAGE)
            for answers in kept
        )

    def _filter_with_kept(self, question: Question, within: Mask | None = None) -> Filtered:
        """The kept verdicts, with those of the other plugins on top; all other rows are left out."""
        kept, skipped = self._verdicts, question.state.skip_filter
        if self._by_usage:
            changed = kept.bring_up_to_date(question)
            if changed is None:
                self._kept_scores = None
            elif self._kept_scores is not None:
                self._kept_scores.note(changed)
        else:
            self._shared.verdicts_for(question)
        filtered = Filtered(self, question, kept.ok, kept.ok_count)
        for place, call in self._live_filters:
            if call.name not in skipped:
                self._ask(place, call, question, filtered)
        if within is not None:
            filtered.within = within
            filtered.ok = filtered.ok & within
        if self.framework.nominator.has_any:
            every = question.snapshot.columns.alive[: question.size]
            looked_at = every if within is None else within
            filtered.nominated = self._refused_for_nominated(question, looked_at)
            if filtered.nominated:
                filtered.ok = filtered.ok.copy()
                filtered.ok[list(filtered.nominated)] = False
        if filtered.ok is kept.ok:
            filtered.set_rows(kept.rows)
            filtered.version = kept.version
        else:
            filtered.count = int(np.count_nonzero(filtered.ok))
        return filtered

    def _ask(self, place: int, call: Calls, question: Question, filtered: Filtered) -> None:
        """Ask a plugin whose answers are not kept, unless the plugins before it refuse every row."""
        verdicts = None
        if self._verdicts.ok_count:
            # What keeps nothing is what all else is compared with: it looks at every row.
            sees_resources = self._cluster is not None and sees_only_resources(call, question.pod)
            ask = filtering.ask_about_amounts if sees_resources else filtering.ask_all
            verdicts = ask(call, question)
            if verdicts is not None and not np.count_nonzero(verdicts.codes):
                verdicts = ALL_PASS
        if verdicts is None:
            refused_by = self._verdicts.refused_by
            open_rows: Mask = (refused_by == PASSED) | (refused_by > place)
            for earlier in filtered.asked.values():
                if earlier is not ALL_PASS:
                    open_rows &= earlier.codes == 0
            if not open_rows.any():
                return
            verdicts = filtering.ask_open(call, question, open_rows)
        filtered.asked = {**filtered.asked, place: verdicts}
        if verdicts is not ALL_PASS:
            # A row that this plugin was not asked about is refused by an earlier one.
            filtered.ok = filtered.ok & (verdicts.codes == 0)

    def filter_matrix(
        self, question: Question, filtered: Filtered, *, complete: bool
    ) -> FilterMatrix:
        """The verdicts of all plugins, in their order."""
        if complete:
            self._ask_the_rest(question, filtered)
        calls = self.framework.points[Point.FILTER]
        last = len(calls)
        refused_by = self._verdicts.refused_by
        first = np.where(refused_by == PASSED, last, refused_by)
        if filtered.within is not None:
            first[~filtered.within] = NOT_ASKED
        matrix = FilterMatrix(question.snapshot, [], [], first)
        # From the place among all filters to the place among those that were not skipped.
        places = np.full(last + 1, PASSED, np.int16)
        for place, call in enumerate(calls):
            if call.name in question.state.skip_filter:
                continue
            answers = self._kept.get(call.name)
            if place in filtered.asked:
                verdicts = filtered.asked[place]
                if verdicts is ALL_PASS:
                    verdicts = RowVerdicts(np.zeros_like(first), _passes)
                refused = (verdicts.codes != 0) & (verdicts.codes != UNKNOWN)
                np.minimum(first, place, out=first, where=refused)
            elif answers is not None and answers.verdicts is not None:
                if answers.depends == Depends.USAGE:
                    # It was not asked about rows whose state is known to pass.
                    answers.judge(question, first >= place)
                verdicts = answers.verdicts.copy()
                if not answers.by_rows:
                    # Asked node by node, and not about nodes that an earlier plugin refuses.
                    verdicts.codes[first < place] = UNKNOWN
            else:
                verdicts = RowVerdicts(np.full(len(first), UNKNOWN), _passes)
            places[place] = len(matrix.plugins)
            matrix.plugins.append(call.name)
            matrix.verdicts.append(verdicts)
        matrix.refused_by = np.where(first >= 0, places[np.maximum(first, 0)], NOT_ASKED).astype(
            np.int16
        )
        matrix.refuse(filtered.nominated)
        return matrix

    def _ask_the_rest(self, question: Question, filtered: Filtered) -> None:
        """Ask plugins that judge all rows at once about the rows that others refuse; they may fail there."""
        asked = dict(filtered.asked)
        for place, call in enumerate(self.framework.points[Point.FILTER]):
            if call.name in question.state.skip_filter:
                continue
            answers = self._kept.get(call.name)
            if answers is not None:
                answers.judge_the_rest(question)
            elif place not in asked:
                with contextlib.suppress(PluginFailure):
                    verdicts = filtering.ask_all(call, question)
                    if verdicts is not None:
                        asked[place] = verdicts
        filtered.asked = asked

    # Score

    def run_scores(
        self,
        question: Question,
        feasible: NDArray[np.intp],
        seen_as: Sequence[NodeInfo] | None = None,
    ) -> Scores:
        """PreScore and Score of the feasible rows. Raises PluginFailure.

        With `seen_as`, plugins that can score a node get these nodes to see instead of the rows.
        """
        if seen_as is None and self._verdicts.is_up_to_date():
            try:
                if self._used and self._by_usage:
                    return self._score_with_kept(question, feasible)
                # The first pod may be the only one of its kind: no totals are kept for it.
                scores = self._score_on_shared(question, feasible)
                self._used = True
                return scores
            except PluginFailure:
                self._kept_scores = None
        self._used = self._cluster is not None
        return self._score_in_order(question, feasible, seen_as)

    def _score_on_shared(self, question: Question, feasible: NDArray[np.intp]) -> Scores:
        """The shared scores, with those of the other plugins on top."""
        shared, state, weights = self._shared, question.state, self.framework.weights
        keys = shared.scores(question).keys_over(question, feasible)
        rows = scoring.compact_rows(feasible, question.snapshot)
        skipped = [
            call.name
            for call in shared.other_pre_scores
            if call.name in self._by_usage and self._pre_score(call, question, rows)
        ]
        state.skip_score = shared.skips_score.union(skipped) if skipped else shared.skips_score
        live, scored = self._ask_scores(question, feasible)
        for call in shared.other_scores:
            scores = live.get(call.name)
            if scores is None:
                answers = self._by_usage.get(call.name)
                if answers is None or call.name in state.skip_score:
                    continue
                scores = scoring.finished(call, question, answers.score(question, rows))
            keys += scores.normalized * (weights[call.name] << RANK_BITS)
        if scored is not None:
            keys += scored.take(rows)
        return Scores(self, question, int(feasible[keys.argmax()]), feasible, live)

    def _score_amounts(self, calls: Sequence[Calls], question: Question) -> ScoredAmounts:
        """The sum of the scores of these plugins, which see resources only."""
        states, weights = question.snapshot.columns.states, self.framework.weights
        total: NDArray[Any] | None = None
        for call in calls:
            scores = scoring.scores_of_amounts(call, question)
            weight = weights[call.name]
            if weight != 1:
                scores = scores * weight
            total = scores if total is None else total + scores
        assert total is not None
        keys: Ints = total.astype(np.int64)
        keys <<= RANK_BITS
        return ScoredAmounts(keys, states.codes if states.kept else None)

    def _score_in_order(
        self,
        question: Question,
        feasible: NDArray[np.intp],
        seen_as: Sequence[NodeInfo] | None,
    ) -> Scores:
        rows = scoring.compact_rows(feasible, question.snapshot)
        with self.framework.timed("PreScore") as told:
            question.state.skip_score = frozenset(
                [
                    call.name
                    for call in self.framework.points[Point.PRE_SCORE]
                    if self._pre_score(call, question, rows)
                ]
            )
            told.code = Code.SUCCESS
        matrix = ScoreMatrix.empty(feasible)
        with self.framework.timed("Score") as told:
            for call in self.framework.points[Point.SCORE]:
                if call.name in question.state.skip_score:
                    continue
                answers = self._kept.get(call.name)
                if seen_as is not None and call.score is not None:
                    scores = scoring.score_nodes(call, question, seen_as)
                elif answers is None:
                    scores = scoring.score_plugin(call, question, feasible)
                else:
                    raw = answers.score(question, rows)
                    # The matrix stays as it is while kept scores change.
                    raw = raw.copy() if isinstance(rows, slice) else raw
                    scores = scoring.finished(call, question, raw)
                matrix.add(call.name, self.framework.weights[call.name], scores)
            told.code = Code.SUCCESS
        best = matrix.best
        row = int(best[np.argmax(self._shared.tie_keys(question.snapshot)[best])])
        return Scores(self, question, row, feasible, {}, matrix)

    def _pre_score(self, call: Calls, question: Question, rows: Rows) -> bool:
        """Whether the plugin has nothing to score."""
        answers = self._kept.get(call.name)
        if answers is not None:
            return answers.pre_score(self.framework, question, rows)
        state, pod, snapshot = question.state, question.pod, question.snapshot
        return self.framework.pre_score(call, state, pod, snapshot, rows)

    def _score_with_kept(self, question: Question, feasible: NDArray[np.intp]) -> Scores:
        kept = self._kept_scores
        if kept is not None:
            question.state.take(self._score_values)
            if not kept.bring_up_to_date(question):
                kept = None
        if kept is None:
            kept = self._build_scores(question)
        question.state.skip_score = self._skips_score
        live, scored = self._ask_scores(question, feasible)
        if not live and scored is None and feasible is self._verdicts.rows:
            return Scores(self, question, kept.best(), feasible, live)
        keys = kept.keys_over(question, feasible)
        for name, scores in live.items():
            keys += scores.normalized * (self.framework.weights[name] << RANK_BITS)
        if scored is not None:
            keys += scored.take(scoring.compact_rows(feasible, question.snapshot))
        return Scores(self, question, int(feasible[keys.argmax()]), feasible, live)

    def _build_scores(self, question: Question) -> KeptScores:
        """The kept scores of all rows that are ok."""
        rows = scoring.compact_rows(self._verdicts.rows, question.snapshot)
        points, kept = self.framework.points, self._kept
        calls = [call for call in points[Point.PRE_SCORE] if call.name in kept]
        self._skips_score = frozenset(
            [call.name for call in calls if self._pre_score(call, question, rows)]
        )
        self._score_values = {}
        for call in calls:
            self._score_values |= kept[call.name].values
        plugins = [
            (kept[call.name], self.framework.weights[call.name])
            for call in points[Point.SCORE]
            if call.name in kept and call.name not in self._skips_score
        ]
        self._kept_scores = KeptScores(plugins, self._verdicts, self._shared.tie_keys, question)
        return self._kept_scores

    def _ask_scores(
        self, question: Question, feasible: NDArray[np.intp]
    ) -> tuple[dict[str, PluginScores], ScoredAmounts | None]:
        """The plugins whose scores are not kept, and the sum of those that see resources only."""
        if not self._live_scores:
            return {}, None
        state, framework = question.state, self.framework
        if framework.measures:
            with framework.timed("PreScore") as told:
                skipped = self._run_live_pre_scores(question, feasible)
                told.code = Code.SUCCESS
        else:
            skipped = self._run_live_pre_scores(question, feasible)
        if skipped:
            state.skip_score = state.skip_score.union(skipped)
        calls = [call for call in self._live_scores if call.name not in skipped]
        if not calls:
            return {}, None
        with framework.timed("Score") as told:
            by_amounts = [
                call
                for call in calls
                if call.normalize_scores is None and sees_only_resources(call, question.pod)
            ]
            live = {
                call.name: scoring.score_plugin(call, question, feasible)
                for call in calls
                if call not in by_amounts
            }
            scored = self._score_amounts(by_amounts, question) if by_amounts else None
            told.code = Code.SUCCESS
        return live, scored

    def _run_live_pre_scores(self, question: Question, feasible: NDArray[np.intp]) -> list[str]:
        """The plugins that have nothing to score."""
        framework, state, pod, snapshot = (
            self.framework,
            question.state,
            question.pod,
            question.snapshot,
        )
        rows = scoring.compact_rows(feasible, snapshot)
        return [
            call.name
            for call in self._live_pre_scores
            if framework.pre_score(call, state, pod, snapshot, rows)
        ]

    def score_matrix(
        self, question: Question, feasible: NDArray[np.intp], live: dict[str, PluginScores]
    ) -> ScoreMatrix:
        """The scores of all plugins, in their order."""
        matrix = ScoreMatrix.empty(feasible)
        for call in self.framework.points[Point.SCORE]:
            if call.name in question.state.skip_score:
                continue
            scores = live.get(call.name)
            if scores is None:
                answers = self._kept.get(call.name)
                if answers is None:
                    scores = scoring.score_plugin(call, question, feasible)
                else:
                    raw = answers.score(question, feasible)
                    scores = scoring.finished(call, question, raw)
            matrix.add(call.name, self.framework.weights[call.name], scores)
        return matrix

    # Copies

    def place_copies(self, question: Question, filtered: Filtered, most: int) -> Copies | None:
        """Where copies of the pod go; None if that does not follow from the rows alone.

        To be asked after `run_filters` for all rows. Raises PluginFailure.
        """
        rows, pod, state = filtered.rows, question.pod, question.state
        if not len(rows):
            return Copies([], {})
        compact = scoring.compact_rows(rows, question.snapshot)
        state.skip_score = frozenset(
            [
                call.name
                for call in self.framework.points[Point.PRE_SCORE]
                if self._pre_score(call, question, compact)
            ]
        )
        pre_filters = self._takes_part(Point.PRE_FILTER, state.skip_filter, pod)
        filters = self._takes_part(Point.FILTER, state.skip_filter, pod)
        pre_scores = self._takes_part(Point.PRE_SCORE, state.skip_score, pod)
        scores = self._takes_part(Point.SCORE, state.skip_score, pod)
        if pre_filters is None or filters is None or pre_scores is None or scores is None:
            return None
        fixed, by_usage = [], []
        for call, answers in scores:
            weight = self.framework.weights[call.name]
            if answers.depends == Depends.USAGE:
                if call.score_rows is None or call.normalize_scores is not None:
                    return None
                by_usage.append((call, weight))
            elif call.normalize_scores is not None and not call.normalizes_by_extremes:
                return None
            else:
                raw = answers.score(question, rows)
                fixed.append(FixedScores(call, weight, question, raw))
        if any(call.filter_rows is None for call, _ in filters):
            return None
        copies = CopiesOfPod(
            question,
            rows,
            [call for call, _ in filters],
            fixed,
            by_usage,
            self._shared.tie_keys(question.snapshot),
        )
        return copies.place(most)

    def _takes_part(
        self, point: Point, skipped: frozenset[str], pod: Pod
    ) -> list[tuple[Calls, Answers]] | None:
        """The plugins that are not skipped; None if copies of the pod may change what another row gets."""
        found = []
        for call in self.framework.points[point]:
            answers = self._kept.get(call.name)
            if answers is None and not (call.name in skipped and skips_copies(call, pod)):
                return None
            if answers is not None and call.name not in skipped:
                if answers.depends == Depends.USAGE and not sees_usage_columns_only(call):
                    return None
                found.append((call, answers))
        return found

    # Checking

    def validate(self, pod: Pod, snapshot: Snapshot) -> bool:
        """Raise InvariantError unless what is kept is what a new evaluation of the pod finds out.

        False if that cannot be found out, because plugins refuse the pod before they look at nodes, or fail.
        """
        if self._cluster is None or self._shared.pre_filtered is None:
            return False
        new = Evaluation(
            self._shared.renewed(),
            {name: answers.renewed(self._cluster) for name, answers in self._by_usage.items()},
        )
        question, again = (Question(CycleState(), pod, snapshot) for _ in range(2))
        try:
            if not (
                self._run_pre_filters(question).status.ok and new._run_pre_filters(again).status.ok
            ):
                return False
            self._shared.validate(new._shared, question, again)
            filtered, expected = self._filter_with_kept(question), new._filter_with_kept(again)
            check_kept("rows beside nominated pods", filtered.nominated, expected.nominated)
            self._verdicts.validate(new._verdicts, snapshot.columns)
            if self._kept_scores is not None and self._verdicts.ok_count:
                question.state.take(self._score_values)
                if self._kept_scores.bring_up_to_date(question):
                    self._kept_scores.validate(new._build_scores(again), snapshot.columns)
        except PluginFailure:
            return False
        for name, answers in self._kept.items():
            answers.catch_up(question.size)
            answers.validate(new._kept[name])
        return True


#: Those of an evaluation that PreFilter has not passed yet.
_NO_VERDICTS = KeptVerdicts((), None)


def _no_node_left(narrowed_by: Sequence[str]) -> str:
    if len(narrowed_by) == 1:
        return f"node(s) didn't satisfy plugin {narrowed_by[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously"


def _passes(code: int) -> Status:
    return SUCCESS
