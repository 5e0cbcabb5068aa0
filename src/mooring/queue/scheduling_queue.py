"""The scheduling queue: which pod is tried next, and where the others wait.

The life of a pod in the queue. ▣ is PreEnqueue; a pod that it refuses goes to unschedulable:

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

One pod of a class is tried for all that wait after the same rejection: see `representatives`.

A pod that is to be tried again goes to backoff while its backoff lasts. It goes to active if its
backoff is over, if a pending plugin waits for the event, or if it is activated. As in the
reference, pods are identified by `namespace/name` while they wait, and by UID in flight and when
nominated.

Nothing here blocks or runs by itself: `pop` returns None when there is nothing to try, and the
driver calls `flush_backoff_completed` every second and `flush_unschedulable_leftover` every 30
seconds. If a plugin raises, the queue reports the error: after PreEnqueue the pod is gated, after a
hint it is tried again. Only QueueSort must not raise.
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
from mooring.queue import saved_queue
from mooring.queue.backoff import BackoffQueue
from mooring.queue.heap import KeyedHeap, order_by
from mooring.queue.hints import HintsByProfile, QueueingHints, Strategy
from mooring.queue.in_flight import InFlight
from mooring.queue.metrics import BACKOFF_COMPLETE, SCHEDULE_ATTEMPT_FAILURE, QueueMetrics
from mooring.queue.pod_queues import POD_ADDED, POD_UPDATED, PodQueues
from mooring.queue.pre_enqueue import PreEnqueueByProfile, PreEnqueuePlugins
from mooring.queue.queued_pod import History, QueuedPodInfo
from mooring.queue.representatives import Representatives
from mooring.queue.saved_queue import SavedQueue
from mooring.queue.unschedulable_pods import Rejection
from mooring.runtime.nominator import Nominator

_LOG = logging.getLogger(__name__)

#: How often the driver calls the two flushes.
FLUSH_BACKOFF_EVERY_S = 1
FLUSH_UNSCHEDULABLE_EVERY_S = 30


class QueueCounts(NamedTuple):
    """How many pods each queue holds; gated pods do not count as unschedulable."""

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
        groups_back_off: bool = False,
        metrics: QueueMetrics | None = None,
        report: Callable[[str], None] = _LOG.error,
        on_ready: Callable[[], None] | None = None,
        gates_first: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        """Create an empty queue.

        nominator
            From now on it looks up pods in this queue.
        class_of
            Returns the number of a pod's class (`objects.pod_class`), or None if the pod has none.
            Without the function, no pod has a representative.
        pop_from_backoff
            The gate SchedulerPopFromBackoffQ.
        groups_back_off
            The gate GenericWorkload: a pod of a group goes to backoff after each failed attempt.
        report
            Called with a message about what should not happen.
        on_ready
            Called after each operation that moved pods, if `pop` returns a pod.
        gates_first
            By scheduler name, the PreEnqueue plugins that are asked about the pods that they gate before
            the hints are.
        """
        metrics = metrics or QueueMetrics()
        order = order_by(queue_sort)
        self.nominator = nominator if nominator is not None else Nominator()
        self.nominator.follow(self._queued_pod)
        self._clock = clock
        self._class_of = class_of
        self._max_in_unschedulable_s = max_in_unschedulable_s
        self._groups_back_off = groups_back_off
        self._metrics = metrics
        self._report = report
        self._on_ready = on_ready
        self._hints = QueueingHints(hints or {}, metrics, report)
        self._in_flight = InFlight(metrics)
        self._pre_enqueue = PreEnqueuePlugins(
            pre_enqueue or {}, self._hints.events_of, metrics, report, gates_first
        )
        self._queues = PodQueues(
            clock=clock,
            active=KeyedHeap(order),
            backoff=BackoffQueue(
                clock,
                order,
                initial_s=initial_backoff_s,
                max_s=max_backoff_s,
                by_window=pop_from_backoff,
            ),
            pre_enqueue=self._pre_enqueue,
            nominator=self.nominator,
            metrics=metrics,
            pop_from_backoff=pop_from_backoff,
        )
        self._representatives = Representatives(self._queues, metrics)
        #: The classes whose representative was rejected; `scheduler.shared_conditions` reads them.
        self.rejected_classes = self._representatives.rejected_classes
        self._closed = False

    # What is in the queue

    @property
    def ready(self) -> bool:
        """Whether `pop` returns a pod."""
        return self._queues.ready

    @property
    def closed(self) -> bool:
        return self._closed

    def __contains__(self, key: str) -> bool:
        """Whether a pod with this `namespace/name` waits."""
        return key in self._queues

    def get(self, key: str) -> QueuedPodInfo | None:
        """The waiting pod with this `namespace/name`."""
        return self._queues.get(key)

    def gate(self, pod: Pod) -> Status | None:
        """What the PreEnqueue plugin says that keeps a pod from being tried; None if none does."""
        return self._pre_enqueue.ask(pod)

    def counts(self) -> QueueCounts:
        queues = self._queues
        gated = queues.unschedulable.gated_count
        return QueueCounts(
            active=len(queues.active),
            backoff=len(queues.backoff),
            unschedulable=len(queues.unschedulable) - gated,
            gated=gated,
        )

    def pending_pods(self) -> tuple[list[Pod], str]:
        """Every waiting pod, and a line with the counts."""
        counts = self.counts()
        summary = (
            f"activeQ:{counts.active}; backoffQ:{counts.backoff};"
            f" unschedulablePods:{counts.unschedulable + counts.gated}"
        )
        return [queued.pod for queued in self._queues], summary

    def active_pods(self) -> list[QueuedPodInfo]:
        return list(self._queues.active)

    def backoff_pods(self) -> list[QueuedPodInfo]:
        return list(self._queues.backoff)

    def refused_in_groups(self) -> list[QueuedPodInfo]:
        """The pods in backoff that were refused with their group; nothing has happened for them since."""
        return self._queues.backoff.patient if self._groups_back_off else []

    def unschedulable_pods(self) -> list[QueuedPodInfo]:
        """The unschedulable pods, including gated ones."""
        return list(self._queues.unschedulable)

    def unschedulable_of_class(self, pod_class: int) -> list[QueuedPodInfo]:
        """The unschedulable pods of a class, without gated ones, in order of arrival."""
        return self._queues.unschedulable.where(
            lambda rejection: rejection.pod_class == pod_class and not rejection.gated
        )

    def in_flight_pods(self) -> list[Pod]:
        """The pods in flight, as they were when they were popped."""
        return self._in_flight.pods()

    def validate(self) -> None:
        """Raise InvariantError unless the queue is consistent; for tests and for dumps.

        A UID may be both waiting and in flight: `pop` drops the duplicate.
        """
        self._queues.validate()
        for queued in self._queues:
            if queued.pod_class is not None and queued.pod_class != self._pod_class(queued.pod):
                raise InvariantError(f"{queued.key} is kept as of class {queued.pod_class}")
        self._representatives.validate()
        self._in_flight.validate()
        self.nominator.validate()

    # Another queue goes on from here

    @property
    def may_save(self) -> bool:
        return not len(self._in_flight) and not self._representatives.is_trying

    def save(self) -> SavedQueue:
        """Every waiting pod with its past and its place; only if `may_save`."""
        return saved_queue.save(self._queues, self._representatives)

    def load(self, saved: SavedQueue, find: Callable[[str], Pod | None]) -> None:
        """Go on where another queue was saved; `find` returns a pod by `namespace/name`."""
        saved_queue.load(
            saved,
            self._queues,
            self._representatives,
            self._pre_enqueue,
            find=find,
            class_of=self._pod_class,
        )
        # All pods have moved.
        self.nominator.follow(self._queued_pod)

    # Pods are added, updated and deleted

    def add(self, pod: Pod, history: History | None = None) -> None:
        """Add a pod that has no node, with its history in another queue."""
        queued = self._entry(pod)
        if history is not None:
            queued.attempts, queued.unschedulable_count = history[:2]
            queued.initial_attempt_timestamp = history.initial_attempt_timestamp
        self._queues.to_active(queued, POD_ADDED)
        self._tell_ready()

    def update(self, old: Pod, new: Pod) -> None:
        """Update a pod that has no node. In flight, the change is kept until it comes back."""
        queues = self._queues
        events = pod_change_events(old, new)
        if new.uid in self._in_flight:
            self._in_flight.record(events, old, new)
        elif (queued := queues.active.get(old.key)) is not None:
            self._replace(queued, old, new)
            queues.active.put(queued)
        elif (queued := queues.backoff.get(old.key)) is not None:
            self._replace(queued, old, new)
            queues.backoff.reorder(queued)
        elif (queued := queues.unschedulable.get(new.key)) is not None:
            self._replace(queued, old, new)
            # Its class may have changed.
            queues.unschedulable.regroup(queued)
            self._requeue_updated(queued, events, old, new)
        else:
            queues.to_active(self._entry(new), POD_UPDATED)
        self._tell_ready()

    def delete(self, pod: Pod) -> None:
        """Remove a pod that was deleted or got a node. An attempt in flight continues."""
        self.nominator.delete(pod)
        self.nominator.moved(pod.key)
        queues = self._queues
        if queues.active.remove(pod.key) or queues.backoff.remove(pod.key):
            self._representatives.gone(pod.key)
            self._tell_ready()
            return
        queued = queues.unschedulable.remove(pod.key)
        if queued is not None:
            # As in the reference, the metric goes down only for pods from this queue.
            self._count_rejectors(queued, -1)

    # Attempts

    def pop(self) -> QueuedPodInfo | None:
        """The pod to try next, or None. It is in flight until `done`.

        If no pod is active, take the first in backoff that plugins rejected.
        """
        self._representatives.go_on()
        while (queued := self._queues.pop()) is not None:
            if self._to_in_flight(queued):
                return queued
        return None

    def pop_specific(self, pod: Pod) -> QueuedPodInfo | None:
        """As `pop`, for this pod; None if it does not wait, or is gated."""
        self._queues.activate(pod)
        queued = self._queues.active.remove(pod.key)
        self.nominator.moved(pod.key)
        return queued if queued is not None and self._to_in_flight(queued) else None

    def done(self, uid: str) -> None:
        """End the pod's attempt."""
        self._in_flight.done(uid)

    def follow(self, queued: QueuedPodInfo, pod: Pod) -> None:
        """A pod that was popped has changed meanwhile: it is to come back as it is now."""
        if queued.pod is not pod:
            queued.pod = pod
            queued.pod_class = self._pod_class(pod)

    def add_unschedulable_if_not_present(
        self, queued: QueuedPodInfo, *, for_class: bool = False
    ) -> bool:
        """Put back a popped pod after a failed attempt, with the plugins that rejected it.

        The attempt is done in any case. If a pod with the same name waits already, report that and
        return False. `for_class` says that every pod of its class would be rejected too.
        """
        try:
            if queued.key in self._queues:
                self._report(f"pod {queued.key} came back while it was already in the queue")
                return False
            self._note_failure(queued)
            strategy = self._strategy_for_in_flight(queued)
            self._queues.requeue(queued, strategy, SCHEDULE_ATTEMPT_FAILURE)
            if strategy == Strategy.SKIP and for_class:
                self._representatives.rejected(queued)
            return True
        finally:
            self.done(queued.uid)
            self._tell_ready()

    def close(self) -> None:
        """Stop the flushes. Waiting pods can still be popped."""
        self._closed = True
        self._in_flight.clear()
        if self._on_ready is not None:
            self._on_ready()

    # Reasons to try again

    def activate(self, pods: Mapping[str, Pod]) -> None:
        """Try these pods as soon as possible. Unknown pods are ignored."""
        for pod in pods.values():
            if not self._queues.activate(pod) and pod.uid in self._in_flight:
                self._in_flight.record([FORCE_ACTIVATE], None, pod)
        self._tell_ready()

    def move_all(
        self,
        event: ClusterEvent,
        old: KubeObject | None = None,
        new: KubeObject | None = None,
        pre_check: Callable[[Pod], bool] | None = None,
        closed_gate: str = "",
    ) -> None:
        """Move the pods that the event may help (MoveAllToActiveOrBackoffQueue).

        `pre_check` says which pods to consider. `closed_gate` is a PreEnqueue plugin that would
        still hold back every pod that it holds back.
        """
        if not self._hints.is_of_interest(event):
            return
        in_backoff = self._groups_back_off and bool(len(self._queues.backoff))
        if not len(self._queues.unschedulable) and not in_backoff:
            # Most changes of a cluster with room for all.
            self._in_flight.record((event,), old, new)
            return

        def matters(rejection: Rejection) -> bool:
            if closed_gate and rejection.gated and rejection.rejectors == {closed_gate}:
                return False
            return self._hints.may_help(
                event, profile=rejection.profile, rejectors=rejection.rejectors
            )

        unschedulable = self._queues.unschedulable
        represented: list[Rejection] = []
        others: list[Rejection] = []
        for rejection in unschedulable.groups():
            if matters(rejection):
                (represented if _has_representative(rejection) else others).append(rejection)
        self._wake(represented, event, old, new, pre_check)
        candidates: Iterable[QueuedPodInfo] = unschedulable.in_groups(others)
        if pre_check is not None:
            candidates = [queued for queued in candidates if pre_check(queued.pod)]
        self._move(candidates, event, old, new)
        if in_backoff:
            self._hurry(event, old, new, pre_check)
        self._in_flight.record([event], old, new)
        self._tell_ready()

    def flush_backoff_completed(self) -> None:
        """Make active all pods whose backoff is over."""
        if self._closed:
            return
        for queued in self._queues.backoff.pop_completed():
            self._queues.from_backoff_to_active(queued, BACKOFF_COMPLETE)
        self._tell_ready()

    def flush_unschedulable_leftover(self) -> None:
        """Try pods again that have been unschedulable for too long."""
        if self._closed:
            return
        now = self._clock.now()
        unschedulable = self._queues.unschedulable
        represented, leftover = [], []
        for rejection in unschedulable.groups():
            waited = [
                queued
                for queued in unschedulable.in_groups((rejection,))
                if now - _last_tried(queued) > self._max_in_unschedulable_s
            ]
            for queued in waited:
                queued.was_flushed = True
                queued.flush_timestamp = now
            if waited and _has_representative(rejection):
                represented.append(rejection)
            else:
                leftover += waited
        if represented or leftover:
            self._wake(represented, UNSCHEDULABLE_TIMEOUT, None, None)
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
        """What to do with the pod after this event."""
        return self._hints.is_pod_worth_requeuing(queued, event, old, new)

    # Steps of the above, in order of first use

    def _queued_pod(self, key: str) -> Pod | None:
        queued = self._queues.get(key)
        return None if queued is None else queued.pod

    def _entry(self, pod: Pod) -> QueuedPodInfo:
        return QueuedPodInfo(pod, self._clock.now(), pod_class=self._pod_class(pod))

    def _pod_class(self, pod: Pod) -> int | None:
        return self._class_of(pod) if self._class_of is not None else None

    def _tell_ready(self) -> None:
        """Call `on_ready` after a whole operation, so that the first of all moved pods is popped."""
        has_news, self._queues.has_news = self._queues.has_news, False
        if has_news and self._on_ready is not None and self.ready:
            self._on_ready()

    def _replace(self, queued: QueuedPodInfo, old: Pod, new: Pod) -> None:
        queued.pod = new
        pod_class = self._pod_class(new)
        if pod_class != queued.pod_class:
            queued.pod_class = pod_class
            self._representatives.gone(queued.key)
        self.nominator.update(old, new)
        self.nominator.moved(new.key)

    def _requeue_updated(
        self, queued: QueuedPodInfo, events: Iterable[ClusterEvent], old: Pod, new: Pod
    ) -> None:
        for event in events:
            strategy = self._hints.is_pod_worth_requeuing(queued, event, old, new)
            self._queues.requeue(queued, strategy, event.label)
            if queued.key not in self._queues.unschedulable:
                return

    def _count_rejectors(self, queued: QueuedPodInfo, change: int) -> None:
        if not queued.rejected:
            return
        for plugin in queued.rejectors:
            self._metrics.unschedulable_pods(plugin, queued.pod.scheduler_name, change)

    def _to_in_flight(self, queued: QueuedPodInfo) -> bool:
        """False if the pod is in flight already: report and drop the duplicate."""
        queued.attempts += 1
        if not self._in_flight.add(queued.pod):
            self._report(
                f"the same pod is tracked in multiple places in the scheduler: {queued.key}"
            )
            return False
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
            if queued.waits_out:
                queued.waits_out = not self._in_flight.since(queued.uid)
            return Strategy.AFTER_BACKOFF
        happened = self._in_flight.since(queued.uid)
        if happened is None:
            self._report(f"pod {queued.key} came back without having been in flight")
            return Strategy.AFTER_BACKOFF
        strategy = self._hints.strategy_after(queued, happened)
        if self._groups_back_off and queued.pod.spec.scheduling_group is not None:
            # Events wake pods, but no group as a whole.
            queued.waits_out = strategy == Strategy.SKIP
            return Strategy.AFTER_BACKOFF
        return strategy

    def _move(
        self,
        candidates: Iterable[QueuedPodInfo],
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
    ) -> None:
        unschedulable = self._queues.unschedulable
        #: Plugin → whether the event may open its gate.
        opens: dict[str, bool] = {}
        for queued in candidates:
            if queued.gated and not event.wildcard and not self._may_pass(queued, event, opens):
                continue
            strategy = self._hints.is_pod_worth_requeuing(queued, event, old, new)
            # A hint may activate pods, so this pod may have left.
            if strategy == Strategy.SKIP or unschedulable.get(queued.key) is not queued:
                continue
            unschedulable.remove(queued.key)
            self._queues.requeue(queued, strategy, event.label)

    def _may_pass(self, queued: QueuedPodInfo, event: ClusterEvent, opens: dict[str, bool]) -> bool:
        """Whether an event may let a gated pod go.

        While hundreds of preemptors wait for their victims, each victim that goes concerns all of them,
        and opens one gate: so that gate is asked before the hints.
        """
        plugin = queued.gating_plugin
        may_open = opens.get(plugin)
        if may_open is None:
            may_open = any(known.covers(event) for known in queued.gating_plugin_events)
            opens[plugin] = may_open
        return may_open and not self._pre_enqueue.still_refuses(queued)

    def _hurry(
        self,
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
        pre_check: Callable[[Pod], bool] | None,
    ) -> None:
        """Let the pods of groups that the event may help go before their backoff ends.

        Those that no plugin rejected go when it ends. The driver may have to set a timer for that.
        """
        hurried = False
        for queued in self._queues.backoff.patient:
            if pre_check is None or pre_check(queued.pod):
                strategy = self._hints.is_pod_worth_requeuing(queued, event, old, new)
                if strategy != Strategy.SKIP:
                    self._queues.backoff.hurry(queued)
                    hurried = True
        if hurried and self._on_ready is not None:
            self._on_ready()

    def _wake(
        self,
        groups: Iterable[Rejection],
        event: ClusterEvent,
        old: KubeObject | None,
        new: KubeObject | None,
        pre_check: Callable[[Pod], bool] | None = None,
    ) -> None:
        """As `_move`, for groups of pods of one class: the first pod stands for the whole group."""
        for group in groups:
            if self._representatives.is_awake(group):
                continue
            first = self._queues.unschedulable.first_in(group, pre_check)
            if first is None:
                continue
            strategy = self._hints.is_pod_worth_requeuing(first, event, old, new)
            if strategy != Strategy.SKIP:
                self._representatives.wake(group, first, strategy, event.label)


def _has_representative(rejection: Rejection) -> bool:
    """Whether one pod of the group may be tried for all."""
    return rejection.pod_class is not None and not rejection.gated


def _last_tried(queued: QueuedPodInfo) -> float:
    flushed = queued.flush_timestamp
    return queued.timestamp if flushed is None else max(queued.timestamp, flushed)
