"""Tables for notebooks: a DataFrame of pandas or polars, whichever is installed."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from mooring.errors import MooringError

#: A pandas.DataFrame or a polars.DataFrame.
Frame = Any

LIBRARIES = ("pandas", "polars")

#: Columns mix integers and floats, so polars must read a whole column before it chooses a type.
_OPTIONS = {"polars": {"strict": False, "infer_schema_length": None}}


class MissingFrames(MooringError):
    """Neither pandas nor polars is installed."""

    def __init__(self) -> None:
        super().__init__(
            "a DataFrame needs pandas or polars, and neither is installed;"
            " run `pip install 'mooring[data]'`, or use to_data()"
        )


def make_frame(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    libraries: Sequence[str] = LIBRARIES,
) -> Frame:
    """A DataFrame of the first library that is installed. Raises MissingFrames."""
    by_column = {name: [row[i] for row in rows] for i, name in enumerate(columns)}
    for library in libraries:
        try:
            module = importlib.import_module(library)
        except ModuleNotFoundError as error:
            if error.name != library:
                raise
            continue
        return module.DataFrame(by_column, **_OPTIONS.get(library, {}))
    raise MissingFrames
