"""The labels that every kubelet gives its node."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from mooring.objects.node import Node
from mooring.objects.well_known import HOSTNAME

OS, ARCH = "kubernetes.io/os", "kubernetes.io/arch"
#: Names of the same from before Kubernetes 1.14. Kubelets still set them, and manifests still select by them.
BETA_OS, BETA_ARCH = "beta.kubernetes.io/os", "beta.kubernetes.io/arch"

_MOST_NAMES = 5


def missing_labels(node: Node) -> dict[str, str]:
    """The labels that a kubelet would have set, and the node lacks."""
    info, labels = node.status.node_info, node.labels
    os = labels.get(OS) or info.operating_system or "linux"
    arch = labels.get(ARCH) or info.architecture or "amd64"
    wanted = {HOSTNAME: node.name, OS: os, ARCH: arch, BETA_OS: os, BETA_ARCH: arch}
    return {key: value for key, value in wanted.items() if key not in node.labels}


def labelled(node: Node) -> Node:
    """The node with the labels that its kubelet would set; the same node if it has them."""
    missing = missing_labels(node)
    if not missing:
        return node
    return replace(node, metadata=replace(node.metadata, labels={**node.labels, **missing}))


def warning(nodes: Sequence[Node]) -> str:
    """One line about all nodes that lack labels; "" if there are none.

    Few people write the labels of old, so that a node lacks them is not told.
    """
    told = (HOSTNAME, OS, ARCH)
    without = {node.name: missing_labels(node).keys() & set(told) for node in nodes}
    names = [name for name, missing in without.items() if missing]
    if not names:
        return ""
    keys = [key for key in told if any(key in each for each in without.values())]
    more = len(names) - _MOST_NAMES
    shown = ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
    lack = "node lacks" if len(names) == 1 else "nodes lack"
    return (
        f"{len(names):,} {lack} labels that every kubelet sets ({', '.join(keys)}); mooring sets"
        f" them as the kubelet does: {shown}"
    )
