"""What one plugin answered about pods that it treats alike, kept row by row.

A plugin says which part of a pod it looks at (`sign`) and what else its answers depend on (`depends_on`).
Two pods with the same part get the same answers, so they share one `Answers`, however much they differ
otherwise. A row is asked about again only after something changed there that the plugin depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import index

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Ints, Mask, Rows
from mooring.cluster.row_states import RowStates
from mooring.errors import InvariantError
from mooring.faults import PLUGIN_FAULTS
from mooring.framework.interface import Depends, PreFilterResult
from mooring.framework.status import SUCCESS, Status
from mooring.framework.verdicts import UNKNOWN, RowVerdicts
from mooring.objects.pod import Pod
from mooring.runtime import filtering, scoring
from mooring.runtime.framework import Framework
from mooring.runtime.plugin_calls import FILTER, SCORE, Calls, PluginFailure
from mooring.runtime.question import Question
from mooring.runtime.usage_columns import sees_usage_columns_only

#: The raw score of a row that the plugin was not asked about.
UNSCORED = int(np.iinfo(np.int64).min)


class Verdicts:
    """A plugin's verdicts on the rows: a code for each, and what the codes stand for."""

    __slots__ = ("_code_of", "_decode", "_statuses", "codes", "has_unknown", "refuses_any")

    def __init__(
        self, codes: Ints, decode: Callable[[int], Status], *, refuses_any: bool = True
    ) -> None:
        #: int64[row]: 0 where the row passes; positive codes are the plugin's own, negative ones stand
        #: for a status of a single row; or UNKNOWN.
        self.codes = codes
        self._decode = decode
        #: What -1, -2, … stand for.
        self._statuses: list[Status] = []
        self._code_of: dict[Status, int] = {}
        #: Whether a code may be UNKNOWN; whether a row may be refused.
        self.has_unknown = False
        self.refuses_any = refuses_any

    @classmethod
    def unknown(cls, size: int) -> Verdicts:
        verdicts = cls(np.full(size, UNKNOWN, np.int64), _no_status)
        verdicts.has_unknown = True
        return verdicts

    def forget(self, rows: list[int]) -> None:
        self.codes[rows] = UNKNOWN
        self.has_unknown = True

    def set(self, row: int, status: Status) -> int:
        """The code is the same as before if the status is."""
        before = int(self.codes[row])
        if status is SUCCESS or status.ok:
            code = 0
        elif before not in (0, UNKNOWN) and self.decode(before) == status:
            code = before
        else:
            code = self._code_of.setdefault(status, -1 - len(self._statuses))
            if code == -1 - len(self._statuses):
                self._statuses.append(status)
        if code != before:
            self.codes[row] = code
            self.refuses_any = self.refuses_any or code != 0
        return code

    def decode(self, code: int) -> Status:
        return self._statuses[-1 - code] if code < 0 else self._decode(code)

    def status(self, row: int) -> Status:
        """The status of a row that the plugin was asked about."""
        code = int(self.codes[row])
        return self.decode(code) if code else SUCCESS

    def copy(self) -> RowVerdicts:
        """A copy, which later changes leave alone."""
        plain, statuses = self._decode, self._statuses
        return RowVerdicts(
            self.codes.copy(),
            lambda code: statuses[-1 - code] if code < 0 else plain(code),
        )


class Answers:
    """One plugin's answers."""

    __slots__ = (
        "_changes",
        "_has_unscored",
        "_nodes_version",
        "_position",
        "_size",
        "_stale_scores",
        "_stale_verdicts",
        "by_rows",
        "by_sums",
        "call",
        "depends",
        "epoch",
        "epoch_of_nodes",
        "pre_filter",
        "raw",
        "skips_score",
        "values",
        "verdicts",
    )

    def __init__(self, call: Calls, depends: Depends, cluster: Cluster) -> None:
        self.call = call
        self.depends = depends
        #: The rows on which something changed that the plugin depends on.
        self._changes = cluster.changes.nodes
        #: Whether the plugin sees the pods of a node through sums alone, if at all.
        self.by_sums = True
        if depends == Depends.USAGE:
            self.by_sums = sees_usage_columns_only(call)
            self._changes = cluster.changes.sums if self.by_sums else cluster.changes.pods
        self._position = self._changes.position
        #: What the plugin said last of all nodes; None if it does not say.
        self._nodes_version: int | None = None
        self._size = -1
        #: Grows when all verdicts are forgotten: then their codes may come to stand for something else.
        self.epoch = 0
        #: Grows when what follows from all nodes is forgotten.
        self.epoch_of_nodes = 0
        #: Rows that changed since the plugin judged them, and since it scored them.
        self._stale_verdicts: set[int] = set()
        self._stale_scores: set[int] = set()
        #: What PreFilter said; None as long as it was not asked.
        self.pre_filter: PreFilterResult | Status | None = None
        #: Whether PreScore said Skip; None as long as it was not asked.
        self.skips_score: bool | None = None
        #: What PreFilter and PreScore wrote into the cycle state.
        self.values: dict[str, object] = {}
        self.verdicts: Verdicts | None = None
        #: Whether the plugin judges all rows at once, also those that another one refuses.
        self.by_rows = call.filter_rows is not None
        #: int64[row]: the scores, or UNSCORED.
        self.raw: Ints | None = None
        #: Whether a score may be UNSCORED.
        self._has_unscored = True

    def catch_up(self, size: int) -> None:
        """Notice what changed since the last call."""
        position = self._changes.position
        if position == self._position and size == self._size:
            return
        rows: Sequence[int] | None = ()
        if position != self._position:
            rows = self._changes.since(self._position)
            self._position = position
        resized, self._size = size != self._size, size
        if self.depends == Depends.NODES and (rows is None or rows or resized):
            version = self.call.version_of_nodes()
            if rows is None or resized or version is None or version != self._nodes_version:
                self._nodes_version = version
                self._forget_rows()
                self.pre_filter = self.skips_score = None
                self.values = {}
                self.epoch_of_nodes += 1
                return
        if rows is None or resized:
            self._forget_rows()
        else:
            if self.verdicts is not None:
                self._stale_verdicts.update(rows)
            if self.raw is not None:
                self._stale_scores.update(rows)

    def _forget_rows(self) -> None:
        self.epoch += 1
        self.verdicts = self.raw = None
        self.by_rows = self.call.filter_rows is not None
        self._stale_verdicts.clear()
        self._stale_scores.clear()

    def renewed(self, cluster: Cluster) -> Answers:
        """The same, without any answer."""
        return Answers(self.call, self.depends, cluster)

    # PreFilter and PreScore

    def ask_pre_filter(self, framework: Framework, question: Question) -> PreFilterResult | Status:
        """Raises PluginFailure."""
        state = question.state
        if self.pre_filter is not None:
            state.take(self.values)
            return self.pre_filter
        written: dict[str, object] = {}
        state.note_writes(written)
        try:
            self.pre_filter = framework.pre_filter(
                self.call, state, question.pod, question.snapshot
            )
        finally:
            state.note_writes(None)
        self.values |= written
        return self.pre_filter

    def pre_score(self, framework: Framework, question: Question, rows: Rows) -> bool:
        """Whether the plugin has nothing to score. Raises PluginFailure."""
        state = question.state
        if self.skips_score is not None:
            state.take(self.values)
            return self.skips_score
        written: dict[str, object] = {}
        state.note_writes(written)
        try:
            self.skips_score = framework.pre_score(
                self.call, state, question.pod, question.snapshot, rows
            )
        finally:
            state.note_writes(None)
        self.values |= written
        return self.skips_score

    # Verdicts

    def judge(self, question: Question, asked: Mask) -> Verdicts:
        """Verdicts that are known in the rows of `asked`. Raises PluginFailure."""
        self.catch_up(question.size)
        if self.verdicts is None:
            self._judge_all(question)
        verdicts = self._verdicts(question.size)
        if self._stale_verdicts:
            verdicts.forget(list(self._stale_verdicts))
            self._stale_verdicts.clear()
        if verdicts.has_unknown:
            unknown = np.flatnonzero((verdicts.codes == UNKNOWN) & asked)
            if len(unknown):
                self._ask(question, unknown, verdicts)
        return verdicts

    def _judge_all(self, question: Question) -> None:
        """Ask about all rows at once, if the plugin can do that."""
        try:
            every = self._ask_all(question)
        except PluginFailure:
            # It may fail only on rows that an earlier plugin refuses: it need not be asked about these.
            every = None
        self.by_rows = every is not None
        self.verdicts = every

    def _ask_all(self, question: Question) -> Verdicts | None:
        states = states_seen(self.call, question)
        rows = question.snapshot.columns.all_rows if states is None else states.rows
        verdicts = filtering.ask_rows(self.call, question, rows)
        if verdicts is None:
            return None
        if not np.count_nonzero(verdicts.codes):
            # Zeros cost less than a copy.
            zeros: Ints = np.zeros(question.size, np.int64)
            return Verdicts(zeros, verdicts.decode, refuses_any=False)
        codes = verdicts.codes if states is None else verdicts.codes.take(states.codes)
        return Verdicts(codes.astype(np.int64), verdicts.decode)

    def see_only_resources(self, pod: Pod) -> bool:
        return sees_only_resources(self.call, pod)

    def judge_the_rest(self, question: Question) -> None:
        """Ask about rows that another plugin refuses, if the plugin judges all rows at once."""
        if self.by_rows:
            try:
                self.judge(question, question.snapshot.columns.alive[: question.size])
            except PluginFailure:
                self.by_rows = False

    def judge_rows(self, question: Question, rows: NDArray[np.intp]) -> Ints:
        """int64[row asked for]: the codes of some rows, after `catch_up`. Raises PluginFailure."""
        verdicts, stale = self._verdicts(question.size), self._stale_verdicts
        numbers = rows.tolist()
        if stale.issuperset(numbers):
            self._ask(question, rows, verdicts)
            stale.difference_update(numbers)
        else:
            for row in numbers:
                self.judge_row(question, row)
        codes: Ints = verdicts.codes[rows]
        return codes

    def judge_row(self, question: Question, row: int) -> int:
        """The code of one row, after `catch_up`. Raises PluginFailure."""
        verdicts = self._verdicts(question.size)
        if row not in self._stale_verdicts:
            code = int(verdicts.codes[row])
            if code != UNKNOWN:
                return code
        filter_node = self.call.filter
        if filter_node is None:
            status = filtering.filter_row(self.call, question, row)
        else:
            # The way of most attempts: without counting or timing it, and without a call more.
            try:
                node = question.snapshot.at(row)
                answer: object = filter_node(question.state, question.pod, node)
            except PLUGIN_FAULTS as error:
                raise self.call.failed(FILTER.doing, error) from error
            if answer is None:
                status = SUCCESS
            elif isinstance(answer, Status) and answer.code in filtering.FILTER_CODES:
                status = answer
            else:
                status = filtering.filter_row(self.call, question, row)
        self._stale_verdicts.discard(row)
        return verdicts.set(row, status)

    def _verdicts(self, size: int) -> Verdicts:
        if self.verdicts is None:
            self.verdicts = Verdicts.unknown(size)
        return self.verdicts

    def _ask(self, question: Question, rows: NDArray[np.intp], verdicts: Verdicts) -> None:
        if len(rows) > filtering.FEW_ROWS or self.call.filter is None:
            answered = filtering.ask_rows(self.call, question, rows)
            if answered is None:
                self.by_rows = False
            else:
                verdicts.codes[rows] = 0
                if np.count_nonzero(answered.codes):
                    for i in np.flatnonzero(answered.codes).tolist():
                        verdicts.set(int(rows[i]), answered.status(i))
                return
        statuses = filtering.ask_nodes(self.call, question, rows)
        for row, status in zip(rows.tolist(), statuses, strict=True):
            verdicts.set(row, status)

    # Scores

    def score(self, question: Question, rows: Rows) -> Ints:
        """int64[row asked for]: raw scores of feasible rows, not to be changed. Raises PluginFailure."""
        self.catch_up(question.size)
        if self.raw is None and (states := states_seen(self.call, question)) is not None:
            scores = scoring.raw_scores(self.call, question, states.rows)
            self.raw = scores.take(states.codes)
            self._has_unscored = False
        elif self.raw is None and isinstance(rows, slice):
            self.raw = scoring.raw_scores(self.call, question, rows).copy()
            self._has_unscored = False
            return self.raw
        raw, stale = self._raw(question.size), self._stale_scores
        if stale:
            if not isinstance(rows, slice) and stale.issuperset(numbers := rows.tolist()):
                raw[rows] = scores = scoring.raw_scores(self.call, question, rows)
                stale.difference_update(numbers)
                return scores
            raw[list(stale)] = UNSCORED
            self._has_unscored = True
            stale.clear()
        if self._has_unscored:
            missing = np.flatnonzero(raw[rows] == UNSCORED)
            if len(missing):
                unscored = missing if isinstance(rows, slice) else rows[missing]
                raw[unscored] = scoring.raw_scores(self.call, question, unscored)
            self._has_unscored = not isinstance(rows, slice)
        return raw[rows]

    def score_row(self, question: Question, row: int) -> int:
        """The raw score of one row. Raises PluginFailure."""
        if self._position != self._changes.position or self._size != question.size:
            self.catch_up(question.size)
        raw = self._raw(question.size)
        if row not in self._stale_scores:
            known = int(raw[row])
            if known != UNSCORED:
                return known
        score_node = self.call.score
        if score_node is None:
            score = scoring.score_row(self.call, question, row)
        else:
            try:
                score = index(score_node(question.state, question.pod, question.snapshot.at(row)))
            except PLUGIN_FAULTS as error:
                raise self.call.failed(SCORE.doing, error) from error
        raw[row] = score
        self._stale_scores.discard(row)
        return score

    def _raw(self, size: int) -> Ints:
        if self.raw is None:
            self.raw = np.full(size, UNSCORED, np.int64)
            self._has_unscored = True
        return self.raw

    def validate(self, new: Answers) -> None:
        """Raise InvariantError if an answer differs from those that were given just now."""
        if self.verdicts is not None and new.verdicts is not None:
            mine, others = self.verdicts, new.verdicts
            for row in np.flatnonzero((mine.codes != UNKNOWN) & (others.codes != UNKNOWN)).tolist():
                if row not in self._stale_verdicts and mine.status(row) != others.status(row):
                    raise InvariantError(
                        f"{self.call.name} says {others.status(row)} of row {row},"
                        f" and {mine.status(row)} was kept"
                    )
        if self.raw is not None and new.raw is not None:
            for row in np.flatnonzero((self.raw != UNSCORED) & (new.raw != UNSCORED)).tolist():
                if row not in self._stale_scores and self.raw[row] != new.raw[row]:
                    raise InvariantError(
                        f"{self.call.name} scores row {row} {new.raw[row]},"
                        f" and {self.raw[row]} was kept"
                    )


def sees_only_resources(call: Calls, pod: Pod) -> bool:
    """Whether the answers about two rows are the same if their states are (`cluster.row_states`).

    Such a plugin can be asked about all rows at once, and about states.
    """
    return call.sees_only_resources is not None and call.sees_only_resources(pod)


def states_seen(call: Calls, question: Question) -> RowStates | None:
    """The states of rows, up to date, if they decide the answers of a plugin and there are few."""
    columns = question.snapshot.columns
    if not sees_only_resources(call, question.pod) or not columns.states.are_few(columns):
        return None
    return columns.states


def _no_status(code: int) -> Status:
    raise KeyError(code)
