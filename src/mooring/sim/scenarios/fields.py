"""Read a YAML document field by field. No field is skipped, and every mistake has its position.

    web.scenario.yaml:14: steps[2].scale.replicas: must be a whole number, not 'many'

`parse_yaml` reads the values, as for manifests. Only if there is a mistake, a second pass finds its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

import yaml

from mooring.config import parse_duration

Path = tuple[str | int, ...]
T = TypeVar("T")


class FieldError(ValueError):
    """What is wrong with one value; the reader of the field adds its position."""


@dataclass(slots=True)
class Source:
    """One document of a file, and its problems."""

    #: The name of the file, as the user gave it.
    name: str
    #: The text of the document; empty if there is none, and then no mistake has a position.
    text: bytes
    #: Its first line in the file.
    first_line: int
    _problems: list[tuple[Path, str]] = field(default_factory=list)

    def wrong(self, path: Path, problem: str) -> None:
        self._problems.append((path, problem))

    @property
    def faultless(self) -> bool:
        return not self._problems

    def problems(self) -> list[str]:
        """One line per problem, in the order in which they were found."""
        if not self.text:
            return [f"{spelled(path)}{problem}" for path, problem in self._problems]
        root = yaml.compose(self.text, Loader=yaml.CSafeLoader) if self._problems else None
        return [
            f"{self.name}:{self.first_line + _line(root, path)}: {spelled(path)}{problem}"
            for path, problem in self._problems
        ]

    def where(self, path: Path) -> str:
        """`web.scenario.yaml:14: steps[2]`, as the start of a line."""
        root = yaml.compose(self.text, Loader=yaml.CSafeLoader)
        return f"{self.name}:{self.first_line + _line(root, path)}: {spelled(path)}".rstrip(": ")


class Fields:
    """A mapping that is read by field name; a field that nothing reads is a mistake."""

    def __init__(self, source: Source, path: Path, value: object) -> None:
        self.source = source
        self.path = path
        self._asked: dict[str, None] = {}
        if not isinstance(value, Mapping):
            source.wrong(path, f"must be a mapping, not {described(value)}")
        self._values: Mapping[str, Any] = value if isinstance(value, Mapping) else {}

    @property
    def given(self) -> list[str]:
        return list(self._values)

    def knows(self, *names: str) -> None:
        """Names that are read elsewhere."""
        self._asked.update(dict.fromkeys(names))

    def read(self, name: str, reader: Callable[[object], T], default: T) -> T:
        """The field, read by `reader`; the default if the field is missing or invalid."""
        self._asked[name] = None
        if name not in self._values:
            return default
        try:
            return reader(self._values[name])
        except FieldError as error:
            self.source.wrong((*self.path, name), str(error))
            return default

    def items(self, name: str) -> list[tuple[Path, Any]]:
        """The entries of a list, each with its path; a single value is a list of one."""
        self._asked[name] = None
        value = self._values.get(name)
        if value is None:
            return []
        if isinstance(value, list):
            return [((*self.path, name, i), each) for i, each in enumerate(value)]
        return [((*self.path, name), value)]

    def is_mapping(self, name: str) -> bool:
        return isinstance(self._values.get(name), Mapping)

    def inner(self, name: str) -> Fields:
        """The field as a mapping."""
        self._asked[name] = None
        return Fields(self.source, (*self.path, name), self._values.get(name))

    def wrong(self, problem: str, name: str = "") -> None:
        self.source.wrong((*self.path, name) if name else self.path, problem)

    def finish(self) -> None:
        """Report the fields that nothing has read."""
        for name in self._values:
            if name not in self._asked:
                hint = (
                    did_you_mean(name, self._asked) or f"; known fields: {', '.join(self._asked)}"
                )
                self.source.wrong((*self.path, name), f"unknown field{hint}")


# Readers of single values


def text(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise FieldError(f"must be text, not {described(value)}")


def whole_number(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise FieldError(f"must be a whole number, not {described(value)}")


def true_or_false(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise FieldError(f"must be true or false, not {described(value)}")


def seconds(value: object) -> float:
    """The seconds of a duration such as `1h30m`, or of a plain number."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return float(value)
    try:
        length = parse_duration(value).seconds if isinstance(value, str) else -1.0
    except ValueError:
        length = -1.0
    if length < 0:
        raise FieldError(f"must be a duration such as 30s or 1h30m, not {described(value)}")
    return length


def described(value: object) -> str:
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return str(value).lower()
    return "nothing" if value is None else repr(value)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'scale'?`, or nothing."""
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


# Positions


def spelled(path: Path) -> str:
    """`steps[2].scale: `; nothing for the document itself."""
    words = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return f"{words.removeprefix('.')}: " if words else ""


def _line(node: yaml.Node | None, path: Path) -> int:
    """The line of the field in the document, or of the nearest field around it."""
    line = node.start_mark.line if node is not None else 0
    for step in path:
        if isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == str(step)]
            if not found:
                return line
            key, node = found[-1]
            line = key.start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            if step >= len(node.value):
                return line
            node = node.value[step]
            line = node.start_mark.line
        else:
            return line
    return line
