"""Writing answers: tables for people, JSON, YAML and CSV for programs.

On a terminal a table keeps to its width and has colour (unless NO_COLOR says otherwise). In a pipe there is
one line a row, however long, so that `grep` and `awk` find what they look for.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

#: No table is wider than this in a pipe.
_UNBOUNDED = 100_000


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    #: Numbers read best when they end at the same place.
    right: bool = False
    #: For the text that may be broken over lines where there is little room.
    wraps: bool = False
    style: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell with a style of its own."""

    text: str
    style: str = ""


class Page:
    """A page of text and tables, laid out when it is written."""

    def __init__(self, *, width: int | None = None) -> None:
        """As wide as the terminal, or unbounded in a pipe, unless `width` is given."""
        on_terminal = sys.stdout.isatty()
        if width is None:
            width = shutil.get_terminal_size().columns if on_terminal else _UNBOUNDED
        self.width = width
        self._text = io.StringIO()
        self._console = _console(self._text, width=width, on_terminal=on_terminal)

    def line(self, text: str = "", style: str = "") -> None:
        self._console.print(text, style=style or None, soft_wrap=False)

    def heading(self, text: str) -> None:
        self.line()
        self.line(text, "bold")

    def table(
        self, columns: Sequence[Column], rows: Iterable[Sequence[str | Cell]], *, indent: int = 0
    ) -> None:
        from rich.padding import Padding

        table: RenderableType = _table(columns, rows)
        self._console.print(Padding(table, (0, 0, 0, indent)) if indent else table)

    def text(self) -> str:
        """Without the blanks with which tables fill up their lines."""
        lines = self._text.getvalue().splitlines()
        return "".join(f"{line.rstrip()}\n" for line in lines)

    def write(self) -> None:
        write(self.text())


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


def write_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write(text.getvalue())


def write(text: str) -> None:
    """To standard output; a reader that has seen enough does not change the answer."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer must go somewhere when Python flushes it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def counted(number: int, one: str, many: str = "") -> str:
    """`1 pod`, `4,980 pods`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _console(file: io.StringIO, *, width: int, on_terminal: bool) -> Console:
    from rich.console import Console

    return Console(
        file=file,
        width=width,
        force_terminal=True if on_terminal else None,
        # Names and messages are printed as they are, whatever brackets and colons they have.
        markup=False,
        emoji=False,
        highlight=False,
    )


def _table(columns: Sequence[Column], rows: Iterable[Sequence[str | Cell]]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=column.right,
            ratio=None,
            style=column.style or None,
            min_width=min(len(column.title), 12),
        )
    for row in rows:
        table.add_row(
            *(Text(cell.text, cell.style) if isinstance(cell, Cell) else cell for cell in row)
        )
    return table
