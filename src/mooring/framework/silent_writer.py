"""A writer that writes nothing: for callers that only need the decision."""

from __future__ import annotations

from typing import TypeVar

from mooring.framework.api import Event, PodStatusPatch
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodCondition
from mooring.objects.pod_groups import PodGroup

K = TypeVar("K", bound=KubeObject)


class SilentWriter:
    async def bind(self, pod: Pod, node_name: str) -> None:
        pass

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        pass

    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None:
        pass

    async def delete_pod(self, pod: Pod) -> None:
        pass

    async def update_object(self, obj: K) -> K:
        return obj

    def record_event(self, event: Event) -> None:
        pass
