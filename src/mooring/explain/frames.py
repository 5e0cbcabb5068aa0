"""Tables for notebooks: a DataFrame of whichever library is there."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from mooring.errors import MooringError

#: A pandas.DataFrame or a polars.DataFrame.
Frame = Any

_LIBRARIES = ("pandas", "polars")


class MissingFrames(MooringError):
    """Neither pandas nor polars is installed."""

    def __init__(self) -> None:
        super().__init__(
            "a DataFrame needs pandas or polars, and neither is installed;"
            " run `pip install pandas`, or use to_data()"
        )


def make_frame(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Frame:
    """Of pandas if it is installed, else of polars. Raises MissingFrames."""
    by_column = {name: [row[i] for row in rows] for i, name in enumerate(columns)}
    for library in _LIBRARIES:
        try:
            module = importlib.import_module(library)
        except ModuleNotFoundError as error:
            if error.name != library:
                raise
            continue
        return module.DataFrame(by_column)
    raise MissingFrames
