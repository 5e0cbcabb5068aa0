"""The sum of those plugins' scores that are kept, for the rows that pass: brought up to date row by row.

key[row]     the weighted sum of the normalised scores, and the tie-break, in one number: the largest is the
             node to take; -1 where a row is not ok
rest[row]    the same without the scores that change with the pods of the row
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns, Ints, Rows, row_count
from mooring.cluster.snapshot import RANKS, Snapshot
from mooring.errors import InvariantError
from mooring.framework.interface import MAX_SCORE, MIN_SCORE, Depends
from mooring.runtime import scoring
from mooring.runtime.answers import Answers
from mooring.runtime.filtering import FEW_ROWS
from mooring.runtime.kept_verdicts import MOST_STATES, Changed, KeptVerdicts
from mooring.runtime.question import Question

#: Bits for the place in the order of ties in `key`.
RANK_BITS = (RANKS - 1).bit_length()

#: If more than this share of the rows changed, all rows are scored again.
_LARGEST_SHARE = 0.5

#: The order of ties: int64[row], the same array for the same snapshot.
TieKeys = Callable[[Snapshot], Ints]


class _KeptScore:
    """One plugin's scores, as they went into the totals."""

    __slots__ = ("answers", "highest", "lowest", "normalized", "raw", "weight")

    def __init__(self, answers: Answers, weight: int, size: int) -> None:
        self.answers = answers
        self.weight = weight
        #: int64[row]. The plugin may have been asked again since, about another class of pods.
        self.raw: Ints = np.zeros(size, np.int64)
        #: int64[row]; None if the plugin does not normalise.
        self.normalized: Ints | None = None
        if answers.call.normalize_scores is not None:
            self.normalized = np.zeros(size, np.int64)
        #: The extremes of `raw` over the rows that are ok.
        self.lowest = 0
        self.highest = 0

    @property
    def is_flat(self) -> bool:
        """Whether all scores are equal, so that normalising some of them gives what it gave for all."""
        return self.lowest == self.highest and self.answers.call.normalizes_by_extremes

    def has_same_extremes(self, raw: Ints) -> bool:
        """Whether normalising some of the scores gives what normalising all of them gave."""
        if not self.answers.call.normalizes_by_extremes:
            return False
        return (int(raw.min()), int(raw.max())) == (self.lowest, self.highest)


class KeptScores:
    """The scores of some plugins for the rows that are ok."""

    def __init__(
        self,
        plugins: Sequence[tuple[Answers, int]],
        verdicts: KeptVerdicts,
        tie_keys: TieKeys,
        question: Question,
    ) -> None:
        """Score all rows that are ok. Each plugin comes with its weight. Raises PluginFailure."""
        size = question.size
        self._verdicts = verdicts
        #: That of the verdicts when the scores were brought up to date.
        self._version = verdicts.version
        self._tie_keys_of = tie_keys
        self._tie_keys = tie_keys(question.snapshot)
        #: The plugins whose scores change with the pods of a row, and move no other row; with their weights.
        self._usage = [
            each
            for each in plugins
            if each[0].depends == Depends.USAGE and each[0].call.normalize_scores is None
        ]
        #: The other plugins, and those among them that look at pods.
        self._plugins = [_KeptScore(*each, size) for each in plugins if each not in self._usage]
        self._moving = [k for k in self._plugins if k.answers.depends == Depends.USAGE]
        self._normalizes = any(kept.normalized is not None for kept in self._plugins)
        #: By state of rows: the sum of the scores by usage, as far as known; None if states do not decide.
        self._by_state: dict[bytes, int] | None = None
        if self._usage and all(a.see_only_resources(question.pod) for a, _ in self._usage):
            self._by_state = {}
        #: int64[row]: the key without the scores by usage.
        self._rest: Ints = np.zeros(size, np.int64)
        self._key: Ints = np.full(size, -1, np.int64)
        #: Rows that changed since they were scored, and the rows among them whose node object changed.
        self._stale: set[int] = set()
        self._stale_nodes: set[int] = set()
        self._normalize_all(question)

    def note(self, changed: Changed) -> None:
        rows, nodes = changed
        if rows:
            self._stale.update(rows)
            if nodes:
                self._stale_nodes |= nodes

    def bring_up_to_date(self, question: Question) -> bool:
        """False if too much has changed: start again. Raises PluginFailure."""
        stale = self._stale
        if self._tie_keys is not self._tie_keys_of(question.snapshot):
            return False
        if not stale:
            return True
        if len(stale) > FEW_ROWS and len(stale) > len(self._key) * _LARGEST_SHARE:
            return False
        if self._rescore(question, list(stale)):
            self._normalize_all(question)
        self._version = self._verdicts.version
        stale.clear()
        if self._stale_nodes:
            self._stale_nodes.clear()
        return True

    def best(self) -> int:
        """The row to take, if these are all scores and all rows that are ok are feasible."""
        return int(self._key.argmax())

    def keys_over(self, question: Question, feasible: NDArray[np.intp]) -> Ints:
        """int64[feasible]: the keys of these rows, with scores normalised over them and not over all."""
        if self._is_every_slot(feasible):
            return self._key.copy()
        keys: Ints = self._key.take(feasible)
        if len(feasible) == self._verdicts.ok_count:
            return keys
        for kept in self._plugins:
            if kept.normalized is None or kept.is_flat:
                continue
            raw = kept.raw.take(feasible)
            if not kept.has_same_extremes(raw):
                again = scoring.normalize(kept.answers.call, question, raw)
                change = (again - kept.normalized.take(feasible)) * kept.weight
                keys += change << RANK_BITS
        return keys

    def _is_every_slot(self, feasible: NDArray[np.intp]) -> bool:
        """Whether these are all slots, in order: then nothing has to be picked."""
        return self._verdicts.all_ok and feasible is self._verdicts.rows

    def _normalize_all(self, question: Question) -> None:
        """The totals of all rows that are ok, from their raw scores."""
        self._key[:] = -1
        if not self._verdicts.ok_count:
            return
        rows = self._verdicts.rows
        compact = scoring.compact_rows(rows, question.snapshot)
        total: Ints = np.zeros(len(rows), np.int64)
        for kept in self._plugins:
            scores = kept.answers.score(question, compact)
            kept.raw[rows] = scores
            if kept.normalized is not None:
                kept.lowest, kept.highest = int(scores.min()), int(scores.max())
                scores = scoring.normalize(kept.answers.call, question, scores)
                kept.normalized[rows] = scores
            scoring.check_range(kept.answers.call.name, scores)
            total += scores if kept.weight == 1 else scores * kept.weight
        total <<= RANK_BITS
        total += self._tie_keys[compact]
        self._rest[rows] = total
        self._key[rows] = total + (self._scores_by_usage(question, compact) << RANK_BITS)

    def _scores_by_usage(self, question: Question, rows: Rows) -> Ints:
        """int64[row asked for]: the sum over these plugins."""
        total: Ints = np.zeros(row_count(rows), np.int64)
        for answers, weight in self._usage:
            scores = answers.score(question, rows)
            scoring.check_range(answers.call.name, scores)
            total += scores if weight == 1 else scores * weight
        return total

    def _score_by_usage(self, question: Question, row: int) -> int:
        total = 0
        for answers, weight in self._usage:
            score = answers.score_row(question, row)
            if not MIN_SCORE <= score <= MAX_SCORE:
                scoring.check_score(answers.call.name, score)
            total += score * weight
        return total

    def _set_score(self, question: Question, row: int) -> None:
        score = self._score_by_usage(question, row)
        self._key[row] = self._rest.item(row) + (score << RANK_BITS)

    def _rescore(self, question: Question, rows: list[int]) -> bool:
        """Whether the scores of other rows may have changed as well."""
        states = question.snapshot.columns.states
        if (
            self._by_state is not None
            and not self._moving
            and not self._stale_nodes
            and self._version == self._verdicts.version
            and states.kept
            and states.are_few(question.snapshot.columns)
        ):
            if not self._verdicts.all_ok:
                ok = self._verdicts.ok
                rows = [row for row in rows if ok[row]]
            self._set_scores(rows, self._scores_by_state(question, rows, states.keys))
            return False
        if len(rows) > FEW_ROWS:
            return self._rescore_rows(question, np.array(rows, np.intp))
        moves_others = False
        for row in rows:
            moves_others |= self._rescore_row(question, row)
        return moves_others

    def _scores_by_state(
        self, question: Question, rows: list[int], states: Sequence[bytes]
    ) -> list[int]:
        """The sum of the scores by usage for each row: plugins are asked about one row of each state."""
        known = self._by_state
        assert known is not None
        if len(known) > MOST_STATES:
            known.clear()
        unknown = {states[row]: row for row in rows if states[row] not in known}
        if len(unknown) > FEW_ROWS:
            scores = self._scores_by_usage(question, np.array([*unknown.values()], np.intp))
            known.update(zip(unknown, scores.tolist(), strict=True))
        else:
            for state, row in unknown.items():
                known[state] = self._score_by_usage(question, row)
        return [known[states[row]] for row in rows]

    def _set_scores(self, rows: list[int], scores: list[int]) -> None:
        """The sums of the scores by usage."""
        if len(rows) <= FEW_ROWS:
            for row, score in zip(rows, scores, strict=True):
                self._key[row] = self._rest.item(row) + (score << RANK_BITS)
        else:
            at, keys = np.array(rows, np.intp), np.array(scores, np.int64)
            keys <<= RANK_BITS
            keys += self._rest.take(at)
            self._key[at] = keys

    def _rescore_row(self, question: Question, row: int) -> bool:
        """Whether the scores of other rows may have changed as well."""
        was_ok = bool(self._key[row] >= 0)
        if not self._verdicts.ok[row]:
            self._key[row] = -1
            return was_ok and self._was_extreme(np.array([row], np.intp))
        if was_ok and row not in self._stale_nodes:
            for kept in self._moving:
                if kept.answers.score_row(question, row) != kept.raw[row]:
                    return True
            self._set_score(question, row)
            return False
        moves_others = self._normalizes and not was_ok
        total = 0
        for kept in self._plugins:
            score = kept.answers.score_row(question, row)
            if kept.normalized is not None:
                # One new score of a plugin that normalises may move all the others.
                moves_others = moves_others or bool(score != kept.raw[row])
                score = int(kept.normalized[row])
            else:
                scoring.check_score(kept.answers.call.name, score)
                kept.raw[row] = score
            total += score * kept.weight
        self._rest[row] = (total << RANK_BITS) + int(self._tie_keys[row])
        self._set_score(question, row)
        return moves_others

    def _rescore_rows(self, question: Question, rows: NDArray[np.intp]) -> bool:
        """Whether the scores of other rows may have changed as well."""
        moves_others = False
        same_node = (self._key[rows] >= 0) & self._verdicts.ok[rows]
        if self._stale_nodes:
            same_node &= ~np.isin(rows, list(self._stale_nodes))
        if np.count_nonzero(same_node) < len(rows):
            for row in rows[~same_node].tolist():
                moves_others |= self._rescore_row(question, row)
            rows = rows[same_node]
            if not len(rows):
                return moves_others
        for kept in self._moving:
            scores = kept.answers.score(question, rows)
            moves_others = moves_others or bool(np.count_nonzero(scores != kept.raw[rows]))
        keys = self._scores_by_usage(question, rows)
        keys <<= RANK_BITS
        keys += self._rest.take(rows)
        self._key[rows] = keys
        return moves_others

    def _was_extreme(self, lost: NDArray[np.intp]) -> bool:
        """Whether to normalise again without these rows, which are no longer ok."""
        if not self._verdicts.ok_count:
            return False
        for kept in self._plugins:
            if kept.normalized is None:
                continue
            if not kept.is_flat and not kept.has_same_extremes(kept.raw.take(self._verdicts.rows)):
                return True
        return False

    def validate(self, new: KeptScores, columns: Columns) -> None:
        """Raise InvariantError unless these are the scores of all plugins, asked just now."""
        ok = self._verdicts.ok
        for what, kept, found in (
            ("order of the nodes without their pods", self._rest[ok], new._rest[ok]),
            ("order of the nodes", self._key, new._key),
        ):
            if not np.array_equal(kept, found):
                raise InvariantError(f"the {what} is out of date: {kept}, and not {found}")
        if self._by_state and columns.states.are_few(columns):
            for row in self._verdicts.rows.tolist():
                score = int(new._key[row] - new._rest[row]) >> RANK_BITS
                known = self._by_state.get(columns.states.keys[row], score)
                if known != score:
                    raise InvariantError(
                        f"row {row} scores {score} by usage, and {known} is kept for its state"
                    )
