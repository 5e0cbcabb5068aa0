"""The three queues in which a pod waits, and the moves between them.

A pod waits in one of them: in the active queue to be tried, in the backoff queue until its backoff
ends, or among the unschedulable pods for an event. PreEnqueue guards the first two; a pod that it
refuses is unschedulable and gated. Pods are identified by `namespace/name`.
"""

from __future__ import annotations

from collections.abc import Iterator

from mooring.errors import InvariantError
from mooring.framework.clock import Clock
from mooring.framework.events import FORCE_ACTIVATE, Action, ClusterEvent, EventResource
from mooring.objects.pod import Pod
from mooring.queue.backoff import BackoffQueue
from mooring.queue.heap import KeyedHeap
from mooring.queue.hints import Strategy
from mooring.queue.metrics import ACTIVE, BACKOFF, POP_FROM_BACKOFF_Q, UNSCHEDULABLE, QueueMetrics
from mooring.queue.pre_enqueue import PreEnqueuePlugins
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.unschedulable_pods import UnschedulablePods
from mooring.runtime.nominator import Nominator

#: Why a pod enters the queue for the first time; labels of `queue_incoming_pods_total`.
POD_ADDED = ClusterEvent(EventResource.UNSCHEDULABLE_POD, Action.ADD).label
POD_UPDATED = ClusterEvent(EventResource.UNSCHEDULABLE_POD, Action.UPDATE).label


class PodQueues:
    """Every waiting pod, each in one queue."""

    def __init__(
        self,
        *,
        clock: Clock,
        active: KeyedHeap[QueuedPodInfo],
        backoff: BackoffQueue,
        pre_enqueue: PreEnqueuePlugins,
        nominator: Nominator,
        metrics: QueueMetrics,
        pop_from_backoff: bool,
    ) -> None:
        """With `pop_from_backoff`, pods can be popped from backoff: PreEnqueue guards it too."""
        self.active = active
        self.backoff = backoff
        self.unschedulable = UnschedulablePods(backoff.expiration, backoff.current_window)
        #: Whether a pod entered the active or backoff queue since this was last reset.
        self.has_news = False
        self._clock = clock
        self._pre_enqueue = pre_enqueue
        self._nominator = nominator
        self._metrics = metrics
        self._pop_from_backoff = pop_from_backoff

    def __contains__(self, key: str) -> bool:
        return key in self.unschedulable or key in self.active or key in self.backoff

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self.active
        yield from self.backoff
        yield from self.unschedulable

    @property
    def ready(self) -> bool:
        """Whether `pop` returns a pod."""
        return len(self.active) > 0 or (self._pop_from_backoff and self.backoff.has_rejected)

    def get(self, key: str) -> QueuedPodInfo | None:
        return self.active.get(key) or self.unschedulable.get(key) or self.backoff.get(key)

    def pop(self) -> QueuedPodInfo | None:
        """The first active pod; if there is none, the first in backoff that plugins rejected."""
        queued = self.active.pop()
        if queued is None and self._pop_from_backoff:
            queued = self.backoff.pop_rejected()
            if queued is not None:
                self._metrics.queue_incoming_pods(ACTIVE, POP_FROM_BACKOFF_Q)
        if queued is not None:
            self._nominator.moved(queued.key)
        return queued

    def requeue(self, queued: QueuedPodInfo, strategy: Strategy, label: str) -> None:
        if strategy == Strategy.SKIP:
            self._to_unschedulable(queued, label)
        elif strategy == Strategy.AFTER_BACKOFF and self.backoff.is_backing_off(queued):
            self._to_backoff(queued, label)
        else:
            self.to_active(queued, label)

    def activate(self, pod: Pod) -> bool:
        """Make active a pod that waits in another queue; False if there is none, or it is gated."""
        queued = self.unschedulable.get(pod.key)
        if queued is not None:
            return self.to_active(queued, FORCE_ACTIVATE.label)
        queued = self.backoff.remove(pod.key)
        if queued is not None:
            return self.from_backoff_to_active(queued, FORCE_ACTIVATE.label)
        return False

    def from_backoff_to_active(self, queued: QueuedPodInfo, label: str) -> bool:
        """As `to_active`, for a pod from backoff, which has passed PreEnqueue already."""
        if not self._pop_from_backoff:
            return self.to_active(queued, label)
        self._enter_active(queued, label)
        return True

    def to_active(self, queued: QueuedPodInfo, label: str) -> bool:
        """Make the pod active; False if PreEnqueue refuses it."""
        self._pre_enqueue.run(queued)
        if not queued.gated:
            self._enter_active(queued, label)
            return True
        # If a gated pod was re-created while its predecessor waits here, it is lost. The reference
        # does the same: it relies on the deletion of the predecessor coming first.
        if queued.key not in self.active and queued.key not in self.backoff:
            self._hold_back(queued, label)
        return False

    def _enter_active(self, queued: QueuedPodInfo, label: str) -> None:
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock.now()
        key = queued.key
        self.unschedulable.remove(key)
        self.backoff.remove(key)
        self.active.put(queued)
        self._nominator.moved(queued.key)
        self.has_news = True
        self._metrics.queue_incoming_pods(ACTIVE, label)
        if label in (POD_ADDED, POD_UPDATED):
            self._nominator.add(queued.pod)

    def _to_backoff(self, queued: QueuedPodInfo, label: str) -> None:
        if self._pop_from_backoff:
            self._pre_enqueue.run(queued)
            if queued.gated:
                self._hold_back(queued, label)
                return
        self.unschedulable.remove(queued.key)
        self.backoff.add(queued)
        self._nominator.moved(queued.key)
        self.has_news = True
        self._metrics.queue_incoming_pods(BACKOFF, label)

    def _hold_back(self, queued: QueuedPodInfo, label: str) -> None:
        """Forget that a flush moved the pod: its next move has another reason."""
        queued.was_flushed = False
        self._to_unschedulable(queued, label)

    def _to_unschedulable(self, queued: QueuedPodInfo, label: str) -> None:
        self._nominator.moved(queued.key)
        if self.unschedulable.put(queued):
            self._metrics.queue_incoming_pods(UNSCHEDULABLE, label)

    def validate(self) -> None:
        """Raise InvariantError unless each pod waits in one queue, and may be there."""
        for part in (self.active, self.backoff, self.unschedulable):
            part.validate()
        seen: set[str] = set()
        for queued in self:
            if queued.key in seen:
                raise InvariantError(f"{queued.key} waits in two queues")
            seen.add(queued.key)
            if queued.gated and queued.key not in self.unschedulable:
                raise InvariantError(f"{queued.key} is gated and in the active or backoff queue")
        for queued in self.active:
            if queued.initial_attempt_timestamp is None:
                raise InvariantError(f"{queued.key} is active and has no time of first attempt")
