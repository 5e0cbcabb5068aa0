"""Drives the scheduler on a real event loop: events in, pods popped, binding cycles as tasks, timers.

The counterpart of `sim.simulation`, in real time. Everything here runs in the one thread that decides.
Whatever fails in a task is logged and counted, and the pod it was about is tried again; nothing ends
the loop without a word.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mooring.cluster.listers import LISTED
from mooring.config.types import KubeSchedulerConfiguration
from mooring.errors import InvariantError
from mooring.framework.api import ApiWriter
from mooring.framework.clock import Clock
from mooring.framework.events import EventResource
from mooring.live.live_scheduler import LiveScheduler
from mooring.live.metrics import CacheSizes, LiveMetrics
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.plugins.registry import default_registry
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.scheduling_queue import FLUSH_BACKOFF_EVERY_S, FLUSH_UNSCHEDULABLE_EVERY_S
from mooring.runtime.registry import Registry
from mooring.scheduler.binding_cycle import ASSIGNED_POD_DELETE
from mooring.scheduler.choosing import SeededSpread, TieBreak
from mooring.scheduler.event_handlers import EventHandlers
from mooring.scheduler.extenders import Transport
from mooring.scheduler.journal import RecentFacts, decided
from mooring.scheduler.scheduler import Scheduler, Surroundings
from mooring.scheduler.scheduling_cycle import Decision
from mooring.webhook import HttpTransport

_LOG = logging.getLogger(__name__)

#: How often pods that another one is tried for are told why they wait.
_REPEAT_CONDITIONS_S = 20.0

#: How long pods are placed before watches and bindings get their turn.
_TURN_S = 0.002

Spawn = Callable[[Coroutine[Any, Any, None]], None]


@dataclass(frozen=True, slots=True)
class DriverParts:
    """What a driver is given."""

    clock: Clock
    writer: ApiWriter
    metrics: LiveMetrics
    #: Whether pods may be placed now; asked before each of them.
    may_write: Callable[[], bool] = lambda: True
    #: Told of what leaves no way on but to end the process.
    on_fatal: Callable[[str], None] = _LOG.critical
    make_registry: Callable[[], Registry] = default_registry
    tie_break: TieBreak = field(default_factory=lambda: SeededSpread(0))
    seed: int = 0


class GivenUp(NamedTuple):
    """What was still under way at the end."""

    bindings: int
    #: Evictions, and whatever else plugins do.
    others: int


class Driver:
    """One scheduler with all that keeps it going. Is itself told what happens in the cluster."""

    def __init__(self, config: KubeSchedulerConfiguration, parts: DriverParts) -> None:
        """Raises ConfigError if the configuration's plugins or extenders cannot be built."""
        self.parts = parts
        self.loop = asyncio.get_running_loop()
        self._running = False
        self._pumping = False
        self._timers: list[asyncio.TimerHandle | None] = [None, None]
        #: Binding cycles and evictions under way.
        self.tasks: set[asyncio.Task[None]] = set()
        #: Status patches that wait or are under way; at the end nobody waits for them.
        self.patches: set[asyncio.Task[None]] = set()
        #: Pods whose bindings were begun by the scheduler of an earlier configuration.
        self._inherited: dict[str, Pod] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        #: Schedulers of earlier configurations that have bindings under way.
        self._retired: list[LiveScheduler] = []
        #: It outlives a reload.
        self.journal = RecentFacts()
        self.scheduler, self._transport = self._build(config)
        self._handlers = EventHandlers(self.scheduler)

    @property
    def config(self) -> KubeSchedulerConfiguration:
        return self.scheduler.config

    # What happens in the cluster

    def added(self, obj: KubeObject) -> None:
        self._tell("Add", self._handlers.added, obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self._tell("Update", self._handlers.updated, old, new)

    def deleted(self, obj: KubeObject) -> None:
        self._tell("Delete", self._handlers.deleted, obj)

    def _tell(self, action: str, handle: Callable[..., None], *objects: KubeObject) -> None:
        metrics = self.parts.metrics
        started = metrics.timer()
        event = _what(objects[0]) + action
        try:
            handle(*objects)
        except InvariantError as error:
            self.parts.on_fatal(f"mooring's books do not add up: {error}")
        except Exception:
            metrics.task_failed()
            _LOG.exception("handling %s ended unexpectedly", event)
        metrics.event_handled(event, metrics.timer() - started)

    # Going on and stopping

    def start(self) -> None:
        """Place pods from now on."""
        self._running = True
        self._flush_backoff()
        self._flush_leftover()

    def stop(self) -> None:
        """Place no more pods; binding cycles go on."""
        self._running = False
        for timer in self._timers:
            if timer is not None:
                timer.cancel()

    async def drain(self, timeout_s: float) -> GivenUp:
        """Wait for bindings and evictions to end; how many did not, and were given up."""
        # Who waits for Permit may wait for minutes: the next scheduler decides again.
        for waiting in list(self.scheduler.waiting_pods):
            waiting.reject("", "the scheduler is shutting down")
        until = self.loop.time() + timeout_s
        # A binding that fails has its failure told by a task of its own.
        while self.tasks and (left_s := until - self.loop.time()) > 0:
            await asyncio.wait(self.tasks, timeout=left_s)
        left = [task for task in self.tasks if not task.done()]
        bindings = sum(len(scheduler.binding) for scheduler in (self.scheduler, *self._retired))
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1.0)
        return GivenUp(bindings, len(left) - bindings)

    def close(self) -> None:
        self.stop()
        self.scheduler.close()
        self._transport_close()

    # One pod after another

    def _wake(self) -> None:
        if self._running and not self._pumping:
            self._pumping = True
            self.loop.call_soon(self._pump)

    def _pump(self) -> None:
        """Place pods for a while, then let watches and bindings go on."""
        until = self.loop.time() + _TURN_S
        try:
            while self._running and self.parts.may_write():
                if not self.scheduler.schedule_one():
                    break
                if self.loop.time() >= until:
                    self.loop.call_soon(self._pump)
                    return
        except Exception:
            # The pod's own failures are dealt with by the scheduler: this is about the queue itself.
            self.parts.metrics.task_failed()
            _LOG.exception("the scheduling loop ended unexpectedly; it goes on within a second")
        self._pumping = False

    def _flush_backoff(self) -> None:
        """On each whole second, as backoffs are counted in them."""
        self._timers[0] = self._at_next(FLUSH_BACKOFF_EVERY_S, self._flush_backoff)
        self._guarded(self.scheduler.queue.flush_backoff_completed)
        self._guarded(self.scheduler.shared_conditions.tell_some)
        self._guarded(self._tell_sizes)
        self._wake()

    def _flush_leftover(self) -> None:
        self._timers[1] = self._at_next(FLUSH_UNSCHEDULABLE_EVERY_S, self._flush_leftover)
        self._guarded(self.scheduler.queue.flush_unschedulable_leftover)
        self._wake()

    def _at_next(self, period_s: int, callback: Callable[[], None]) -> asyncio.TimerHandle:
        now = self.parts.clock.now()
        # A little late rather than a little early: a timer may fire before its time by the clock's grain.
        delay_s = (int(now) // period_s + 1) * period_s - now + 0.001
        return self.loop.call_later(delay_s, callback)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:
            self.parts.metrics.task_failed()
            _LOG.exception("%s ended unexpectedly", getattr(step, "__name__", step))

    def _tell_sizes(self) -> None:
        self.parts.metrics.sizes(
            self.scheduler.queue.counts(),
            cache_sizes(self.scheduler),
            len(self.scheduler.binding),
        )

    # Tasks

    def _spawner(self) -> Spawn:
        """Spawns for one scheduler: a task that crashes gives its pod back to the one it came from."""

        def spawn(work: Coroutine[Any, Any, None]) -> None:
            owner = self.scheduler
            attempting = owner.attempting
            task = self.loop.create_task(work)
            self.tasks.add(task)
            task.add_done_callback(lambda done: self._ended(done, owner, attempting))

        return spawn

    def _spawn_patch(self, work: Coroutine[Any, Any, None]) -> None:
        task = self.loop.create_task(work)
        self.patches.add(task)
        task.add_done_callback(self._patched)

    def _patched(self, task: asyncio.Task[None]) -> None:
        self.patches.discard(task)
        self._note_failure(task)

    def _note_failure(self, task: asyncio.Task[None]) -> BaseException | None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _LOG.error("a task ended unexpectedly: %s", task.get_name(), exc_info=error)
            self.parts.metrics.task_failed()
        return error

    def _ended(
        self, task: asyncio.Task[None], owner: LiveScheduler, attempting: QueuedPodInfo | None
    ) -> None:
        self.tasks.discard(task)
        error = self._note_failure(task)
        if isinstance(error, InvariantError):
            self.parts.on_fatal(f"mooring's books do not add up: {error}")
        if attempting is None or owner is self.scheduler:
            return
        if not owner.cluster.is_assumed(attempting.pod):
            self._take_back(attempting.uid)

    def _take_back(self, uid: str) -> None:
        """A binding of an earlier configuration failed: its pod is for this scheduler to place."""
        pod = self._inherited.pop(uid, None)
        scheduler = self.scheduler
        if pod is None or not scheduler.cluster.is_assumed(pod):
            return
        scheduler.cluster.forget_pod(pod)
        scheduler.queue.move_all(ASSIGNED_POD_DELETE, pod, None)
        known = scheduler.observed_pods.get(pod.key)
        if known is not None and known.uid == uid and not known.node_name:
            scheduler.queue.add(known)

    # Building, and building again

    def _build(self, config: KubeSchedulerConfiguration) -> tuple[LiveScheduler, Transport | None]:
        parts = self.parts
        transport = HttpTransport(config.extenders) if config.extenders else None
        around = Surroundings(
            clock=parts.clock,
            writer=parts.writer,
            spawn=self._spawner(),
            spawn_patch=self._spawn_patch,
            registry=parts.make_registry(),
            metrics=parts.metrics,
            queue_metrics=parts.metrics,
            tie_break=parts.tie_break,
            repeat_conditions_after_s=_REPEAT_CONDITIONS_S,
            seed=parts.seed,
            on_decision=self._decided,
            on_crash=lambda _: parts.metrics.task_failed(),
            on_ready=self._wake,
            transport=transport,
            aside=asyncio.to_thread,
        )
        scheduler = LiveScheduler(config, around, parts.metrics, parts.on_fatal, self.journal)
        return scheduler, transport

    def _decided(self, decision: Decision) -> None:
        attempting = self.scheduler.attempting
        number = attempting.attempts if attempting is not None else 0
        self.journal.add(decided(self.parts.clock.now(), decision, number))

    def reload(self, config: KubeSchedulerConfiguration) -> None:
        """Go on under another configuration, with everything that is known and waits.

        Raises ConfigError if its plugins cannot be built; then all is as it was. All waiting pods are
        tried again, as other rules may let them pass. Pods that wait for Permit are rejected by the
        old plugins and tried by the new ones; bindings under way end as they began.
        """
        old, old_transport = self.scheduler, self._transport
        new, transport = self._build(config)
        self.parts.metrics.queue_replaced()
        inherit(old, new)
        self.scheduler, self._transport = new, transport
        self._handlers = EventHandlers(new)
        self._inherited = {pod.uid: pod for pod in new.cluster.assumed_pods()}
        for waiting in list(old.waiting_pods):
            waiting.reject("", "the scheduler's configuration was reloaded")
        self._retired.append(old)
        retiring = self.loop.create_task(self._retire(old, old_transport, list(self.tasks)))
        self._retiring.add(retiring)
        retiring.add_done_callback(self._retiring.discard)
        self._wake()

    async def _retire(
        self, old: LiveScheduler, transport: Transport | None, bindings: list[asyncio.Task[None]]
    ) -> None:
        """Close the plugins of an earlier configuration once nothing of theirs is under way."""
        if bindings:
            await asyncio.wait(bindings)
        self._retired.remove(old)
        old.close()
        if isinstance(transport, HttpTransport):
            transport.close()

    def _transport_close(self) -> None:
        if isinstance(self._transport, HttpTransport):
            self._transport.close()


def _what(obj: KubeObject) -> str:
    """What an event is about, as the reference's metrics call it."""
    if isinstance(obj, Pod):
        return (
            EventResource.ASSIGNED_POD.value
            if obj.node_name
            else EventResource.UNSCHEDULABLE_POD.value
        )
    return type(obj).__name__


def inherit(old: Scheduler, new: Scheduler) -> None:
    """Give a scheduler everything that another knows: objects, assumptions, waiting pods."""
    handlers = EventHandlers(new)
    for kind in LISTED:
        for obj in old.cluster.listers.all(kind):
            handlers.added(obj)
    for info in old.cluster.infos.values():
        if info.node is not None:
            handlers.added(info.node)
    for pod in old.observed_pods.values():
        new.observed_pods[pod.key] = pod
        if pod.node_name:
            new.cluster.add_pod(pod)
    for pod in old.cluster.assumed_pods():
        new.cluster.assume_pod(pod)
    for pod in old.observed_pods.values():
        if pod.node_name or new.cluster.is_assumed(pod):
            continue
        if pod.scheduler_name in new.frameworks:
            new.queue.add(pod)
            _take_history(old.queue.get(pod.key), new.queue.get(pod.key))


def _take_history(old: QueuedPodInfo | None, new: QueuedPodInfo | None) -> None:
    if old is None or new is None:
        return
    new.attempts = old.attempts
    new.unschedulable_count = old.unschedulable_count
    new.initial_attempt_timestamp = old.initial_attempt_timestamp


def cache_sizes(scheduler: Scheduler) -> CacheSizes:
    cluster = scheduler.cluster
    assumed = len(cluster.assumed_pods())
    nodes = sum(1 for info in cluster.infos.values() if info.node is not None)
    return CacheSizes(nodes=nodes, pods=len(cluster.pods), assumed_pods=assumed)
