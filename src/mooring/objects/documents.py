"""From paths to documents: tell YAML from JSON, split lists, leave out files without objects.

A document is one Kubernetes object as written, with its position in the input. What cannot be read
is reported in a line and skipped, so that one broken file or document does not hide the problems of
others. A file that was found in a folder and has nothing of an object is left out; a file that the
user named must hold objects.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from mooring.objects.decoding import without_nulls
from mooring.objects.findings import Findings, chart_of
from mooring.objects.kinds import KINDS
from mooring.objects.large_texts import Content, GivingBack
from mooring.objects.skipped_kinds import has_no_effect
from mooring.objects.sources import STDIN as STDIN
from mooring.objects.sources import Source, find_sources
from mooring.objects.template_marks import action_in_text, mark_in_text
from mooring.objects.yaml_blocks import YamlBlocks
from mooring.objects.yaml_text import YamlError, parse_yaml

#: Called with the number of bytes read and the total.
Progress = Callable[[int, int], None]

_SEPARATOR = re.compile(rb"^---(?=\s|$)", re.MULTILINE)
_FIRST = re.compile(rb"\s*+(\S?)")
_NO_CONTENT = re.compile(rb"(?:\s++|[#%][^\n]*+)*+")
_OFFSET = re.compile(r"\(byte (\d+)\)")
_DEEPEST_LIST = 3
_MOST_DUPLICATES = 20
#: How many items of a list are read until the progress is reported again.
_BETWEEN_REPORTS = 100
_DECODED_AT_ONCE = 1 << 20

_NAMES = frozenset(kind.name for kind in KINDS)
_API_VERSION = re.compile(r"([a-z0-9.-]+/)?v[0-9]+((alpha|beta)[0-9]+)?")
_WRITTEN_API_VERSION = re.compile(
    rb"""^[\s{-]*+["']?apiVersion["']?\s*+:\s*+["']?([\w./-]*)""", re.MULTILINE
)
_WRITTEN_KIND = re.compile(rb"""^[\s{-]*+["']?kind["']?\s*+:\s*+["']?(\w*)""", re.MULTILINE)


class Text(msgspec.Struct, frozen=True):
    """The YAML text of a document, to find the line of a field."""

    chunk: bytes
    first_line: int


class Document(msgspec.Struct, frozen=True):
    """One object as written. A struct is made in a fifth of the time of a frozen dataclass."""

    #: The start of messages: `pods.yaml: document 2`.
    where: str
    api_version: str
    kind: str
    #: Plain values without nulls, or JSON text, which is decoded directly to a typed object.
    body: dict[str, Any] | msgspec.Raw
    #: Where it was read. None for a document that is part of something else, such as a scenario.
    source: Source | None = None
    #: None if the file is JSON.
    text: Text | None = None
    #: The steps from the text to the object: ("items", 3) in a list.
    steps: tuple[str | int, ...] = ()


class _Header(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    items: list[msgspec.Raw] | None = None


_header = msgspec.json.Decoder(_Header).decode


def read_documents(
    paths: Sequence[str | Path],
    *,
    findings: Findings,
    exclude: Sequence[str] = (),
    stdin: IO[bytes] | None = None,
    progress: Progress | None = None,
) -> Iterator[Document]:
    """Every object in the files, in order. What cannot be read adds a line to `findings`.

    `exclude` has globs for the files and folders to leave out.
    """
    sources = find_sources(paths, findings, exclude=exclude, stdin=stdin)
    sizes = [source.size for source in sources]
    total = sum(sizes)
    done = 0
    for source, size in zip(sources, sizes, strict=True):
        text = source.read(findings)
        if text is None:
            continue
        reader = _Reader(
            source, findings, None if progress is None else _offset(progress, done, total)
        )
        yield from reader.documents(text)
        done += size
        if progress is not None:
            progress(done, total)


def _offset(progress: Progress, done: int, total: int) -> Callable[[int], None]:
    return lambda position: progress(min(done + position, total), total)


class _Reader:
    """Reads one file."""

    def __init__(
        self, source: Source, findings: Findings, progress: Callable[[int], None] | None
    ) -> None:
        self._source = source
        self._name = source.name
        self._findings = findings
        self._progress = progress
        self._number = 0
        self._giving_back = GivingBack(b"")
        #: Whether anything in the file is or was meant to be an object.
        self._has_objects = False
        #: Problems of documents that have nothing of an object.
        self._foreign: list[str] = []
        #: What shows that one of these documents is a piece of a template; empty if nothing does.
        self._foreign_mark = ""
        self._blocks = YamlBlocks()

    def documents(self, text: Content) -> Iterator[Document]:
        for document in self._documents(_in_utf8(text)):
            self._has_objects = True
            yield document
        if self._has_objects and self._foreign_mark:
            self._findings.add_template(self._name, self._foreign_mark)
        elif self._has_objects:
            self._findings.problems += self._foreign
        elif self._foreign:
            self._findings.foreign.append(self._name)

    def _documents(self, text: Content) -> Iterator[Document]:
        if self._source.is_json or _first(text) in (b"{", b"["):
            try:
                yield from self._json(text)
                return
            except _NotJson as error:
                if self._source.is_json:
                    self._unreadable(text, str(error))
                    return
                self._number = 0
        yield from self._yaml(text)

    # JSON

    def _json(self, text: Content) -> Iterator[Document]:
        """Read one or more JSON values. Raises _NotJson before the first document."""
        if not _first(text):
            return
        _check_utf8(text)
        try:
            whole = msgspec.json.decode(text, type=msgspec.Raw)
        except RecursionError:
            raise _NotJson("nested too deeply to be an object") from None
        except msgspec.DecodeError as error:
            if "trailing characters" not in str(error):
                raise _NotJson(_json_problem(text, error)) from error
            yield from self._json_values(bytes(text))
            return
        if _first(text) == b"[":
            yield from self._json_array(whole)
            return
        self._number = 1
        self._giving_back = GivingBack(text)
        yield from self._from_json(self._where(), whole)

    def _json_array(self, text: msgspec.Raw) -> Iterator[Document]:
        items = msgspec.json.decode(text, type=list[msgspec.Raw])
        if items and not any(bytes(item).lstrip().startswith(b"{") for item in items):
            self._add_foreign(self._where(), "a list, not a Kubernetes object")
            return
        for item in items:
            self._number += 1
            yield from self._from_json(self._where(), item)

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
                self._unreadable(line, _json_problem(line, error))
                continue
            yield from self._from_json(self._where(), raw)
            self._report(position)

    def _from_json(
        self,
        where: str,
        body: msgspec.Raw,
        listed: tuple[str, str] = ("", ""),
        depth: int = 0,
        text: Text | None = None,
        steps: tuple[str | int, ...] = (),
    ) -> Iterator[Document]:
        try:
            header = _header(body)
        except msgspec.ValidationError:
            value = without_nulls(msgspec.json.decode(body))
            yield from self._from_value(where, value, listed, depth, text, steps)
            return
        api_version, kind = header.api_version or listed[0], header.kind or listed[1]
        if header.items is not None and kind.endswith("List") and depth < _DEEPEST_LIST:
            inner, position = _item_kind(api_version, kind), 0
            for index, item in enumerate(header.items):
                # A copy, since the memory of the text is given back, and a document may be kept.
                own = item.copy()
                here = (*steps, "items", index)
                yield from self._from_json(
                    f"{where}, item {index + 1}", own, inner, depth + 1, text, here
                )
                if depth == 0 and text is None:
                    # At least up to here: there are a few characters between items.
                    position += len(memoryview(own))
                    if index % _BETWEEN_REPORTS == 0:
                        self._giving_back.up_to(position)
                        self._report(position)
        elif api_version and kind:
            if not _is_empty_list(kind):
                yield Document(where, api_version, kind, body, self._source, text, steps)
        else:
            value = without_nulls(msgspec.json.decode(body))
            yield from self._from_value(where, value, listed, depth, text, steps)

    # YAML

    def _yaml(self, text: Content) -> Iterator[Document]:
        """Split the text into documents first, like kubectl: a broken one breaks no other."""
        line = 1
        for start, end in yaml_chunks(text):
            chunk = text[start:end]
            self._number += 1
            written = Text(chunk, line)
            known = self._blocks.as_json(chunk, self._from(start))
            if known is not None:
                yield from self._from_json(self._where(), msgspec.Raw(known), text=written)
            else:
                yield from self._parsed(written, start)
            line += chunk.count(b"\n")
            self._report(end)

    def _parsed(self, written: Text, start: int) -> Iterator[Document]:
        chunk = written.chunk
        twice: list[YamlError] = []
        try:
            values = parse_yaml(
                chunk,
                first_line=written.first_line,
                progress=self._from(start),
                on_duplicate=_up_to(twice),
            )
            for index, value in enumerate(values):
                self._number += index > 0
                if index == 0 and not twice:
                    self._blocks.learn(chunk, value)
                where = self._where()
                yield from self._from_value(where, value, text=written if index == 0 else None)
        except YamlError as error:
            hint = "; is it a YAML or JSON file?" if "not text" in str(error) else ""
            self._unreadable(chunk, f"{error}{hint}")
        else:
            if twice and _may_matter(chunk):
                lines = dict.fromkeys(f"{self._where()}: {error}" for error in twice)
                self._findings.given_twice += lines

    def _from(self, start: int) -> Callable[[int], None]:
        return lambda position: self._report(start + position)

    # Both

    def _from_value(
        self,
        where: str,
        value: Any,
        listed: tuple[str, str] = ("", ""),
        depth: int = 0,
        text: Text | None = None,
        steps: tuple[str | int, ...] = (),
    ) -> Iterator[Document]:
        if not isinstance(value, dict):
            problem = f"{_described(value)}, not a Kubernetes object"
            (self._problem if depth else self._add_foreign)(where, problem)
            return
        api_version = value.get("apiVersion") or listed[0]
        kind = value.get("kind") or listed[1]
        if not self._is_named(where, value, api_version, kind):
            return
        items = value.get("items")
        if items is None and _is_empty_list(kind):
            return
        if not kind.endswith("List") or items is None or depth >= _DEEPEST_LIST:
            yield Document(where, api_version, kind, value, self._source, text, steps)
        elif isinstance(items, list):
            for index, item in enumerate(items):
                inner = _item_kind(api_version, kind)
                yield from self._from_value(
                    f"{where}, item {index + 1}",
                    item,
                    inner,
                    depth + 1,
                    text,
                    (*steps, "items", index),
                )
        else:
            self._problem(where, f"items: {_described(items)}, not a list of objects")

    def _is_named(self, where: str, value: Any, api_version: object, kind: object) -> bool:
        for field, given, example in (
            ("kind", kind, "kind: Pod"),
            ("apiVersion", api_version, "apiVersion: v1"),
        ):
            if given and isinstance(given, str):
                continue
            problem = (
                "must be a string; write it" if given else "is missing; every object needs one,"
            )
            line = f"{field}: {problem} as {example}"
            (self._problem if _is_object(value) else self._add_foreign)(where, line)
            return False
        return True

    def _unreadable(self, text: Content, problem: str) -> None:
        """Add a problem of text that is neither YAML nor JSON."""
        where = self._where()
        kind, api_version = _WRITTEN_KIND.search(text), _WRITTEN_API_VERSION.search(text)
        if kind is None or api_version is None:
            self._foreign_mark = self._foreign_mark or action_in_text(text)
            if self._foreign_mark and self._source.named:
                self._has_objects = True
            else:
                self._add_foreign(where, problem)
            return
        name, mark = kind[1].decode(), mark_in_text(text)
        has_effect = self._source.named or not has_no_effect(api_version[1].decode(), name)
        if mark and (has_effect or chart_of(self._name)):
            self._findings.add_template(self._name, mark)
            self._has_objects = True
        elif not has_effect:
            self._findings.broken_without_effect.append((name, f"{where}: {problem}"))
            self._has_objects = True
        else:
            self._problem(where, problem)

    def _add_foreign(self, where: str, problem: str) -> None:
        """Add a problem of a document that has nothing of an object."""
        if self._source.named:
            self._problem(where, problem)
        else:
            self._foreign.append(f"{where}: {problem}")

    def _where(self) -> str:
        return f"{self._name}: document {max(self._number, 1)}"

    def _problem(self, where: str, problem: str) -> None:
        self._has_objects = True
        self._findings.problems.append(f"{where}: {problem}")

    def _report(self, position: int) -> None:
        if self._progress is not None:
            self._progress(position)


class _NotJson(ValueError):
    pass


def _in_utf8(text: Content) -> Content:
    """Without a byte order mark. PowerShell writes what it gets from a program in UTF-16."""
    if text[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        with contextlib.suppress(UnicodeDecodeError):
            return bytes(text).decode("utf-16").encode()
    if text[:3] == codecs.BOM_UTF8:
        return text[3:]
    return text


def _first(text: Content) -> bytes:
    """The first character that is not blank; empty if there is none."""
    found = _FIRST.match(text)
    return found[1] if found else b""


def _check_utf8(text: Content) -> None:
    """Decoding fails only where a string is needed, and then not with an error of JSON."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(text), _DECODED_AT_ONCE):
        chunk = text[start : start + _DECODED_AT_ONCE]
        unfinished, _ = decoder.getstate()
        if not unfinished and chunk.isascii():
            continue
        try:
            decoder.decode(chunk, final=start + len(chunk) == len(text))
        except UnicodeDecodeError as error:
            at = _line_and_column(text, start - len(unfinished) + error.start)
            raise _NotJson(f"{at}: not text in UTF-8; save the file in this encoding") from error


def _line_and_column(text: Content, position: int) -> str:
    before = text[:position]
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return f"line {line}, column {column}"


def yaml_chunks(text: Content) -> Iterator[tuple[int, int]]:
    """The start and end of each document. Before the first `---` there may be only comments."""
    starts = [match.start() for match in _SEPARATOR.finditer(text)]
    if not starts or not _NO_CONTENT.fullmatch(text, 0, starts[0]):
        starts.insert(0, 0)
    yield from zip(starts, [*starts[1:], len(text)], strict=True)


def _up_to(twice: list[YamlError]) -> Callable[[YamlError], None]:
    """Collects keys that are given twice. So many that they are no slip are an error."""

    def add(error: YamlError) -> None:
        if len(twice) >= _MOST_DUPLICATES:
            raise error
        twice.append(error)

    return add


def _may_matter(text: bytes) -> bool:
    """Whether the text of a document is an object of a kind that may affect scheduling."""
    kind, api_version = _WRITTEN_KIND.search(text), _WRITTEN_API_VERSION.search(text)
    if kind is None or api_version is None:
        return False
    return not has_no_effect(api_version[1].decode(), kind[1].decode())


def _is_object(value: dict[str, Any]) -> bool:
    """Whether a mapping without a kind or apiVersion was meant to be an object.

    Settings of other programs may have one of the two fields.
    """
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if isinstance(api_version, str) and _API_VERSION.fullmatch(api_version):
        return isinstance(kind, str) or isinstance(value.get("metadata"), dict)
    return kind in _NAMES if isinstance(kind, str) else False


def _is_empty_list(kind: str) -> bool:
    """Whether an object of this kind without items is a list with none, as `items: null`."""
    return kind == "List" or (kind.endswith("List") and kind.removesuffix("List") in _NAMES)


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


def _json_problem(text: Content, error: Exception) -> str:
    offset = _OFFSET.search(str(error))
    if isinstance(error, RecursionError):
        return "nested too deeply to be an object"
    if offset is None:
        return "the JSON ends too early; is the file complete?"
    problem = str(error).removeprefix("JSON is malformed: ").split(" (byte")[0]
    return f"{_line_and_column(text, int(offset[1]))}: not valid JSON: {problem}"


def _described(value: object) -> str:
    if isinstance(value, str):
        return "plain text"
    if isinstance(value, list):
        return "a list"
    return f"just {json.dumps(value, default=str)}"[:40]
