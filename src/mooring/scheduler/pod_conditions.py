"""What waiting pods are told in their status: why they wait, and for which node.

Where one pod is tried for all that are alike, the others' conditions follow: not with every attempt, since
the numbers in the message change all the time, but now and then, and a few pods at a time.
"""

from __future__ import annotations

from msgspec.structs import replace

from mooring.framework.api import PodStatusPatch
from mooring.framework.interface import NominatingInfo
from mooring.objects.pod import Pod, PodCondition
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.scheduler.parts import Parts
from mooring.scheduler.writes import PodStatusWrite, Write

#: How many pods are told in one go, where they are not all told at once.
_AT_A_TIME = 200
#: How many classes are remembered by when they were told something.
_MOST_CLASSES = 4096


class PodConditions:
    """Makes conditions and nominations, and knows what is still to be told."""

    def __init__(self, parts: Parts) -> None:
        deps = parts.deps
        self._queue = parts.queue
        self._clock = deps.clock
        #: A class of pods is told again after so many seconds; with 0, at once.
        self._repeat_after_s = deps.repeat_conditions_after_s
        #: Class → what its pods are to be told.
        self._news: dict[int, PodCondition] = {}
        #: Class → when its pods were last told something, or when there was first something to tell.
        self._told_at: dict[int, float] = {}
        #: The pods that are to be told next, `namespace/name` → condition.
        self._next: dict[str, PodCondition] = {}

    def tell(
        self, pod: Pod, condition: PodCondition, nominating: NominatingInfo = None
    ) -> list[Write]:
        """Why a pod waits, for its status, unless that already says so."""
        patch = status_patch(pod, condition, nominating)
        return [] if patch is None else [PodStatusWrite(pod, patch)]

    def rejected(self, queued: QueuedPodInfo, condition: PodCondition) -> list[Write]:
        """A pod was told this. It holds for the pods that it was tried for, if there are any."""
        pod_class, queue = queued.pod_class, self._queue
        if pod_class is None or pod_class not in queue.rejected_classes:
            return []
        queue.rejected_classes.discard(pod_class)
        self._news[pod_class] = condition
        if self._repeat_after_s:
            return []
        self._tell_class(pod_class)
        self._next.pop(queued.key, None)  # It has just been told.
        return self._tell(len(self._next))

    def tell_some(self) -> list[Write]:
        """Called every second: tell some of those that it is time for."""
        now = self._clock.now()
        for pod_class in list(self._news):
            # What is new changes for a while: it is told when that is over.
            if now - self._told_at.setdefault(pod_class, now) >= self._repeat_after_s:
                self._tell_class(pod_class)
        if len(self._told_at) > _MOST_CLASSES:
            self._told_at = {c: at for c, at in self._told_at.items() if c in self._news}
        return self._tell(_AT_A_TIME)

    def _tell_class(self, pod_class: int) -> None:
        condition = self._news.pop(pod_class)
        waiting = self._queue.unschedulable_of_class(pod_class)
        for queued in waiting:
            self._next[queued.key] = condition
        if waiting:
            self._told_at[pod_class] = self._clock.now()
        else:
            self._told_at.pop(pod_class, None)

    def _tell(self, count: int) -> list[Write]:
        writes: list[Write] = []
        for key in list(self._next)[:count]:
            condition = self._next.pop(key)
            queued = self._queue.get(key)
            if queued is not None and not queued.gated:
                generation = queued.pod.metadata.generation
                writes += self.tell(queued.pod, replace(condition, observed_generation=generation))
        return writes


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
