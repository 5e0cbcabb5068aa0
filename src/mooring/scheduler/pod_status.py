"""Writes into a pod's status why it waits, and for which node."""

from __future__ import annotations

import logging

from mooring.errors import ApiError, NotFound
from mooring.framework.api import ApiWriter, PodStatusPatch
from mooring.framework.interface import NominatingInfo
from mooring.objects.pod import Pod, PodCondition
from mooring.runtime.handle import Spawn

_LOG = logging.getLogger("mooring.scheduler")


class PodStatusWriter:
    def __init__(self, writer: ApiWriter, spawn: Spawn) -> None:
        self._writer = writer
        self._spawn = spawn

    def tell(self, pod: Pod, condition: PodCondition, nominating: NominatingInfo = None) -> None:
        """Write why a pod waits into its status, unless it already says so."""
        patch = status_patch(pod, condition, nominating)
        if patch is not None:
            self._spawn(self.patch(pod, patch))

    async def patch(self, pod: Pod, patch: PodStatusPatch) -> None:
        """A failure is only logged: the next attempt writes again."""
        try:
            await self._writer.patch_pod_status(pod, patch)
        except NotFound as error:
            _LOG.debug("patching the status of %s, which is gone: %s", pod.key, error)
        except ApiError as error:
            _LOG.warning("patching the status of %s: %s", pod.key, error)


def status_patch(
    pod: Pod, condition: PodCondition, nominating: NominatingInfo
) -> PodStatusPatch | None:
    """None if the pod already says all this."""
    known = pod.condition(condition.type)
    same = known is not None and (known.status, known.reason, known.message) == (
        condition.status,
        condition.reason,
        condition.message,
    )
    nominated = None
    if nominating is not None and nominating.node_name != pod.nominated_node_name:
        nominated = nominating.node_name
    if same and nominated is None:
        return None
    return PodStatusPatch(None if same else condition, nominated)
