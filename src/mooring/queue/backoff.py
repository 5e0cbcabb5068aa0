"""How long a pod waits after a failed attempt, and the pods that wait.

The wait doubles with each failure in a row, up to a limit. Its end is rounded down to a whole
second. Pods whose waits end in the same second form a window: they have the order of the active
queue and leave together when the window is over.

Pods that plugins rejected and pods that failed for other reasons wait separately. A rejected pod
waits as a penalty for wasted attempts, and only while other pods can be tried. Other pods wait to
protect an API server in trouble, and always wait to the end.

A pod of a group returns to backoff after every attempt, because no event wakes a group. If nothing
happened that may help, another attempt at once would give the same result, so the pod waits to the
end (`waits_out`) until a helpful event makes it one of the rejected pods (`hurry`). The reference
tries it again and again without a pause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import floor, inf

from mooring.errors import InvariantError, check_kept
from mooring.framework.clock import Clock
from mooring.queue.heap import KeyedHeap, Orderable
from mooring.queue.queued_pod import QueuedPodInfo

#: After this many doublings every limit is reached.
_MOST_DOUBLINGS = 63


def backoff_duration_s(count: int, initial_s: float, max_s: float) -> float:
    """The wait after this many failures: 1, 2, 4, 8, 10, 10, … seconds by default."""
    if count == 0:
        return 0
    return min(initial_s * (1 << min(count - 1, _MOST_DOUBLINGS)), max_s)


class BackoffQueue:
    """Pods in backoff. The pod whose backoff ends first is the first."""

    def __init__(
        self,
        clock: Clock,
        order: Callable[[QueuedPodInfo], Orderable],
        *,
        initial_s: float,
        max_s: float,
        by_window: bool = True,
    ) -> None:
        """Without `by_window`, ends are exact and alone decide the order."""
        self._clock = clock
        self._initial_s = initial_s
        self._max_s = max_s
        self._by_window = by_window

        def by_window_then_order(queued: QueuedPodInfo) -> Orderable:
            return self.expiration(queued), order(queued)

        #: Pods that a plugin rejected.
        self._rejected: KeyedHeap[QueuedPodInfo] = KeyedHeap(
            by_window_then_order if by_window else self.expiration
        )
        #: Pods whose attempt failed for another reason.
        self._failed: KeyedHeap[QueuedPodInfo] = KeyedHeap(self.expiration)
        #: Rejected pods of groups that nothing has happened for.
        self._patient: KeyedHeap[QueuedPodInfo] = KeyedHeap(by_window_then_order)
        self._heaps = (self._rejected, self._failed, self._patient)
        #: `namespace/name` → the heap that holds the pod.
        self._heap_with: dict[str, KeyedHeap[QueuedPodInfo]] = {}

    def __len__(self) -> int:
        return len(self._heap_with)

    def __contains__(self, key: str) -> bool:
        return key in self._heap_with

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        for heap in self._heaps:
            yield from heap

    @property
    def patient(self) -> list[QueuedPodInfo]:
        """The pods of groups that were refused, and that nothing has happened for since."""
        return [
            queued for heap in (self._patient, self._failed) for queued in heap if queued.waits_out
        ]

    @property
    def has_rejected(self) -> bool:
        """Whether `pop_rejected` returns a pod."""
        return len(self._rejected) > 0

    def expiration(self, queued: QueuedPodInfo) -> float:
        """When the pod's backoff ends; minus infinity if it has none."""
        count = queued.consecutive_errors_count or queued.unschedulable_count
        if count == 0 or self._max_s == 0:
            return -inf
        if queued.backoff_expiration is None:
            duration_s = backoff_duration_s(count, self._initial_s, self._max_s)
            queued.backoff_expiration = self._window(queued.timestamp + duration_s)
        return queued.backoff_expiration

    def is_backing_off(self, queued: QueuedPodInfo) -> bool:
        """True until the window in which the backoff ends is over."""
        return self.expiration(queued) >= self.current_window()

    def current_window(self) -> float:
        """Backoffs that end earlier than this are over."""
        return self._window(self._clock.now())

    @property
    def is_enabled(self) -> bool:
        """Whether pods back off at all."""
        return self._max_s > 0

    def get(self, key: str) -> QueuedPodInfo | None:
        heap = self._heap_with.get(key)
        return None if heap is None else heap.get(key)

    def add(self, queued: QueuedPodInfo) -> None:
        self.remove(queued.key)
        heap = self._heap_with[queued.key] = self._heap_of(queued)
        heap.put(queued)

    def hurry(self, queued: QueuedPodInfo) -> None:
        """Something happened that may help a patient pod. One that no plugin rejected still waits."""
        queued.waits_out = False
        self.add(queued)

    def reorder(self, queued: QueuedPodInfo) -> None:
        """Update the order of an entry whose pod was replaced."""
        self._heap_with[queued.key].put(queued)

    def remove(self, key: str) -> QueuedPodInfo | None:
        heap = self._heap_with.pop(key, None)
        return None if heap is None else heap.remove(key)

    def pop_rejected(self) -> QueuedPodInfo | None:
        """The first pod that plugins rejected, even if its backoff is not over."""
        queued = self._rejected.pop()
        if queued is not None:
            del self._heap_with[queued.key]
        return queued

    def pop_completed(self) -> list[QueuedPodInfo]:
        """Every pod whose backoff is over."""
        completed = []
        for heap in self._heaps:
            while (head := heap.peek()) is not None and not self.is_backing_off(head):
                heap.pop()
                del self._heap_with[head.key]
                completed.append(head)
        return completed

    def validate(self) -> None:
        """Raise InvariantError unless each pod is in the right heap, and only there."""
        for heap in self._heaps:
            heap.validate()
            for queued in heap:
                if self._heap_of(queued) is not heap:
                    raise InvariantError(f"{queued.key} is in the wrong backoff heap")
                again = replace(queued, backoff_expiration=None)
                check_kept(
                    f"the end of the backoff of {queued.key}",
                    self.expiration(queued),
                    self.expiration(again),
                )
        for queued in self:
            if sum(queued.key in heap for heap in self._heaps) > 1:
                raise InvariantError(f"{queued.key} is in two backoff heaps")
        held = {queued.key: heap for heap in self._heaps for queued in heap}
        if self._heap_with != held:
            raise InvariantError("the heaps of pods in backoff differ from those that hold them")

    def _heap_of(self, queued: QueuedPodInfo) -> KeyedHeap[QueuedPodInfo]:
        if not queued.rejected:
            return self._failed
        return self._patient if queued.waits_out else self._rejected

    def _window(self, time_s: float) -> float:
        return floor(time_s) if self._by_window else time_s
