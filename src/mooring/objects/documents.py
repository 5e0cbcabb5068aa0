"""From paths to documents: find files, tell YAML from JSON, split lists.

A document is one Kubernetes object as written, with its position in the input. What cannot be read
is reported in a line and skipped, so that one broken file or document does not hide the problems of
others.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from mooring.objects.decoding import without_nulls
from mooring.objects.yaml_text import YamlError, parse_yaml

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")

#: Called with the number of bytes read and the total.
Progress = Callable[[int, int], None]

_SEPARATOR = re.compile(rb"^---(?=\s|$)", re.MULTILINE)
_NO_CONTENT = re.compile(rb"(?:\s++|[#%][^\n]*+)*+")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OFFSET = re.compile(r"\(byte (\d+)\)")
_DEEPEST_LIST = 3


@dataclass(frozen=True, slots=True)
class Document:
    """One object as written."""

    #: The start of messages: `pods.yaml: document 2`.
    where: str
    api_version: str
    kind: str
    #: Plain values without nulls, or JSON text, which is decoded directly to a typed object.
    body: dict[str, Any] | msgspec.Raw


class _Header(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


def read_documents(
    paths: Sequence[str | Path],
    *,
    problems: list[str],
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> Iterator[Document]:
    """Every object in the files, in order. What cannot be read adds a line to `problems`."""
    sources = _sources(paths, problems)
    piped = (stdin or sys.stdin.buffer).read() if STDIN in sources else b""
    total = sum(len(piped) if source == STDIN else _size(source) for source in sources)
    done = 0
    for source in sources:
        text = piped if source == STDIN else _read(source, problems)
        if text is None:
            continue
        reader = _Reader(
            source, problems, None if progress is None else _offset(progress, done, total)
        )
        yield from reader.documents(text)
        done += len(text)
        if progress is not None:
            progress(done, total)


def _offset(progress: Progress, done: int, total: int) -> Callable[[int], None]:
    return lambda position: progress(min(done + position, total), total)


def _sources(paths: Sequence[str | Path], problems: list[str]) -> list[str]:
    """The files to read, each once, including those in folders. `-` is kept."""
    found: dict[str, str] = {}
    for path in map(str, paths):
        if path != STDIN and Path(path).is_dir():
            inside = list(_manifests_in(path))
            if not inside:
                problems.append(f"{path}: the folder holds no .yaml, .yml or .json file")
            for name in inside:
                found.setdefault(os.path.realpath(name), name)
        else:
            found.setdefault(path if path == STDIN else os.path.realpath(path), path)
    return list(found.values())


def _manifests_in(folder: str) -> Iterator[str]:
    for directory, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield str(Path(directory) / name)


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _read(path: str, problems: list[str]) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        problems.append(f"{path}: no such file or folder; check the path")
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror or error}")
    return None


class _Reader:
    """Reads one file."""

    def __init__(
        self, source: str, problems: list[str], progress: Callable[[int], None] | None
    ) -> None:
        self._name = "standard input" if source == STDIN else source
        self._is_json = source.lower().endswith(".json")
        self._problems = problems
        self._progress = progress
        self._number = 0

    def documents(self, text: bytes) -> Iterator[Document]:
        text = text.removeprefix(_BYTE_ORDER_MARK)
        if self._is_json or text.lstrip()[:1] == b"{":
            try:
                yield from self._json(text)
                return
            except _NotJson as error:
                if self._is_json:
                    self._problem(self._where(), str(error))
                    return
                self._number = 0
        yield from self._yaml(text)

    # JSON

    def _json(self, text: bytes) -> Iterator[Document]:
        """Read one or more JSON values. Raises _NotJson before the first document."""
        if not text.strip():
            return
        try:
            whole = msgspec.json.decode(text, type=msgspec.Raw)
        except RecursionError:
            raise _NotJson("nested too deeply to be an object") from None
        except msgspec.DecodeError as error:
            if "trailing characters" not in str(error):
                raise _NotJson(_json_problem(text, error)) from error
            yield from self._json_values(text)
            return
        self._number = 1
        yield from self._from_json(self._where(), whole)

    def _json_values(self, text: bytes) -> Iterator[Document]:
        lines = [line for line in text.splitlines() if line.strip()]
        if all(line.lstrip().startswith(b"{") for line in lines):
            yield from self._json_lines(lines)
            return
        for value in list(_concatenated(text)):
            self._number += 1
            yield from self._from_value(self._where(), without_nulls(value))

    def _json_lines(self, lines: list[bytes]) -> Iterator[Document]:
        position = 0
        for line in lines:
            self._number += 1
            position += len(line)
            try:
                raw = msgspec.json.decode(line, type=msgspec.Raw)
            except (RecursionError, msgspec.DecodeError) as error:
                self._problem(self._where(), _json_problem(line, error))
                continue
            yield from self._from_json(self._where(), raw)
            self._report(position)

    def _from_json(
        self, where: str, text: msgspec.Raw, listed: tuple[str, str] = ("", ""), depth: int = 0
    ) -> Iterator[Document]:
        try:
            header = msgspec.json.decode(text, type=_Header)
        except msgspec.ValidationError:
            value = without_nulls(msgspec.json.decode(text))
            yield from self._from_value(where, value, listed, depth)
            return
        api_version, kind = header.api_version or listed[0], header.kind or listed[1]
        if header.items is not None and kind.endswith("List") and depth < _DEEPEST_LIST:
            for index, item in enumerate(header.items):
                inner = _item_kind(api_version, kind)
                yield from self._from_json(f"{where}, item {index + 1}", item, inner, depth + 1)
        elif self._is_named(where, api_version, kind):
            yield Document(where, api_version, kind, text)

    # YAML

    def _yaml(self, text: bytes) -> Iterator[Document]:
        """Split the text into documents first, like kubectl: a broken one breaks no other."""
        line = 1
        for start, end in yaml_chunks(text):
            chunk = text[start:end]
            self._number += 1
            try:
                values = parse_yaml(chunk, first_line=line, progress=self._from(start))
                for index, value in enumerate(values):
                    self._number += index > 0
                    yield from self._from_value(self._where(), value)
            except YamlError as error:
                hint = ""
                if "not text" in str(error):
                    hint = "; is it a YAML or JSON file?"
                elif b"{{" in chunk:
                    hint = "; it looks like a template: render it first"
                self._problem(self._where(), f"{error}{hint}")
            line += chunk.count(b"\n")
            self._report(end)

    def _from(self, start: int) -> Callable[[int], None]:
        return lambda position: self._report(start + position)

    # Both

    def _from_value(
        self, where: str, value: Any, listed: tuple[str, str] = ("", ""), depth: int = 0
    ) -> Iterator[Document]:
        if not isinstance(value, dict):
            self._problem(where, f"{_described(value)}, not a Kubernetes object")
            return
        api_version = value.get("apiVersion") or listed[0]
        kind = value.get("kind") or listed[1]
        if not self._is_named(where, api_version, kind):
            return
        items = value.get("items")
        if not kind.endswith("List") or items is None or depth >= _DEEPEST_LIST:
            yield Document(where, api_version, kind, value)
        elif isinstance(items, list):
            for index, item in enumerate(items):
                inner = _item_kind(api_version, kind)
                yield from self._from_value(f"{where}, item {index + 1}", item, inner, depth + 1)
        else:
            self._problem(where, f"items: {_described(items)}, not a list of objects")

    def _is_named(self, where: str, api_version: object, kind: object) -> bool:
        for field, value, example in (
            ("kind", kind, "kind: Pod"),
            ("apiVersion", api_version, "apiVersion: v1"),
        ):
            if not value:
                self._problem(where, f"{field}: is missing; every object needs one, as {example}")
                return False
            if not isinstance(value, str):
                self._problem(where, f"{field}: must be a string; write it as {example}")
                return False
        return True

    def _where(self) -> str:
        return f"{self._name}: document {max(self._number, 1)}"

    def _problem(self, where: str, problem: str) -> None:
        self._problems.append(f"{where}: {problem}")

    def _report(self, position: int) -> None:
        if self._progress is not None:
            self._progress(position)


class _NotJson(ValueError):
    pass


def yaml_chunks(text: bytes) -> Iterator[tuple[int, int]]:
    """The start and end of each document. Before the first `---` there may be only comments."""
    starts = [match.start() for match in _SEPARATOR.finditer(text)]
    if not starts or not _NO_CONTENT.fullmatch(text, 0, starts[0]):
        starts.insert(0, 0)
    yield from zip(starts, [*starts[1:], len(text)], strict=True)


def _item_kind(api_version: str, kind: str) -> tuple[str, str]:
    """The type of list items that lack one: a PodList holds Pods, a List anything."""
    return ("", "") if kind == "List" else (api_version, kind.removesuffix("List"))


def _concatenated(text: bytes) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    decoded = text.decode(errors="replace")
    position = 0
    while position < len(decoded):
        if decoded[position].isspace():
            position += 1
            continue
        try:
            value, position = decoder.raw_decode(decoded, position)
        except (json.JSONDecodeError, RecursionError) as error:
            raise _NotJson(str(error)) from error
        yield value


def _json_problem(text: bytes, error: Exception) -> str:
    offset = _OFFSET.search(str(error))
    if isinstance(error, RecursionError):
        return "nested too deeply to be an object"
    if offset is None:
        return "the JSON ends too early; is the file complete?"
    before = text[: int(offset[1])]
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    problem = str(error).removeprefix("JSON is malformed: ").split(" (byte")[0]
    return f"line {line}, column {column}: not valid JSON: {problem}"


def _described(value: object) -> str:
    if isinstance(value, str):
        return "plain text"
    if isinstance(value, list):
        return "a list"
    return f"just {json.dumps(value, default=str)}"[:40]
