"""The verdicts of one Filter plugin for many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Mask
from mooring.framework.status import SUCCESS, Status

#: The code of a row that the plugin was not asked about, because another plugin refuses it. Plugins
#: do not use it.
UNKNOWN = int(np.iinfo(np.int64).min)


class RowVerdicts(msgspec.Struct, frozen=True, eq=False):
    """One code for each row. 0 passes; `decode` gives the status of any other code."""

    #: int[row asked for]: 0 if the row passes, otherwise a positive number.
    codes: NDArray[np.integer]
    decode: Callable[[int], Status]

    def status(self, index: int) -> Status:
        code = int(self.codes[index])
        return SUCCESS if code == 0 else self.decode(code)


def by_mask(passes: Mask, otherwise: Status) -> RowVerdicts:
    """The same status for every row that does not pass."""
    return RowVerdicts((~passes).view(np.int8), lambda _: otherwise)


def by_table(codes: NDArray[np.integer], statuses: Sequence[Status]) -> RowVerdicts:
    """The status of a code is `statuses[code]`; the first is never used."""
    return RowVerdicts(codes, lambda code: statuses[code])
