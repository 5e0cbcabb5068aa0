"""Which of the best nodes to take."""

from __future__ import annotations

import random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.snapshot import Snapshot


class TieBreak(Protocol):
    def __call__(self, best: NDArray[np.intp], snapshot: Snapshot) -> int:
        """The row to take of these, of which there is at least one."""
        ...


def first_by_name(best: NDArray[np.intp], snapshot: Snapshot) -> int:
    """The same answer every time, on every machine."""
    return int(best[np.argmin(snapshot.name_ranks[best])])


class SeededSpread:
    """Any of them, as chance will have it; the same chance for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def __call__(self, best: NDArray[np.intp], snapshot: Snapshot) -> int:
        return int(best[self._random.randrange(len(best))])
