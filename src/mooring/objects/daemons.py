"""DaemonSets: which nodes get a pod, and how the pod is tied to its node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from mooring.objects.node import Node
from mooring.objects.pod import Affinity, NodeAffinity, Pod, PodSpec
from mooring.objects.selectors import (
    NAME_FIELD,
    NodeSelector,
    NodeSelectorTerm,
    SelectorRequirement,
    compile_node_terms,
)
from mooring.objects.taints import Toleration, untolerated

#: The DaemonSet controller adds these tolerations to every daemon pod.
TOLERATIONS = tuple(
    Toleration(key=f"node.kubernetes.io/{key}", operator="Exists", effect=effect)
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
)
#: Added to daemon pods with hostNetwork only.
NETWORK_TOLERATION = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect="NoSchedule"
)


def tolerant(spec: PodSpec) -> PodSpec:
    """Add the tolerations of daemon pods; replace those with another tolerationSeconds."""
    tolerations = list(spec.tolerations)
    network = (NETWORK_TOLERATION,) if spec.host_network else ()
    for added in (*TOLERATIONS, *network):
        for index, each in enumerate(tolerations):
            if replace(each, toleration_seconds=None) == added:
                tolerations[index] = added
                break
        else:
            tolerations.append(added)
    return replace(spec, tolerations=tolerations)


def runs_on(spec: PodSpec, node: Node) -> bool:
    """Whether the DaemonSet wants a pod on the node. The scheduler checks free capacity."""
    return not _refusal(spec, node)


def why_nowhere(spec: PodSpec, nodes: Iterable[Node]) -> list[str]:
    """Why the DaemonSet of this template wants a pod on none of the nodes; empty if it wants one."""
    spec = tolerant(spec)
    refusals = Counter(_refusal(spec, node) for node in nodes)
    if "" in refusals:
        return []
    return [
        f"{number:,} {'node' if number == 1 else 'nodes'} {refusal}"
        for refusal, number in refusals.most_common()
    ]


def _refusal(spec: PodSpec, node: Node) -> str:
    """Why the DaemonSet wants no pod on the node; empty if it wants one."""
    if spec.node_name not in ("", node.name):
        return f"other than {spec.node_name}"
    for key, value in (spec.node_selector or {}).items():
        if node.labels.get(key) != value:
            return f"without the label {key}={value}"
    required = _required(spec)
    if required is not None:
        terms = compile_node_terms(required.node_selector_terms)
        if not any(term.matches(node.labels, node.name) for term in terms):
            return "outside its node affinity"
    taint = untolerated(node.taints, spec.tolerations)
    return "" if taint is None else f"with a taint that it does not tolerate ({taint.key})"


def pinned(spec: PodSpec, node_name: str) -> PodSpec:
    """Replace the template's required node affinity by the name of the chosen node."""
    name = SelectorRequirement(key=NAME_FIELD, operator="In", values=[node_name])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[name])])
    affinity = spec.affinity or Affinity()
    node_affinity = replace(affinity.node_affinity or NodeAffinity(), required=required)
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))


def target(pod: Pod) -> str:
    """The node of a daemon pod, or the node it was created for; "" if unknown."""
    required = _required(pod.spec)
    if pod.node_name or required is None:
        return pod.node_name
    for term in required.node_selector_terms:
        for field in term.match_fields:
            if field.key == NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""


def home(pod: Pod) -> str:
    """The node that the pod is on, or to which it belongs; "" if there is none."""
    return target(pod) if pod.belongs_to_node else pod.node_name


def _required(spec: PodSpec) -> NodeSelector | None:
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return None
    return spec.affinity.node_affinity.required
