"""The scheduling queue: which pod is tried next, and where a pod waits until then.

The life of a pod in the queue; ▣ is PreEnqueue, from which a pod goes to unschedulable if refused:

             ┌────────────────────────────────────────────────────────────────────┐
    add ──▣─▶│                               active                               │
             └────────────────────────────────────────────────────────────────────┘
                 ▲                          ▲                      ▲         │ pop
                 │                          │ backoff over         │         ▼
                 ▣                          │ (each second),       │   ┌───────────┐   done:
                 │                          │ or activate          │   │ in flight │─▶ placed,
                 │ an event that a hint     │                      │   └───────────┘   or gone
                 │ says may help;      ┌─────────┐  pop, if none   │     ▲  │  │
                 │ the pod changed; ──▣▶ backoff │──is active, no──┼─────┘  │  │
                 │ activate;           └─────────┘  error put it   │        │  │
                 │ 5 minutes                ▲       there          ▣        │  │ failed, and
                 │                          │                      │        │  │ nothing helps that
                 │                          └───────▣──────────────┴────────┘  │ happened since pop
                 │                            failed, and something helps,     │
         ┌───────────────┐                    or no plugin rejected it         │
         │ unschedulable │◀────────────────────────────────────────────────────┘
         └───────────────┘

Pods that are alike wait together, and one of them is tried for all: see `representatives`.

A pod that is to be tried again goes to backoff while its backoff lasts, and to active if that is
over, if the event is one that a pending plugin waits for, or if it is activated. Pods are known by
`namespace/name` while they wait, and by UID in flight and when nominated, as in the reference.

Nothing here blocks or runs by itself: `pop` returns None when there is nothing to try, and the
driver calls `flush_backoff_completed` on each whole second and `flush_unschedulable_leftover` every
30 seconds. No plugin can break the queue. One that raises is reported; its pod is held back, if it
was a PreEnqueue, or tried again, if it was a hint. Only a QueueSort is trusted not to raise.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from mooring.errors import InvariantError
from mooring.framework.clock import Clock
from mooring.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ClusterEvent
from mooring.framework.interface import QueueSortPlugin
from mooring.framework.object_changes import pod_change_events
from mooring.framework.status import Status
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.queue.backoff import BackoffQueue
from mooring.queue.gates import Gates, PreEnqueueByProfile
from mooring.queue.heap import KeyedHeap, order_by
from mooring.queue.hints import HintsByProfile, QueueingHints, Strategy
from mooring.queue.in_flight import InFlight
from mooring.queue.metrics import BACKOFF_COMPLETE, SCHEDULE_ATTEMPT_FAILURE, QueueMetrics
from mooring.queue.places import POD_ADDED, POD_UPDATED, Places
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.representatives import Representatives
from mooring.queue.unschedulable_pods import Rejection
from mooring.runtime.nominator import Nominator

_LOG = logging.getLogger(__name__)

#: How often the driver calls the two flushes.
FLUSH_BACKOFF_EVERY_S = 1
FLUSH_UNSCHEDULABLE_EVERY_S = 30


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
        class_of: Callable[[Pod], int | None] | None = None,
        initial_backoff_s: float = 1,
        max_backoff_s: float = 10,
        max_in_unschedulable_s: float = 300,
        pop_from_backoff: bool = True,
        metrics: QueueMetrics | None = None,
        report: Callable[[str], None] = _LOG.error,
        on_ready: Callable[[], None] | None = None,
    ) -> None:
        """Make an empty queue.

        nominator
            Taken over: from now on it finds the pods it names in this queue.
        class_of
            Gives a pod the number of its class: one pod of a class is tried for all that wait after the
            same rejection. None for a pod that speaks for itself alone; without the function, all do.
        pop_from_backoff
            The gate SchedulerPopFromBackoffQ.
        report
            Told, in a sentence, of what should not happen.
        on_ready
            Called after each operation that brought in pods while `pop` has something to return.
        """
        metrics = metrics or QueueMetrics()
        order = order_by(queue_sort)
        self.nominator = nominator if nominator is not None else Nominator()
        self.nominator.queued_pod = self._queued_pod
        self._clock = clock
        self._class_of = class_of
        self._max_in_unschedulable_s = max_in_unschedulable_s
        self._metrics = metrics
        self._report = report
        self._on_ready = on_ready
        self._hints = QueueingHints(hints or {}, metrics, report)
        self._in_flight = InFlight(metrics)
        self._gates = Gates(pre_enqueue or {}, self._hints.events_of, metrics, report)
        self._places = Places(
            clock=clock,
            active=KeyedHeap(order),
            backoff=BackoffQueue(
                clock,
                order,
                initial_s=initial_backoff_s,
                max_s=max_backoff_s,
                by_window=pop_from_backoff,
            ),
            gates=self._gates,
            nominator=self.nominator,
            metrics=metrics,
            pop_from_backoff=pop_from_backoff,
        )
        self._representatives = Representatives(self._places, metrics)
        #: Classes with waiting pods that another one was tried for, and rejected; for whoever tells them.
        self.spoken_for = self._representatives.spoken_for
        self._closed = False

    # What is in the queue

    @property
    def ready(self) -> bool:
        """Whether `pop` has something to return."""
        return self._places.ready

    @property
    def closed(self) -> bool:
        return self._closed

    def __contains__(self, key: str) -> bool:
        """Whether a pod of this `namespace/name` is waiting."""
        return key in self._places

    def get(self, key: str) -> QueuedPodInfo | None:
        """The waiting pod of this `namespace/name`."""
        return self._places.get(key)

    def gate(self, pod: Pod) -> Status | None:
        """What the PreEnqueue plugin says that keeps a pod from being tried; None if none does."""
        return self._gates.ask(pod)

    def counts(self) -> QueueCounts:
        places = self._places
        gated = places.unschedulable.gated_count
        return QueueCounts(
            active=len(places.active),
            backoff=len(places.backoff),
            unschedulable=len(places.unschedulable) - gated,
            gated=gated,
        )

    def pending_pods(self) -> tuple[list[Pod], str]:
        """Every waiting pod, and a line that says how many wait where."""
        counts = self.counts()
        summary = (
            f"activeQ:{counts.active}; backoffQ:{counts.backoff};"
            f" unschedulablePods:{counts.unschedulable + counts.gated}"
        )
        return [queued.pod for queued in self._places], summary

    def active_pods(self) -> list[QueuedPodInfo]:
        return list(self._places.active)

    def backoff_pods(self) -> list[QueuedPodInfo]:
        return list(self._places.backoff)

    def unschedulable_pods(self) -> list[QueuedPodInfo]:
        """Gated ones among them."""
        return list(self._places.unschedulable)

    def waiting_alike(self, pod_class: int) -> list[QueuedPodInfo]:
        """The unschedulable pods of a class, in order of arrival; gated ones are not among them."""
        return self._places.unschedulable.where(
            lambda rejection: rejection.pod_class == pod_class and not rejection.gated
        )

    def in_flight_pods(self) -> list[Pod]:
        """Those that were popped and are not done, as they were then."""
        return self._in_flight.pods()

    def validate(self) -> None:
        """Raise InvariantError unless the books add up; for tests and for dumps.

        A UID may be both waiting and in flight: `pop` finds that out and drops the duplicate.
        """
        self._places.validate()
        for queued in self._places:
            if queued.pod_class is not None and queued.pod_class != self._pod_class(queued.pod):
                raise InvariantError(f"{queued.key} is kept as of class {queued.pod_class}")
        self._representatives.validate()
        self._in_flight.validate()
        self.nominator.validate()

    # Pods come, change and go

    def add(self, pod: Pod) -> None:
        """A pod appeared that has no node."""
        self._places.to_active(self._entry(pod), POD_ADDED)
        self._tell_ready()

    def update(self, old: Pod, new: Pod) -> None:
        """A pod that has no node changed. In flight, the change is kept for when it comes back."""
        places = self._places
        events = pod_change_events(old, new)
        if new.uid in self._in_flight:
            self._in_flight.record(events, old, new)
        elif (queued := places.active.get(old.key)) is not None:
            self._replace(queued, old, new)
            places.active.put(queued)
        elif (queued := places.backoff.get(old.key)) is not None:
            self._replace(queued, old, new)
            places.backoff.reorder(queued)
        elif (queued := places.unschedulable.get(new.key)) is not None:
            self._replace(queued, old, new)
            # Its class may be another one now.
            places.unschedulable.refile(queued)
            self._requeue_updated(queued, events, old, new)
        else:
            places.to_active(self._entry(new), POD_UPDATED)
        self._tell_ready()

    def delete(self, pod: Pod) -> None:
        """A pod is gone, or was given a node. If it is in flight, its attempt goes on."""
        self.nominator.delete(pod)
        places = self._places
        if places.active.remove(pod.key) or places.backoff.remove(pod.key):
            self._representatives.gone(pod.key)
            self._tell_ready()
            return
        queued = places.unschedulable.remove(pod.key)
        if queued is not None:
            # From the other places the reference does not count down, and so neither do we.
            self._count_rejectors(queued, -1)

    # Attempts

    def pop(self) -> QueuedPodInfo | None:
        """The pod to try now, which is then in flight until `done`; None if there is none.

        When no pod is active, it is the first one in backoff, unless errors put it there.
        """
        self._representatives.go_on()
        while (queued := self._places.pop()) is not None:
            if self._to_in_flight(queued):
                return queued
        return None

    def pop_specific(self, pod: Pod) -> QueuedPodInfo | None:
        """As `pop`, for this pod, wherever it waits; None if it does not, or is gated."""
        self._places.activate(pod)
        queued = self._places.active.remove(pod.key)
        return queued if queued is not None and self._to_in_flight(queued) else None

    def done(self, uid: str) -> None:
        """The pod's attempt is over, as far as the queue is concerned."""
        self._in_flight.done(uid)

    def add_unschedulable_if_not_present(
        self, queued: QueuedPodInfo, *, for_all_alike: bool = False
    ) -> bool:
        """A popped pod comes back after a failed attempt, with the plugins that rejected it.

        It is done in any case. False, reported, if a pod of its name is waiting already.
        `for_all_alike` says that every pod of its class would have been rejected just the same.
        """
        try:
            if queued.key in self._places:
                self._report(f"pod {queued.key} came back while it was already in the queue")
                return False
            self._note_failure(queued)
            strategy = self._strategy_for_in_flight(queued)
            self._places.requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE)
            if strategy == Strategy.SKIP and for_all_alike:
                self._representatives.rejected(queued)
            return True
        finally:
            self.done(queued.uid)
            self._tell_ready()

    def close(self) -> None:
        """Move no more pods by time; what is there to be popped still can be."""
        self._closed = True
        self._in_flight.clear()
        if self._on_ready is not None:
            self._on_ready()

    # Reasons to try again

    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Try these pods as soon as possible, wherever they wait; unknown ones are ignored."""
        for pod in pods.values():
            if not self._places.activate(pod) and pod.uid in self._in_flight:
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

        unschedulable = self._places.unschedulable
        alike: list[Rejection] = []
        others: list[Rejection] = []
        for rejection in unschedulable.files():
            if matters(rejection):
                (alike if _is_alike(rejection) else others).append(rejection)
        self._wake(alike, event, old, new, pre_check)
        candidates: Iterable[QueuedPodInfo] = unschedulable.in_files(others)
        if pre_check is not None:
            candidates = [queued for queued in candidates if pre_check(queued.pod)]
        self._move(candidates, event, old, new)
        self._in_flight.record([event], old, new)
        self._tell_ready()

    def flush_backoff_completed(self) -> None:
        """Make active the pods whose backoff is over."""
        if self._closed:
            return
        for queued in self._places.backoff.pop_completed():
            self._places.from_backoff_to_active(queued, BACKOFF_COMPLETE)
        self._tell_ready()

    def flush_unschedulable_leftover(self) -> None:
        """Try the pods again for which nothing has happened for too long."""
        if self._closed:
            return
        now = self._clock.now()
        unschedulable = self._places.unschedulable
        alike, leftover = [], []
        for rejection in unschedulable.files():
            waited = [
                queued
                for queued in unschedulable.in_files((rejection,))
                if now - _last_tried(queued) > self._max_in_unschedulable_s
            ]
            for queued in waited:
                queued.was_flushed = True
                queued.flush_timestamp = now
            if waited and _is_alike(rejection):
                alike.append(rejection)
            else:
                leftover += waited
        if alike or leftover:
            self._wake(alike, UNSCHEDULABLE_TIMEOUT, None, None)
            self._move(leftover, UNSCHEDULABLE_TIMEOUT, None, None)
            self._in_flight.record([UNSCHEDULABLE_TIMEOUT], None, None)
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

    # Steps of the above, in order of first use

    def _queued_pod(self, key: str) -> Pod | None:
        queued = self._places.get(key)
        return None if queued is None else queued.pod

    def _entry(self, pod: Pod) -> QueuedPodInfo:
        return QueuedPodInfo(pod, self._clock.now(), pod_class=self._pod_class(pod))

    def _pod_class(self, pod: Pod) -> int | None:
        return self._class_of(pod) if self._class_of is not None else None

    def _tell_ready(self) -> None:
        """Only once a whole operation is over, so that the first of all it moved is popped."""
        has_news, self._places.has_news = self._places.has_news, False
        if has_news and self._on_ready is not None and self.ready:
            self._on_ready()

    def _replace(self, queued: QueuedPodInfo, old: Pod, new: Pod) -> None:
        queued.pod = new
        pod_class = self._pod_class(new)
        if pod_class != queued.pod_class:
            queued.pod_class = pod_class
            self._representatives.gone(queued.key)
        self.nominator.update(old, new)

    def _requeue_updated(
        self, queued: QueuedPodInfo, events: Iterable[ClusterEvent], old: Pod, new: Pod
    ) -> None:
        for event in events:
            strategy = self._hints.is_pod_worth_requeuing(queued, event, old, new)
            self._places.requeue(queued, strategy, event.label)
            if queued.key not in self._places.unschedulable:
                return

    def _count_rejectors(self, queued: QueuedPodInfo, change: int) -> None:
        for plugin in queued.rejectors:
            self._metrics.unschedulable_pods(plugin, queued.pod.scheduler_name, change)

    def _to_in_flight(self, queued: QueuedPodInfo) -> bool:
        """False, reported, if the pod is in flight already: then this one is dropped."""
        queued.attempts += 1
        if queued.uid in self._in_flight:
            self._report(
                f"the same pod is tracked in multiple places in the scheduler: {queued.key}"
            )
            return False
        self._in_flight.add(queued.pod)
        self._representatives.popped(queued)
        self._count_rejectors(queued, -1)
        return True

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

    def _move(
        self,
        candidates: Iterable[QueuedPodInfo],
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
    ) -> None:
        unschedulable = self._places.unschedulable
        for queued in candidates:
            if queued.gated and not _may_open(queued, event):
                continue
            strategy = self._hints.is_pod_worth_requeuing(queued, event, old, new)
            # A plugin may activate pods while it is asked, and so this one may have left by now.
            if strategy == Strategy.SKIP or unschedulable.get(queued.key) is not queued:
                continue
            unschedulable.remove(queued.key)
            self._places.requeue(queued, strategy, event.label)

    def _wake(
        self,
        files: Iterable[Rejection],
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> None:
        """As `_move`, for pods that are alike: what holds for the first of a file holds for all."""
        for file in files:
            if self._representatives.is_awake(file):
                continue
            first = self._places.unschedulable.first_in(file, pre_check)
            if first is None:
                continue
            strategy = self._hints.is_pod_worth_requeuing(first, event, old, new)
            if strategy != Strategy.SKIP:
                self._representatives.wake(file, first, strategy, event.label)


def _is_alike(rejection: Rejection) -> bool:
    """Whether one pod of the file may be tried for all."""
    return rejection.pod_class is not None and not rejection.gated


def _may_open(queued: QueuedPodInfo, event: ClusterEvent) -> bool:
    """Whether a gated pod's gate could be opened by this event."""
    return event.wildcard or any(known.covers(event) for known in queued.gating_plugin_events)


def _last_tried(queued: QueuedPodInfo) -> float:
    flushed = queued.flush_timestamp
    return queued.timestamp if flushed is None else max(queued.timestamp, flushed)
