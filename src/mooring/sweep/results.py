"""The results file of a sweep: a line of JSON for each cell, written as soon as the cell has ended.

A sweep that is interrupted or killed loses only the cells that were running. The next sweep with the same
file runs what is missing: cells without a line, cells that failed, and cells whose fingerprint has changed.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from mooring.errors import InputError
from mooring.sweep.grid import Cell


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One cell that has ended."""

    fingerprint: str
    config: str
    input: str
    seed: int
    load: float | None = None
    #: Empty if the cell failed.
    measures: dict[str, float | None] = {}
    #: Why it failed; empty if it did not.
    error: str = ""

    @property
    def cell(self) -> Cell:
        return Cell(self.config, self.input, self.seed, self.load)

    def to_data(self) -> dict[str, Any]:
        return {
            "config": self.config,
            "input": self.input,
            "seed": self.seed,
            "load": self.load,
            **({"error": self.error} if self.error else {"measures": self.measures}),
        }


_DECODER = msgspec.json.Decoder(Line)


class ResultsFile:
    """A results file that this process alone writes; None as its path keeps results in memory only."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file: int | None = None
        #: The lines that were there at the start.
        self.found: list[Line] = []

    def append(self, line: Line) -> None:
        """Raises InputError if the file cannot be written."""
        if self._file is None:
            return
        try:
            os.write(self._file, msgspec.json.encode(line) + b"\n")
        except OSError as error:
            raise _cannot(self.path, "written", error) from error


@contextmanager
def open_results(path: Path | None) -> Iterator[ResultsFile]:
    """Read the lines of the file and hold it, so that no other sweep writes to it. Raises InputError."""
    results = ResultsFile(path)
    if path is None:
        yield results
        return
    try:
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
    except OSError as error:
        raise _cannot(path, "written", error) from error
    try:
        _lock(opened, path)
        results.found = _lines(opened, path)
        results._file = opened
        yield results
    finally:
        results._file = None
        os.close(opened)


def _lock(opened: int, path: Path) -> None:
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise InputError(
            [
                f"{path}: another sweep is writing to it; wait for it, or name another file with --results"
            ]
        ) from error


def _lines(opened: int, path: Path) -> list[Line]:
    """A line without an end was cut off when its sweep was killed: remove it."""
    content = path.read_bytes()
    whole, _, rest = content.rpartition(b"\n")
    lines = [_line(text, path, number) for number, text in enumerate(whole.splitlines(), 1)]
    if rest:
        if not rest.startswith(b"{"):
            raise _no_result(path, len(lines) + 1)
        os.ftruncate(opened, len(content) - len(rest))
    return lines


def _line(text: bytes, path: Path, number: int) -> Line:
    try:
        return _DECODER.decode(text)
    except msgspec.DecodeError as error:
        raise _no_result(path, number) from error


def _no_result(path: Path, number: int) -> InputError:
    return InputError(
        [f"{path}:{number}: is not a result of a sweep; name another file with --results"]
    )


def _cannot(path: Path | None, what: str, error: OSError) -> InputError:
    return InputError([f"{path}: cannot be {what}: {error.strerror or error}"])
