"""Pods that were rejected and wait for an event, including gated pods.

Pods are grouped by their rejection and their class, because these decide which events matter: if
ten thousand pods need more cpu, an event that cannot help is dismissed once, not ten thousand
times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
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


class UnschedulablePods:
    """Pods by `namespace/name`, grouped by rejection."""

    def __init__(self) -> None:
        #: key → (the group, the number of the pod in order of arrival).
        self._group_of: dict[str, tuple[Rejection, int]] = {}
        #: Rejection → key → pod. No group is empty.
        self._groups: dict[Rejection, OrderedDict[str, QueuedPodInfo]] = {}
        #: The number of the next pod to arrive. All pods in here have lower numbers.
        self.next_number = 0
        #: The next number at the front.
        self._first_number = -1

    def __len__(self) -> int:
        return len(self._group_of)

    def __contains__(self, key: str) -> bool:
        return key in self._group_of

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """In order of arrival."""
        return iter(self.where(lambda _: True))

    @property
    def gated_count(self) -> int:
        return sum(len(pods) for rejection, pods in self._groups.items() if rejection.gated)

    def get(self, key: str) -> QueuedPodInfo | None:
        found = self._group_of.get(key)
        return None if found is None else self._groups[found[0]][key]

    def where(self, matters: Callable[[Rejection], bool]) -> list[QueuedPodInfo]:
        """The pods of the groups that matter, in order of arrival."""
        return self.in_groups(group for group in self._groups if matters(group))

    def groups(self) -> list[Rejection]:
        return list(self._groups)

    def in_groups(self, groups: Iterable[Rejection]) -> list[QueuedPodInfo]:
        """The pods of these groups, in order of arrival."""
        found = [
            (self._group_of[key][1], queued)
            for rejection in groups
            for key, queued in self._groups.get(rejection, {}).items()
        ]
        found.sort(key=lambda numbered: numbered[0])
        return [queued for _, queued in found]

    def numbered(self) -> list[tuple[QueuedPodInfo, int]]:
        """Every pod with its number, group by group, in the order of each group."""
        return [
            (queued, self._group_of[key][1])
            for pods in self._groups.values()
            for key, queued in pods.items()
        ]

    def put_numbered(self, queued: QueuedPodInfo, number: int) -> None:
        """Add a pod that `numbered` has returned, for another queue."""
        rejection = _rejection(queued)
        self._group_of[queued.key] = (rejection, number)
        self._groups.setdefault(rejection, OrderedDict())[queued.key] = queued
        self._first_number = min(self._first_number, number - 1)

    def first_in(
        self, group: Rejection, fits: Callable[[Pod], bool] | None = None
    ) -> QueuedPodInfo | None:
        """The first pod of a group, or the first that fits."""
        pods = self._groups.get(group) or OrderedDict()
        return next((q for q in pods.values() if fits is None or fits(q.pod)), None)

    def first_before(self, group: Rejection, number: int) -> QueuedPodInfo | None:
        """The first pod of a group, if its number is lower than this one."""
        first = self.first_in(group)
        return first if first is not None and self._group_of[first.key][1] < number else None

    def put(self, queued: QueuedPodInfo) -> bool:
        """Add a pod, or replace the pod with the same name. Return True if it was added."""
        key, rejection = queued.key, _rejection(queued)
        found = self._group_of.get(key)
        if found is None:
            number = self.next_number
            self.next_number += 1
        else:
            number = found[1]
            self.remove(key)
        self._group_of[key] = (rejection, number)
        self._groups.setdefault(rejection, OrderedDict())[key] = queued
        return found is None

    def regroup(self, queued: QueuedPodInfo) -> None:
        """Move a pod to another group if its rejection or class changed."""
        if self._group_of[queued.key][0] != _rejection(queued):
            self.put(queued)

    def regroup_all(self, group: Rejection, like: QueuedPodInfo) -> int:
        """Move all pods of a group to the rejection of another pod; return how many they are."""
        pods = self._groups.pop(group, None)
        if pods is None:
            return 0
        rejection = _rejection(like)
        into = self._groups.setdefault(rejection, OrderedDict())
        for key, queued in pods.items():
            queued.unschedulable_plugins = set(like.unschedulable_plugins)
            queued.pending_plugins = set(like.pending_plugins)
            self._group_of[key] = (rejection, self._group_of[key][1])
            into[key] = queued
        return len(pods)

    def put_first(self, queued: QueuedPodInfo) -> None:
        """Make a pod in here the first of its group."""
        rejection, _ = self._group_of[queued.key]
        self._groups[rejection].move_to_end(queued.key, last=False)
        self._group_of[queued.key] = (rejection, self._first_number)
        self._first_number -= 1

    def remove(self, key: str) -> QueuedPodInfo | None:
        found = self._group_of.pop(key, None)
        if found is None:
            return None
        pods = self._groups[found[0]]
        queued = pods.pop(key)
        if not pods:
            del self._groups[found[0]]
        return queued

    def validate(self) -> None:
        """Raise InvariantError unless every pod is in one group, that of its rejection."""
        found = {key: rejection for rejection, pods in self._groups.items() for key in pods}
        if found != {key: rejection for key, (rejection, _) in self._group_of.items()}:
            raise InvariantError(
                "the groups of unschedulable pods differ from the group of each pod"
            )
        numbers = [number for _, number in self._group_of.values()]
        if len(set(numbers)) != len(numbers):
            raise InvariantError("two unschedulable pods have the same number")
        if not all(self._first_number < number < self.next_number for number in numbers):
            raise InvariantError("an unschedulable pod has a number that was not assigned yet")
        for rejection, pods in self._groups.items():
            if not pods:
                raise InvariantError(f"a group of unschedulable pods is empty: {rejection}")
            for key, queued in pods.items():
                if queued.key != key or _rejection(queued) != rejection:
                    raise InvariantError(f"{queued.key} is kept as {key} in the group {rejection}")


def _rejection(queued: QueuedPodInfo) -> Rejection:
    return Rejection(
        queued.pod.scheduler_name, frozenset(queued.rejectors), queued.gated, queued.pod_class
    )
