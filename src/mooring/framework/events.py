"""Cluster events, as the queue and queueing hints see them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag, StrEnum
from typing import TypeVar, cast

from mooring.errors import PluginError
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

K = TypeVar("K", bound=KubeObject)


class Action(IntFlag):
    """What happened to an object; updates say what changed."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


class EventResource(StrEnum):
    """The kind of object that a cluster event is about.

    Every kind with events in `objects.kinds.KINDS` has a member. Some members are kinds that
    mooring does not read.
    """

    POD = "Pod"
    #: A pod with a node, and a pod without one. Both match POD, which plugins register for.
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULABLE_POD = "UnschedulablePod"
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    POD_GROUP = "scheduling.k8s.io/PodGroup"
    WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """An action on an object: one that happened, or one that a plugin registers for."""

    #: A member of EventResource, or the `Kind.event_resource` of a kind that a plugin declares.
    resource: str
    action: Action
    custom_label: str = ""
    #: The name in metrics and logs. This and the following are worked out once: there are few events, and
    #: several of them are looked up for each pod.
    label: str = field(init=False, repr=False, compare=False)
    wildcard: bool = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        label = self.custom_label or f"{self.resource}{_ACTION_LABELS.get(self.action, 'Update')}"
        wildcard = self.resource == EventResource.WILDCARD and self.action == Action.ALL
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "wildcard", wildcard)
        object.__setattr__(self, "_hash", hash((self.resource, self.action, self.custom_label)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[ClusterEvent], tuple[str, Action, str]]:
        # In another process the hash is another one.
        return ClusterEvent, (self.resource, self.action, self.custom_label)

    def covers(self, incoming: ClusterEvent) -> bool:
        """Whether a plugin that registered this event gets the incoming event.

        A generic Update does not match a narrower registration, so actions are compared.
        """
        if self.wildcard:
            return True
        return (
            _same(self.resource, incoming.resource)
            and bool(self.action & incoming.action)
            and incoming.action <= self.action
        )


_ACTION_LABELS = {
    Action.ADD: "Add",
    Action.DELETE: "Delete",
    Action.UPDATE_NODE_ALLOCATABLE: "UpdateNodeAllocatable",
    Action.UPDATE_NODE_LABEL: "UpdateNodeLabel",
    Action.UPDATE_NODE_TAINT: "UpdateNodeTaint",
    Action.UPDATE_NODE_CONDITION: "UpdateNodeCondition",
    Action.UPDATE_NODE_ANNOTATION: "UpdateNodeAnnotation",
    Action.UPDATE_NODE_DECLARED_FEATURE: "UpdateNodeDeclaredFeature",
    Action.UPDATE_POD_LABEL: "UpdatePodLabel",
    Action.UPDATE_POD_SCALE_DOWN: "UpdatePodScaleDown",
    Action.UPDATE_POD_TOLERATION: "UpdatePodToleration",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "UpdatePodSchedulingGatesEliminated",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "UpdatePodGeneratedResourceClaim",
    Action.UPDATE: "Update",
    Action.ALL: "All",
}


def _same(registered: str, incoming: str) -> bool:
    return registered in (incoming, EventResource.WILDCARD) or (
        registered == EventResource.POD
        and incoming in (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD)
    )


class Hint(IntEnum):
    """The answer of a queueing hint: whether to try the pod again after an event."""

    SKIP = 0
    QUEUE = 1


#: Called with the waiting pod and the object before and after the event; either may be None.
HintFunction = Callable[[Pod, KubeObject | None, KubeObject | None], Hint]


@dataclass(frozen=True, slots=True)
class EventWithHint:
    """An event that may make a pod schedulable; without a hint function, it always may."""

    event: ClusterEvent
    hint: HintFunction | None = None


# Events of a kind of objects, with a hint that gets objects of this kind. Whether one of them may be None
# follows from the actions; type checkers compare the hint with that.


def on_change(
    kind: type[K],
    actions: Action,
    hint: Callable[[Pod, K | None, K | None], Hint] | None = None,
) -> EventWithHint:
    """Any actions: `old` is None for an object that is added, `new` for one that is deleted."""
    return EventWithHint(ClusterEvent(resource_of(kind), actions), cast(HintFunction, hint))


def on_add_or_update(
    kind: type[K], actions: Action, hint: Callable[[Pod, K | None, K], Hint]
) -> EventWithHint:
    """No deletions: `new` is always there."""
    _check(not actions & Action.DELETE, "on_add_or_update", actions)
    return EventWithHint(ClusterEvent(resource_of(kind), actions), cast(HintFunction, hint))


def on_update(kind: type[K], actions: Action, hint: Callable[[Pod, K, K], Hint]) -> EventWithHint:
    """Updates only: `old` and `new` are always there."""
    _check(not actions & (Action.ADD | Action.DELETE), "on_update", actions)
    return EventWithHint(ClusterEvent(resource_of(kind), actions), cast(HintFunction, hint))


def on_update_or_delete(
    kind: type[K], actions: Action, hint: Callable[[Pod, K, K | None], Hint]
) -> EventWithHint:
    """No additions: `old` is always there."""
    _check(not actions & Action.ADD, "on_update_or_delete", actions)
    return EventWithHint(ClusterEvent(resource_of(kind), actions), cast(HintFunction, hint))


def on_delete(kind: type[K], hint: Callable[[Pod, K, K | None], Hint]) -> EventWithHint:
    """Deletions only: `old` is always there, `new` never is."""
    return on_update_or_delete(kind, Action.DELETE, hint)


def resource_of(kind: type[KubeObject]) -> EventResource:
    """Raises PluginError for a kind without events."""
    found = _RESOURCES.get(kind.__name__)
    if found is None:
        kinds = ", ".join(sorted(_RESOURCES))
        raise PluginError(f"there are no events of {kind.__name__}; choose one of {kinds}")
    return found


_RESOURCES = {
    resource.rpartition("/")[2]: resource
    for resource in EventResource
    if resource
    not in (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD, EventResource.WILDCARD)
}


def _check(allowed: bool, helper: str, actions: Action) -> None:
    if not allowed:
        raise PluginError(f"{helper} is not for {actions!r}; use on_change")


#: Events for all waiting pods, or for the one pod that they name.
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, Action.ALL, "ForceActivate")
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE)

#: The default events of the reference do not include these: a plugin must register for them.
_ONLY_IF_REGISTERED = (
    EventResource.ASSIGNED_POD,
    EventResource.UNSCHEDULABLE_POD,
    EventResource.VOLUME_ATTACHMENT,
    EventResource.RESOURCE_SLICE,
    EventResource.POD_GROUP,
    EventResource.WILDCARD,
)

#: The events for plugins that do not register any.
DEFAULT_EVENTS = tuple(
    ClusterEvent(resource, Action.ALL)
    for resource in EventResource
    if resource not in _ONLY_IF_REGISTERED
)
