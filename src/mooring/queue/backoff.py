"""How long a pod that failed must wait, and the pods that are waiting so.

The wait doubles with each failure in a row, up to a limit. Its end is rounded down to a whole
second: pods whose waits end in one second form a window, in which the order is that of the active
queue. They are let go together, when the window is over.

Pods that rules rejected and pods that failed for other reasons wait apart. The wait of the first
is a penalty for wasted attempts, and is waived when there is nothing else to do; the wait of the
others protects an API server in trouble, and is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import floor, inf

from mooring.errors import InvariantError, check_kept
from mooring.framework.clock import Clock
from mooring.queue.heap import KeyedHeap, Orderable
from mooring.queue.queued_pod import QueuedPodInfo

#: Beyond this many doublings every limit is reached, so higher counts need not be computed.
_MOST_DOUBLINGS = 63

_WINDOW_S = 1


def backoff_duration_s(count: int, initial_s: float, max_s: float) -> float:
    """The wait after this many failures: 1, 2, 4, 8, 10, 10, … seconds by default."""
    if count == 0:
        return 0
    return min(initial_s * (1 << min(count - 1, _MOST_DOUBLINGS)), max_s)


class BackoffQueue:
    """Pods that wait out their backoff, those that end first to the front."""

    def __init__(
        self,
        clock: Clock,
        order: Callable[[QueuedPodInfo], Orderable],
        *,
        initial_s: float,
        max_s: float,
        by_window: bool = True,
    ) -> None:
        """Without `by_window`, ends are exact, and the order within a second is theirs alone."""
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

    def __len__(self) -> int:
        return len(self._rejected) + len(self._failed)

    def __contains__(self, key: str) -> bool:
        return key in self._rejected or key in self._failed

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self._rejected
        yield from self._failed

    @property
    def has_rejected(self) -> bool:
        """Whether `pop_rejected` has something to give."""
        return len(self._rejected) > 0

    def expiration(self, queued: QueuedPodInfo) -> float:
        """When the pod's backoff ends; before all time if it has none."""
        count = queued.consecutive_errors_count or queued.unschedulable_count
        if count == 0 or self._max_s == 0:
            return -inf
        if queued.backoff_expiration is None:
            duration_s = backoff_duration_s(count, self._initial_s, self._max_s)
            queued.backoff_expiration = self._window(queued.timestamp + duration_s)
        return queued.backoff_expiration

    def is_backing_off(self, queued: QueuedPodInfo) -> bool:
        """Up to and including the window in which the backoff ends."""
        return self.expiration(queued) >= self._window(self._clock.now())

    def get(self, key: str) -> QueuedPodInfo | None:
        return self._rejected.get(key) or self._failed.get(key)

    def add(self, queued: QueuedPodInfo) -> None:
        into, other = (
            (self._rejected, self._failed) if queued.rejected else (self._failed, self._rejected)
        )
        other.remove(queued.key)
        into.put(queued)

    def reorder(self, queued: QueuedPodInfo) -> None:
        """The pod of an entry that is in here was replaced."""
        (self._rejected if queued.key in self._rejected else self._failed).put(queued)

    def remove(self, key: str) -> QueuedPodInfo | None:
        return self._rejected.remove(key) or self._failed.remove(key)

    def pop_rejected(self) -> QueuedPodInfo | None:
        """The first pod that rules rejected, though its backoff is not over."""
        return self._rejected.pop()

    def pop_completed(self) -> list[QueuedPodInfo]:
        """Every pod whose backoff is over."""
        completed = []
        for heap in (self._rejected, self._failed):
            while (head := heap.peek()) is not None and not self.is_backing_off(head):
                heap.pop()
                completed.append(head)
        return completed

    def validate(self) -> None:
        """Raise InvariantError unless each pod waits in the one heap that it belongs in."""
        for heap, rejected in ((self._rejected, True), (self._failed, False)):
            heap.validate()
            for queued in heap:
                if queued.rejected != rejected:
                    raise InvariantError(f"{queued.key} is in the wrong backoff heap")
                again = replace(queued, backoff_expiration=None)
                check_kept(
                    f"the end of the backoff of {queued.key}",
                    self.expiration(queued),
                    self.expiration(again),
                )
        for queued in self._rejected:
            if queued.key in self._failed:
                raise InvariantError(f"{queued.key} is in both backoff heaps")

    def _window(self, time_s: float) -> float:
        return floor(time_s) if self._by_window else time_s
