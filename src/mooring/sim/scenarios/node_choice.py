"""The nodes of a step: `a-1`, `zone zone-a`, `nodes with pool=gpu`, or a list of names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mooring.errors import InputError
from mooring.objects.node import Node
from mooring.objects.selectors import Selector
from mooring.objects.well_known import ZONE
from mooring.sim.scenarios.fields import FieldError, described, did_you_mean
from mooring.sim.scenarios.selector_text import parse_selector


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """Nodes by name or by labels."""

    text: str
    names: tuple[str, ...] = ()
    selector: Selector | None = None

    def among(self, nodes: Iterable[Node]) -> list[Node]:
        """Raises InputError if there is no such node."""
        known = {node.name: node for node in nodes}
        for name in self.names:
            if name not in known:
                hint = did_you_mean(name, known)
                raise InputError([f"there is no node {name!r}{hint}"])
        if self.selector is None:
            return [known[name] for name in self.names]
        found = [node for node in known.values() if self.selector.matches(node.labels)]
        if not found:
            raise InputError([f"no node matches: {self.text}"])
        return found


def parse_nodes(value: object) -> NodeChoice:
    """Raises FieldError."""
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return NodeChoice(", ".join(value), names=tuple(value))
    if isinstance(value, dict) and len(value) == 1:
        ((kind, name),) = value.items()
        if kind in ("node", "zone", "labels"):
            word = {"labels": "nodes with"}.get(kind, kind)
            return parse_nodes(f"{word} {name}")
    if isinstance(value, str) and value:
        return _parsed(value)
    raise FieldError(
        "must be a node's name, a list of names, 'zone NAME' or 'nodes with SELECTOR',"
        f" not {described(value)}"
    )


def _parsed(text: str) -> NodeChoice:
    words = text.split(None, 2)
    match words:
        case [name] | ["node", name]:
            return NodeChoice(name, names=(name,))
        case ["zone", name]:
            return NodeChoice(f"zone {name}", selector=parse_selector(f"{ZONE}={name}"))
        case ["nodes", "with", selector]:
            return NodeChoice(f"nodes with {selector}", selector=parse_selector(selector))
    raise FieldError(f"{text!r} is not a node's name, 'zone NAME' or 'nodes with SELECTOR'")
