"""Pods that were rejected and wait for an event, including gated pods.

Pods are grouped by their rejection and their class, because these decide which events matter: if
ten thousand pods need more cpu, an event that cannot help is dismissed once, not ten thousand
times.

The first pod of a group is the one that the reference would try first: of those whose backoff is
over, the one that was tried longest ago; if there is none, the one whose backoff ends first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from mooring.errors import InvariantError
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo


class Rejection(NamedTuple):
    """What the pods of one group have in common."""

    profile: str
    rejectors: frozenset[str]
    gated: bool
    #: None for pods without a class.
    pod_class: int | None = None


#: How many more stale entries than pods a group may hold before its entries are sorted again.
_STALE_ALLOWANCE = 64


class _Place(NamedTuple):
    """Where a pod waits."""

    group: Rejection
    #: When its backoff ends, and its number in order of arrival: its place in the group.
    turn: float
    number: int


@dataclass(slots=True)
class _Group:
    """The pods of one group. Deletion from the heap is lazy, as in `queue.heap`."""

    pods: dict[str, QueuedPodInfo] = field(default_factory=dict)
    #: A heap of (turn, number, key); stale unless the pod's place has the same turn and number.
    entries: list[tuple[float, int, str]] = field(default_factory=list)
    #: Those whose backoff is over, a heap of (timestamp, number, turn, key).
    over: list[tuple[float, int, float, str]] = field(default_factory=list)


class UnschedulablePods:
    """Pods by `namespace/name`, grouped by rejection."""

    def __init__(
        self,
        turn: Callable[[QueuedPodInfo], float] = lambda _: 0.0,
        window: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`turn` says when a pod's backoff ends; those that end before the current window are over."""
        self._turn = turn
        self._window = window
        self._places: dict[str, _Place] = {}
        #: No group is empty.
        self._groups: dict[Rejection, _Group] = {}
        #: The number of the next pod to arrive. All pods in here have lower numbers.
        self.next_number = 0
        #: The next number at the front.
        self._first_number = -1

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """In order of arrival."""
        return iter(self.where(lambda _: True))

    @property
    def gated_count(self) -> int:
        return sum(len(group.pods) for rejection, group in self._groups.items() if rejection.gated)

    def get(self, key: str) -> QueuedPodInfo | None:
        place = self._places.get(key)
        return None if place is None else self._groups[place.group].pods[key]

    def where(self, matters: Callable[[Rejection], bool]) -> list[QueuedPodInfo]:
        """The pods of the groups that matter, in order of arrival."""
        return self.in_groups(group for group in self._groups if matters(group))

    def groups(self) -> list[Rejection]:
        return list(self._groups)

    def in_groups(self, groups: Iterable[Rejection]) -> list[QueuedPodInfo]:
        """The pods of these groups, in order of arrival."""
        found = [
            (self._places[key].number, queued)
            for rejection in groups
            if rejection in self._groups
            for key, queued in self._groups[rejection].pods.items()
        ]
        found.sort(key=lambda numbered: numbered[0])
        return [queued for _, queued in found]

    def numbered(self) -> list[tuple[QueuedPodInfo, int]]:
        """Every pod with its number, group by group."""
        return [
            (queued, self._places[key].number)
            for group in self._groups.values()
            for key, queued in group.pods.items()
        ]

    def put_numbered(self, queued: QueuedPodInfo, number: int) -> None:
        """Add a pod that `numbered` has returned, for another queue."""
        rejection = _rejection(queued)
        self._groups.setdefault(rejection, _Group()).pods[queued.key] = queued
        self._enter(queued, rejection, number)
        self._first_number = min(self._first_number, number - 1)

    def first_in(
        self, rejection: Rejection, fits: Callable[[Pod], bool] | None = None
    ) -> QueuedPodInfo | None:
        """The first pod of a group, or the first that fits."""
        return self._first(rejection, lambda q: fits is None or fits(q.pod))

    def first_before(self, rejection: Rejection, number: int) -> QueuedPodInfo | None:
        """The first pod of a group of those with lower numbers than this one."""
        return self._first(rejection, lambda q: self._places[q.key].number < number)

    def _first(
        self, rejection: Rejection, matters: Callable[[QueuedPodInfo], bool]
    ) -> QueuedPodInfo | None:
        group = self._groups.get(rejection)
        if group is None:
            return None
        self._note_over(group)
        first = group.pods[group.over[0][3] if group.over else group.entries[0][2]]
        if matters(first):
            return first
        return min(filter(matters, group.pods.values()), key=self._order, default=None)

    def _order(self, queued: QueuedPodInfo) -> tuple[bool, float, int]:
        _, turn, number = self._places[queued.key]
        is_over = turn < self._window()
        return not is_over, queued.timestamp if is_over else turn, number

    def _note_over(self, group: _Group) -> None:
        """Sort out the pods whose backoff is over. The first entry of each heap is not stale then."""
        window = self._window()
        while group.entries:
            turn, number, key = group.entries[0]
            if self._is_at(group, key, turn, number):
                if turn >= window:
                    break
                heappush(group.over, (group.pods[key].timestamp, number, turn, key))
            heappop(group.entries)
        while group.over:
            _, number, turn, key = group.over[0]
            if self._is_at(group, key, turn, number):
                break
            heappop(group.over)

    def _is_at(self, group: _Group, key: str, turn: float, number: int) -> bool:
        return key in group.pods and self._places[key][1:] == (turn, number)

    def over(self, rejection: Rejection) -> list[QueuedPodInfo]:
        """The pods of a group whose backoff is over, in order; `reorder` each of them."""
        group = self._groups.get(rejection)
        if group is None:
            return []
        self._note_over(group)
        entries, group.over = group.over, []
        # A pod that left and came back may have two entries.
        keys = {e[3]: None for e in sorted(entries) if self._is_at(group, e[3], e[2], e[1])}
        return [group.pods[key] for key in keys]

    def put(self, queued: QueuedPodInfo) -> bool:
        """Add a pod, or replace the pod with the same name. Return True if it was added."""
        key, rejection = queued.key, _rejection(queued)
        known = self._places.get(key)
        if known is None:
            number = self.next_number
            self.next_number += 1
        else:
            number = known.number
            self.remove(key)
        self._groups.setdefault(rejection, _Group()).pods[key] = queued
        self._enter(queued, rejection, number)
        return known is None

    def reorder(self, queued: QueuedPodInfo, *, first: bool = False) -> None:
        """The backoff of a pod in here has changed. `first`: it precedes those that are equal."""
        rejection, _, number = self._places[queued.key]
        if first:
            number = self._first_number
            self._first_number -= 1
        self._enter(queued, rejection, number)

    def _enter(self, queued: QueuedPodInfo, rejection: Rejection, number: int) -> None:
        key, group = queued.key, self._groups[rejection]
        place = self._places[key] = _Place(rejection, self._turn(queued), number)
        heappush(group.entries, (place.turn, number, key))
        if len(group.entries) + len(group.over) > 2 * len(group.pods) + _STALE_ALLOWANCE:
            group.entries = [(*self._places[each][1:], each) for each in group.pods]
            group.over = []
            heapify(group.entries)

    def regroup(self, queued: QueuedPodInfo) -> None:
        """Move a pod to another group if its rejection or class changed."""
        if self._places[queued.key].group != _rejection(queued):
            self.put(queued)

    def regroup_all(self, rejection: Rejection, like: QueuedPodInfo) -> int:
        """Move all pods of a group to the rejection of another pod; return how many they are."""
        group = self._groups.pop(rejection, None)
        if group is None:
            return 0
        into_rejection = _rejection(like)
        into = self._groups.setdefault(into_rejection, _Group())
        for key, queued in group.pods.items():
            queued.unschedulable_plugins = set(like.unschedulable_plugins)
            queued.pending_plugins = set(like.pending_plugins)
            into.pods[key] = queued
            self._enter(queued, into_rejection, self._places[key].number)
        return len(group.pods)

    def remove(self, key: str) -> QueuedPodInfo | None:
        place = self._places.pop(key, None)
        if place is None:
            return None
        pods = self._groups[place.group].pods
        queued = pods.pop(key)
        if not pods:
            del self._groups[place.group]
        return queued

    def validate(self) -> None:
        """Raise InvariantError unless every pod is in one group, that of its rejection, in order."""
        found = {key: rejection for rejection, group in self._groups.items() for key in group.pods}
        if found != {key: place.group for key, place in self._places.items()}:
            raise InvariantError(
                "the groups of unschedulable pods differ from the group of each pod"
            )
        numbers = [place.number for place in self._places.values()]
        if len(set(numbers)) != len(numbers):
            raise InvariantError("two unschedulable pods have the same number")
        if not all(self._first_number < number < self.next_number for number in numbers):
            raise InvariantError("an unschedulable pod has a number that was not assigned yet")
        for rejection, group in self._groups.items():
            if not group.pods:
                raise InvariantError(f"a group of unschedulable pods is empty: {rejection}")
            entries = {*group.entries, *(entry[2:0:-1] + entry[3:] for entry in group.over)}
            for key, queued in group.pods.items():
                if queued.key != key or _rejection(queued) != rejection:
                    raise InvariantError(f"{queued.key} is kept as {key} in the group {rejection}")
                place = self._places[key]
                if place.turn != self._turn(queued):
                    raise InvariantError(f"the backoff of {key} changed without a call of reorder")
                if (place.turn, place.number, key) not in entries:
                    raise InvariantError(f"{key} has no entry in the order of its group")


def _rejection(queued: QueuedPodInfo) -> Rejection:
    return Rejection(
        queued.pod.scheduler_name, frozenset(queued.rejectors), queued.gated, queued.pod_class
    )
