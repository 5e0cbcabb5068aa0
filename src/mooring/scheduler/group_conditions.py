"""What a pod group is told in its status: whether it is scheduled, and why not."""

from __future__ import annotations

import logging

from mooring.errors import ApiError, NotFound
from mooring.framework.status import Status
from mooring.objects.pod import PodCondition
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from mooring.scheduler.parts import Parts
from mooring.scheduler.pod_group import error_text

_LOG = logging.getLogger("mooring.scheduler")


class GroupConditions:
    """Writes the condition PodGroupScheduled."""

    def __init__(self, parts: Parts) -> None:
        self._listers = parts.cluster.listers
        self._writer = parts.deps.writer
        self._spawn = parts.deps.spawn_patch or parts.deps.spawn

    def tell(self, key: str, status: Status) -> None:
        """Write what became of the group, unless its status already says so.

        A group that was scheduled once stays so, whatever becomes of pods that come later.
        """
        group = self._listers.get(PodGroup, key)
        if group is None:
            _LOG.info("pod group %s is gone; its status is not written", key)
            return
        condition = _condition(group, status)
        known = group.condition(POD_GROUP_SCHEDULED)
        if known is not None:
            regresses = known.status == "True" and condition.status != "True"
            if regresses or _same(known, condition):
                return
        self._spawn(self._patch(group, condition))

    async def _patch(self, group: PodGroup, condition: PodCondition) -> None:
        """A failure is only logged: the next attempt writes again."""
        try:
            await self._writer.patch_pod_group_status(group, condition)
        except NotFound as error:
            _LOG.debug("patching the status of pod group %s, which is gone: %s", group.key, error)
        except ApiError as error:
            _LOG.warning("patching the status of pod group %s: %s", group.key, error)


def _condition(group: PodGroup, status: Status) -> PodCondition:
    if status.ok:
        scheduled, reason, message = "True", "Scheduled", ""
    elif status.rejected:
        scheduled, reason, message = "False", "Unschedulable", status.message
    else:
        scheduled, reason, message = "False", "SchedulerError", error_text(status)
    return PodCondition(
        type=POD_GROUP_SCHEDULED,
        status=scheduled,
        reason=reason,
        message=message,
        observed_generation=group.metadata.generation,
    )


def _same(known: PodCondition, condition: PodCondition) -> bool:
    return (known.status, known.reason, known.message, known.observed_generation) == (
        condition.status,
        condition.reason,
        condition.message,
        condition.observed_generation,
    )
