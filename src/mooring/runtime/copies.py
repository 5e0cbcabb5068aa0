"""Where copies of a pod go, one after the other, found for all of them at once.

This is possible if a row's verdict and score depend on the row alone: on its node, and on how many copies it
has. Then rows are judged and scored with no copy, with one, with two and so on, all rows in one pass each.
The next copy goes to the row with the highest score. That row alone changes, so a heap of rows gives exactly
the places of one decision after the other. See docs/decisions/0030-copies-at-once.md.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns, Ints
from mooring.errors import PluginError
from mooring.framework.status import Status
from mooring.objects.pod import Pod
from mooring.runtime import filtering, scoring
from mooring.runtime.kept_scores import RANK_BITS
from mooring.runtime.plugin_calls import SCORE, Calls
from mooring.runtime.question import Question

#: The key of a row that takes no more copies.
_CLOSED = -1


def skips_copies(call: Calls, pod: Pod) -> bool:
    """Whether a plugin that skips the pod would skip it with copies of it on the nodes, too.

    A plugin says so with a method of this name. It is asked only if the plugin skipped the pod.
    """
    says = getattr(call.plugin, "skips_copies", None)
    return says is not None and bool(says(pod))


@dataclass(frozen=True, slots=True)
class Copies:
    """The places of the copies."""

    #: The row of each copy, in order.
    rows: list[int]
    #: Row → why it takes no further copy, for rows that took the first; none if copies were left.
    refused: dict[int, Status]


class FixedScores:
    """The scores of one plugin that copies do not change, except that full rows no longer count."""

    __slots__ = ("_call", "_question", "_raw", "_weight")

    def __init__(self, call: Calls, weight: int, question: Question, raw: Ints) -> None:
        self._call = call
        self._weight = weight
        self._question = question
        #: int64[place]
        self._raw = raw

    def over(self, places: NDArray[np.intp]) -> Ints:
        """int64[places]: weighted, and normalised over these. Raises PluginFailure."""
        finished = scoring.finished(self._call, self._question, self._raw[places])
        return finished.normalized * self._weight

    def by_value(self, places: NDArray[np.intp]) -> _ByValue | None:
        """None if scores do not change when rows close."""
        if self._call.normalize_scores is None:
            return None
        raw = self._raw[places]
        lowest, highest = int(raw.min()), int(raw.max())
        return None if lowest == highest else _ByValue(self._raw, Counter(raw.tolist()))


@dataclass(frozen=True, slots=True)
class _ByValue:
    """How many open rows have each score."""

    raw: Ints
    counts: Counter[int]

    def close(self, place: int) -> bool:
        """Whether an extreme is lost, so that scores must be normalised again."""
        value = int(self.raw[place])
        self.counts[value] -= 1
        if self.counts[value]:
            return False
        del self.counts[value]
        return bool(self.counts) and (value < min(self.counts) or value > max(self.counts))


class CopiesOfPod:
    """The search for places. A place is an index into the rows that take the first copy."""

    def __init__(
        self,
        question: Question,
        rows: NDArray[np.intp],
        filters: Sequence[Calls],
        fixed: Sequence[FixedScores],
        by_usage: Sequence[tuple[Calls, int]],
        tie_keys: Ints,
    ) -> None:
        """All filters that take part, and scores by plugins that copies do not change, and others."""
        self._question = question
        self._rows = rows
        self._filters = filters
        self._fixed = fixed
        self._by_usage = by_usage
        self._tie_keys = tie_keys[rows]
        #: The columns with as many copies on each row as there are levels, less one.
        self._columns = _changeable(question.snapshot.columns)
        pod, columns = question.pod, self._columns
        self._held: Ints = np.zeros((len(columns.requested), 1), np.int64)
        for name, amount in pod.held.items():
            self._held[columns.resources[name]] = amount
        self._held_non_zero = np.array(pod.held_non_zero, np.int64)[:, None]
        #: For each number of copies, int64[place]: the weighted scores by usage; _CLOSED if the row is full.
        self._levels = [self._usage_scores(np.arange(len(rows)))]

    def place(self, most: int) -> Copies:
        """Until so many copies have places, or the next fits nowhere. Raises PluginFailure."""
        counts = [0] * len(self._rows)
        placed: list[int] = []
        while len(placed) < most and self._fill(counts, placed, most):
            pass
        rows = self._rows[placed].tolist() if placed else []
        refused = self._refused(counts) if len(placed) < most else {}
        return Copies(rows, refused)

    def _fill(self, counts: list[int], placed: list[int], most: int) -> bool:
        """Place copies as long as scores hold. Return whether a row is left for another."""
        usage = self._at_their_level(counts)
        places = np.flatnonzero(usage != _CLOSED)
        if not len(places):
            return False
        fixed = np.zeros(len(usage), np.int64)
        for scores in self._fixed:
            fixed[places] += scores.over(places)
        by_value = [each for scores in self._fixed if (each := scores.by_value(places))]
        ties, levels = self._tie_keys, self._levels
        keys = ((fixed + usage) << RANK_BITS) + ties
        # The largest key first; of equal keys, the first row.
        heap = list(zip((-keys[places]).tolist(), places.tolist(), strict=True))
        heapify(heap)
        left = most - len(placed)
        while left and heap:
            place = heap[0][1]
            placed.append(place)
            left -= 1
            count = counts[place] = counts[place] + 1
            if count == len(levels):
                self._add_level()
            score = levels[count].item(place)
            if score == _CLOSED:
                heappop(heap)
                lost_extremes = [each.close(place) for each in by_value]
                if any(lost_extremes):
                    return bool(heap)
            else:
                key = ((fixed.item(place) + score) << RANK_BITS) + ties.item(place)
                heapreplace(heap, (-key, place))
        return bool(heap)

    def _at_their_level(self, counts: Sequence[int]) -> Ints:
        levels = np.array(counts, np.int64)
        usage: Ints = np.full(len(counts), _CLOSED, np.int64)
        for level, scores in enumerate(self._levels):
            there = levels == level
            usage[there] = scores[there]
        return usage

    def _add_level(self) -> None:
        """Judge and score the rows with one more copy on each."""
        columns, rows = self._columns, self._rows
        columns.requested[:, rows] += self._held
        columns.non_zero[:, rows] += self._held_non_zero
        columns.pod_count[rows] += 1
        places = np.flatnonzero(self._levels[-1] != _CLOSED)
        for call in self._filters:
            codes = filtering.ask_columns(call, self._question, columns, rows[places]).codes
            places = places[codes == 0]
        self._levels.append(self._usage_scores(places))

    def _usage_scores(self, places: NDArray[np.intp]) -> Ints:
        """int64[place], with _CLOSED elsewhere."""
        scores: Ints = np.full(len(self._rows), _CLOSED, np.int64)
        if not len(places):
            return scores
        total: Ints = np.zeros(len(places), np.int64)
        question = self._question
        for call, weight in self._by_usage:
            assert call.score_rows is not None
            with call.guard("Score", SCORE.doing, question.state):
                raw: Ints = call.score_rows(
                    question.state, question.pod, self._columns, self._rows[places]
                )
                if raw.dtype != np.int64 or len(raw) != len(places):
                    raise PluginError("score_rows must return an int64 for each row")
            scoring.check_range(call.name, raw)
            total += raw * weight
        scores[places] = total
        return scores

    def _refused(self, counts: Sequence[int]) -> dict[int, Status]:
        """Why each row takes no further copy."""
        question, rows = self._question, self._rows
        columns, number = _changeable(question.snapshot.columns), np.array(counts, np.int64)
        columns.requested[:, rows] += self._held * number
        columns.pod_count[rows] += number
        return filtering.refused_rows(self._filters, question, columns, rows.tolist())


def _changeable(columns: Columns) -> Columns:
    other = copy.copy(columns)
    other.requested = columns.requested.copy()
    other.non_zero = columns.non_zero.copy()
    other.pod_count = columns.pod_count.copy()
    return other
