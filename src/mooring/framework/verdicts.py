"""The verdicts of one Filter on many rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Mask
from mooring.framework.status import SUCCESS, Status

#: The code of a row that a plugin was not asked about, as another one refuses it. Plugins do not use it.
UNKNOWN = int(np.iinfo(np.int64).min)


@dataclass(frozen=True, slots=True)
class RowVerdicts:
    """A code a row; 0 passes, and `decode` gives the status that any other code stands for."""

    #: int[row asked for]: 0 where the row passes, a positive number where it does not.
    codes: NDArray[np.integer]
    decode: Callable[[int], Status]

    def status(self, index: int) -> Status:
        code = int(self.codes[index])
        return SUCCESS if code == 0 else self.decode(code)


def by_mask(passes: Mask, otherwise: Status) -> RowVerdicts:
    """One reason for every row that does not pass."""
    return RowVerdicts((~passes).view(np.int8), lambda _: otherwise)


def by_table(codes: NDArray[np.integer], statuses: Sequence[Status]) -> RowVerdicts:
    """`statuses[code]` for every code; the first is never used."""
    return RowVerdicts(codes, lambda code: statuses[code])
