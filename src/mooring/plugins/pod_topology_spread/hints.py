"""Which events may make a pod schedulable that PodTopologySpread refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugin import Action, EventWithHint, Hint, on_change
from mooring.plugins.pod_topology_spread.constraints import HARD, PodConstraints

_POD_CHANGES = Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE
_NODE_CHANGES = Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT


@dataclass(frozen=True, slots=True)
class Hints:
    constraints: PodConstraints

    def events(self) -> Sequence[EventWithHint]:
        return (
            on_change(Pod, _POD_CHANGES, self.after_pod_change),
            on_change(Node, _NODE_CHANGES, self.after_node_change),
        )

    def after_pod_change(self, pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        """Queue the pod if the change adds a pod to the count of a constraint, or removes one."""
        if any(other is not None and not _involved(other, pod) for other in (old, new)):
            return Hint.SKIP
        try:
            constraints = self.constraints.of(pod, HARD)
        except ValueError:
            return Hint.QUEUE
        selectors = [constraint.selector for constraint in constraints]
        if old is not None and new is not None:
            if (
                new.uid == pod.uid
                and new.spec.tolerations != old.spec.tolerations
                and any(constraint.honors_taints for constraint in constraints)
            ):
                return Hint.QUEUE
            changed = any(s.matches(old.labels) != s.matches(new.labels) for s in selectors)
            return Hint.QUEUE if changed else Hint.SKIP
        only = new or old
        matched = only is not None and any(s.matches(only.labels) for s in selectors)
        return Hint.QUEUE if matched else Hint.SKIP

    def after_node_change(self, pod: Pod, old: Node | None, new: Node | None) -> Hint:
        """Queue the pod if the domains of a node that counts change, or the node's taints."""
        try:
            keys = [constraint.topology_key for constraint in self.constraints.of(pod, HARD)]
        except ValueError:
            return Hint.QUEUE
        counted_before = old is not None and _has_all(old.labels, keys)
        counts_after = new is not None and _has_all(new.labels, keys)
        if old is None or new is None:
            return Hint.QUEUE if counted_before or counts_after else Hint.SKIP
        if counted_before != counts_after:
            return Hint.QUEUE
        changed = old.taints != new.taints or any(
            old.labels.get(key) != new.labels.get(key) for key in keys
        )
        return Hint.QUEUE if counts_after and changed else Hint.SKIP


def _involved(other: Pod, pod: Pod) -> bool:
    """Whether a change of the other pod can matter: it is the pod, or placed in its namespace."""
    return other.uid == pod.uid or (
        bool(other.node_name or other.nominated_node_name) and other.namespace == pod.namespace
    )


def _has_all(labels: Mapping[str, str], keys: Sequence[str]) -> bool:
    return all(key in labels for key in keys)
