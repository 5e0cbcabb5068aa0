"""What an update of a pod or a node was about, as the events that plugins register for.

An event is as specific as the update allows, so that only the plugins wake that care. A pod's
update always makes an event, if only the generic one; a node's update that changes nothing a rule
looks at makes none.
"""

from __future__ import annotations

from mooring.framework.events import Action, ClusterEvent, EventResource
from mooring.objects.node import Node
from mooring.objects.pod import Pod


def pod_change_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """At least one event, of the resource that the pod has become: assigned, or still waiting."""
    resource = EventResource.ASSIGNED_POD if new.node_name else EventResource.UNSCHEDULABLE_POD
    actions = _pod_changes(old, new) or [Action.UPDATE]
    return [ClusterEvent(resource, action) for action in actions]


def node_change_events(old: Node, new: Node) -> list[ClusterEvent]:
    """None at all for a heartbeat."""
    return [ClusterEvent(EventResource.NODE, action) for action in _node_changes(old, new)]


def _pod_changes(old: Pod, new: Pod) -> list[Action]:
    actions = []
    if old.labels != new.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if _asks_for_less(old, new):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    # The API lets users add tolerations and nothing else, so their number says it all.
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if old.status.resource_claim_statuses != new.status.resource_claim_statuses:
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return actions


def _asks_for_less(old: Pod, new: Pod) -> bool:
    """Of any resource, resizes in progress included; compared in thousandths."""
    after = new.held_resources
    return any(
        name not in after or quantity.milli_value > after[name].milli_value
        for name, quantity in old.held_resources.items()
    )


def _node_changes(old: Node, new: Node) -> list[Action]:
    actions = []
    # A cordon is a taint to the rules. Setting one frees nothing, so only its end is an event.
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
