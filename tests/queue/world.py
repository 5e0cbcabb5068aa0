"""A queue to test with: it fails pods, says where they are, and keeps what it reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from mooring.framework.events import Action, ClusterEvent, EventResource, Hint, HintFunction
from mooring.framework.interface import QueuedPod
from mooring.framework.status import Status, unresolvable
from mooring.objects.pod import DEFAULT_SCHEDULER, Pod
from mooring.queue.metrics import QueueMetrics
from mooring.queue.pre_enqueue import PreEnqueue
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.scheduling_queue import SchedulingQueue
from tests.clock import FakeClock
from tests.makers import make_pod

FIT = "NodeResourcesFit"
CLAIMS = "DynamicResources"
GATES = "SchedulingGates"

NODE_ADD = ClusterEvent(EventResource.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_LABEL)
POD_DELETE = ClusterEvent(EventResource.POD, Action.DELETE)
POD_LABEL = ClusterEvent(EventResource.POD, Action.UPDATE_POD_LABEL)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, Action.DELETE)
GATES_GONE = ClusterEvent(EventResource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
CLAIM_ADD = ClusterEvent(EventResource.RESOURCE_CLAIM, Action.ADD)

Registered = tuple[ClusterEvent, str, HintFunction | None]

#: What the plugins above register, unless a test says otherwise.
HINTS: tuple[Registered, ...] = (
    (NODE_ADD, FIT, None),
    (POD_DELETE, FIT, None),
    (CLAIM_ADD, CLAIMS, None),
    (GATES_GONE, GATES, None),
)


class ByPriority:
    """QueueSort: higher priority first, then whoever waits longer."""

    name = "ByPriority"

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        if a.pod.priority != b.pod.priority:
            return a.pod.priority > b.pod.priority
        return a.timestamp < b.timestamp


class ByPriorityKey(ByPriority):
    """The same order, as a value."""

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return (-queued.pod.priority, queued.timestamp)


class Recorder(QueueMetrics):
    """Keeps the sums of everything that is counted. Each look at the timer takes a second."""

    def __init__(self) -> None:
        self.incoming: Counter[tuple[str, str]] = Counter()
        self.unschedulable: Counter[tuple[str, str]] = Counter()
        self.in_flight: Counter[str] = Counter()
        self.hints: list[tuple[str, str, str, float]] = []
        self.asked: list[tuple[str, str, float]] = []
        self.pre_enqueues: list[tuple[str, float]] = []
        self._looks = 0

    def timer(self) -> float:
        self._looks += 1
        return self._looks

    def queue_incoming_pods(self, queue: str, event: str) -> None:
        self.incoming[queue, event] += 1

    def unschedulable_pods(self, plugin: str, profile: str, change: int) -> None:
        self.unschedulable[plugin, profile] += change

    def inflight_events(self, event: str, change: int) -> None:
        self.in_flight[event] += change

    def queueing_hint_duration(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        self.hints.append((plugin, event, hint, seconds))

    def pre_enqueue_duration(self, profile: str, seconds: float) -> None:
        self.pre_enqueues.append((profile, seconds))

    def samples_plugins(self) -> bool:
        return True

    def pre_enqueue_plugin_duration(self, plugin: str, status: str, seconds: float) -> None:
        self.asked.append((plugin, status, seconds))


class World:
    """A queue of one profile, its clock, and everything it said."""

    def __init__(
        self,
        *,
        hints: Iterable[Registered] = HINTS,
        pre_enqueue: Iterable[tuple[str, PreEnqueue]] = (),
        start: float = 1000.0,
        **options: Any,
    ) -> None:
        self.clock = FakeClock(start)
        self.metrics = Recorder()
        self.reports: list[str] = []
        self.wakes = 0
        options.setdefault("queue_sort", ByPriorityKey())
        self.queue = SchedulingQueue(
            clock=self.clock,
            hints={DEFAULT_SCHEDULER: list(hints)},
            pre_enqueue={DEFAULT_SCHEDULER: list(pre_enqueue)},
            metrics=self.metrics,
            report=self.reports.append,
            on_ready=self._woken,
            **options,
        )

    def _woken(self) -> None:
        self.wakes += 1

    def add(self, name: str = "p", **fields: Any) -> Pod:
        pod = make_pod(name, **fields)
        self.queue.add(pod)
        return pod

    def pop(self) -> QueuedPodInfo:
        queued = self.queue.pop()
        assert queued is not None, "nothing to pop"
        return queued

    def pop_names(self) -> list[str]:
        """Pop until there is nothing left."""
        names = []
        while (queued := self.queue.pop()) is not None:
            names.append(queued.pod.name)
        return names

    def fail(
        self, queued: QueuedPodInfo, *plugins: str, pending: Iterable[str] = ()
    ) -> QueuedPodInfo:
        """Bring a popped pod back; without plugins, as after an error. Pending ones reject too."""
        queued.clear_rejectors()
        queued.pending_plugins = set(pending)
        queued.unschedulable_plugins = {*plugins, *pending}
        assert self.queue.add_unschedulable_if_not_present(queued)
        return queued

    def reject(
        self,
        name: str = "p",
        *plugins: str,
        pending: Iterable[str] = (),
        times: int = 1,
        **fields: Any,
    ) -> QueuedPodInfo:
        """Add a pod and have it rejected, `times` times in a row, by FIT unless told otherwise."""
        self.add(name, **fields)
        return self.fail_again(name, *(plugins or (FIT,)), pending=pending, times=times)

    def fail_again(
        self, name: str, *plugins: str, pending: Iterable[str] = (), times: int = 1
    ) -> QueuedPodInfo:
        """Try a waiting pod and fail it; without plugins, as after an error."""
        queued = None
        for _ in range(times):
            queued = self.queue.pop_specific(make_pod(name))
            assert queued is not None
            self.fail(queued, *plugins, pending=pending)
        assert queued is not None
        return queued

    def where(self, name: str = "p") -> str:
        """The one place a pod is in; the queue is validated on the way."""
        self.queue.validate()
        key = f"default/{name}"
        places = {
            "active": [q.key for q in self.queue.active_pods()],
            "backoff": [q.key for q in self.queue.backoff_pods()],
            "gated": [q.key for q in self.queue.unschedulable_pods() if q.gated],
            "unschedulable": [q.key for q in self.queue.unschedulable_pods() if not q.gated],
            "in flight": [pod.key for pod in self.queue.in_flight_pods()],
        }
        found = [place for place, keys in places.items() if key in keys]
        return " and ".join(found) or "nowhere"


class Gate:
    """A PreEnqueue plugin that refuses the pods in `closed_to`."""

    def __init__(self, *closed_to: str) -> None:
        self.closed_to = set(closed_to)
        #: The pods it was asked about.
        self.asked: list[str] = []

    def __call__(self, pod: Pod) -> Status | None:
        self.asked.append(pod.name)
        return unresolvable("not yet") if pod.name in self.closed_to else None


class HintSpy:
    """A queueing hint that gives one answer, or raises it, and keeps what it was asked."""

    def __init__(self, answer: Hint | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[Any, Any, Any]] = []

    def __call__(self, pod: Pod, old: Any, new: Any) -> Hint:
        self.asked.append((pod, old, new))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer
