"""On which line of a text a field stands, so that an editor can point to what is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

#: A field as problems name it: `profiles[0].plugins.score`.
_PATH = re.compile(r"([A-Za-z_]\S*): (.*)", re.DOTALL)
_PART = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
#: `standard input: document 2 (Pod shop/web-0): `, which begins a line about an object.
_DOCUMENT = re.compile(
    r"standard input(?:: document (\d+))?(?: \(\S+(?: \S+)?\))?: (.*)", re.DOTALL
)
_LINE = re.compile(r"\bline (\d+)")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a text."""

    text: str
    #: The field; "" if it is about no field.
    path: str = ""
    #: From 1; None if it is not known.
    line: int | None = None

    def to_data(self) -> dict[str, Any]:
        return {"path": self.path, "line": self.line, "text": self.text}


def located(problems: list[str] | tuple[str, ...], text: str) -> list[Problem]:
    """The lines of a ConfigError or InputError about this text, each with its place in it."""
    try:
        documents = list(_composed(text))
    except (yaml.YAMLError, RecursionError, ValueError):
        documents = []
    return [_located(problem, documents) for problem in problems]


def _composed(text: str) -> Iterator[yaml.Node]:
    for node in yaml.compose_all(text, Loader=yaml.CSafeLoader):
        # A document of nothing but comments is not counted by those who read it either.
        if node is not None and not node.tag.endswith(":null"):
            yield node


def _located(problem: str, documents: list[yaml.Node]) -> Problem:
    number = 0
    in_document = _DOCUMENT.match(problem)
    if in_document is not None:
        number = int(in_document[1] or 1) - 1
        problem = in_document[2]
    at_path = _PATH.match(problem)
    path, text = (at_path[1], at_path[2]) if at_path is not None else ("", problem)
    said = _LINE.search(problem)
    if said is not None:
        return Problem(text, path, int(said[1]))
    if number >= len(documents):
        return Problem(text, path)
    return Problem(text, path, _line(documents[number], path))


def _line(node: yaml.Node, path: str) -> int:
    """Of the field, or of the nearest one around it that is there."""
    line = node.start_mark.line
    for index, name in _PART.findall(path):
        found = _step(node, index, name)
        if found is None:
            break
        line, node = found
    return int(line) + 1


def _step(node: yaml.Node, index: str, name: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode):
        if index.isdigit() and int(index) < len(node.value):
            item = node.value[int(index)]
            return item.start_mark.line, item
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == (name or index):
                return key.start_mark.line, value
    return None
