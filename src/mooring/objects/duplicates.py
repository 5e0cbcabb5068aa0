"""The same name twice: which of the objects counts.

Of two objects of one kind and name, a later path replaces what an earlier one brought, as `kubectl
apply` would. In one path, equal objects are one; different ones are alternatives, and the user has to
choose. A Namespace often stands in many files, and the first one counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mooring.objects.documents import Document
from mooring.objects.findings import Findings, listed
from mooring.objects.kinds import Namespace

T = TypeVar("T")


@dataclass(slots=True)
class Entry(Generic[T]):
    """An object and its place in the input."""

    where: str
    obj: T
    #: `Pod shop/web-0`.
    title: str
    #: The file or folder that it was read from; empty if it is part of something else.
    file: str = ""
    #: The position of the path that the user gave.
    argument: int = 0

    @classmethod
    def of(cls, document: Document, obj: T, title: str) -> Entry[T]:
        source = document.source
        if source is None:
            return cls(document.where, obj, title)
        return cls(document.where, obj, title, source.path, source.argument)


def resolved(entries: Iterable[tuple[Hashable, Entry[T]]], findings: Findings) -> list[Entry[T]]:
    """The entries that count, each in the place of the first with its identity."""
    seen: dict[Hashable, Entry[T]] = {}
    replaced: Counter[tuple[str, str]] = Counter()
    alternatives: dict[Hashable, list[Entry[T]]] = {}
    for identity, entry in entries:
        first = seen.setdefault(identity, entry)
        if first is entry or first.obj == entry.obj or isinstance(entry.obj, Namespace):
            continue
        if first.argument != entry.argument:
            replaced[first.file, entry.file] += 1
            seen[identity] = entry
            alternatives.pop(identity, None)
        elif first.file == entry.file:
            line = f"metadata.name: taken by {first.where}; rename or remove one of the two"
            findings.problems.append(f"{entry.where} ({entry.title}): {line}")
        else:
            alternatives.setdefault(identity, [first]).append(entry)
    findings.notes += [
        f"{number:,} object{'s' if number > 1 else ''} of {after} replace{'' if number > 1 else 's'} "
        f"the same in {before}"
        for (before, after), number in replaced.items()
    ]
    _report_alternatives(list(alternatives.values()), findings)
    return list(seen.values())


def _report_alternatives(groups: list[list[Entry[T]]], findings: Findings) -> None:
    """One line for each set of files that hold the same objects."""
    by_files: dict[tuple[str, ...], list[Entry[T]]] = {}
    for group in groups:
        files = tuple(dict.fromkeys(entry.file for entry in group))
        by_files.setdefault(files, []).append(group[0])
    for files, firsts in by_files.items():
        more = f" and {len(firsts) - 1:,} more" if len(firsts) > 1 else ""
        findings.problems.append(
            f"{firsts[0].title}{more}: {len(files)} files have different objects of this name: "
            f"{listed(list(files))}; choose one of them: leave out the others with --exclude "
            f"{files[-1]}, or select objects by their labels with --selector"
        )
