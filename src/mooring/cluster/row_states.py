"""Rows that offer the same resources and hold the same: what resources decide is the same for all of them.

Clusters have many equal nodes, and many of these are equally full. A rule that reads the resource columns of
a row, and nothing else, is asked about one row of each state. Where nearly every row has a state of its own,
that gains nothing: then states are not kept up to date until many rows have changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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

#: The key of a row that has not been looked at, and of one without a node.
_UNKNOWN = b""
_NODELESS = b"nodeless"


#: States have their amounts in float64 if none is larger: a hundred times as much is exact there.
LARGEST = 2**46

#: There is room for at least this many more states than there are.
_ROOM = 64

#: The amounts of up to this many states are written one by one, without NumPy.
_FEW = 6


#: The amounts of a state that no node has, and that no rule minds: it offers something, and all is left.
_NO_NODE = [1.0, 1.0, 0.0, 0.0, 0.0, 0.0, math.inf, math.inf, math.inf]


class StateAmounts:
    """Cpu, memory and pods of every state, for kernels that work on whole arrays, which is fastest.

    All states offer cpu and memory. Amounts are exact, and no amount but what is left is negative.
    """

    __slots__ = ("counted", "left", "offered", "requested", "table")

    def __init__(self, states: int) -> None:
        room = states + max(_ROOM, states // 4)
        self._set(np.repeat(np.array(_NO_NODE).reshape(-1, 1), room, axis=1))

    def make_room(self, states: int) -> None:
        room = self.table.shape[1]
        if states > room:
            more = StateAmounts(states).table
            more[:, :room] = self.table
            self._set(more)

    def _set(self, table: NDArray[np.float64]) -> None:
        self.table = table
        #: float64[2, state]: cpu and memory that rows offer, and that pods request and scoring counts.
        self.offered, self.requested, self.counted = table[:2], table[2:4], table[4:6]
        #: float64[3, state]: cpu, memory and pods that there is still room for.
        self.left = table[6:]


class RowStates:
    """The distinct states of the rows, brought up to date when they are asked for."""

    def __init__(self) -> None:
        #: The rows that were written since the last time.
        self.stale: set[int] = set()
        #: While there are many states: rows that were written before those, since states were counted.
        self._stale_before: set[int] = set()
        #: The amounts of all rows, and the rows beside stale ones whose amounts are to be written.
        self._by_row: StateAmounts | None = None
        self._rewritten: set[int] = set()
        #: The epoch of nodes at which it was last tried to have them.
        self._tried_at = -1
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
        #: None if some node offers no cpu or no memory, or if its amounts are not exact.
        self._amounts: StateAmounts | None = None
        #: The states whose amounts are to be written: most attempts do not ask for them.
        self._unwritten: set[int] = set()
        #: How many resources the keys have.
        self._resources = -1

    @property
    def rows(self) -> NDArray[np.intp]:
        """intp[state]: the row to ask about for each state."""
        return self._rows[: len(self._key_of)]

    def are_few(self, columns: Columns) -> bool:
        """Bring the states up to date, if that is worthwhile. Otherwise do not use them."""
        size = columns.size
        changed = len(self.stale) + len(self._stale_before)
        many = changed > size * _CHANGED_SHARE or self._resources != len(columns.requested)
        if many:
            self._build(columns)
        elif self.kept and self.stale:
            self._update(columns)
        return self.kept

    def validate(self, columns: Columns) -> None:
        """Raise InvariantError unless every row has the state of its columns, and its amounts."""
        if self._by_row is not None:
            for row in set(range(columns.size)) - self._rewritten - self.stale:
                if self._by_row.table[:, row].tolist() != amounts_of(columns, row):
                    raise InvariantError(f"the amounts of row {row} are out of date")
        if not self.kept or self._resources != len(columns.requested):
            return
        for row in range(len(self.codes)):
            known = self.keys[row]
            if row in self.stale or known is _UNKNOWN:
                continue
            key, code = _key(columns, row), int(self.codes[row])
            asked = int(self._rows[code])
            if (
                known != key
                or self._key_of[code] != key
                or (asked not in self.stale and _key(columns, asked) != key)
                or (
                    self._amounts is not None
                    and code not in self._unwritten
                    and self._amounts.table[:, code].tolist() != amounts_of(columns, row)
                )
            ):
                raise InvariantError(f"the state of row {row} is out of date")

    def _build(self, columns: Columns) -> None:
        size = columns.size
        self._forget_stale()
        self._stale_before.clear()
        self._resources = len(columns.requested)
        code_of: dict[bytes, int] = {}
        keys = columns.usage_keys()
        for row in np.flatnonzero(~columns.alive[:size]).tolist():
            keys[row] = _NODELESS
        codes = [code_of.setdefault(key, len(code_of)) for key in keys]
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
        self._amounts = StateAmounts(len(code_of))
        self._unwritten = set(range(len(code_of)))

    def _forget_stale(self) -> None:
        if self._by_row is not None:
            self._rewritten |= self.stale
        self.stale.clear()

    def _update(self, columns: Columns) -> None:
        more = columns.size - len(self.codes)
        if more:
            self.codes = np.concatenate((self.codes, np.zeros(more, np.intp)))
            self.keys += [_UNKNOWN] * more
        names, usage_key = columns.names, columns.usage_key
        for row in self.stale:
            self._set(row, usage_key(row) if names[row] else _NODELESS)
        self._forget_stale()
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
            self._unwritten.add(code)
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
        self._unwritten.add(code)
        return code

    def amounts(self, columns: Columns) -> StateAmounts | None:
        """Those of the states that `are_few` has brought up to date; None if they cannot be had."""
        if self._unwritten and self._amounts is not None:
            self._write_amounts(self._amounts, columns)
        return self._amounts

    def amounts_by_row(self, columns: Columns) -> StateAmounts | None:
        """By row, for where `are_few` finds too many states. None if they cannot be had."""
        if self._by_row is None and self._tried_at != columns.node_epoch:
            self._tried_at = columns.node_epoch
            self._by_row, self._rewritten = StateAmounts(columns.size), set(range(columns.size))
        if self._by_row is not None and (self.stale or self._rewritten):
            rows = list(self.stale | self._rewritten)
            self._rewritten.clear()
            if not self.kept:
                self._stale_before |= self.stale
                self.stale.clear()
            self._by_row.make_room(columns.size)
            if not _write(self._by_row.table, rows, columns, rows):
                self._by_row = None
        return self._by_row

    def _write_amounts(self, amounts: StateAmounts, columns: Columns) -> None:
        amounts.make_room(len(self._key_of))
        used = [code for code in self._unwritten if self._rows_of[code]]
        if len(used) < len(self._unwritten):
            unused = self._unwritten.difference(used)
            amounts.table[:, list(unused)] = np.array(_NO_NODE).reshape(-1, 1)
        self._unwritten.clear()
        if not _write(amounts.table, used, columns, self._rows[used].tolist()):
            self._amounts = None


def _write(
    table: NDArray[np.float64], places: Sequence[int], columns: Columns, rows: Sequence[int]
) -> bool:
    """Write the amounts of rows to these places; False if one has none."""
    if len(places) > _FEW:
        written = amounts_of_rows(columns, np.array(rows, np.intp))
        if written is not None:
            table[:, places] = written
        return written is not None
    for place, row in zip(places, rows, strict=True):
        amounts = amounts_of(columns, row)
        if amounts is None:
            return False
        table[:, place] = amounts
    return True


def _key(columns: Columns, row: int) -> bytes:
    return columns.usage_key(row) if columns.names[row] else _NODELESS


def amounts_of(columns: Columns, row: int) -> list[float] | None:
    """What `StateAmounts` has of the state of a row; None if it cannot."""
    if not columns.alive[row]:
        return _NO_NODE
    usage, at = columns.usage(row), len(columns.allocatable)
    cpu, memory, held_cpu, held_memory = usage[0], usage[1], usage[at], usage[at + 1]
    counted_cpu, counted_memory, pods, allowed = usage[-4:]
    amounts = [cpu, memory, held_cpu, held_memory, counted_cpu, counted_memory]
    if not cpu or not memory or min(amounts) < 0 or max(amounts) > LARGEST:
        return None
    return [*amounts, cpu - held_cpu, memory - held_memory, allowed - pods]


def amounts_of_rows(columns: Columns, rows: NDArray[np.intp]) -> NDArray[np.float64] | None:
    """float64[amount, row asked for]: `amounts_of` for many rows; None if it is for one of them."""
    offered, held = columns.allocatable[:2, rows], columns.requested[:2, rows]
    amounts = np.concatenate((offered, held, columns.non_zero[:, rows]))
    alive = columns.alive[rows]
    if not offered[:, alive].all() or not _are_exact(amounts[:, alive]):
        return None
    room = columns.allowed_pods[rows] - columns.pod_count[rows]
    table = np.concatenate((amounts, offered - held, room[np.newaxis])).astype(np.float64)
    table[:, ~alive] = np.array(_NO_NODE).reshape(-1, 1)
    return table


def _are_exact(amounts: NDArray[np.int64]) -> bool:
    # Seen as uint64, negative numbers are larger than all others.
    return bool(np.max(amounts.view(np.uint64), initial=0) <= LARGEST)
