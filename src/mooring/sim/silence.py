"""A writer that writes nowhere: for those who only want to know what would be decided."""

from __future__ import annotations

from mooring.framework.api import Event, PodStatusPatch
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim


class SilentWriter:
    async def bind(self, pod: Pod, node_name: str) -> None:
        pass

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        pass

    async def delete_pod(self, pod: Pod) -> None:
        pass

    async def update_volume(self, volume: PersistentVolume) -> PersistentVolume:
        return volume

    async def update_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        return claim

    def record_event(self, event: Event) -> None:
        pass
