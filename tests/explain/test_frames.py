"""DataFrames of whichever library is there. CI has polars; pandas is tested where it is installed."""

from __future__ import annotations

import pytest

from mooring.explain.frames import LIBRARIES, MissingFrames, make_frame

COLUMNS = ("pod", "at_seconds", "node", "percent")
ROWS = [("a", 0, "n", None), ("b", 30.5, "", 12.5), ("c", None, "m", 7)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_has_the_columns_and_rows_in_order(library):
    module = pytest.importorskip(library)

    frame = make_frame(COLUMNS, ROWS, libraries=[library])

    assert isinstance(frame, module.DataFrame)
    assert list(frame.columns) == list(COLUMNS)
    assert list(frame["pod"]) == ["a", "b", "c"]
    assert list(frame["at_seconds"])[:2] == [0, 30.5]
    assert list(frame["percent"])[1:] == [12.5, 7]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_without_rows_has_its_columns(library):
    pytest.importorskip(library)

    assert list(make_frame(COLUMNS, [], libraries=[library]).columns) == list(COLUMNS)


def test_without_a_library_it_is_told_what_to_install():
    with pytest.raises(MissingFrames, match=r"pip install 'mooring\[data\]'"):
        make_frame(COLUMNS, ROWS, libraries=["no_such_library"])
