"""Find the line of a field in a text, so that the editor can mark problems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

#: A field as problems name it: `profiles[0].plugins.score`.
_PATH = re.compile(r"([A-Za-z_]\S*): (.*)", re.DOTALL)
_PART = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
#: `manifests: document 2 (Pod shop/web-0): `, the start of a problem with an object.
_DOCUMENT = re.compile(r"manifests(?:: document (\d+))?(?: \(\S+(?: \S+)?\))?: (.*)", re.DOTALL)
_LINE = re.compile(r"\bline (\d+)")
#: The line is shown before the problem, so it need not begin with it.
_AT_LINE = re.compile(r"^line \d+(?:, column \d+)?: ")
#: A plugin in a list that also has the default plugins: its index is not that in the text.
_NAMED = re.compile(r"(.*)\[\d+\]\.name")
_NAME = re.compile(r'Not found: "([^"]*)"')


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a text."""

    text: str
    #: The field; "" if the problem concerns no field.
    path: str = ""
    #: Counted from 1; None if unknown.
    line: int | None = None

    def to_data(self) -> dict[str, Any]:
        return {"path": self.path, "line": self.line, "text": self.text}


def located(problems: list[str] | tuple[str, ...], text: str) -> list[Problem]:
    """The problems of a ConfigError or InputError, each with its line in the text."""
    try:
        documents = list(_composed(text))
    except (yaml.YAMLError, RecursionError, ValueError):
        documents = []
    return [_located(problem, documents) for problem in problems]


def _composed(text: str) -> Iterator[yaml.Node]:
    for node in yaml.compose_all(text, Loader=yaml.CSafeLoader):
        # The readers do not count documents that have only comments.
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
        return Problem(_AT_LINE.sub("", text, count=1), path, int(said[1]))
    if number >= len(documents):
        return Problem(text, path)
    path = _as_written(documents[number], path, text)
    return Problem(text, path, _line(documents[number], path))


def _as_written(node: yaml.Node, path: str, text: str) -> str:
    """The path with the index that a misspelt plugin has in the text."""
    listed, named = _NAMED.fullmatch(path), _NAME.match(text)
    if listed is None or named is None:
        return path
    found: yaml.Node | None = node
    for index, name in _PART.findall(listed[1]):
        step = _step(found, index, name) if found is not None else None
        found = step[1] if step is not None else None
    for i, item in enumerate(found.value if isinstance(found, yaml.SequenceNode) else ()):
        step = _step(item, "", "name")
        if step is not None and step[1].value == named[1]:
            return f"{listed[1]}[{i}].name"
    return path


def _line(node: yaml.Node, path: str) -> int:
    """The line of the field, or of the nearest enclosing field that exists."""
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
