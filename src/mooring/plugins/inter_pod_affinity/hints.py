"""Which events may make a pod schedulable that InterPodAffinity refused."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.objects.affinity import AffinityTerm
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import Action, Hint, on_change
from mooring.plugins.inter_pod_affinity.malformed import REQUIRED, REQUIRED_ANTI, is_malformed


def after_pod_change(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
    """Queue the pod if a pod that it needs appears, or if a pod that keeps it away disappears.

    As upstream, terms are matched without the labels of namespaces, and a pod keeps this one away
    only if it matches all anti-affinity terms, though Filter refuses a node for any of them. If
    terms are malformed, the hint cannot tell, and the pod is queued.
    """
    if old is not None and new is not None and new.uid == pod.uid:
        return Hint.QUEUE
    if any(other is not None and not _placed(other) for other in (old, new)):
        return Hint.SKIP
    if is_malformed(pod, REQUIRED, REQUIRED_ANTI):
        return Hint.QUEUE
    affinity = pod.affinity_terms.required_affinity
    anti = pod.affinity_terms.required_anti_affinity
    if old is not None and new is not None:
        appeared = not _matches_all(affinity, old) and _matches_all(affinity, new)
        disappeared = _matches_all(anti, old) and not _matches_all(anti, new)
        return Hint.QUEUE if appeared or disappeared else Hint.SKIP
    if new is not None:
        return Hint.QUEUE if _matches_all(affinity, new) else Hint.SKIP
    if old is None or _matches_all(anti, old) or is_malformed(old, REQUIRED_ANTI):
        return Hint.QUEUE
    theirs = old.affinity_terms.required_anti_affinity
    return Hint.QUEUE if _matches_all(theirs, pod) else Hint.SKIP


def after_node_change(pod: Pod, old: Node | None, new: Node | None) -> Hint:
    """Queue the pod if the node joins a domain of an affinity term, or leaves one of anti-affinity."""
    if new is None or is_malformed(pod, REQUIRED, REQUIRED_ANTI):
        return Hint.QUEUE
    anti_affinity = pod.affinity_terms.required_anti_affinity
    if old is None and anti_affinity:
        return Hint.QUEUE
    old_labels = old.labels if old is not None else {}
    for term in pod.affinity_terms.required_affinity:
        value = new.labels.get(term.topology_key)
        if value is not None and value != old_labels.get(term.topology_key):
            return Hint.QUEUE
    for term in anti_affinity:
        value = old_labels.get(term.topology_key)
        if value is not None and value != new.labels.get(term.topology_key):
            return Hint.QUEUE
    return Hint.SKIP


def _placed(pod: Pod) -> bool:
    return bool(pod.node_name or pod.nominated_node_name)


def _matches_all(terms: Sequence[AffinityTerm], pod: Pod) -> bool:
    """Whether the pod matches every term; False if there are no terms."""
    return bool(terms) and all(term.matches(pod.namespace, pod.labels, {}) for term in terms)


_POD_CHANGES = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
_NODE_CHANGES = Action.ADD | Action.UPDATE_NODE_LABEL

EVENTS = (
    on_change(Pod, _POD_CHANGES, after_pod_change),
    on_change(Node, _NODE_CHANGES, after_node_change),
)
