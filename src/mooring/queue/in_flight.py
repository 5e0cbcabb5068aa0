"""The pods being tried, and the events since each of them was popped.

An attempt reads a snapshot. An event during the attempt may help the pod and must not be lost if
the pod is rejected. So while any pod is in flight, every event is kept and numbered, and each pod
remembers the number of the next event when it was popped. An event is dropped when no pod that was
popped before it is in flight.

    popped:   a           b        c
    events:     0   1       2  3      4  5          a gets 0…5, b gets 2…5, c gets 4 and 5
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
    """An event, with the object before and after it."""

    event: ClusterEvent
    old: KubeObject | None
    new: KubeObject | None


class InFlight:
    """Pods by UID, from `pop` to `done`."""

    def __init__(self, metrics: QueueMetrics) -> None:
        self._metrics = metrics
        #: UID → the pod as it was popped, and the number of its first event. The first entry is the
        #: oldest; an OrderedDict finds it in constant time.
        self._pods: OrderedDict[str, tuple[Pod, int]] = OrderedDict()
        #: The events kept; the first has the number `_first`.
        self._events: deque[RecordedEvent] = deque()
        self._first = 0

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def pods(self) -> list[Pod]:
        """The pods as they were when they were popped."""
        return [pod for pod, _ in self._pods.values()]

    def events(self) -> list[RecordedEvent]:
        return list(self._events)

    def add(self, pod: Pod) -> bool:
        """False if the pod is in flight already: then nothing changes."""
        uid = pod.uid
        if uid in self._pods:
            return False
        self._pods[uid] = (pod, self._first + len(self._events))
        self._metrics.inflight_events(POD_POPPED, 1)
        return True

    def record(
        self, events: Iterable[ClusterEvent], old: KubeObject | None, new: KubeObject | None
    ) -> None:
        """Keep the events if any pod is in flight."""
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
        """Forget the pod, if it is in flight, and the events that no other pod needs."""
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
        """Raise InvariantError unless exactly the events that pods need are kept."""
        for uid, (pod, _) in self._pods.items():
            if pod.uid != uid:
                raise InvariantError(f"pod {pod.key} is in flight under another UID: {uid}")
        numbers = [number for _, number in self._pods.values()]
        if numbers != sorted(numbers):
            raise InvariantError(f"the pods in flight are not in order: {numbers}")
        if self._events and (not numbers or numbers[0] != self._first):
            raise InvariantError("events are kept that no pod in flight needs")
        if numbers and numbers[-1] > self._first + len(self._events):
            raise InvariantError("events were dropped that a pod in flight needs")
