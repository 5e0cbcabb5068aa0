"""Golden cases of the area `requeue`: when pods are tried again, in which order, and where they wait.

The format is in `tests/golden/README.md`. A case is a list of steps: objects change, time passes, and after
each change pods are tried for as long as the queue offers any. A case is replayed through the whole
scheduler: event handlers, queue, hints, cache, binding and preemption. Only time and the API server are
simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from mooring.cluster.cache import CacheError, Cluster
from mooring.config import default_config
from mooring.conformance.replay_loop import ReplayLoop
from mooring.conformance.requeue_api import ReplayApi, decode
from mooring.objects.pod import Pod
from mooring.objects.well_known import POD_SCHEDULED
from mooring.plugins.registry import default_registry
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.scheduling_queue import FLUSH_UNSCHEDULABLE_EVERY_S
from mooring.runtime.metrics import Metrics
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine
from mooring.scheduler.event_handlers import EventHandlers
from mooring.scheduler.writes import carry_out

#: Objects and the first step come that long after the queue has started.
_OFFSET_S = 0.5

_OUTCOMES = {"Unschedulable": "unschedulable", "SchedulerError": "error"}


@dataclass(frozen=True, slots=True)
class RequeueCase:
    """One line of the file."""

    name: str
    shape: str
    objects: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    #: Whether evicted pods stay, terminating, until a step deletes them.
    lingering: bool
    #: `namespace/name` → how many requests to bind this pod are refused.
    bindings_fail: Mapping[str, int]
    #: One entry for each step.
    expect: list[dict[str, Any]]


def requeue_case(line: Mapping[str, Any]) -> RequeueCase:
    """Raises KeyError or TypeError if the line is no such case."""
    steps, expect = line["steps"], line["expect"]
    if len(steps) != len(expect):
        raise TypeError(f"{len(steps)} steps, but {len(expect)} expectations")
    return RequeueCase(
        name=line["name"],
        shape=line.get("shape", ""),
        objects=line["objects"],
        steps=steps,
        lingering=line.get("lingering", False),
        bindings_fail=line.get("bindingsFail", {}),
        expect=[dict(each) for each in expect],
    )


def replay_requeue(case: RequeueCase) -> list[dict[str, Any]]:
    """What mooring does in each step, in the form of `expect`."""
    with _Replay(case) as replay:
        replay.load(case.objects)
        return [replay.step(step) for step in case.steps]


class _Replay:
    """One case, its scheduler, and its place in time."""

    def __init__(self, case: RequeueCase) -> None:
        self._replay_loop = ReplayLoop()
        self._loop = self._replay_loop.loop
        #: The changes to make in the next attempt at the pod that they name; None if there are none.
        self._during: Mapping[str, Any] | None = None
        self._api = ReplayApi(lingering=case.lingering, bindings_fail=case.bindings_fail)
        self._scheduler = self._make_scheduler()
        self._api.watcher = self._handlers = EventHandlers(self._scheduler.parts)

    def __enter__(self) -> _Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self._replay_loop.close(self._scheduler)

    def load(self, objects: list[dict[str, Any]]) -> None:
        """What is there before the first step; the queue has started half a second earlier.

        No pod waits yet, so the order does not matter.
        """
        self._loop.call_soon(self._flush)
        self._replay_loop.run_until(_OFFSET_S)
        for obj in decode(objects):
            self._api.create(obj)

    def step(self, step: Mapping[str, Any]) -> dict[str, Any]:
        self._api.evicted.clear()
        self._during = step.get("during")
        self._change(step)
        self._replay_loop.settle()
        attempts = self._make_attempts()
        for second in range(1, step.get("advance", 0) + 1):
            self._let_a_second_pass()
            attempts += [{**attempt, "after": second} for attempt in self._make_attempts()]
        seen: dict[str, Any] = {"attempts": attempts, "queue": self._queue()}
        if self._api.evicted:
            seen["evicted"] = sorted(self._api.evicted)
        return seen

    def _make_scheduler(self) -> Engine:
        return Engine(
            default_config(),
            Dependencies(
                clock=self._replay_loop.clock,
                writer=self._api,
                spawn=self._replay_loop.spawn,
                registry=default_registry(),
                metrics=Metrics(),
                carry_out=lambda writes: carry_out(writes, self._api, self._replay_loop.spawn),
                # The cases tell every attempt, also those that cannot help.
                one_for_all=False,
            ),
        )

    # What happens

    def _change(self, changes: Mapping[str, Any]) -> None:
        for obj in decode(changes.get("create", [])):
            self._api.create(obj)
        for raw in changes.get("update", []):
            self._api.put(raw)
        for reference in changes.get("delete", []):
            self._api.remove(reference)

    def _make_attempts(self) -> list[dict[str, Any]]:
        """Try pods for as long as the queue offers one."""
        attempts: list[dict[str, Any]] = []
        while (queued := self._scheduler.queue.pop()) is not None:
            pod = queued.pod
            changes = self._during
            if changes is not None and changes["pod"] == pod.key:
                self._during = None
                self._try_during(queued, changes)
            else:
                self._scheduler.try_pod(queued)
            self._replay_loop.settle()
            attempts.append({"pod": pod.key, "outcome": self._outcome(pod)})
        return attempts

    def _try_during(self, queued: QueuedPodInfo, changes: Mapping[str, Any]) -> None:
        """Try the pod on a snapshot from before the changes; the queue hears of them meanwhile."""
        late_books = _LateCluster(self._scheduler.cluster)
        self._api.watcher = _HandlersDuringAttempt(self._scheduler, late_books)
        self._change(changes)
        self._api.watcher = self._handlers
        self._scheduler.try_pod(queued)
        late_books.catch_up()

    def _outcome(self, tried: Pod) -> str:
        pod = self._api.get(Pod, tried.key)
        if pod is None or pod.uid != tried.uid:
            return "gone"
        if pod.node_name:
            return pod.node_name
        if self._scheduler.cluster.is_assumed(pod):
            return self._scheduler.cluster.pods[pod.uid].node_name
        condition = pod.condition(POD_SCHEDULED)
        return _OUTCOMES.get(condition.reason, "") if condition is not None else ""

    # Time

    def _let_a_second_pass(self) -> None:
        """The full second lies in the middle of it."""
        now_s = self._loop.time()
        self._loop.call_at(now_s + 1 - _OFFSET_S, self._flush)
        self._replay_loop.run_until(now_s + 1)
        self._replay_loop.settle()

    def _flush(self) -> None:
        queue = self._scheduler.queue
        if round(self._loop.time()) % FLUSH_UNSCHEDULABLE_EVERY_S == 0:
            queue.flush_unschedulable_leftover()
        queue.flush_backoff_completed()

    # What is to be seen

    def _queue(self) -> dict[str, Any]:
        return {pod.key: self._waiting(pod) for pod in self._api.waiting_pods()}

    def _waiting(self, pod: Pod) -> dict[str, Any]:
        seen: dict[str, Any] = {"where": self._where(pod)}
        queued = self._scheduler.queue.get(pod.key)
        if queued is not None:
            if queued.rejected:
                seen["plugins"] = sorted(queued.rejectors)
            if queued.gated:
                seen["gate"] = queued.gating_plugin
        if pod.nominated_node_name:
            seen["nominated"] = pod.nominated_node_name
        return seen

    def _where(self, pod: Pod) -> str:
        queue = self._scheduler.queue
        if self._scheduler.cluster.is_assumed(pod):
            return "binding"
        if any(queued.uid == pod.uid for queued in queue.backoff_pods()):
            return "backoff"
        queued = queue.get(pod.key)
        if queued is None:
            return ""
        return "gated" if queued.gated else "unschedulable"


class _LateCluster:
    """The cluster's cache, which takes nodes and pods in only when an attempt is over.

    The cache of mooring does not change during an attempt, so that its snapshot is a view of them and
    not a copy. A case that changes nodes and pods during an attempt gets the same effect from this.
    """

    _ENTRIES = frozenset(
        ("add_node", "update_node", "remove_node", "add_pod", "update_pod", "remove_pod")
    )

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._entries: list[Callable[[], None]] = []

    def __getattr__(self, name: str) -> Any:
        known = getattr(self._cluster, name)
        return partial(self._enter_later, known) if name in self._ENTRIES else known

    def catch_up(self) -> None:
        for enter in self._entries:
            with suppress(CacheError):
                enter()

    def _enter_later(self, enter: Callable[..., None], *what: object) -> None:
        self._entries.append(partial(enter, *what))


class _HandlersDuringAttempt(EventHandlers):
    """What happens during an attempt: told to the queue and the listers at once, to the cache later."""

    def __init__(self, scheduler: Engine, late: _LateCluster) -> None:
        super().__init__(scheduler.parts)
        self._cluster = cast(Cluster, late)
