"""Which labels would make a node match a pod's node selector and required node affinity."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.selectors import NAME_FIELD, NodeSelectorTerm, compile_requirement
from mooring.objects.well_known import HOSTNAME, REGION, ZONE
from mooring.plugin.changes import LabelNode

#: Labels that say what a machine is and where it stands. Nobody changes them to make a pod fit.
_OF_THE_MACHINE = frozenset(
    (HOSTNAME, ZONE, REGION, "kubernetes.io/arch", "kubernetes.io/os")
    + ("node.kubernetes.io/instance-type", "beta.kubernetes.io/arch", "beta.kubernetes.io/os")
    + ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
)


def labellings(pod: Pod, nodes: Iterable[Node | None]) -> list[LabelNode]:
    """One for each set of labels that would help somewhere; the fewest labels first."""
    changes = [
        change
        for node in nodes
        if node is not None and (change := labels_needed(pod, node)) is not None
    ]
    changes.sort(key=lambda change: (change.size, change.node))
    of_each = {(change.labels, change.removed): change for change in reversed(changes)}
    return sorted(of_each.values(), key=lambda change: (change.size, change.node))


def labels_needed(pod: Pod, node: Node) -> LabelNode | None:
    """The labels that would make the node match; None if labels alone cannot."""
    labels = node.metadata.labels
    wanted = {
        key: value
        for key, value in (pod.spec.node_selector or {}).items()
        if labels.get(key) != value
    }
    removed: frozenset[str] = frozenset()
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    if affinity is not None and affinity.required is not None:
        terms = affinity.required.node_selector_terms
        ways = [way for term in terms if (way := _to_match(term, node)) is not None]
        if not ways:
            return None
        more, removed = min(ways, key=lambda way: len(way[0]) + len(way[1]))
        wanted |= more
    changed = wanted.keys() | removed
    if not changed or any(key in _OF_THE_MACHINE for key in changed):
        return None
    return LabelNode(node.name, tuple(sorted(wanted.items())), tuple(sorted(removed)))


def _to_match(term: NodeSelectorTerm, node: Node) -> tuple[dict[str, str], frozenset[str]] | None:
    wanted: dict[str, str] = {}
    removed: set[str] = set()
    for line in term.match_fields:
        if line.key != NAME_FIELD or (node.name in line.values) != (line.operator == "In"):
            return None
    for line in term.match_expressions:
        try:
            requirement = compile_requirement(line.key, line.operator, tuple(line.values))
        except ValueError:
            return None
        if requirement.matches(node.metadata.labels):
            continue
        match line.operator:
            case "In":
                wanted[line.key] = line.values[0]
            case "Exists":
                wanted[line.key] = "true"
            case "Gt":
                wanted[line.key] = str(int(line.values[0]) + 1)
            case "Lt":
                wanted[line.key] = str(int(line.values[0]) - 1)
            case _:
                removed.add(line.key)
    return (wanted, frozenset(removed)) if term.match_expressions or term.match_fields else None
