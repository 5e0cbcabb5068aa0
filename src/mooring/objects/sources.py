"""Find what to read: files, the files of folders, kustomizations and charts, standard input."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from mooring.objects.findings import CHART, Findings, is_file
from mooring.objects.large_texts import Content, read_content
from mooring.objects.rendering import (
    Rendered,
    kustomization_in,
    outermost,
    render_charts,
    render_kustomizations,
)

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz")

_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Source:
    """One text to read."""

    #: The file, the rendered folder, or `-`.
    path: str
    #: The position of the path that the user gave. Objects of a later one replace earlier ones.
    argument: int
    #: Whether the user gave this path; else it was found in a folder.
    named: bool
    #: What a program made of a folder, or what standard input held.
    text: bytes | None = None

    @property
    def name(self) -> str:
        """How messages name it."""
        return "standard input" if self.path == STDIN else self.path

    @property
    def size(self) -> int:
        if self.text is not None:
            return len(self.text)
        try:
            return Path(self.path).stat().st_size
        except OSError:
            return 0

    @property
    def is_json(self) -> bool:
        return self.path.lower().endswith((".json", ".json.gz"))

    def read(self, findings: Findings) -> Content | None:
        text = self.text if self.text is not None else _read(self.path, findings)
        if text is None or text[: len(_GZIP)] != _GZIP:
            return text
        try:
            return gzip.decompress(text)
        except (OSError, EOFError, zlib.error) as error:
            findings.problems.append(f"{self.name}: cannot be decompressed: {error}")
            return None


def find_sources(
    paths: Sequence[str | Path],
    findings: Findings,
    *,
    exclude: Sequence[str] = (),
    stdin: IO[bytes] | None = None,
) -> list[Source]:
    """What to read, in order and each file once. Folders are searched and rendered."""
    found: dict[str, Source] = {}
    for argument, path in enumerate(map(str, paths)):
        if path == STDIN:
            if STDIN not in found:
                text = (stdin or sys.stdin.buffer).read()
                found[STDIN] = Source(STDIN, argument, named=True, text=text)
        elif Path(path).is_dir():
            for source in _Folder(path, argument, exclude).sources(findings):
                found.setdefault(os.path.realpath(source.path), source)
        elif not _matches(path, Path(path).name, exclude):
            found.setdefault(os.path.realpath(path), Source(path, argument, named=True))
    return list(found.values())


class _Folder:
    """A folder that the user gave."""

    def __init__(self, path: str, argument: int, exclude: Sequence[str]) -> None:
        self._path = path
        self._argument = argument
        self._exclude = exclude
        self._files: list[str] = []
        self._charts: list[str] = []
        self._kustomizations: list[str] = []
        self._left_out = 0

    def sources(self, findings: Findings) -> Iterator[Source]:
        if is_file(Path(self._path) / CHART):
            yield from self._rendered(render_charts([self._path], findings))
            return
        if kustomization_in(self._path) is not None:
            yield from self._rendered(render_kustomizations([self._path], findings))
            return
        self._search(findings)
        roots, included = outermost(self._kustomizations)
        if not (self._files or self._charts or self._kustomizations or self._left_out):
            findings.problems.append(f"{self._path}: the folder holds no .yaml, .yml or .json file")
        for file in self._files:
            if _is_a_file(file, findings) and (
                not included or os.path.realpath(file) not in included
            ):
                yield Source(file, self._argument, named=False)
        charts = [each for each in self._charts if os.path.realpath(each) not in included]
        yield from self._rendered(render_charts(charts, findings))
        yield from self._rendered(render_kustomizations(roots, findings))

    def _rendered(self, rendered: Sequence[Rendered]) -> Iterator[Source]:
        for each in rendered:
            yield Source(each.folder, self._argument, named=True, text=each.text)

    def _search(self, findings: Findings) -> None:
        def cannot_list(error: OSError) -> None:
            findings.problems.append(f"{error.filename}: cannot be read: {error.strerror}")

        for directory, folders, files in os.walk(self._path, onerror=cannot_list):
            folders[:] = sorted(name for name in folders if self._wants(directory, name))
            if CHART in files:
                self._charts.append(directory)
                folders.clear()
                continue
            if kustomization_in(directory) is not None:
                self._kustomizations.append(directory)
            # What lies in the folder of a kustomization is its business, but another kustomization
            # further down may include it.
            if self._is_inside_kustomization(directory):
                continue
            for name in sorted(files):
                if name.lower().endswith(SUFFIXES) and self._wants(directory, name):
                    self._files.append(str(Path(directory) / name))

    def _wants(self, directory: str, name: str) -> bool:
        if name.startswith("."):
            return False
        path = str(Path(directory) / name)
        relative = os.path.relpath(path, self._path)
        if _matches(relative, name, self._exclude) or _matches(path, name, self._exclude):
            self._left_out += 1
            return False
        return True

    def _is_inside_kustomization(self, directory: str) -> bool:
        return any(
            Path(directory) == Path(each) or Path(each) in Path(directory).parents
            for each in self._kustomizations
        )


def _is_a_file(path: str, findings: Findings) -> bool:
    """Whether to read this entry of a folder. Whether it may be read turns out when it is read."""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        findings.broken_links.append(path)
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            findings.broken_links.append(path)
            return False
        return True
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        findings.special_files.append(path)
    return stat.S_ISREG(mode)


def _matches(path: str, name: str, globs: Sequence[str]) -> bool:
    """`*` also matches `/`; a folder is meant with all that it holds."""
    return any(
        fnmatchcase(path, glob)
        or fnmatchcase(name, glob)
        or fnmatchcase(f"{path}/", glob)
        or path.startswith(f"{glob.rstrip('/')}/")
        for glob in globs
    )


def _read(path: str, findings: Findings) -> Content | None:
    try:
        return read_content(path)
    except FileNotFoundError:
        findings.problems.append(f"{path}: no such file or folder; check the path")
    except OSError as error:
        findings.problems.append(f"{path}: cannot be read: {error.strerror or error}")
    return None
