"""What the scheduler asks of the outside world: the writes it makes, and the events it tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition

K = TypeVar("K", bound=KubeObject)


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
    async def update_object(self, obj: K) -> K:
        """Change an object of a writable kind. The object as stored, with its new resource version.

        Raises Conflict if somebody has changed it since it was read.
        """
        ...

    def record_event(self, event: Event) -> None: ...
