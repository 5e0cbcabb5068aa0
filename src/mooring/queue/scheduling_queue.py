"""The scheduling queue: which pod is tried next, and where a pod waits until then.

The life of a pod in the queue:

                 add                     ┌─────────────────────── in flight ◀─────────┐
                  │                      │ add_unschedulable_if_not_present           │
                  ▼                      ▼                                            │
             PreEnqueue             does anything that happened while it was          │
      passes  │     │ refuses       in flight help? (always yes if no plugin          │
              │     │               rejected it, and it failed for another reason)    │
              │     │                    │                │                           │
              │     │                no  │                │ yes; PreEnqueue again     │
              │     ▼                    ▼                │                           │
              │   ┌──────────────────────────┐            │                           │
              │   │      unschedulable       │            ├─ still backing off ──┐    │
              │   │  (gated by PreEnqueue,   │            │                      ▼    │
              │   │  or waiting for events)  │            │                ┌─────────┐│
              │   └──────────────────────────┘            │                │ backoff ││
              │        │ an event that a hint             │                └─────────┘│
              │        │ says may help; an update of      │   backoff over,  │  │ pop,│
              │        │ the pod; activate; 5 minutes     │   or activate    │  │ if  │
              │        │ (PreEnqueue again; then to       │                  │  │ none│
              │        │ backoff, if still in it)         │                  │  │ is  │
              ▼        ▼                                  ▼                  ▼  │ active
           ┌───────────────────────────────────────────────────────────────────┐│     │
           │                               active                              ││     │
           └───────────────────────────────────────────────────────────────────┘│     │
                                           │ pop                                ▼     │
                                           └──────────────────────────────────────────┘

A pod in flight leaves by `done`; one that is nowhere else then is placed, or gone. Pods are known by
`namespace/name` while they wait, and by UID while they are in flight or nominated, as in the reference.

Nothing here blocks or runs by itself: `pop` returns None when there is nothing to try, and the driver calls
`flush_backoff_completed` each second, on the second, and `flush_unschedulable_leftover` every 30 seconds.
No plugin can break the queue: one that raises is reported, and its pod is held back by a PreEnqueue, or
tried again for a hint. (A QueueSort is trusted not to raise.)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple

from mooring.errors import InvariantError
from mooring.framework.events import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    Resource,
)
from mooring.framework.interface import Clock, QueueSortPlugin
from mooring.framework.nominator import Nominator
from mooring.framework.object_changes import pod_change_events
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.queue import metrics as labels
from mooring.queue.backoff import BackoffQueue
from mooring.queue.gates import Gates, PreEnqueueByProfile
from mooring.queue.heap import KeyedHeap, order_by
from mooring.queue.hints import HintsByProfile, QueueingHints, Strategy
from mooring.queue.in_flight import InFlight
from mooring.queue.metrics import QueueMetrics
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.unschedulable_pods import Rejection, UnschedulablePods

_LOG = logging.getLogger(__name__)

#: How often the driver calls the two flushes.
FLUSH_BACKOFF_EVERY_S = 1
FLUSH_UNSCHEDULABLE_EVERY_S = 30

_POD_ADDED = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD).label
_POD_UPDATED = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE).label


class QueueCounts(NamedTuple):
    """How many pods wait where; gated ones are not counted as unschedulable."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class SchedulingQueue:
    """All pods that wait to be scheduled."""

    def __init__(
        self,
        *,
        clock: Clock,
        queue_sort: QueueSortPlugin,
        pre_enqueue: PreEnqueueByProfile | None = None,
        hints: HintsByProfile | None = None,
        nominator: Nominator | None = None,
        sign: Callable[[Pod], Hashable | None] | None = None,
        initial_backoff_s: float = 1,
        max_backoff_s: float = 10,
        max_in_unschedulable_s: float = 300,
        pop_from_backoff: bool = True,
        metrics: QueueMetrics | None = None,
        report: Callable[[str], None] = _LOG.error,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        """`sign` gives pods their signature. `pop_from_backoff` is the gate SchedulerPopFromBackoffQ.
        `on_ready` is called after each change that gave `pop` something to return."""
        self._clock = clock
        self._sign = sign
        self._max_in_unschedulable_s = max_in_unschedulable_s
        self._pop_from_backoff = pop_from_backoff
        self._metrics = metrics or QueueMetrics()
        self._report = report
        self._on_ready = on_ready
        order = order_by(queue_sort)
        self._active: KeyedHeap[QueuedPodInfo] = KeyedHeap(order)
        self._backoff = BackoffQueue(
            clock,
            order,
            initial_s=initial_backoff_s,
            max_s=max_backoff_s,
            by_window=pop_from_backoff,
        )
        self._unschedulable = UnschedulablePods()
        self._in_flight = InFlight(self._metrics)
        self._hints = QueueingHints(hints or {}, self._metrics, report)
        self._gates = Gates(pre_enqueue or {}, self._hints.events_of, self._metrics, report)
        self.nominator = nominator if nominator is not None else Nominator()
        self.nominator.queued_pod = self._queued_pod
        #: Whether a pod came into the active or backoff queue that `on_ready` was not told of.
        self._news = False
        self._closed = False
        self._scheduling_cycle = 0

    # What is in the queue

    @property
    def scheduling_cycle(self) -> int:
        """How many pods were popped."""
        return self._scheduling_cycle

    @property
    def ready(self) -> bool:
        """Whether `pop` has something to return."""
        return len(self._active) > 0 or (self._pop_from_backoff and self._backoff.has_rejected)

    @property
    def closed(self) -> bool:
        return self._closed

    def get(self, key: str) -> QueuedPodInfo | None:
        """The waiting pod of this `namespace/name`."""
        return self._active.get(key) or self._unschedulable.get(key) or self._backoff.get(key)

    def counts(self) -> QueueCounts:
        gated = self._unschedulable.gated_count
        return QueueCounts(
            active=len(self._active),
            backoff=len(self._backoff),
            unschedulable=len(self._unschedulable) - gated,
            gated=gated,
        )

    def pending_pods(self) -> tuple[list[Pod], str]:
        """Every waiting pod, and a line that says how many wait where."""
        places = (self._active, self._backoff, self._unschedulable)
        active, backoff, unschedulable = (len(place) for place in places)
        return (
            [queued.pod for place in places for queued in place],
            f"activeQ:{active}; backoffQ:{backoff}; unschedulablePods:{unschedulable}",
        )

    def active_pods(self) -> list[QueuedPodInfo]:
        return list(self._active)

    def backoff_pods(self) -> list[QueuedPodInfo]:
        return list(self._backoff)

    def unschedulable_pods(self) -> list[QueuedPodInfo]:
        """Gated ones among them."""
        return list(self._unschedulable)

    def in_flight_pods(self) -> list[Pod]:
        """Those that were popped and are not done, as they were then."""
        return self._in_flight.pods()

    def backoff_completes_at(self) -> float | None:
        """By when `flush_backoff_completed` has something to do; a simulation may sleep till then."""
        return self._backoff.completes_at()

    # Pods come, change and go

    def add(self, pod: Pod) -> None:
        """A pod appeared that has no node."""
        self._to_active(self._entry(pod), _POD_ADDED)
        self._tell_ready()

    def update(self, old: Pod, new: Pod) -> None:
        """A pod that has no node changed. In flight, the change is kept for when it comes back."""
        events = pod_change_events(old, new)
        if new.uid in self._in_flight:
            self._in_flight.record(events, old, new)
        elif (queued := self._active.get(old.key)) is not None:
            self._replace(queued, old, new)
            self._active.put(queued)
        elif (queued := self._backoff.get(old.key)) is not None:
            self._replace(queued, old, new)
            self._backoff.reorder(queued)
        elif (queued := self._unschedulable.get(new.key)) is not None:
            self._replace(queued, old, new)
            self._requeue_updated(queued, events, old, new)
        else:
            self._to_active(self._entry(new), _POD_UPDATED)
        self._tell_ready()

    def delete(self, pod: Pod) -> None:
        """A pod is gone, or was given a node. If it is in flight, its attempt goes on."""
        self.nominator.delete(pod)
        if self._active.remove(pod.key) or self._backoff.remove(pod.key):
            return
        queued = self._unschedulable.remove(pod.key)
        if queued is not None:
            # From the other queues the reference does not count down, and so neither do we.
            self._count_rejectors(queued, -1)

    # Attempts

    def pop(self) -> QueuedPodInfo | None:
        """The pod to try now, which is then in flight until `done`; None if there is none.

        When no pod is active, it is the first one in backoff, unless errors put it there.
        """
        while True:
            queued = self._active.pop()
            if queued is None and self._pop_from_backoff:
                queued = self._backoff.pop_rejected()
                if queued is not None:
                    self._metrics.queue_incoming_pods(labels.ACTIVE, labels.POP_FROM_BACKOFF_Q)
            if queued is None or self._to_in_flight(queued):
                return queued

    def pop_specific(self, pod: Pod) -> QueuedPodInfo | None:
        """As `pop`, for this pod, wherever it waits; None if it does not, or is gated."""
        self._activate(pod)
        queued = self._active.remove(pod.key)
        self._tell_ready()
        return queued if queued is not None and self._to_in_flight(queued) else None

    def done(self, uid: str) -> None:
        """The pod's attempt is over, as far as the queue is concerned."""
        self._in_flight.done(uid)

    def add_unschedulable_if_not_present(self, queued: QueuedPodInfo) -> bool:
        """A popped pod comes back after a failed attempt, with the plugins that rejected it.

        It is done in any case. False, reported, if a pod of its name is waiting already.
        """
        try:
            if queued.key in self:
                self._report(f"pod {queued.key} came back while it was already in the queue")
                return False
            self._note_failure(queued)
            self._requeue(
                queued, self._strategy_for_in_flight(queued), labels.SCHEDULE_ATTEMPT_FAILURE
            )
            return True
        finally:
            self.done(queued.uid)
            self._tell_ready()

    def close(self) -> None:
        """Stop moving pods; what is active can still be popped."""
        self._closed = True
        self._in_flight.clear()
        if self._on_ready is not None:
            self._on_ready()

    # Reasons to try again

    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Try these pods as soon as possible, wherever they wait; unknown ones are ignored."""
        for pod in pods.values():
            if not self._activate(pod) and pod.uid in self._in_flight:
                self._in_flight.record([FORCE_ACTIVATE], None, pod)
        self._tell_ready()

    def move_all(
        self,
        event: ClusterEvent,
        old: KubeObject | None = None,
        new: KubeObject | None = None,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> None:
        """Something happened: move the pods it may help (MoveAllToActiveOrBackoffQueue).

        `pre_check` says which pods it can concern at all.
        """
        if not self._hints.is_of_interest(event):
            return

        def matters(rejection: Rejection) -> bool:
            return self._hints.may_help(
                event, profile=rejection.profile, rejectors=rejection.rejectors
            )

        candidates = self._unschedulable.where(matters)
        if pre_check is not None:
            candidates = [queued for queued in candidates if pre_check(queued.pod)]
        self._move(candidates, event, old, new)
        self._tell_ready()

    def flush_backoff_completed(self) -> None:
        """Make active the pods whose backoff is over."""
        if self._closed:
            return
        for queued in self._backoff.pop_completed():
            self._to_active(queued, labels.BACKOFF_COMPLETE, from_backoff=True)
        self._tell_ready()

    def flush_unschedulable_leftover(self) -> None:
        """Try the pods again for which nothing has happened for too long."""
        if self._closed:
            return
        now = self._clock.now()
        leftover = [
            queued
            for queued in self._unschedulable
            if now - _last_tried(queued) > self._max_in_unschedulable_s
        ]
        for queued in leftover:
            queued.was_flushed = True
            queued.flush_timestamp = now
        if leftover:
            self._move(leftover, UNSCHEDULABLE_TIMEOUT, None, None)
        self._tell_ready()

    def is_pod_worth_requeuing(
        self,
        queued: QueuedPodInfo,
        event: ClusterEvent,
        old: KubeObject | None = None,
        new: KubeObject | None = None,
    ) -> Strategy:
        """What this event is reason for, with a pod that is waiting or coming back."""
        return self._hints.is_pod_worth_requeuing(queued, event, old, new)

    def __contains__(self, key: str) -> bool:
        return key in self._unschedulable or key in self._active or key in self._backoff

    def validate(self) -> None:
        """Raise InvariantError unless the books add up; for tests and for dumps.

        A UID may be both waiting and in flight: `pop` finds that out and drops the duplicate.
        """
        for part in (
            self._active,
            self._backoff,
            self._unschedulable,
            self._in_flight,
            self.nominator,
        ):
            part.validate()
        seen: set[str] = set()
        for place in (self._active, self._backoff, self._unschedulable):
            for queued in place:
                if queued.key in seen:
                    raise InvariantError(f"{queued.key} waits in two places")
                seen.add(queued.key)
        for place in (self._active, self._backoff):
            for queued in place:
                if queued.gated:
                    raise InvariantError(f"{queued.key} is gated and yet to be tried")
        for queued in self._active:
            if queued.initial_attempt_timestamp is None:
                raise InvariantError(f"{queued.key} is active and has no time of its first attempt")

    # Steps of the above, in order of first use

    def _entry(self, pod: Pod) -> QueuedPodInfo:
        return QueuedPodInfo(pod, self._clock.now(), signature=self._signature(pod))

    def _signature(self, pod: Pod) -> Hashable | None:
        if self._sign is None:
            return None
        try:
            return self._sign(pod)
        except Exception as error:
            self._report(f"pod {pod.key} could not be signed: {error!r}")
            return None

    def _to_active(self, queued: QueuedPodInfo, label: str, *, from_backoff: bool = False) -> bool:
        """Make the pod active, unless it is gated; whether it now is. Pods in backoff have passed
        PreEnqueue already, on their way there."""
        if not (from_backoff and self._pop_from_backoff):
            self._gates.run(queued)
        key = queued.key
        if queued.gated:
            # A re-created pod of the same name is lost here if it is gated and its predecessor is
            # not: so it is in the reference, until the watch tells of the predecessor's end.
            if key not in self._active and key not in self._backoff:
                self._hold_back(queued, label)
            return False
        if queued.initial_attempt_timestamp is None:
            queued.initial_attempt_timestamp = self._clock.now()
        self._unschedulable.remove(key)
        self._backoff.remove(key)
        self._active.put(queued)
        self._news = True
        self._metrics.queue_incoming_pods(labels.ACTIVE, label)
        if label in (_POD_ADDED, _POD_UPDATED):
            self.nominator.add(queued.pod)
        return True

    def _to_backoff(self, queued: QueuedPodInfo, label: str) -> None:
        if self._pop_from_backoff:
            self._gates.run(queued)
            if queued.gated:
                self._hold_back(queued, label)
                return
        self._unschedulable.remove(queued.key)
        self._backoff.add(queued)
        self._news = True
        self._metrics.queue_incoming_pods(labels.BACKOFF, label)

    def _hold_back(self, queued: QueuedPodInfo, label: str) -> None:
        """PreEnqueue refused the pod: whatever moved it here, it was not a flush that placed it."""
        queued.was_flushed = False
        self._to_unschedulable(queued, label)

    def _to_unschedulable(self, queued: QueuedPodInfo, label: str) -> None:
        if self._unschedulable.put(queued):
            self._metrics.queue_incoming_pods(labels.UNSCHEDULABLE, label)

    def _tell_ready(self) -> None:
        """Only once a whole operation is over, so that the first of all pods it moved is popped."""
        if self._news and self._on_ready is not None and self.ready:
            self._on_ready()
        self._news = False

    def _replace(self, queued: QueuedPodInfo, old: Pod, new: Pod) -> None:
        queued.pod = new
        queued.signature = self._signature(new)
        self.nominator.update(old, new)

    def _requeue_updated(
        self, queued: QueuedPodInfo, events: Iterable[ClusterEvent], old: Pod, new: Pod
    ) -> None:
        for event in events:
            strategy = self._hints.is_pod_worth_requeuing(queued, event, old, new)
            self._requeue(queued, strategy, event.label)
            if queued.key not in self._unschedulable:
                return

    def _count_rejectors(self, queued: QueuedPodInfo, change: int) -> None:
        for plugin in queued.rejectors:
            self._metrics.unschedulable_pods(plugin, queued.pod.scheduler_name, change)

    def _to_in_flight(self, queued: QueuedPodInfo) -> bool:
        queued.attempts += 1
        if queued.uid in self._in_flight:
            self._report(
                f"the same pod is tracked in multiple places in the scheduler: {queued.key};"
                " the one that was popped last is dropped"
            )
            return False
        self._in_flight.add(queued.pod)
        self._scheduling_cycle += 1
        self._count_rejectors(queued, -1)
        return True

    def _activate(self, pod: Pod) -> bool:
        queued = self._unschedulable.get(pod.key)
        if queued is not None:
            return self._to_active(queued, FORCE_ACTIVATE.label)
        queued = self._backoff.remove(pod.key)
        if queued is not None:
            return self._to_active(queued, FORCE_ACTIVATE.label, from_backoff=True)
        return False

    def _note_failure(self, queued: QueuedPodInfo) -> None:
        if queued.rejected:
            queued.unschedulable_count += 1
            queued.consecutive_errors_count = 0
        else:
            queued.consecutive_errors_count += 1
        queued.timestamp = self._clock.now()
        queued.backoff_expiration = None
        queued.was_flushed = False
        queued.flush_timestamp = None
        self._count_rejectors(queued, 1)

    def _strategy_for_in_flight(self, queued: QueuedPodInfo) -> Strategy:
        if not queued.rejected:
            return Strategy.AFTER_BACKOFF
        happened = self._in_flight.since(queued.uid)
        if happened is None:
            self._report(f"pod {queued.key} came back without having been in flight")
            return Strategy.AFTER_BACKOFF
        return self._hints.strategy_after(queued, happened)

    def _requeue(self, queued: QueuedPodInfo, strategy: Strategy, label: str) -> None:
        if strategy == Strategy.SKIP:
            self._to_unschedulable(queued, label)
        elif strategy == Strategy.AFTER_BACKOFF and self._backoff.is_backing_off(queued):
            self._to_backoff(queued, label)
        else:
            self._to_active(queued, label)

    def _move(
        self,
        candidates: Iterable[QueuedPodInfo],
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
    ) -> None:
        for queued in candidates:
            if queued.gated and not _may_open(queued, event):
                continue
            strategy = self._hints.is_pod_worth_requeuing(queued, event, old, new)
            # A plugin may activate pods while it is asked, and so this one may have left by now.
            if strategy == Strategy.SKIP or self._unschedulable.get(queued.key) is not queued:
                continue
            self._unschedulable.remove(queued.key)
            self._requeue(queued, strategy, event.label)
        self._in_flight.record([event], old, new)

    def _queued_pod(self, key: str) -> Pod | None:
        queued = self.get(key)
        return None if queued is None else queued.pod


def _may_open(queued: QueuedPodInfo, event: ClusterEvent) -> bool:
    """Whether a gated pod's gate could be opened by this event."""
    return event.wildcard or any(known.covers(event) for known in queued.gating_plugin_events)


def _last_tried(queued: QueuedPodInfo) -> float:
    flushed = queued.flush_timestamp
    return queued.timestamp if flushed is None else max(queued.timestamp, flushed)
