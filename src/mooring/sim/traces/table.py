"""Read tables in CSV or Parquet row by row; every problem names its line."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mooring.errors import InputError
from mooring.objects.quantity import Quantity, parse_quantity

PARQUET = ".parquet"
#: Larger times and amounts are mistakes, and floats could not hold them exactly.
_MOST = 2**53

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """One row. Its getters record a problem and return a default, so that all problems are found."""

    #: `nodes.csv: line 7`.
    where: str
    values: Mapping[str, str]
    problems: list[str]

    def text(self, column: str) -> str:
        return self.values.get(column, "")

    def name(self, column: str) -> str:
        text = self.text(column)
        if not text:
            self.problem(column, "is missing; every row needs one")
        return text

    def whole(self, column: str, default: int = 0) -> int:
        """A whole number, 0 or more."""
        return self._read(column, default, _whole, "a whole number, 0 or more")

    def integer(self, column: str, default: int = 0) -> int:
        return self._read(column, default, int, "a whole number")

    def seconds(self, column: str) -> float | None:
        """None if it is empty."""
        if not self.text(column):
            return None
        return self._read(column, 0.0, _seconds, "a number of seconds, 0 or more")

    def quantity(self, column: str) -> Quantity | None:
        if not self.text(column):
            return None
        return self._read(column, Quantity(), _quantity, "a quantity such as 500m or 4Gi")

    def pairs(self, column: str) -> dict[str, str]:
        """Parse `a=b;c=d`."""
        pairs = {}
        for part in filter(None, self.text(column).split(";")):
            key, equals, value = part.partition("=")
            if not key.strip() or not equals:
                self.problem(column, f"{part!r} is not key=value; separate pairs by ';'")
            pairs[key.strip()] = value.strip()
        return pairs

    def problem(self, column: str, text: str) -> None:
        self.problems.append(f"{self.where}: {column}: {text}")

    def _read(self, column: str, default: T, read: Callable[[str], T], what: str) -> T:
        text = self.text(column)
        if not text:
            return default
        try:
            return read(text)
        except ValueError:
            self.problem(column, f"{text[:80]!r} is not {what}")
            return default


@dataclass(frozen=True, slots=True)
class Table:
    path: Path
    columns: tuple[str, ...]
    rows: list[dict[str, str]]

    def each(self, problems: list[str]) -> Iterator[Row]:
        # Line 1 of a CSV file has the columns.
        first, what = (1, "row") if self.path.suffix == PARQUET else (2, "line")
        for number, values in enumerate(self.rows, start=first):
            yield Row(f"{self.path}: {what} {number}", values, problems)

    def check_columns(self, needed: Sequence[str]) -> None:
        """Raises InputError."""
        missing = [name for name in needed if name not in self.columns]
        if missing:
            raise InputError(
                [
                    f"{self.path}: lacks the columns {', '.join(missing)}; it needs {', '.join(needed)}"
                ]
            )


def read_table(path: Path) -> Table:
    """Raises InputError if the file cannot be read as a table."""
    return _read_parquet(path) if path.suffix == PARQUET else _read_csv(path)


def _read_csv(path: Path) -> Table:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, restkey="", restval="", strict=True)
            columns = tuple(name.strip() for name in reader.fieldnames or ())
            reader.fieldnames = columns
            rows = [_stripped(row) for row in reader]
    except OSError as error:
        raise InputError([f"{path}: cannot be read: {error.strerror or error}"]) from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError([f"{path}: is not CSV: {error}"]) from error
    if not columns:
        raise InputError([f"{path}: is empty; its first line must name the columns"])
    return Table(path, columns, rows)


def _read_parquet(path: Path) -> Table:
    read = _parquet_reader(path)
    try:
        records = read(path)
    except Exception as error:
        # Each library has its own errors for files that are not Parquet.
        raise InputError([f"{path}: cannot be read: {str(error).splitlines()[0]}"]) from error
    if not records.columns:
        raise InputError([f"{path}: has no columns"])
    rows = [
        {name: _as_text(value) for name, value in row.items() if value is not None}
        for row in records.rows
    ]
    return Table(path, tuple(records.columns), rows)


@dataclass(frozen=True, slots=True)
class _Records:
    columns: Sequence[str]
    rows: Iterable[Mapping[str, Any]]


def _parquet_reader(path: Path) -> Callable[[Path], _Records]:
    """Read with the library that is installed. Raises InputError."""
    for module, reader in (("polars", _by_polars), ("pyarrow.parquet", _by_pyarrow)):
        try:
            library = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        return partial(reader, library)
    hint = "run pip install 'mooring[data]', or convert it to CSV"
    raise InputError([f"{path}: reading Parquet needs polars or pyarrow; {hint}"])


def _by_polars(polars: Any, path: Path) -> _Records:
    frame = polars.read_parquet(path)
    return _Records(frame.columns, frame.iter_rows(named=True))


def _by_pyarrow(parquet: Any, path: Path) -> _Records:
    table = parquet.read_table(path)
    return _Records(table.column_names, table.to_pylist())


def _as_text(value: object) -> str:
    """The value as in CSV. Columns of integers with gaps are read as floats, so write them as integers."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value != value else str(value)


def _stripped(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: value.strip() for name, value in row.items() if isinstance(value, str)}


def _whole(text: str) -> int:
    number = int(text)
    if not 0 <= number <= _MOST:
        raise ValueError
    return number


def _seconds(text: str) -> float:
    number = float(text)
    # Also false for NaN.
    if not 0 <= number <= _MOST:
        raise ValueError
    return number


def _quantity(text: str) -> Quantity:
    quantity = parse_quantity(text)
    if quantity.negative:
        raise ValueError
    return quantity
