"""Write answers: tables for people; JSON, YAML and CSV for programs.

On a terminal, a table fits the terminal's width and has colour (unless NO_COLOR is set). In a pipe, each row
is one line, however long, so that `grep` and `awk` work.

This module lays out tables itself: rich takes a millisecond per row, and timelines have 100,000 rows.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from mooring.cli.main import NO
from mooring.errors import InputError

#: Between two columns.
_GAP = "  "
#: The minimum width of a column, and of a column whose text wraps.
_NARROWEST, _NARROWEST_TEXT = 12, 24
_ANSI = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    #: Align to the right, for numbers.
    right: bool = False
    #: Where the table is too wide, the text of this column wraps first.
    wraps: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with a style of its own, such as `bold green`."""

    text: str
    style: str = ""


class Page:
    """A page of text and tables."""

    def __init__(self, *, width: int | None = None, colour: bool | None = None) -> None:
        """By default, the width and colour of standard output. Without a width, lines never wrap."""
        on_terminal = sys.stdout.isatty()
        if width is None and on_terminal:
            width = shutil.get_terminal_size().columns
        self.width = width
        self.colour = _wants_colour(on_terminal) if colour is None else colour
        self._lines: list[str] = []

    def line(self, text: str = "", style: str = "") -> None:
        indent = " " * (len(text) - len(text.lstrip()))
        for line in self._broken(text, indent):
            self._lines.append(self._styled(line, style))

    def heading(self, text: str) -> None:
        if self._lines:
            self.line()
        self.line(text, "bold")

    def table(self, columns: Sequence[Column], rows: Iterable[Sequence[str | Cell]]) -> None:
        grid = [[_one_line(cell) for cell in row] for row in rows]
        widths = _fitting(columns, grid, self.width)
        header = [Cell(column.title, "dim") for column in columns]
        for row in (header, *grid):
            self._add_row(columns, row, widths)

    def fits(self, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> bool:
        """Whether the table fits the width without wrapping."""
        return self.width is None or _total(_fitting(columns, rows, None)) <= self.width

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def write(self) -> None:
        write(self.text())

    def _add_row(
        self, columns: Sequence[Column], row: Sequence[Cell], widths: Sequence[int]
    ) -> None:
        if all(len(cell.text) <= width for cell, width in zip(row, widths, strict=True)):
            self._add_line(columns, row, widths)
            return
        parts = [
            [Cell(part, cell.style) for part in _wrapped(cell.text, width)]
            for cell, width in zip(row, widths, strict=True)
        ]
        for line in zip_longest(*parts, fillvalue=Cell("")):
            self._add_line(columns, line, widths)

    def _add_line(
        self, columns: Sequence[Column], cells: Sequence[Cell], widths: Sequence[int]
    ) -> None:
        last = max((i for i, cell in enumerate(cells) if cell.text), default=-1)
        line = ""
        for i in range(last + 1):
            text, blanks = cells[i].text, " " * (widths[i] - len(cells[i].text))
            styled = self._styled(text, cells[i].style)
            if columns[i].right:
                line += blanks + styled
            else:
                line += styled + (blanks if i < last else "")
            line += _GAP if i < last else ""
        self._lines.append(line)

    def _broken(self, text: str, indent: str) -> list[str]:
        if self.width is None or len(text) <= self.width:
            return [text]
        return textwrap.wrap(
            text, self.width, subsequent_indent=indent, break_on_hyphens=False
        ) or [text]

    def _styled(self, text: str, style: str) -> str:
        if not (self.colour and style and text):
            return text
        codes = ";".join(_ANSI[word] for word in style.split())
        return f"\x1b[{codes}m{text}\x1b[0m"


def write_json(data: Any) -> None:
    write(msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n")


def write_yaml(data: Any) -> None:
    write(to_yaml(data))


def to_yaml(data: Any) -> str:
    import yaml

    text: str = yaml.dump(
        data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, width=100
    )
    return text


def answer(
    form: str,
    *,
    yes: bool,
    data: Callable[[], Any],
    table: Callable[[], None],
    **others: Callable[[], None],
) -> NoReturn:
    """Write the answer in the requested form, and exit with 0 for yes or 1 for no."""
    match form:
        case "json":
            write_json(data())
        case "yaml":
            write_yaml(data())
        case "table":
            table()
        case _:
            others[form]()
    sys.exit(0 if yes else NO)


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write(text.getvalue())


def write(text: str) -> None:
    """Write to standard output. A closed pipe does not change the exit code."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes the buffer at exit, and must find an open file.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_file(path: Path, content: bytes) -> None:
    """Raises InputError."""
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InputError([f"{path}: cannot be written: {error.strerror or error}"]) from error


def counted(number: int, one: str) -> str:
    """`1 pod`, `4,980 pods`."""
    return f"{number:,} {one}" if number == 1 else f"{number:,} {one}s"


def _wants_colour(on_terminal: bool) -> bool:
    return on_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _fitting(
    columns: Sequence[Column], grid: Sequence[Sequence[Cell]], width: int | None
) -> list[int]:
    """Each column is as wide as its longest cell. If that is too wide, text shrinks first, then names."""
    widths = [
        max(len(column.title), max((len(row[i].text) for row in grid), default=0))
        for i, column in enumerate(columns)
    ]
    if width is None:
        return widths
    excess = _total(widths) - width
    wrapping = [i for i, column in enumerate(columns) if column.wraps]
    names = [i for i, column in enumerate(columns) if not column.wraps and not column.right]
    for group, narrowest in ((wrapping, _NARROWEST_TEXT), (names, _NARROWEST)):
        for i in sorted(group, key=lambda i: -widths[i]):
            given = min(max(excess, 0), max(widths[i] - narrowest, 0))
            widths[i] -= given
            excess -= given
    return widths


def _one_line(cell: str | Cell) -> Cell:
    """What plugins and webhooks say may have several lines."""
    text, style = (cell.text, cell.style) if isinstance(cell, Cell) else (cell, "")
    return Cell(" ".join(map(str.strip, text.splitlines())) if "\n" in text else text, style)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _wrapped(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
