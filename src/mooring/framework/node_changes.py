"""Changes of a node, and nodes to add, that could make a pod fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from mooring.framework.changes import Change, spelled
from mooring.objects.daemons import pinned
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import (
    Pod,
)
from mooring.objects.well_known import HOSTNAME, UNSCHEDULABLE_TAINT

#: Taints with this prefix describe the state of a node; a new node does not have them.
_STATE_TAINTS = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class NodeChange(Change):
    """A change of one node."""

    node: str

    @property
    def node_name(self) -> str:
        return self.node


@dataclass(frozen=True, slots=True)
class LabelNode(NodeChange):
    """Give a node the labels that the pod asks for."""

    kind: ClassVar[str] = "label-node"
    labels: tuple[tuple[str, str], ...]
    removed: tuple[str, ...] = ()

    @property
    def size(self) -> float:
        return 0.5 * (len(self.labels) + len(self.removed))

    @property
    def text(self) -> str:
        parts = [f"{key}={value}" for key, value in self.labels]
        parts += [f"{key}-" for key in self.removed]
        return f"label node {self.node} {' '.join(parts)}"

    def on_node(self, node: Node) -> Node:
        labels = {k: v for k, v in node.metadata.labels.items() if k not in self.removed}
        return replace(
            node, metadata=replace(node.metadata, labels={**labels, **dict(self.labels)})
        )


@dataclass(frozen=True, slots=True)
class Uncordon(NodeChange):
    """Make a node schedulable again."""

    kind: ClassVar[str] = "uncordon"

    @property
    def size(self) -> float:
        return 0.5

    @property
    def text(self) -> str:
        return f"uncordon node {self.node}"

    def on_node(self, node: Node) -> Node:
        taints = [taint for taint in node.spec.taints if taint.key != UNSCHEDULABLE_TAINT.key]
        return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


@dataclass(frozen=True, slots=True)
class DeclareFeatures(NodeChange):
    """Have the kubelet of a node declare features that the pod needs."""

    kind: ClassVar[str] = "declare-features"
    features: tuple[str, ...]

    @property
    def size(self) -> float:
        return 0.5 * len(self.features)

    @property
    def text(self) -> str:
        word = "feature" if len(self.features) == 1 else "features"
        names = " and ".join(self.features)
        return f"enable the {word} {names} on node {self.node}, whose kubelet does not declare it"

    def on_node(self, node: Node) -> Node:
        declared = [*node.status.declared_features, *self.features]
        return replace(node, status=replace(node.status, declared_features=declared))


@dataclass(frozen=True, slots=True)
class FreeRoom(NodeChange):
    """Evict pods from a node."""

    kind: ClassVar[str] = "free-room"
    #: `namespace/name`, from most to least important.
    victims: tuple[str, ...]
    #: The missing resources, as (resource, amount); empty if the pod needs something else.
    lacking: tuple[tuple[str, int], ...] = ()
    #: The number of victims that a disruption budget protects.
    violations: int = 0

    @property
    def size(self) -> float:
        return 1.0 * len(self.victims) + self.violations

    @property
    def text(self) -> str:
        what = " and ".join(f"{spelled(name, amount)} {name}" for name, amount in self.lacking)
        room = f"free {what} on node {self.node}" if what else f"make room on node {self.node}"
        return f"{room}: evict {', '.join(self.victims)}"

    @property
    def removed_pods(self) -> tuple[str, ...]:
        return self.victims


@dataclass(frozen=True, slots=True)
class AddNodes(Change):
    """Add empty nodes like an existing one, with its DaemonSet and static pods."""

    kind: ClassVar[str] = "add-node"
    like: str
    count: int = 1

    @property
    def size(self) -> float:
        return 2.0 * self.count

    @property
    def text(self) -> str:
        return f"add {'a node' if self.count == 1 else f'{self.count} nodes'} like {self.like}"

    def added(
        self, nodes: Mapping[str, Node], pods: Mapping[str, Sequence[Pod]]
    ) -> list[KubeObject]:
        template = nodes[self.like]
        names = _free_names(self.like, nodes, self.count)
        copies: list[KubeObject] = []
        for name in names:
            copies.append(_copy_of(template, name))
            of_template = pods.get(self.like, ())
            copies += [_pod_copy(pod, name) for pod in of_template if pod.belongs_to_node]
        return copies


def _free_names(like: str, nodes: Mapping[str, Node], count: int) -> list[str]:
    names: list[str] = []
    number = 1
    while len(names) < count:
        name = f"{like}-copy-{number}"
        if name not in nodes:
            names.append(name)
        number += 1
    return names


def _copy_of(node: Node, name: str) -> Node:
    labels = {
        key: name if value == node.name else value for key, value in node.metadata.labels.items()
    }
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    taints = [taint for taint in node.spec.taints if not taint.key.startswith(_STATE_TAINTS)]
    return replace(
        node,
        metadata=replace(node.metadata, name=name, uid=name, labels=labels),
        spec=replace(node.spec, unschedulable=False, taints=taints),
    )


def _pod_copy(pod: Pod, node_name: str) -> Pod:
    name = f"{pod.name}-{node_name}"
    metadata = replace(pod.metadata, name=name, uid=f"{pod.uid}-{node_name}")
    # A pod that is not bound yet is created for the new node.
    spec = replace(pod.spec, node_name=node_name) if pod.node_name else pinned(pod.spec, node_name)
    return replace(pod, metadata=metadata, spec=spec)
