"""Results as rows: a row for each cell, a column for each measure; written as CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from mooring.errors import InputError
from mooring.sweep.results import Line
from mooring.sweep.statistics import measure_names

#: What a cell is, before its measures.
KEYS = ("config", "input", "seed", "load", "error")
SUFFIXES = (".parquet", ".csv", ".jsonl")


def columns_and_rows(lines: Sequence[Line]) -> tuple[list[str], list[list[Any]]]:
    names = measure_names(lines)
    rows = [
        [each.config, each.input, each.seed, each.load, each.error or None]
        + [each.measures.get(name) for name in names]
        for each in lines
    ]
    return [*KEYS, *names], rows


def check_suffix(path: Path) -> None:
    """Raises InputError."""
    if path.suffix not in SUFFIXES:
        raise InputError([f"{path}: the name must end in {', '.join(SUFFIXES)}"])


def write_results(path: Path, lines: Sequence[Line]) -> None:
    """The name says which format. Raises InputError."""
    check_suffix(path)
    columns, rows = columns_and_rows(lines)
    try:
        match path.suffix:
            case ".csv":
                path.write_text(_csv(columns, rows))
            case ".jsonl":
                encoded = (
                    msgspec.json.encode(dict(zip(columns, row, strict=True))) for row in rows
                )
                path.write_bytes(b"".join(line + b"\n" for line in encoded))
            case _:
                _write_parquet(path, columns, rows)
    except OSError as error:
        raise InputError([f"{path}: cannot be written: {error.strerror or error}"]) from error


def _csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def check_parquet(path: Path) -> None:
    """Raises InputError if a library for Parquet is needed and missing."""
    if path.suffix == ".parquet":
        _parquet_library(path)


def _parquet_library(path: Path) -> Any:
    for name in ("polars", "pyarrow"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise InputError(
        [
            f"{path}: writing Parquet needs polars or pyarrow; install it with pip install 'mooring[sweep]'"
        ]
    )


def _write_parquet(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Measures are float64, so that files of different sweeps have the same types."""
    library = _parquet_library(path)
    table = {name: _typed(name, [row[i] for row in rows]) for i, name in enumerate(columns)}
    if library.__name__ == "polars":
        schema = {name: getattr(library, _polars_type(name)) for name in columns}
        library.DataFrame(table, schema=schema).write_parquet(path)
        return
    parquet = importlib.import_module("pyarrow.parquet")
    types = {"String": library.string(), "Int64": library.int64(), "Float64": library.float64()}
    schema = library.schema([(name, types[_polars_type(name)]) for name in columns])
    parquet.write_table(library.table(table, schema=schema), path)


def _polars_type(name: str) -> str:
    return {"config": "String", "input": "String", "error": "String", "seed": "Int64"}.get(
        name, "Float64"
    )


def _typed(name: str, values: list[Any]) -> list[Any]:
    if _polars_type(name) != "Float64":
        return values
    return [None if value is None else float(value) for value in values]
