"""What one plugin answered about pods that it treats alike, kept row by row.

A plugin says which part of a pod it looks at (`sign`) and what else its answers depend on (`depends_on`).
Two pods with the same part get the same answers, so they share one `Answers`, however much they differ
otherwise. A row is asked about again only after something changed there that the plugin depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import index

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Ints, Mask, Rows
from mooring.cluster.snapshot import Snapshot
from mooring.errors import InvariantError
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends, PreFilterResult
from mooring.framework.status import SUCCESS, Status
from mooring.framework.verdicts import UNKNOWN, RowVerdicts
from mooring.objects.pod import Pod
from mooring.runtime import filtering, scoring
from mooring.runtime.plugin_calls import Calls

#: The raw score of a row that the plugin was not asked about.
UNSCORED = int(np.iinfo(np.int64).min)

#: If more than this share of the rows is unknown, a plugin that can is asked about all of them at once.
_LARGEST_SHARE = 0.25


class Verdicts:
    """A plugin's verdicts on the rows: a code for each, and what the codes stand for."""

    __slots__ = ("_code_of", "_decode", "_statuses", "codes", "has_unknown", "refuses_any")

    def __init__(self, codes: Ints, decode: Callable[[int], Status]) -> None:
        #: int64[row]: 0 where the row passes; positive codes are the plugin's own, negative ones stand
        #: for a status of a single row; or UNKNOWN.
        self.codes = codes
        self._decode = decode
        #: What -1, -2, … stand for.
        self._statuses: list[Status] = []
        self._code_of: dict[Status, int] = {}
        #: Whether a code may be UNKNOWN; whether a row may be refused.
        self.has_unknown = False
        self.refuses_any = bool(codes.any())

    @classmethod
    def unknown(cls, size: int) -> Verdicts:
        verdicts = cls(np.full(size, UNKNOWN, np.int64), _no_status)
        verdicts.has_unknown = True
        return verdicts

    @classmethod
    def of(cls, verdicts: RowVerdicts) -> Verdicts:
        return cls(verdicts.codes.astype(np.int64), verdicts.decode)

    def forget(self, rows: list[int]) -> None:
        self.codes[rows] = UNKNOWN
        self.has_unknown = True

    def set(self, row: int, status: Status) -> int:
        """The code is the same as before if the status is."""
        before = int(self.codes[row])
        if status.ok:
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
        """Of a row that the plugin was asked about."""
        code = int(self.codes[row])
        return self.decode(code) if code else SUCCESS

    def copy(self) -> RowVerdicts:
        """As they are now: they stay so whatever becomes of these."""
        plain, statuses = self._decode, self._statuses
        return RowVerdicts(
            self.codes.copy(),
            lambda code: statuses[-1 - code] if code < 0 else plain(code),
        )


class Answers:
    """One plugin's answers."""

    __slots__ = (
        "__weakref__",
        "_changes",
        "_has_unscored",
        "_position",
        "_size",
        "_stale",
        "call",
        "depends",
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
        self._changes = cluster.usage_changes if depends == Depends.USAGE else cluster.node_changes
        self._position = self._changes.position
        self._size = -1
        #: Rows that changed since the plugin was asked about them.
        self._stale: set[int] = set()
        #: What PreFilter said; None as long as it was not asked.
        self.pre_filter: PreFilterResult | Status | None = None
        #: Whether PreScore said Skip; None as long as it was not asked.
        self.skips_score: bool | None = None
        #: What PreFilter and PreScore wrote into the cycle state.
        self.values: dict[str, object] = {}
        self.verdicts: Verdicts | None = None
        #: int64[row]: the scores, or UNSCORED.
        self.raw: Ints | None = None
        #: Whether a score may be UNSCORED.
        self._has_unscored = True

    def catch_up(self, size: int) -> None:
        """Notice what changed since the last call."""
        if size != self._size:
            self._size = size
            self.verdicts = self.raw = None
        position = self._changes.position
        if position != self._position:
            rows = self._changes.since(self._position)
            self._position = position
            if rows is None or (rows and self.depends == Depends.NODES):
                self._forget()
            else:
                self._stale.update(rows)

    def _forget(self) -> None:
        self._stale.clear()
        self.verdicts = self.raw = None
        if self.depends == Depends.NODES:
            self.pre_filter = self.skips_score = None
            self.values = {}

    def _drop_stale(self) -> None:
        if self._stale:
            rows = list(self._stale)
            if self.verdicts is not None:
                self.verdicts.forget(rows)
            if self.raw is not None:
                self.raw[rows] = UNSCORED
                self._has_unscored = True
            self._stale.clear()

    # Verdicts

    def judge(self, state: CycleState, pod: Pod, snapshot: Snapshot, asked: Mask) -> Verdicts:
        """Verdicts that are known wherever `asked`. Raises PluginFailure."""
        self._drop_stale()
        verdicts = self.verdicts
        if verdicts is None:
            every = filtering.ask_all(self.call, state, pod, snapshot)
            if every is not None:
                verdicts = self.verdicts = Verdicts.of(every)
                return verdicts
            verdicts = self.verdicts = Verdicts.unknown(snapshot.columns.size)
        if verdicts.has_unknown:
            unknown = np.flatnonzero((verdicts.codes == UNKNOWN) & asked)
            if len(unknown) > len(asked) * _LARGEST_SHARE and self.call.filter_rows is not None:
                self.verdicts = None
                return self.judge(state, pod, snapshot, asked)
            self._ask(state, pod, snapshot, unknown, verdicts)
        return verdicts

    def judge_rows(
        self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: NDArray[np.intp]
    ) -> Ints:
        """int64[row asked for]: the codes of some rows. Raises PluginFailure."""
        self._drop_stale()
        verdicts = self.verdicts
        if verdicts is None:
            verdicts = self.verdicts = Verdicts.unknown(snapshot.columns.size)
        codes: Ints = verdicts.codes[rows]
        if verdicts.has_unknown:
            unknown = codes == UNKNOWN
            if unknown.any():
                self._ask(state, pod, snapshot, rows[unknown], verdicts)
                codes = verdicts.codes[rows]
        return codes

    def _ask(
        self,
        state: CycleState,
        pod: Pod,
        snapshot: Snapshot,
        rows: NDArray[np.intp],
        verdicts: Verdicts,
    ) -> None:
        if len(rows) > filtering.FEW_ROWS or self.call.filter is None:
            answered = filtering.ask_rows(self.call, state, pod, snapshot, rows)
            if answered is not None:
                verdicts.codes[rows] = 0
                for index in np.flatnonzero(answered.codes).tolist():
                    verdicts.set(int(rows[index]), answered.status(index))
                return
        statuses = filtering.ask_nodes(self.call, state, pod, snapshot, rows)
        for row, status in zip(rows.tolist(), statuses, strict=True):
            verdicts.set(row, status)

    def judge_row(self, state: CycleState, pod: Pod, snapshot: Snapshot, row: int) -> int:
        """The code of one row. Raises PluginFailure."""
        verdicts = self.verdicts
        if verdicts is None:
            verdicts = self.verdicts = Verdicts.unknown(snapshot.columns.size)
        if row not in self._stale:
            code = int(verdicts.codes[row])
            if code != UNKNOWN:
                return code
        elif self.raw is not None:
            self.raw[row] = UNSCORED
            self._has_unscored = True
        call = self.call
        if call.filter is None:
            status = filtering.filter_node((call,), state, pod, snapshot.at(row), snapshot)
        else:
            try:
                status = call.filter(state, pod, snapshot.at(row)) or SUCCESS
            except Exception as error:
                raise call.failed(filtering.DOING, error) from error
            if status.code not in filtering.FILTER_CODES:
                status = filtering.filter_node((call,), state, pod, snapshot.at(row), snapshot)
        self._stale.discard(row)
        return verdicts.set(row, status)

    # Scores

    def score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> Ints:
        """int64[row asked for]: raw scores of feasible rows, not to be changed. Raises PluginFailure."""
        self._drop_stale()
        if self.raw is None:
            scores = scoring.raw_scores(self.call, state, pod, snapshot, rows)
            if isinstance(rows, slice):
                self.raw, self._has_unscored = scores.copy(), False
            else:
                self.raw, self._has_unscored = self._unscored(snapshot), True
                self.raw[rows] = scores
            return scores
        kept = self.raw[rows]
        if not self._has_unscored:
            return kept
        missing = np.flatnonzero(kept == UNSCORED)
        if len(missing) == len(kept):
            kept = scoring.raw_scores(self.call, state, pod, snapshot, rows)
            self.raw[rows] = kept
        elif len(missing):
            numbers = missing if isinstance(rows, slice) else rows[missing]
            self.raw[numbers] = scoring.raw_scores(self.call, state, pod, snapshot, numbers)
            kept = self.raw[rows]
        if isinstance(rows, slice):
            self._has_unscored = False
        return kept

    def _unscored(self, snapshot: Snapshot) -> Ints:
        return np.full(snapshot.columns.size, UNSCORED, np.int64)

    def score_row(self, state: CycleState, pod: Pod, snapshot: Snapshot, row: int) -> int:
        """The raw score of one row. Raises PluginFailure."""
        raw = self.raw
        if raw is None:
            raw = self.raw = self._unscored(snapshot)
            self._has_unscored = True
        if row in self._stale:
            self._stale.discard(row)
            if self.verdicts is not None:
                self.verdicts.forget([row])
        else:
            known = int(raw[row])
            if known != UNSCORED:
                return known
        call = self.call
        if call.score is None:
            only = np.array([row], np.intp)
            score = int(scoring.raw_scores(call, state, pod, snapshot, only)[0])
        else:
            try:
                # `index`, since NumPy would cut a fraction off without a word.
                score = index(call.score(state, pod, snapshot.at(row)))
            except Exception as error:
                raise call.failed(scoring.SCORING, error) from error
        raw[row] = score
        return score

    def validate(self, new: Answers) -> None:
        """Raise InvariantError if an answer differs from those that were given just now."""
        if self.verdicts is not None and new.verdicts is not None:
            mine, others = self.verdicts, new.verdicts
            for row in np.flatnonzero((mine.codes != UNKNOWN) & (others.codes != UNKNOWN)).tolist():
                if row not in self._stale and mine.status(row) != others.status(row):
                    raise InvariantError(
                        f"{self.call.name} says {others.status(row)} of row {row},"
                        f" and {mine.status(row)} was kept"
                    )
        if self.raw is not None and new.raw is not None:
            for row in np.flatnonzero((self.raw != UNSCORED) & (new.raw != UNSCORED)).tolist():
                if row not in self._stale and self.raw[row] != new.raw[row]:
                    raise InvariantError(
                        f"{self.call.name} scores row {row} {new.raw[row]},"
                        f" and {self.raw[row]} was kept"
                    )


def _no_status(code: int) -> Status:
    raise KeyError(code)
