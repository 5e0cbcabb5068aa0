"""The cluster events that follow from an update of a pod or a node.

Events are as specific as possible, so that only the plugins that need them are asked. An update of
a pod always gives at least the generic event. An update of a node gives none if no plugin reads
what changed.
"""

from __future__ import annotations

from mooring.framework.events import Action, ClusterEvent, EventResource
from mooring.objects.node import Node
from mooring.objects.pod import Pod


def pod_change_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """The events of an updated pod, at least one: for an assigned or an unscheduled pod."""
    resource = EventResource.ASSIGNED_POD if new.node_name else EventResource.UNSCHEDULABLE_POD
    actions = _pod_changes(old, new) or [Action.UPDATE]
    return [ClusterEvent(resource, action) for action in actions]


def node_change_events(old: Node, new: Node) -> list[ClusterEvent]:
    """The events of an updated node; none for a heartbeat."""
    return [ClusterEvent(EventResource.NODE, action) for action in _node_changes(old, new)]


def _pod_changes(old: Pod, new: Pod) -> list[Action]:
    actions = []
    if old.labels != new.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if _asks_for_less(old, new):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # The API only lets users add tolerations, so it is enough to compare their number.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if (
        old.status.resource_claim_statuses != new.status.resource_claim_statuses
        or old.status.extended_resource_claim_status != new.status.extended_resource_claim_status
    ):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return actions


def _asks_for_less(old: Pod, new: Pod) -> bool:
    """Whether the pod holds less of any resource, including resizes in progress, in thousandths."""
    before, after = old.held_resources, new.held_resources
    if before is after:
        # Two versions of a pod share what they hold (`objects.shared_parts`).
        return False
    return any(
        name not in after or quantity.milli_value > after[name].milli_value
        for name, quantity in before.items()
    )


def _node_changes(old: Node, new: Node) -> list[Action]:
    actions = []
    # Plugins see a cordon as a taint. Only uncordoning can help a pod.
    if old.spec.unschedulable and not new.spec.unschedulable:
        actions.append(Action.UPDATE_NODE_TAINT)
    if old.status.allocatable != new.status.allocatable:
        actions.append(Action.UPDATE_NODE_ALLOCATABLE)
    if old.labels != new.labels:
        actions.append(Action.UPDATE_NODE_LABEL)
    if old.spec.taints != new.spec.taints:
        actions.append(Action.UPDATE_NODE_TAINT)
    if _condition_statuses(old) != _condition_statuses(new):
        actions.append(Action.UPDATE_NODE_CONDITION)
    if old.metadata.annotations != new.metadata.annotations:
        actions.append(Action.UPDATE_NODE_ANNOTATION)
    if old.status.declared_features != new.status.declared_features:
        actions.append(Action.UPDATE_NODE_DECLARED_FEATURE)
    return actions


def _condition_statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
