"""Tables: as wide as the terminal, or as wide as they need to be."""

from __future__ import annotations

import pytest

from mooring.cli.output import Cell, Column, Page, counted
from mooring.cli.simulation_tables import amounts, when
from mooring.sim.report import Usage

COLUMNS = (Column("POD"), Column("TRIED", right=True), Column("WHY", wraps=True))
ROWS = [
    ("default/web", "3×", "no node has room for it, and none will have"),
    ("default/x", "1×", "no"),
]


def table(width: int | None, *, colour: bool = False) -> list[str]:
    page = Page(width=width, colour=colour)
    page.table(COLUMNS, ROWS)
    return page.text().splitlines()


def test_without_a_width_every_row_is_one_line():
    assert table(None) == [
        "POD          TRIED  WHY",
        "default/web     3×  no node has room for it, and none will have",
        "default/x       1×  no",
    ]


def test_text_of_several_lines_is_one_line_in_a_table():
    page = Page(width=None, colour=False)
    page.table(COLUMNS, [("default/web", "1×", Cell('running "P": ValueError: a\n  b'))])

    assert page.text().splitlines()[1:] == ['default/web     1×  running "P": ValueError: a b']


def test_text_is_broken_to_keep_to_the_width():
    assert table(50) == [
        "POD          TRIED  WHY",
        "default/web     3×  no node has room for it, and",
        "                    none will have",
        "default/x       1×  no",
    ]


@pytest.mark.parametrize("width", [40, 44, 60, 80, 200])
def test_no_line_is_longer_than_the_width_and_no_word_is_lost(width):
    lines = table(width)

    assert max(map(len, lines)) <= max(width, 44)
    words = " ".join(lines).split()
    assert words.count("no") == 2
    assert "have" in words


def test_names_are_broken_only_where_there_is_no_other_way():
    page = Page(width=30, colour=False)
    page.table(
        (Column("POD"), Column("NODE")), [("namespace/a-very-long-name", "another-long-name")]
    )

    lines = page.text().splitlines()
    assert max(map(len, lines)) <= 31
    assert "".join(line[:14].strip() for line in lines[1:]).startswith("namespace/a-")


def test_colours_are_around_the_text_and_not_in_its_width():
    page = Page(width=None, colour=True)
    page.table((Column("A"), Column("B")), [(Cell("x", "bold red"), "y")])

    assert page.text() == "\x1b[2mA\x1b[0m  \x1b[2mB\x1b[0m\n\x1b[1;31mx\x1b[0m  y\n"


def test_a_heading_stands_apart_from_what_is_above_it():
    page = Page(width=None, colour=False)
    page.heading("FIRST")
    page.heading("SECOND")

    assert page.text() == "FIRST\n\nSECOND\n"


@pytest.mark.parametrize(
    ("usage", "text"),
    [
        (Usage("cpu", "millicores", 1500, 4000), "1.5/4"),
        (Usage("cpu", "millicores", 1, 100_000_000), "0.001/100,000"),
        (Usage("memory", "bytes", 3 * 2**29, 16 * 2**30), "1.5/16Gi"),
        (Usage("memory", "bytes", 0, 0), "0/0"),
        (Usage("memory", "bytes", 100 * 2**20, 0), "100/0Mi"),
        (Usage("pods", "count", 1200, 11_000), "1,200/11,000"),
    ],
)
def test_amounts_are_short_and_in_one_unit(usage, text):
    assert amounts(usage) == text


def test_times_are_written_as_go_writes_them():
    assert [when(0), when(90), when(0.5), when(3600.25)] == ["0s", "1m30s", "500ms", "1h0m0.25s"]


def test_one_is_not_many():
    assert [counted(1, "pod"), counted(2, "pod"), counted(4980, "node")] == [
        "1 pod",
        "2 pods",
        "4,980 nodes",
    ]
