"""The sum of those plugins' scores that are kept, for the rows that pass: brought up to date row by row.

total[row]   the weighted sum of the normalised scores
key[row]     total and tie-break in one number: the largest is the node to take; -1 where a row is not ok
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Ints
from mooring.cluster.snapshot import RANKS, Snapshot
from mooring.errors import InvariantError
from mooring.framework.interface import MAX_SCORE, MIN_SCORE, Depends
from mooring.runtime import scoring
from mooring.runtime.answers import Answers
from mooring.runtime.filtering import FEW_ROWS
from mooring.runtime.kept_verdicts import Changed, KeptVerdicts
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
        self._tie_keys_of = tie_keys
        self._tie_keys = tie_keys(question.snapshot)
        self._plugins = [_KeptScore(answers, weight, size) for answers, weight in plugins]
        self._usage_plugins = [k for k in self._plugins if k.answers.depends == Depends.USAGE]
        self._normalizes = any(kept.normalized is not None for kept in self._plugins)
        self._total: Ints = np.zeros(size, np.int64)
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
        if len(stale) <= FEW_ROWS:
            moves_others = False
            for row in stale:
                moves_others |= self._rescore_row(question, row)
        elif len(stale) > len(self._key) * _LARGEST_SHARE:
            return False
        else:
            moves_others = self._rescore_rows(question, np.fromiter(stale, np.intp, len(stale)))
        if moves_others:
            self._normalize_all(question)
        stale.clear()
        if self._stale_nodes:
            self._stale_nodes.clear()
        return True

    def best(self) -> int:
        """The row to take, if these are all scores and all rows that are ok are feasible."""
        return int(self._key.argmax())

    def total_over(self, question: Question, feasible: NDArray[np.intp]) -> Ints:
        """int64[feasible]: the totals of these rows, normalised over them and not over all that are ok."""
        if self._is_every_slot(feasible):
            return self._total.copy()
        total: Ints = self._total.take(feasible)
        if len(feasible) == self._verdicts.ok_count:
            return total
        for kept in self._plugins:
            if kept.normalized is None or kept.is_flat:
                continue
            raw = kept.raw.take(feasible)
            if not kept.has_same_extremes(raw):
                again = scoring.normalize(kept.answers.call, question, raw)
                total += (again - kept.normalized.take(feasible)) * kept.weight
        return total

    def key_over(self, feasible: NDArray[np.intp], total: Ints) -> Ints:
        """int64[feasible]: totals and tie-break in one number; overwrites the totals."""
        total <<= RANK_BITS
        every = self._is_every_slot(feasible)
        total += self._tie_keys if every else self._tie_keys.take(feasible)
        return total

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
        self._total[rows] = total
        self._key[rows] = self.key_over(rows, total)

    def _rescore_row(self, question: Question, row: int) -> bool:
        """Whether the scores of other rows may have changed as well."""
        was_ok = bool(self._key[row] >= 0)
        if not self._verdicts.ok[row]:
            self._key[row] = -1
            return was_ok and self._was_extreme(np.array([row], np.intp))
        if was_ok and row not in self._stale_nodes:
            return self._rescore_usage(question, row)
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
        self._set_total(row, total)
        return moves_others

    def _rescore_usage(self, question: Question, row: int) -> bool:
        """A row whose pods changed, and not its node: only some of the plugins look at those."""
        total = int(self._total[row])
        for kept in self._usage_plugins:
            score = kept.answers.score_row(question, row)
            before = int(kept.raw[row])
            if score == before:
                continue
            if kept.normalized is not None:
                return True
            if not MIN_SCORE <= score <= MAX_SCORE:
                scoring.check_score(kept.answers.call.name, score)
            kept.raw[row] = score
            total += (score - before) * kept.weight
        self._set_total(row, total)
        return False

    def _set_total(self, row: int, total: int) -> None:
        self._total[row] = total
        self._key[row] = (total << RANK_BITS) + int(self._tie_keys[row])

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
        total = self._total[rows]
        for kept in self._usage_plugins:
            scores = kept.answers.score(question, rows)
            if kept.normalized is not None:
                moves_others = moves_others or bool(np.count_nonzero(scores != kept.raw[rows]))
                continue
            scoring.check_range(kept.answers.call.name, scores)
            change = scores - kept.raw[rows]
            total += change if kept.weight == 1 else change * kept.weight
            kept.raw[rows] = scores
        self._total[rows] = total
        self._key[rows] = self.key_over(rows, total)
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

    def validate(self, new: KeptScores) -> None:
        """Raise InvariantError unless these are the scores of all plugins, asked just now."""
        ok = self._verdicts.ok
        for what, kept, found in (
            ("total", self._total[ok], new._total[ok]),
            ("order of the nodes", self._key, new._key),
        ):
            if not np.array_equal(kept, found):
                raise InvariantError(f"the {what} is out of date: {kept}, and not {found}")
