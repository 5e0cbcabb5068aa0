"""What a pod group is told in its status: whether it is scheduled, and why not."""

from __future__ import annotations

import logging

from mooring.framework.status import Status
from mooring.objects.pod import PodCondition
from mooring.objects.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from mooring.scheduler.parts import Parts
from mooring.scheduler.pod_group import error_text
from mooring.scheduler.writes import GroupStatusWrite, Write

_LOG = logging.getLogger("mooring.scheduler")


class GroupConditions:
    """Makes the condition PodGroupScheduled."""

    def __init__(self, parts: Parts) -> None:
        self._listers = parts.cluster.listers

    def tell(self, key: str, status: Status) -> list[Write]:
        """What became of the group, unless its status already says so.

        A group that was scheduled once stays so, whatever becomes of pods that come later.
        """
        group = self._listers.get(PodGroup, key)
        if group is None:
            _LOG.info("pod group %s is gone; its status is not written", key)
            return []
        condition = _condition(group, status)
        known = group.condition(POD_GROUP_SCHEDULED)
        if known is not None:
            regresses = known.status == "True" and condition.status != "True"
            if regresses or _same(known, condition):
                return []
        return [GroupStatusWrite(group, condition)]


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
