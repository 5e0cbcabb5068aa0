"""One pod, the representative, is tried for all pods of its class.

Pods of one class get the same answer from the same cluster. Those that wait after the same
rejection form a group. When an event may help a group, only its first pod is tried, as the
representative. The others wait for its result:

    an event may help ──▶ its first pod goes to active or backoff; the group is woken
    it is rejected    ──▶ the others would be too: they wait on, after the same rejection
    anything else     ──▶ it is placed, gone, or failed without a rejection: the next pod is tried

A rejection counts as an attempt of each pod of the group whose backoff is over, so each waits as long
as it would after attempts of its own, and they are tried in the order in which they would be tried
then (`unschedulable_pods`): a pod that has been rejected once goes before pods that have been
rejected often. A representative that is tried during its backoff waits no longer for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.errors import InvariantError
from mooring.queue.hints import Strategy
from mooring.queue.metrics import QueueMetrics
from mooring.queue.pod_queues import PodQueues
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.unschedulable_pods import Rejection


@dataclass(slots=True)
class Woken:
    """A group whose representative waits to be tried, or is being tried."""

    representative: QueuedPodInfo
    strategy: Strategy
    #: The label, in metrics, of the event that woke the group.
    label: str
    #: Pods in the group when it was woken have lower numbers. Each is tried at most once.
    before: int
    #: Its timestamp and how often it had been rejected, if it was tried during its backoff.
    backed_off: tuple[float, int] | None = None


class Representatives:
    """The groups that are woken, with their representatives."""

    def __init__(self, queues: PodQueues, metrics: QueueMetrics) -> None:
        self._queues = queues
        self._metrics = metrics
        #: Class → group → its representative.
        self._woken: dict[int, dict[Rejection, Woken]] = {}
        #: `namespace/name` of a representative that waits → its group.
        self._waiting: dict[str, Rejection] = {}
        #: The groups whose representative was popped.
        self._tried: list[Rejection] = []
        #: The classes whose representative was rejected.
        self.rejected_classes: set[int] = set()

    def woken(self) -> list[tuple[Rejection, Woken]]:
        """The groups whose representative waits to be tried."""
        return [entry for groups in self._woken.values() for entry in groups.items()]

    @property
    def is_trying(self) -> bool:
        """Whether a representative was popped and the next one has not been asked for."""
        return bool(self._tried)

    def load(self, group: Rejection, woken: Woken) -> None:
        """Add a group that `woken` has returned, for another queue."""
        self._woken.setdefault(_class_of(group), {})[group] = woken
        self._waiting[woken.representative.key] = group

    def wake(self, group: Rejection, first: QueuedPodInfo, strategy: Strategy, label: str) -> None:
        """Make this pod the representative of the group, unless the group has one."""
        if not self.is_awake(group):
            number = self._queues.unschedulable.next_number
            self._try(group, first, Woken(first, strategy, label, number))

    def is_awake(self, group: Rejection) -> bool:
        """Whether the group has a representative that waits to be tried, or is being tried."""
        woken = self._woken.get(_class_of(group), {}).get(group)
        if woken is None:
            return False
        key = woken.representative.key
        if group in self._tried or key in self._queues.active or key in self._queues.backoff:
            return True
        # PreEnqueue refused the representative on its way from backoff.
        self._sleep(group)
        return False

    def popped(self, queued: QueuedPodInfo) -> None:
        """A pod was popped. If it is a representative, its result is known before the next pop."""
        group = self._waiting.pop(queued.key, None)
        if group is not None:
            self._tried.append(group)
            if self._queues.backoff.is_backing_off(queued):
                woken = self._woken[_class_of(group)][group]
                woken.backed_off = queued.timestamp, queued.unschedulable_count

    def gone(self, key: str) -> None:
        """A waiting pod was removed, or its class changed."""
        group = self._waiting.pop(key, None)
        if group is not None:
            self._try_next(group)

    def rejected(self, queued: QueuedPodInfo) -> None:
        """A pod was rejected and waits: its whole class would be rejected."""
        if queued.pod_class is None:
            return
        woken_groups = self._woken.pop(queued.pod_class, {})
        for group, woken in woken_groups.items():
            self._stop_waiting(group, woken)
            self._count_for_all(group, queued)
            self._regroup_as(queued, group)
            if woken.representative is queued and woken.backed_off is not None:
                queued.timestamp, queued.unschedulable_count = woken.backed_off
                queued.backoff_expiration = None
        if woken_groups:
            self._tried = [group for group in self._tried if group not in woken_groups]
            self.rejected_classes.add(queued.pod_class)
            self._queues.unschedulable.reorder(queued, first=True)

    def go_on(self) -> None:
        """Before a pop: replace each representative that was tried and not rejected."""
        while self._tried:
            group = self._tried.pop()
            if group in self._woken.get(_class_of(group), {}):
                self._try_next(group)

    def _try_next(self, group: Rejection) -> None:
        woken = self._sleep(group)
        first = self._queues.unschedulable.first_before(group, woken.before)
        if first is not None:
            self._try(group, first, woken)

    def validate(self) -> None:
        """Raise InvariantError unless each woken group has one representative."""
        for key, group in self._waiting.items():
            woken = self._woken.get(_class_of(group), {}).get(group)
            if woken is None or woken.representative.key != key:
                raise InvariantError(f"{key} is the representative of a group that is not woken")
            if self._queues.get(key) is not woken.representative:
                raise InvariantError(f"{key} is a waiting representative, but not in the queue")
        if len(set(self._tried)) != len(self._tried):
            raise InvariantError("a representative was popped twice")
        for pod_class, woken_groups in self._woken.items():
            if not woken_groups:
                raise InvariantError(f"class {pod_class} is kept as woken, but has no woken group")
            for group, woken in woken_groups.items():
                self._validate_woken(pod_class, group, woken)

    def _validate_woken(self, pod_class: int, group: Rejection, woken: Woken) -> None:
        key = woken.representative.key
        if group.pod_class != pod_class or group.gated:
            raise InvariantError(
                f"a group of another class is woken for class {pod_class}: {group}"
            )
        if self._waiting.get(key) != group and group not in self._tried:
            raise InvariantError(f"{key} is a representative, but neither waits nor was popped")
        if woken.before > self._queues.unschedulable.next_number:
            raise InvariantError(f"{key} represents pods that have not arrived yet")

    def _sleep(self, group: Rejection) -> Woken:
        of_class = self._woken[_class_of(group)]
        woken = of_class.pop(group)
        if not of_class:
            del self._woken[_class_of(group)]
        self._stop_waiting(group, woken)
        return woken

    def _stop_waiting(self, group: Rejection, woken: Woken) -> None:
        """A pod that was popped for this group may now wait as representative of another."""
        key = woken.representative.key
        if self._waiting.get(key) == group:
            del self._waiting[key]

    def _try(self, group: Rejection, first: QueuedPodInfo, woken: Woken) -> None:
        unschedulable = self._queues.unschedulable
        candidate: QueuedPodInfo | None = first
        while candidate is not None:
            unschedulable.remove(candidate.key)
            self._queues.requeue(candidate, woken.strategy, woken.label)
            if not candidate.gated:
                woken.representative, woken.backed_off = candidate, None
                self._woken.setdefault(_class_of(group), {})[group] = woken
                self._waiting[candidate.key] = group
                return
            # PreEnqueue refuses this pod, which says nothing about the others.
            candidate = unschedulable.first_before(group, woken.before)

    def _count_for_all(self, group: Rejection, rejected: QueuedPodInfo) -> None:
        """Count the rejection as one of each pod of the group whose backoff is over."""
        unschedulable = self._queues.unschedulable
        if not self._queues.backoff.is_enabled:
            return
        for queued in unschedulable.over(group):
            if queued is not rejected:
                queued.timestamp = rejected.timestamp
                queued.unschedulable_count += 1
                queued.backoff_expiration = None
            unschedulable.reorder(queued)

    def _regroup_as(self, rejected: QueuedPodInfo, group: Rejection) -> None:
        """Move the pods of a group to the rejection of their representative, if it differs."""
        if group.rejectors == rejected.rejectors:
            return
        count = self._queues.unschedulable.regroup_all(group, rejected)
        for plugin in group.rejectors:
            self._metrics.unschedulable_pods(plugin, group.profile, -count)
        for plugin in rejected.rejectors:
            self._metrics.unschedulable_pods(plugin, group.profile, count)


def _class_of(group: Rejection) -> int:
    assert group.pod_class is not None, "only pods with a class have a representative"
    return group.pod_class
