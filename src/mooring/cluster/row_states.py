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

_UNKNOWN = -1


class RowStates:
    """The distinct states of the rows, brought up to date when they are asked for."""

    def __init__(self) -> None:
        #: The rows that were written since the last time.
        self.stale: set[int] = set()
        #: intp[row]: the state of each row.
        self.codes: NDArray[np.intp] = np.empty(0, np.intp)
        self._kept = False
        #: intp[state]: a row that has the state, or any row if none has it.
        self._rows: NDArray[np.intp] = np.empty(0, np.intp)
        #: The resource columns of a row as bytes → its state.
        self._code_of: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._rows_of: list[set[int]] = []
        self._free: list[int] = []
        #: How many resources the keys have.
        self._resources = -1

    @property
    def rows(self) -> NDArray[np.intp]:
        """intp[state]: the row to ask about for each state."""
        return self._rows[: len(self._keys)]

    def are_few(self, columns: Columns) -> bool:
        """Bring the states up to date, if that is worthwhile. Otherwise do not use them."""
        size = columns.size
        many = len(self.stale) > size * _CHANGED_SHARE or self._resources != len(columns.requested)
        if many:
            self._build(columns)
        elif self._kept and self.stale:
            self._update(columns)
        return self._kept

    def validate(self, columns: Columns) -> None:
        """Raise InvariantError unless every row has the state of its columns."""
        if not self._kept or self._resources != len(columns.requested):
            return
        for row in range(len(self.codes)):
            code = int(self.codes[row])
            if row in self.stale or code == _UNKNOWN:
                continue
            key = _key(columns, row)
            asked = int(self._rows[code])
            if self._keys[code] != key or (asked not in self.stale and _key(columns, asked) != key):
                raise InvariantError(f"the state of row {row} is out of date")

    def _build(self, columns: Columns) -> None:
        size = columns.size
        self.stale.clear()
        self._resources = len(columns.requested)
        code_of: dict[bytes, int] = {}
        codes = [code_of.setdefault(key, len(code_of)) for key in _keys(columns)]
        self._kept = len(code_of) <= size * _LARGEST_SHARE
        if not self._kept:
            code_of, codes = {}, []
        self._code_of, self._keys, self._free = code_of, list(code_of), []
        self.codes = np.array(codes, np.intp)
        self._rows_of = [set() for _ in code_of]
        for row, code in enumerate(codes):
            self._rows_of[code].add(row)
        self._rows = np.array([next(iter(rows)) for rows in self._rows_of], np.intp)

    def _update(self, columns: Columns) -> None:
        if len(self.codes) < columns.size:
            more = np.full(columns.size - len(self.codes), _UNKNOWN, np.intp)
            self.codes = np.concatenate((self.codes, more))
        for row in self.stale:
            self._set(row, _key(columns, row))
        self.stale.clear()
        if len(self._keys) - len(self._free) > columns.size * _LARGEST_SHARE:
            self._kept = False

    def _set(self, row: int, key: bytes) -> None:
        before = int(self.codes[row])
        if before != _UNKNOWN:
            if self._keys[before] == key:
                return
            self._leave(row, before)
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = self._new(row, key)
        self._rows_of[code].add(row)
        self.codes[row] = code

    def _leave(self, row: int, code: int) -> None:
        rows = self._rows_of[code]
        rows.discard(row)
        if not rows:
            del self._code_of[self._keys[code]]
            self._free.append(code)
        elif self._rows[code] == row:
            self._rows[code] = next(iter(rows))

    def _new(self, row: int, key: bytes) -> int:
        if self._free:
            code = self._free.pop()
            self._keys[code] = key
        else:
            code = len(self._keys)
            self._keys.append(key)
            self._rows_of.append(set())
            if code == len(self._rows):
                self._rows = np.concatenate((self._rows, np.zeros(code + 64, np.intp)))
        self._rows[code] = row
        return code


def _keys(columns: Columns) -> list[bytes]:
    """The resource columns of each row as bytes."""
    every = columns.all_rows
    table = np.concatenate(
        (
            columns.allocatable[:, every],
            columns.requested[:, every],
            columns.non_zero[:, every],
            columns.pod_count[None, every],
            columns.allowed_pods[None, every],
        )
    )
    data = table.T.tobytes()
    width = len(table) * table.itemsize
    return [data[start : start + width] for start in range(0, len(data), width)]


def _key(columns: Columns, row: int) -> bytes:
    return b"".join(
        (
            columns.allocatable[:, row].tobytes(),
            columns.requested[:, row].tobytes(),
            columns.non_zero[:, row].tobytes(),
            columns.pod_count[row].tobytes(),
            columns.allowed_pods[row].tobytes(),
        )
    )
