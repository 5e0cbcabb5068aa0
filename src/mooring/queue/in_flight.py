"""The pods being tried, and what happened in the cluster since each of them was popped.

An attempt is made on a snapshot. What happens meanwhile may be just what the pod needs, and must
not be lost when the pod comes back rejected. So while any pod is in flight, every event is kept,
numbered in order, and each pod remembers the number at which it left. An event goes when all the
pods have gone that left before it.

    popped:   a           b        c
    events:     0   1       2  3      4  5          a is to hear of 0…5, b of 2…5, c of 4 and 5
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from mooring.errors import InvariantError
from mooring.framework.events import ClusterEvent
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.queue.metrics import POD_POPPED, QueueMetrics


class RecordedEvent(NamedTuple):
    """Something that happened, with the object before and after it."""

    event: ClusterEvent
    old: KubeObject | None
    new: KubeObject | None


class InFlight:
    """Pods by UID, from `pop` to `done`."""

    def __init__(self, metrics: QueueMetrics) -> None:
        self._metrics = metrics
        #: UID → the pod as it was popped and the number of the first event it is to hear of. The
        #: first is the oldest; an OrderedDict finds it at once, however many have left before it.
        self._pods: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        #: The events kept; the first has the number `_first`.
        self._events: deque[RecordedEvent] = deque()
        self._first = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def pods(self) -> list[Pod]:
        """As they were when they were popped."""
        return [pod for pod, _ in self._pods.values()]

    def events(self) -> list[RecordedEvent]:
        return list(self._events)

    def add(self, pod: Pod) -> None:
        self._pods[pod.uid] = (pod, self._first + len(self._events))
        self._metrics.inflight_events(POD_POPPED, 1)

    def record(
        self, events: Iterable[ClusterEvent], old: KubeObject | None, new: KubeObject | None
    ) -> None:
        """Keep the events, if any pod is in flight to hear of them."""
        if not self._pods:
            return
        for event in events:
            self._events.append(RecordedEvent(event, old, new))
            self._metrics.inflight_events(event.label, 1)

    def since(self, uid: str) -> list[RecordedEvent] | None:
        """What happened since the pod was popped; None if it is not in flight."""
        if uid not in self._pods:
            return None
        _, left_at = self._pods[uid]
        return list(islice(self._events, left_at - self._first, None))

    def done(self, uid: str) -> None:
        """Forget the pod, if it is known, and the events that only it was to hear of."""
        if self._pods.pop(uid, None) is None:
            return
        unheard = self._first + len(self._events)
        oldest = next(iter(self._pods.values()))[1] if self._pods else unheard
        while self._first < oldest:
            self._metrics.inflight_events(self._events.popleft().event.label, -1)
            self._first += 1
        self._metrics.inflight_events(POD_POPPED, -1)

    def clear(self) -> None:
        for uid in list(self._pods):
            self.done(uid)

    def validate(self) -> None:
        """Raise InvariantError unless what is kept is what the pods are to hear of."""
        for uid, (pod, _) in self._pods.items():
            if pod.uid != uid:
                raise InvariantError(f"pod {pod.key} is in flight under the UID of another: {uid}")
        numbers = [number for _, number in self._pods.values()]
        if numbers != sorted(numbers):
            raise InvariantError(f"the pods in flight are not in order: {numbers}")
        if self._events and (not numbers or numbers[0] != self._first):
            raise InvariantError("events are kept that no pod in flight is to hear of")
        if numbers and numbers[-1] > self._first + len(self._events):
            raise InvariantError("a pod in flight is to hear of events that were forgotten")
