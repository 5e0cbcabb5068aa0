"""Which rows pass, of those plugins' verdicts that are kept: brought up to date row by row.

refused_by[row]   the place of the first plugin that refuses the row, or PASSED, or NOT_ASKED
codes[row]        the code of that plugin's verdict
ok[row]           no plugin refuses the row
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.cache import Cluster
from mooring.cluster.changes import ChangeLog
from mooring.cluster.columns import Columns, Ints, Mask
from mooring.errors import InvariantError
from mooring.framework.interface import Depends
from mooring.runtime.answers import Answers
from mooring.runtime.filtering import FEW_ROWS, NOT_ASKED, PASSED
from mooring.runtime.question import Question

#: If more than this share of the rows changed, all rows are judged again.
_LARGEST_SHARE = 0.5

#: Answers are remembered for this many states of rows.
MOST_STATES = 1024

#: The rows that changed, and the rows among them whose node object changed.
Changed = tuple[Sequence[int], set[int]]


_NOTHING_REFUSED = np.zeros(0, np.int16)
_NO_CODES: Ints = np.zeros(0, np.int64)
_NONE_OK = np.zeros(0, np.bool_)


class KeptVerdicts:
    """The verdicts of some plugins on all rows."""

    def __init__(
        self,
        filters: Sequence[tuple[int, Answers]],
        cluster: Cluster | None,
        version: int = 0,
        shared: Callable[[Question], KeptVerdicts] | None = None,
        *,
        by_sums: bool = False,
        by_states: bool = False,
    ) -> None:
        """Each plugin with its place among all Filter plugins. Without a cluster nothing is kept.

        `shared` gives the verdicts of those plugins that look at nodes alone, brought up to date. With
        `by_sums`, all that follows from these rows is left alone by pods whose requests stay the same.
        With `by_states`, the plugins that look at the pods of a node see no more than the row's state.
        """
        self._shared = shared
        self._row_changes: ChangeLog[int] | None = None
        if cluster is not None:
            self._row_changes = cluster.changes.sums if by_sums else cluster.changes.pods
        self._filters = filters
        self._usage_filters = [each for each in filters if each[1].depends == Depends.USAGE]
        self._cluster = cluster
        #: The states of rows that no such plugin refuses, as far as known; None if they do not decide.
        self._passing: set[bytes] | None = set() if by_states else None
        #: How often the answers of the plugins were forgotten before the verdicts were built.
        self._epochs = 0
        #: That of the cluster when the verdicts were brought up to date.
        self._generation = -1
        self._built = False
        #: Grows when a verdict changes.
        self.version = version
        #: int16[row]
        self.refused_by: NDArray[np.int16] = _NOTHING_REFUSED
        #: int64[row]
        self.codes: Ints = _NO_CODES
        #: bool[row]
        self.ok: Mask = _NONE_OK
        self.ok_count = 0
        self._rows: NDArray[np.intp] | None = None

    @property
    def rows(self) -> NDArray[np.intp]:
        """intp[...]: the rows that are ok; the same array for as long as they stay the same."""
        if self._rows is None:
            self._rows = np.flatnonzero(self.ok)
        return self._rows

    @property
    def all_ok(self) -> bool:
        """Whether every slot has a node that is ok."""
        return self.ok_count == len(self.ok)

    def is_up_to_date(self) -> bool:
        """Whether nothing has changed since the verdicts were brought up to date."""
        changes = self._row_changes
        return self._built and changes is not None and changes.position <= self._generation

    def forget(self) -> None:
        self._built = False

    def bring_up_to_date(self, question: Question) -> Changed | None:
        """Which rows changed; None if all may have. Raises PluginFailure: then all are judged next time."""
        built, self._built = self._built, False
        changed = None
        if built and len(self.ok) == question.size:
            changed = self._changes()
        if changed is not None and not self._redo(question, *changed):
            changed = None
        if changed is None:
            self._build(question)
        if self._cluster is not None:
            self._generation = self._cluster.generations.latest
            self._built = True
        return changed

    def _changes(self) -> Changed | None:
        """None if too much has changed."""
        assert self._cluster is not None
        assert self._row_changes is not None
        nodes = self._cluster.changes.nodes.since(self._generation)
        rows = nodes
        if self._usage_filters or self._shared is not None:
            rows = self._row_changes.since(self._generation)
        if rows is None:
            return None
        if len(rows) > FEW_ROWS and len(rows) > len(self.ok) * _LARGEST_SHARE:
            return None
        return None if nodes is None else (rows, set(nodes) if nodes else _NO_NODES)

    def _build(self, question: Question) -> None:
        columns = question.snapshot.columns
        shared = self._shared(question) if self._shared is not None else None
        if shared is None:
            open_rows = columns.alive[: columns.size].copy()
            refused_by = np.full(columns.size, NOT_ASKED, np.int16)
            refused_by[open_rows] = PASSED
            codes: Ints = np.zeros(columns.size, np.int64)
        else:
            open_rows, refused_by = shared.ok.copy(), shared.refused_by.copy()
            codes = shared.codes.copy()
        for place, answers in self._filters if shared is None else self._usage_filters:
            asked = open_rows
            if shared is not None and not shared.all_ok:
                # A row that a later plugin refuses is open to this one.
                asked = open_rows | (refused_by > place)
            verdicts = answers.judge(question, asked)
            if not verdicts.refuses_any:
                continue
            refused = verdicts.codes != 0
            refused &= asked
            if np.count_nonzero(refused):
                refused_by[refused] = place
                codes[refused] = verdicts.codes[refused]
                open_rows &= ~refused
        self.refused_by, self.codes, self.ok = refused_by, codes, open_rows
        self.ok_count = int(np.count_nonzero(open_rows))
        # The same array as that of the shared verdicts where no row differs: others compare by identity.
        same = shared is not None and self.ok_count == shared.ok_count
        self._rows = shared.rows if same and shared is not None else None
        self.version += 1
        self._epochs = sum([answers.epoch for _, answers in self._usage_filters])

    def _redo(self, question: Question, changed: Sequence[int], nodes: set[int]) -> bool:
        """False if what the codes stand for was forgotten: all rows have to be judged."""
        columns, passing = question.snapshot.columns, self._passing
        if passing is None or not columns.states.kept or not columns.states.are_few(columns):
            return self._judge_again(question, changed, nodes)
        states = columns.states.keys
        if not nodes and self.all_ok and passing.issuperset([states[row] for row in changed]):
            return True
        ok = self.ok
        unknown = [
            row for row in changed if states[row] not in passing or not ok[row] or row in nodes
        ]
        if unknown and not self._judge_again(question, unknown, nodes):
            return False
        if len(passing) > MOST_STATES:
            passing.clear()
        passing.update([states[row] for row in unknown if self.ok[row]])
        return True

    def _judge_again(self, question: Question, changed: Sequence[int], nodes: set[int]) -> bool:
        epochs = 0
        for _, answers in self._usage_filters:
            answers.catch_up(question.size)
            epochs += answers.epoch
        if self._epochs != epochs:
            return False
        if len(changed) <= FEW_ROWS:
            for row in changed:
                self._redo_row(question, row, node_changed=bool(nodes) and row in nodes)
            return True
        rows = np.array(changed, np.intp)
        same_node = self.ok[rows]
        if nodes:
            same_node &= ~np.isin(rows, list(nodes))
        if np.count_nonzero(same_node) < len(rows):
            for row in rows[~same_node].tolist():
                self._redo_row(question, row, node_changed=row in nodes)
            rows = rows[same_node]
        self._redo_usage(question, rows)
        return True

    def _redo_row(self, question: Question, row: int, *, node_changed: bool) -> None:
        """One row, by the plain rules of its node."""
        was_ok = bool(self.ok[row])
        # Plugins that look at nothing but the node let the row pass, and still do if only its pods changed.
        same_node = was_ok and not node_changed
        refused_by, code = PASSED, 0
        if not same_node and not question.snapshot.columns.alive[row]:
            refused_by = NOT_ASKED
        else:
            for place, answers in self._usage_filters if same_node else self._filters:
                code = answers.judge_row(question, row)
                if code:
                    refused_by = place
                    break
        ok = refused_by == PASSED
        if ok and was_ok:
            return
        if refused_by != self.refused_by[row] or code != self.codes[row]:
            self.version += 1
            self.refused_by[row], self.codes[row] = refused_by, code
        if ok != was_ok:
            self.ok[row] = ok
            self.ok_count += 1 if ok else -1
            self._rows = None

    def _redo_usage(self, question: Question, rows: NDArray[np.intp]) -> None:
        """Rows that were ok and whose pods changed, all at once."""
        for place, answers in self._usage_filters:
            codes = answers.judge_rows(question, rows)
            if np.count_nonzero(codes):
                refused = codes != 0
                lost = rows[refused]
                self.refused_by[lost], self.codes[lost], self.ok[lost] = (
                    place,
                    codes[refused],
                    False,
                )
                self.ok_count -= len(lost)
                self._rows = None
                self.version += 1
                rows = rows[~refused]

    def validate(self, new: KeptVerdicts, columns: Columns) -> None:
        """Raise InvariantError unless these are the verdicts of all plugins, asked just now."""
        if self._passing and columns.states.are_few(columns):
            places = [place for place, _ in self._usage_filters]
            for row in np.flatnonzero(np.isin(new.refused_by, places)).tolist():
                if columns.states.keys[row] in self._passing:
                    raise InvariantError(f"row {row} is refused, and its state is known to pass")
        for what, kept, found in (
            ("which plugin refuses a node", self.refused_by, new.refused_by),
            ("which nodes are feasible", self.ok, new.ok),
            ("the list of feasible nodes", self.rows, new.rows),
        ):
            if not np.array_equal(kept, found):
                raise InvariantError(f"{what} is out of date: {kept}, and not {found}")
        if self.ok_count != new.ok_count:
            raise InvariantError(f"{self.ok_count} nodes count as feasible, and not {new.ok_count}")


_NO_NODES: set[int] = set()
