"""The conditions of a single pod in an expectation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from mooring.config import Duration
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.selectors import Selector
from mooring.objects.taints import Taint
from mooring.sim.scenarios.view import View


class PodCondition(Protocol):
    """A condition of one pod; `str()` is its text form."""

    def holds(self, view: View, pod: Pod) -> bool: ...
    def __str__(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Placed:
    within_s: float | None = None

    def holds(self, view: View, pod: Pod) -> bool:
        waited_s = view.waited_s(pod)
        return waited_s is not None and (self.within_s is None or waited_s <= self.within_s)

    def __str__(self) -> str:
        return "placed" if self.within_s is None else f"placed within {length(self.within_s)}"


@dataclass(frozen=True, slots=True)
class PendingFor:
    #: A part of the message; upper and lower case do not matter.
    because: str = ""
    plugin: str = ""

    def holds(self, view: View, pod: Pod) -> bool:
        if pod.node_name or pod.finished:
            return False
        pending = view.pending(pod)
        return self.because.lower() in pending.message.lower() and (
            not self.plugin or self.plugin in pending.plugins
        )

    def __str__(self) -> str:
        by = f" by {self.plugin}" if self.plugin else ""
        because = f' because "{self.because}"' if self.because else ""
        return f"pending{by}{because}"


@dataclass(frozen=True, slots=True)
class HasFinished:
    def holds(self, view: View, pod: Pod) -> bool:
        return pod.finished

    def __str__(self) -> str:
        return "finished"


@dataclass(frozen=True, slots=True)
class Exists:
    def holds(self, view: View, pod: Pod) -> bool:
        return True

    def __str__(self) -> str:
        return "exist"


@dataclass(frozen=True, slots=True)
class OnNodes:
    """On a node that has one of the names, the labels and the taint; empty ones match every node."""

    names: tuple[str, ...] = ()
    #: The selector as text, and parsed.
    labels: str = ""
    selector: Selector | None = None
    taint: Taint | None = None
    negated: bool = False

    def holds(self, view: View, pod: Pod) -> bool:
        node = view.node_of(pod)
        return node is not None and self._takes(node) != self.negated

    def _takes(self, node: Node) -> bool:
        return (
            (not self.names or node.name in self.names)
            and (self.selector is None or self.selector.matches(node.labels))
            and (self.taint is None or any(_alike(self.taint, each) for each in node.taints))
        )

    def __str__(self) -> str:
        parts = [] if not self.names else [f"on {_named(self.names)}"]
        if self.labels:
            parts.append(f"on nodes with {self.labels}")
        if self.taint is not None:
            parts.append(f"on nodes with taint {taint_text(self.taint)}")
        return ("not " if self.negated else "") + " and ".join(parts)


def _named(names: tuple[str, ...]) -> str:
    return f"node {names[0]}" if len(names) == 1 else f"nodes {','.join(names)}"


def _alike(wanted: Taint, taint: Taint) -> bool:
    """An empty value or effect matches any."""
    return (
        wanted.key == taint.key
        and wanted.value in ("", taint.value)
        and wanted.effect in ("", taint.effect)
    )


def parse_taint(text: str) -> Taint:
    """`key`, `key=value`, `key:effect` or `key=value:effect`, as kubectl writes them."""
    rest, _, effect = text.partition(":")
    key, _, value = rest.partition("=")
    return Taint(key=key, value=value, effect=effect)


def taint_text(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}" + (f":{taint.effect}" if taint.effect else "")


def length(seconds: float) -> str:
    """`1m30s`."""
    return str(Duration(round(seconds * 1000) * 1_000_000))


def hold_all(conditions: Iterable[PodCondition], view: View, pod: Pod) -> bool:
    return all(condition.holds(view, pod) for condition in conditions)
