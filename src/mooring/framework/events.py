"""What happens in a cluster, as the queue and the plugins' queueing hints see it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum

from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod


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
    """Whose event it is.

    Every kind with events (`objects.kinds.KINDS`) has a member, and so have some that mooring does not read.
    """

    POD = "Pod"
    #: Only ever incoming: a pod that has a node, and one that does not. Both match POD.
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
    """An action on a resource: one that happened, or one that a plugin asks to hear of."""

    resource: EventResource
    action: Action
    custom_label: str = ""

    @property
    def label(self) -> str:
        """How metrics and logs call it."""
        if self.custom_label:
            return self.custom_label
        return f"{self.resource}{_ACTION_LABELS.get(self.action, 'Update')}"

    @property
    def wildcard(self) -> bool:
        return self.resource == EventResource.WILDCARD and self.action == Action.ALL

    def covers(self, incoming: ClusterEvent) -> bool:
        """Whether a plugin that registered this event is to hear of one that happened.

        A generic Update does not satisfy a narrower registration, hence the comparison of actions.
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


def _same(registered: EventResource, incoming: EventResource) -> bool:
    return registered in (incoming, EventResource.WILDCARD) or (
        registered == EventResource.POD
        and incoming in (EventResource.ASSIGNED_POD, EventResource.UNSCHEDULABLE_POD)
    )


class Hint(IntEnum):
    """What a plugin thinks of trying a pod again after an event."""

    SKIP = 0
    QUEUE = 1


#: Called with the waiting pod and the object before and after the event; either may be None.
HintFunction = Callable[[Pod, KubeObject | None, KubeObject | None], Hint]


@dataclass(frozen=True, slots=True)
class EventWithHint:
    """An event that may make a pod schedulable; without a hint function it always may."""

    event: ClusterEvent
    hint: HintFunction | None = None


#: Events that concern every waiting pod, or the one pod they name.
UNSCHEDULABLE_TIMEOUT = ClusterEvent(EventResource.WILDCARD, Action.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, Action.ALL, "ForceActivate")

#: A plugin hears of these only if it says so: the reference's list of default events leaves them out.
_ONLY_IF_REGISTERED = (
    EventResource.ASSIGNED_POD,
    EventResource.UNSCHEDULABLE_POD,
    EventResource.VOLUME_ATTACHMENT,
    EventResource.RESOURCE_SLICE,
    EventResource.POD_GROUP,
    EventResource.WILDCARD,
)

#: What a plugin hears of that does not say what it wants to hear of.
DEFAULT_EVENTS = tuple(
    ClusterEvent(resource, Action.ALL)
    for resource in EventResource
    if resource not in _ONLY_IF_REGISTERED
)
