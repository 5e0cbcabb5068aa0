"""Pods on nodes that are gone: a dump can have them for a while."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mooring.objects.duplicates import Entry
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod


@dataclass(frozen=True, slots=True)
class LostPods:
    """Pods that name a node which was not read."""

    #: All of them; none if no node was read at all.
    entries: list[Entry[KubeObject]]
    #: Whether pods name nodes and no node was read.
    no_nodes: bool

    def warnings(self) -> Iterator[str]:
        """A line for each node whose pods have a controller, which replaces them."""
        gone = Counter(
            entry.obj.node_name
            for entry in self.entries
            if isinstance(entry.obj, Pod) and entry.obj.metadata.controller is not None
        )
        for node, number in gone.items():
            pods = f"{number:,} pods are" if number > 1 else "1 pod is"
            yield f"{pods} on Node {node!r}, which was not read, and left out"

    def refusals(self) -> Iterator[tuple[Entry[KubeObject], str]]:
        """The pods that nothing replaces, each with the reason."""
        for entry in self.entries:
            if isinstance(entry.obj, Pod) and entry.obj.metadata.controller is None:
                node = entry.obj.node_name
                yield (
                    entry,
                    f"spec.nodeName: there is no Node {node!r}; add it, or leave this out",
                )


def find_lost_pods(
    entries: Sequence[Entry[KubeObject]], among: Iterable[KubeObject], broken: Iterable[str]
) -> LostPods:
    """`broken` are the names of nodes that were read and are unusable."""
    nodes = {entry.obj.name for entry in entries if isinstance(entry.obj, Node)}
    nodes |= {obj.name for obj in among if isinstance(obj, Node)}
    nodes |= set(broken)
    if "" in nodes:
        return LostPods([], no_nodes=False)
    lost = [entry for entry in entries if _is_bound_elsewhere(entry.obj, nodes)]
    return LostPods(lost, no_nodes=bool(lost) and not nodes)


def _is_bound_elsewhere(obj: KubeObject, nodes: set[str]) -> bool:
    """Whether the pod is on an unknown node; finished and terminating pods may be."""
    return (
        isinstance(obj, Pod)
        and bool(obj.node_name)
        and obj.node_name not in nodes
        and not obj.finished
        and not obj.terminating
    )
