"""The writes of a scheduler to the API server, including Events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_groups import PodGroup

K = TypeVar("K", bound=KubeObject)


@dataclass(frozen=True, slots=True)
class PodStatusPatch:
    """A change of a pod's status; None means no change."""

    condition: PodCondition | None = None
    #: An empty name clears the nomination.
    nominated_node_name: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An Event about a pod (events.k8s.io/v1)."""

    regarding: Pod
    #: Normal or Warning.
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str = ""
    #: The pod or pod group on whose behalf it happened.
    related: Pod | PodGroup | None = None


class ApiWriter(Protocol):
    """The writes of a scheduler. They raise ApiError; only `record_event` never fails."""

    async def bind(self, pod: Pod, node_name: str) -> None: ...
    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None: ...
    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None: ...
    async def delete_pod(self, pod: Pod) -> None: ...
    async def update_object(self, obj: K) -> K:
        """Update an object of a writable kind. Return it as stored, with its new resource version.

        Raises Conflict if the object has changed since it was read.
        """
        ...

    def record_event(self, event: Event) -> None: ...
