"""Which of the best nodes to take.

A tie-break is an order over all nodes, not a throw of dice for each pod: so a kept ranking can carry it
in the same number as the score, and what was decided once is decided the same way when asked again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from hashlib import blake2b
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Ints
from mooring.cluster.snapshot import RANKS, Snapshot


class TieBreak(ABC):
    @abstractmethod
    def keys(self, snapshot: Snapshot) -> Ints:
        """int64[row]: the node with the larger number is taken; none is shared, all are below RANKS.

        The same array for the same snapshot.
        """

    def __call__(self, best: NDArray[np.intp], snapshot: Snapshot) -> int:
        """The row to take of these, of which there is at least one."""
        return int(best[np.argmax(self.keys(snapshot)[best])])


class ByName(TieBreak):
    """The first name: the same answer every time, on every machine."""

    def keys(self, snapshot: Snapshot) -> Ints:
        return snapshot.name_keys


class SeededSpread(TieBreak):
    """An order that has nothing to do with names, and is the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._salt = str(seed).encode()
        #: Of what the keys are. After a reload, an earlier engine is behind it, so it must not be kept.
        self._snapshot: ReferenceType[Snapshot] | None = None
        self._keys: Ints = np.empty(0, np.int64)

    def keys(self, snapshot: Snapshot) -> Ints:
        if self._snapshot is None or self._snapshot() is not snapshot:
            self._snapshot, self._keys = ref(snapshot), self._shuffled(snapshot)
        return self._keys

    def _shuffled(self, snapshot: Snapshot) -> Ints:
        columns = snapshot.columns
        keys: Ints = np.zeros(columns.size, np.int64)
        for rank, name in enumerate(sorted(snapshot.order, key=self._digest)):
            keys[columns.row_of[name]] = RANKS - 1 - rank
        return keys

    def _digest(self, name: str) -> bytes:
        return blake2b(name.encode(), digest_size=8, key=self._salt).digest()


first_by_name = ByName()
