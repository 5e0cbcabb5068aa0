"""DefaultBinder: post the pod's Binding to the API server."""

from __future__ import annotations

from mooring.objects.pod import Pod
from mooring.plugin import SUCCESS, ApiError, CycleState, Handle, Status, failure


class DefaultBinder:
    name = "DefaultBinder"

    def __init__(self, args: object, handle: Handle) -> None:
        self._writer = handle.writer

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """The Binding has the pod's UID, so a newer pod of the same name is not bound."""
        try:
            await self._writer.bind(pod, node_name)
        except ApiError as error:
            return failure(error)
        return SUCCESS
