"""What the scheduler asks of the outside world: the writes it makes, and the events it tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mooring.objects.pod import Pod, PodCondition
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim


@dataclass(frozen=True, slots=True)
class PodStatusPatch:
    """What to change in a pod's status; None leaves a part as it is."""

    condition: PodCondition | None = None
    #: An empty name takes the nomination back.
    nominated_node_name: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something to tell users of a pod (events.k8s.io/v1)."""

    regarding: Pod
    #: Normal or Warning.
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str = ""
    related: Pod | None = None


class ApiWriter(Protocol):
    """The writes of a scheduler. A failure is raised as ApiError; events never fail."""

    async def bind(self, pod: Pod, node_name: str) -> None: ...
    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None: ...
    async def delete_pod(self, pod: Pod) -> None: ...
    async def update_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """The object as stored, with its new resource version."""
        ...

    async def update_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim: ...
    def record_event(self, event: Event) -> None: ...
