"""Pods that another one was tried for are told what that one was told.

A waiting pod is told in its condition why it fits nowhere. Where one pod is tried for all that are alike,
the others' conditions follow: not with every attempt, since the numbers in the message change all the time,
but now and then, and a few pods at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from mooring.objects.pod import PodCondition

if TYPE_CHECKING:
    from mooring.queue.queued_pod import QueuedPodInfo
    from mooring.scheduler.scheduler import Scheduler

#: How many pods are told in one go, where they are not all told at once.
_AT_A_TIME = 200
#: How many classes are remembered by when they were told something.
_MOST_CLASSES = 4096


class SharedConditions:
    """What is still to be told to the pods that wait."""

    def __init__(self, scheduler: Scheduler, repeat_after_s: float) -> None:
        """A class of pods is told again after so many seconds; with 0, at once."""
        self._scheduler = scheduler
        self._repeat_after_s = repeat_after_s
        #: Class → what its pods are to be told.
        self._news: dict[int, PodCondition] = {}
        #: Class → when its pods were last told something, or when there was first something to tell.
        self._told_at: dict[int, float] = {}
        #: The pods that are to be told next, `namespace/name` → condition.
        self._next: dict[str, PodCondition] = {}

    def rejected(self, queued: QueuedPodInfo, condition: PodCondition) -> None:
        """A pod was told this. It holds for the pods that it was tried for, if there are any."""
        pod_class, queue = queued.pod_class, self._scheduler.queue
        if pod_class is None or pod_class not in queue.rejected_classes:
            return
        queue.rejected_classes.discard(pod_class)
        self._news[pod_class] = condition
        if not self._repeat_after_s:
            self._tell_class(pod_class)
            self._tell(len(self._next))

    def tell_some(self) -> None:
        """Called every second: tell some of those that it is time for."""
        now = self._scheduler.around.clock.now()
        for pod_class in list(self._news):
            # What is new changes for a while: it is told when that is over.
            if now - self._told_at.setdefault(pod_class, now) >= self._repeat_after_s:
                self._tell_class(pod_class)
        self._tell(_AT_A_TIME)
        if len(self._told_at) > _MOST_CLASSES:
            self._told_at = {c: at for c, at in self._told_at.items() if c in self._news}

    def _tell_class(self, pod_class: int) -> None:
        condition = self._news.pop(pod_class)
        waiting = self._scheduler.queue.unschedulable_of_class(pod_class)
        for queued in waiting:
            self._next[queued.key] = condition
        if waiting:
            self._told_at[pod_class] = self._scheduler.around.clock.now()
        else:
            self._told_at.pop(pod_class, None)

    def _tell(self, count: int) -> None:
        for key in list(self._next)[:count]:
            condition = self._next.pop(key)
            queued = self._scheduler.queue.get(key)
            if queued is not None and not queued.gated:
                generation = queued.pod.metadata.generation
                self._scheduler.tell_condition(queued.pod, _with_generation(condition, generation))


def _with_generation(condition: PodCondition, generation: int) -> PodCondition:
    if condition.observed_generation == generation:
        return condition
    return replace(condition, observed_generation=generation)
