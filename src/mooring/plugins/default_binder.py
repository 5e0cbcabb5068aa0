"""DefaultBinder: post the pod's Binding to the API server."""

from __future__ import annotations

from mooring.errors import ApiError
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Handle
from mooring.framework.status import SUCCESS, Status, failure
from mooring.objects.pod import Pod


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
