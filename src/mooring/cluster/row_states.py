"""Rows that offer the same resources and hold the same: what resources decide is the same for all of them.

Clusters have many equal nodes, and many of these are equally full. A rule that reads the resource columns of
a row, and nothing else, is asked about one row of each state. Where nearly every row has a state of its own,
that gains nothing: then states are not kept up to date until many rows have changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mooring.errors import InvariantError

if TYPE_CHECKING:
    from mooring.cluster.columns import Columns

#: States are kept if there are at most this share of the rows.
_LARGEST_SHARE = 1 / 3

#: After this share of the rows has changed, all states are looked for again.
_CHANGED_SHARE = 1 / 4

#: The key of a row that has not been looked at.
_UNKNOWN = b""


class RowStates:
    """The distinct states of the rows, brought up to date when they are asked for."""

    def __init__(self) -> None:
        #: The rows that were written since the last time.
        self.stale: set[int] = set()
        #: intp[row]: the state of each row, as a number that is given to another state once no row has it.
        self.codes: NDArray[np.intp] = np.empty(0, np.intp)
        #: By row: its resource columns as bytes. Equal bytes are always the same state.
        self.keys: list[bytes] = []
        #: Whether there were few states the last time. If not, those who ask about a few rows need not ask
        #: again: that may look for all states.
        self.kept = False
        #: intp[state]: a row that has the state, or any row if none has it.
        self._rows: NDArray[np.intp] = np.empty(0, np.intp)
        self._code_of: dict[bytes, int] = {}
        #: By code.
        self._key_of: list[bytes] = []
        self._rows_of: list[set[int]] = []
        self._free: list[int] = []
        #: How many resources the keys have.
        self._resources = -1

    @property
    def rows(self) -> NDArray[np.intp]:
        """intp[state]: the row to ask about for each state."""
        return self._rows[: len(self._key_of)]

    def are_few(self, columns: Columns) -> bool:
        """Bring the states up to date, if that is worthwhile. Otherwise do not use them."""
        size = columns.size
        many = len(self.stale) > size * _CHANGED_SHARE or self._resources != len(columns.requested)
        if many:
            self._build(columns)
        elif self.kept and self.stale:
            self._update(columns)
        return self.kept

    def validate(self, columns: Columns) -> None:
        """Raise InvariantError unless every row has the state of its columns."""
        if not self.kept or self._resources != len(columns.requested):
            return
        for row in range(len(self.codes)):
            known = self.keys[row]
            if row in self.stale or known is _UNKNOWN:
                continue
            key, code = columns.usage_key(row), int(self.codes[row])
            asked = int(self._rows[code])
            if (
                known != key
                or self._key_of[code] != key
                or (asked not in self.stale and columns.usage_key(asked) != key)
            ):
                raise InvariantError(f"the state of row {row} is out of date")

    def _build(self, columns: Columns) -> None:
        size = columns.size
        self.stale.clear()
        self._resources = len(columns.requested)
        code_of: dict[bytes, int] = {}
        codes = [code_of.setdefault(key, len(code_of)) for key in columns.usage_keys()]
        self.kept = len(code_of) <= size * _LARGEST_SHARE
        if not self.kept:
            code_of, codes = {}, []
        self._code_of, self._key_of, self._free = code_of, list(code_of), []
        self.codes = np.array(codes, np.intp)
        self.keys = [self._key_of[code] for code in codes]
        self._rows_of = [set() for _ in code_of]
        for row, code in enumerate(codes):
            self._rows_of[code].add(row)
        self._rows = np.array([next(iter(rows)) for rows in self._rows_of], np.intp)

    def _update(self, columns: Columns) -> None:
        more = columns.size - len(self.codes)
        if more:
            self.codes = np.concatenate((self.codes, np.zeros(more, np.intp)))
            self.keys += [_UNKNOWN] * more
        for row in self.stale:
            self._set(row, columns.usage_key(row))
        self.stale.clear()
        if len(self._key_of) - len(self._free) > columns.size * _LARGEST_SHARE:
            self.kept = False

    def _set(self, row: int, key: bytes) -> None:
        before = self.keys[row]
        if before == key:
            return
        if before is not _UNKNOWN:
            self._leave(row, before)
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = self._new(row, key)
        self._rows_of[code].add(row)
        self.codes[row], self.keys[row] = code, self._key_of[code]

    def _leave(self, row: int, key: bytes) -> None:
        code = self._code_of[key]
        rows = self._rows_of[code]
        rows.discard(row)
        if not rows:
            del self._code_of[key]
            self._free.append(code)
        elif self._rows[code] == row:
            # `pop` goes on where it last stopped. An iterator would pass all that left before.
            self._rows[code] = another = rows.pop()
            rows.add(another)

    def _new(self, row: int, key: bytes) -> int:
        if self._free:
            code = self._free.pop()
            self._key_of[code] = key
        else:
            code = len(self._key_of)
            self._key_of.append(key)
            self._rows_of.append(set())
            if code == len(self._rows):
                self._rows = np.concatenate((self._rows, np.zeros(code + 64, np.intp)))
        self._rows[code] = row
        return code
