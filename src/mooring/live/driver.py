"""Drives the scheduler on a real event loop: events in, pods popped, binding cycles as tasks, timers.

The counterpart of `sim.simulation`, in real time. Everything here runs in the one thread that decides.
A failure in a task is logged and counted, and its pod is tried again. Nothing ends the loop silently.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

from mooring.config import KubeSchedulerConfiguration, write_config
from mooring.config.types import Extender
from mooring.errors import InvariantError, NamespaceTerminating
from mooring.framework.api import ApiWriter
from mooring.framework.clock import Clock
from mooring.framework.events import EventResource
from mooring.framework.status import Status
from mooring.live.input_journal import Inputs, Record, follow_inner_tasks
from mooring.live.metrics import CacheSizes, LiveMetrics
from mooring.live.oscillation import Oscillation
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.plugins.registry import default_registry
from mooring.queue.scheduling_queue import FLUSH_BACKOFF_EVERY_S, FLUSH_UNSCHEDULABLE_EVERY_S
from mooring.runtime.registry import Registry
from mooring.scheduler.attempt import Attempt
from mooring.scheduler.choosing import SeededSpread, TieBreak
from mooring.scheduler.decision import Decision
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.drive_loop import DriveLoop
from mooring.scheduler.engine import Engine
from mooring.scheduler.extenders import RunBeside
from mooring.scheduler.extenders.extender import Transport
from mooring.scheduler.journal import Fact, FactKind, RecentFacts, decided
from mooring.scheduler.writes import Writes, carry_out
from mooring.webhook import HttpTransport

_LOG = logging.getLogger(__name__)
_SCHEDULER_LOG = logging.getLogger("mooring.scheduler")

#: How often pods that another one is tried for are told why they wait.
_REPEAT_CONDITIONS_S = 20.0

#: How long pods are placed before watches and bindings get their turn.
_TURN_S = 0.002


class ClosableTransport(Transport, Protocol):
    def close(self) -> None: ...


MakeTransport = Callable[[Sequence[Extender]], ClosableTransport]


@dataclass(frozen=True, slots=True)
class DriverParts:
    """What a driver is given."""

    clock: Clock
    writer: ApiWriter
    metrics: LiveMetrics
    #: Whether pods may be placed now; asked before each of them.
    may_write: Callable[[], bool] = lambda: True
    #: Whether another bind could be made soon; asked before each pod. If not, `wake` when there is room.
    has_room: Callable[[], bool] = lambda: True
    #: Called with an error after which the process must end.
    on_fatal: Callable[[str], None] = _LOG.critical
    #: Called after an error that nobody expected; the process goes on.
    on_crash: Callable[[], None] = lambda: None
    make_registry: Callable[[], Registry] = default_registry
    #: How extenders are reached, and what runs a call that blocks.
    make_transport: MakeTransport = HttpTransport
    run_beside: RunBeside = asyncio.to_thread
    #: Called before an extender is asked to bind a pod.
    before_bind_by_extender: Callable[[Pod], Awaitable[None]] | None = None
    tie_break: TieBreak = field(default_factory=lambda: SeededSpread(0))
    seed: int = 0
    #: What the engine's inputs pass through, if they are kept in a file or come from one.
    inputs: Inputs | None = None


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
        if parts.inputs is not None:
            follow_inner_tasks(self.loop, parts.inputs)
        #: Whether pods are placed.
        self.is_running = False
        self._drive = DriveLoop(self.loop, attempt=self._attempt, turn_s=_TURN_S)
        #: Binding cycles and evictions under way.
        self.tasks: set[asyncio.Task[None]] = set()
        #: Status patches that wait or are under way; shutting down does not wait for them.
        self.patches: set[asyncio.Task[None]] = set()
        self._retiring: set[asyncio.Task[None]] = set()
        #: Schedulers of earlier configurations that have bindings under way.
        self._retired: list[Engine] = []
        #: It outlives a reload.
        self.journal = RecentFacts()
        self._oscillation = Oscillation(parts.clock.now, parts.metrics.oscillates)
        self.scheduler, self._transport = self._build(config)
        #: Called every second while pods are placed.
        self.on_second: Callable[[], None] = lambda: None

    @property
    def config(self) -> KubeSchedulerConfiguration:
        return self.scheduler.config

    # What happens in the cluster

    def added(self, obj: KubeObject) -> None:
        self._tell(Record.ADDED, "Add", self.scheduler.added, obj)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self._tell(Record.UPDATED, "Update", self.scheduler.updated, old, new)

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            self._oscillation.deleted(obj)
        self._tell(Record.DELETED, "Delete", self.scheduler.deleted, obj)

    def _tell(
        self, what: Record, action: str, handle: Callable[..., None], *objects: KubeObject
    ) -> None:
        metrics = self.parts.metrics
        if self.parts.inputs is not None:
            self.parts.inputs.note_object(what, *objects)
        started = metrics.timer()
        event = _what(objects[0]) + action
        try:
            handle(*objects)
        except InvariantError as error:
            self._end(error)
        except Exception as error:
            self._crashed(f"handling {event} ended unexpectedly", error)
        metrics.event_handled(event, metrics.timer() - started)

    def _end(self, error: InvariantError) -> None:
        problem = f"internal error, mooring's state is inconsistent: {error}"
        self._note_input(Record.FATAL, problem)
        self.parts.on_fatal(problem)

    def _crashed(self, what: str, error: BaseException) -> None:
        _LOG.error("%s", what, exc_info=error)
        self._note_crash(f"{what}: {error!r}")

    def _note_crash(self, problem: str) -> None:
        self.parts.metrics.task_failed()
        self._note_input(Record.CRASHED, problem)
        self.parts.on_crash()

    def _note_input(self, what: Record, *details: object) -> None:
        if self.parts.inputs is not None:
            self.parts.inputs.note(what, *details)

    # Going on and stopping

    def start(self) -> None:
        """Place pods from now on."""
        self.is_running = True
        self._flush_backoff()
        self._flush_leftover()
        self._drive.wake()

    def wake(self) -> None:
        """There may be something to do again."""
        self._drive.wake()

    def stop(self) -> None:
        """Place no more pods; binding cycles go on."""
        self.is_running = False
        self._drive.stop()

    async def drain(self, timeout_s: float) -> GivenUp:
        """Wait for bindings and evictions to end; how many did not, and were given up."""
        # Pods may wait for Permit for minutes: the next scheduler decides again.
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
        return GivenUp(bindings, max(0, len(left) - bindings))

    def close(self) -> None:
        self.stop()
        self.scheduler.close()
        if self._transport is not None:
            self._transport.close()

    # One pod after another

    def _attempt(self) -> bool:
        may_try = self.is_running and self.parts.may_write() and self.parts.has_room()
        return may_try and self.attempt_once()

    def attempt_once(self) -> bool:
        """Try the next pod; whether there was one."""
        self._note_input(Record.ATTEMPT)
        try:
            return self.scheduler.schedule_one()
        except InvariantError as error:
            self._end(error)
        except Exception as error:
            # The pod's own failures are dealt with by the engine: this is about the queue itself.
            self._crashed(
                "the scheduling loop ended unexpectedly; it goes on within a second", error
            )
        return False

    def _flush_backoff(self) -> None:
        """On each whole second, as backoffs are counted in them."""
        self._flush_again(FLUSH_BACKOFF_EVERY_S, self._flush_backoff)
        self.flush_backoff_once()
        self._guarded(self._tell_sizes)
        self.on_second()

    def flush_backoff_once(self) -> None:
        self._note_input(Record.FLUSH_BACKOFF)
        self._guarded(self.scheduler.queue.flush_backoff_completed)
        self._guarded(self.scheduler.tell_conditions)

    def _flush_leftover(self) -> None:
        self._flush_again(FLUSH_UNSCHEDULABLE_EVERY_S, self._flush_leftover)
        self.flush_leftover_once()

    def flush_leftover_once(self) -> None:
        self._note_input(Record.FLUSH_LEFTOVER)
        self._guarded(self.scheduler.queue.flush_unschedulable_leftover)

    def _flush_again(self, period_s: int, flush: Callable[[], None]) -> None:
        now = self.parts.clock.now()
        # A little late rather than a little early: a timer may fire before its time by the clock's grain.
        delay_s = (int(now) // period_s + 1) * period_s - now + 0.001
        self._drive.flush_at(self.loop.time() + delay_s, period_s, flush)

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:
            self._crashed(f"{getattr(step, '__name__', step)} ended unexpectedly", error)

    def _tell_sizes(self) -> None:
        engine, cluster = self.scheduler, self.scheduler.cluster
        nodes = sum(1 for info in cluster.infos.values() if info.node is not None)
        cache = CacheSizes(nodes, len(cluster.pods), len(cluster.assumed_pods()))
        self.parts.metrics.sizes(engine.queue.counts(), cache, len(engine.binding))

    # Tasks

    def _spawn(self, tasks: set[asyncio.Task[None]], work: Coroutine[Any, Any, None]) -> None:
        # A name of its own would be made for each.
        task = self.loop.create_task(work, name="scheduler")
        tasks.add(task)
        task.add_done_callback(partial(self._ended, tasks))

    def _ended(self, tasks: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, InvariantError):
            self._end(error)
        elif error is not None:
            self._crashed(f"a task ended unexpectedly: {task.get_name()}", error)

    def _spawn_work(self, work: Coroutine[Any, Any, None]) -> None:
        """The engine's own: a binding, an eviction. Its steps are inputs."""
        inputs = self.parts.inputs
        self._spawn(self.tasks, work if inputs is None else inputs.task(work))

    # What happens to pods

    def _writer(self) -> ApiWriter:
        """Whatever is written passes through the journal of inputs, if there is one."""
        writer, inputs = self.parts.writer, self.parts.inputs
        return writer if inputs is None else inputs.writer(writer)

    def _carry_out(self, writes: Writes) -> None:
        write = partial(carry_out, writes, self.parts.writer, partial(self._spawn, self.patches))
        if self.parts.inputs is None:
            write()
        else:
            self.parts.inputs.write_beside(write)
        if writes.attempt is None:
            return
        if writes.status.ok:
            self._bound(writes.attempt)
        else:
            self._failed(writes.attempt, writes.status)

    def _decided(self, attempt: Attempt, decision: Decision) -> None:
        attempts = attempt.queued.attempts
        self.journal.add(decided(self.parts.clock.now(), decision, attempts))
        self._note_input(Record.DECIDED, decision.pod.uid, attempts, decision.node_name or "")

    def _bound(self, attempt: Attempt) -> None:
        since = attempt.queued.initial_attempt_timestamp
        sli_s = None if since is None else self.parts.clock.now() - since
        self.parts.metrics.pod_scheduled(attempt.queued.attempts, sli_s)
        self._oscillation.bound(attempt.pod)
        self._note(FactKind.BOUND, attempt.pod, node=attempt.node_name)
        _SCHEDULER_LOG.debug("bound pod %s to node %s", attempt.pod.key, attempt.node_name)

    def _failed(self, attempt: Attempt, status: Status) -> None:
        pod = attempt.queued.pod
        self._note(FactKind.FAILED, pod, message=status.message)
        level = logging.DEBUG if status.rejected or _is_going_away(status) else logging.WARNING
        # The text is made for this, and in a full cluster there are many.
        if _SCHEDULER_LOG.isEnabledFor(level):
            _SCHEDULER_LOG.log(level, "pod %s is not scheduled: %s", pod.key, status.message)

    def _note(self, what: FactKind, pod: Pod, *, node: str = "", message: str = "") -> None:
        self.journal.add(Fact(self.parts.clock.now(), what, pod.key, pod.uid, node, message))

    # Building, and building again

    def _build(self, config: KubeSchedulerConfiguration) -> tuple[Engine, ClosableTransport | None]:
        parts = self.parts
        transport = parts.make_transport(config.extenders) if config.extenders else None
        inputs = parts.inputs
        deps = Dependencies(
            clock=parts.clock if inputs is None else inputs.clock(parts.clock),
            writer=self._writer(),
            spawn=self._spawn_work,
            registry=parts.make_registry(),
            metrics=parts.metrics,
            queue_metrics=parts.metrics,
            tie_break=parts.tie_break,
            repeat_conditions_after_s=_REPEAT_CONDITIONS_S,
            seed=parts.seed,
            on_decision=self._decided,
            carry_out=self._carry_out,
            on_crash=self._note_crash,
            on_ready=self._drive.wake,
            transport=transport,
            run_beside=parts.run_beside,
            before_bind_by_extender=parts.before_bind_by_extender,
        )
        return Engine(config, deps), transport

    def reload(self, config: KubeSchedulerConfiguration) -> None:
        """Go on under another configuration, with everything that is known and waits.

        Raises ConfigError if its plugins cannot be built; then all is as it was. All waiting pods are
        tried again, as other rules may let them pass. Pods that wait for Permit are rejected by the
        old plugins and tried by the new ones; bindings under way end as they began.
        """
        old, old_transport = self.scheduler, self._transport
        new, transport = self._build(config)
        self._note_input(Record.RELOAD, write_config(config))
        self.parts.metrics.queue_replaced()
        new.take_over(old)
        self.scheduler, self._transport = new, transport
        for waiting in list(old.waiting_pods):
            waiting.reject("", "the scheduler's configuration was reloaded")
        self._retired.append(old)
        retiring = self.loop.create_task(self._retire(old, old_transport, list(self.tasks)))
        self._retiring.add(retiring)
        retiring.add_done_callback(self._retiring.discard)
        self._drive.wake()

    def may_save(self) -> bool:
        """Whether `Engine.save` has everything: no binding and no eviction is under way."""
        return not self.tasks and not self._retired and self.scheduler.may_save()

    async def _retire(
        self, old: Engine, transport: ClosableTransport | None, bindings: list[asyncio.Task[None]]
    ) -> None:
        """Close the plugins of an earlier configuration once nothing of theirs is under way."""
        if bindings:
            await asyncio.wait(bindings)
        self._retired.remove(old)
        old.close()
        if transport is not None:
            transport.close()


def _is_going_away(status: Status) -> bool:
    """Whether the pod could not be bound because its namespace is being deleted, and the pod with it."""
    error: BaseException | None = status.error
    while error is not None and not isinstance(error, NamespaceTerminating):
        error = error.__cause__
    return error is not None


def _what(obj: KubeObject) -> str:
    """What an event is about, as the reference's metrics call it."""
    if isinstance(obj, Pod):
        return (
            EventResource.ASSIGNED_POD.value
            if obj.node_name
            else EventResource.UNSCHEDULABLE_POD.value
        )
    return type(obj).__name__
