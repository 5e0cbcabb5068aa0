"""Pods that were rejected and wait for something to happen, gated ones among them.

They are filed by what rejected them and by their class, because these decide which events matter to
them: with ten thousand pods that need more cpu, the arrival of a pod elsewhere is dismissed once and
not ten thousand times.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from mooring.errors import InvariantError
from mooring.objects.pod import Pod
from mooring.queue.queued_pod import QueuedPodInfo


class Rejection(NamedTuple):
    """What pods that are filed together have in common."""

    profile: str
    rejectors: frozenset[str]
    gated: bool
    #: None for pods that may not be taken for alike.
    pod_class: int | None = None


class UnschedulablePods:
    """Pods by `namespace/name`, filed by what rejected them."""

    def __init__(self) -> None:
        #: key → (where the pod is filed, its number in order of arrival).
        self._filed: dict[str, tuple[Rejection, int]] = {}
        #: What rejected them → key → pod. No empty values.
        self._files: dict[Rejection, OrderedDict[str, QueuedPodInfo]] = {}
        #: The numbers of the next pod that comes last, and of the next that is put first.
        self._next_number = 0
        self._first_number = -1

    def __len__(self) -> int:
        return len(self._filed)

    def __contains__(self, key: str) -> bool:
        return key in self._filed

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """In order of arrival."""
        return iter(self.where(lambda _: True))

    @property
    def gated_count(self) -> int:
        return sum(len(pods) for rejection, pods in self._files.items() if rejection.gated)

    def get(self, key: str) -> QueuedPodInfo | None:
        filed = self._filed.get(key)
        return None if filed is None else self._files[filed[0]][key]

    def where(self, matters: Callable[[Rejection], bool]) -> list[QueuedPodInfo]:
        """The pods whose rejection matters, in order of arrival."""
        return self.in_files(file for file in self._files if matters(file))

    def files(self) -> list[Rejection]:
        return list(self._files)

    def in_files(self, files: Iterable[Rejection]) -> list[QueuedPodInfo]:
        """The pods of these files, in order of arrival."""
        found = [
            (self._filed[key][1], queued)
            for rejection in files
            for key, queued in self._files.get(rejection, {}).items()
        ]
        found.sort(key=lambda numbered: numbered[0])
        return [queued for _, queued in found]

    @property
    def next_number(self) -> int:
        """The number of the pod that comes next; those that are in here have lower ones."""
        return self._next_number

    def first_in(
        self, file: Rejection, fits: Callable[[Pod], bool] | None = None
    ) -> QueuedPodInfo | None:
        """The first pod of a file, or the first that fits."""
        pods = self._files.get(file) or OrderedDict()
        return next((q for q in pods.values() if fits is None or fits(q.pod)), None)

    def first_before(self, file: Rejection, number: int) -> QueuedPodInfo | None:
        """The first pod of a file, if it came before the one with this number."""
        first = self.first_in(file)
        return first if first is not None and self._filed[first.key][1] < number else None

    def put(self, queued: QueuedPodInfo) -> bool:
        """Add it, or file it afresh if a pod of its name is in here; whether there was none."""
        key, rejection = queued.key, _rejection(queued)
        filed = self._filed.get(key)
        if filed is None:
            number = self._next_number
            self._next_number += 1
        else:
            number = filed[1]
            self.remove(key)
        self._filed[key] = (rejection, number)
        self._files.setdefault(rejection, OrderedDict())[key] = queued
        return filed is None

    def refile(self, queued: QueuedPodInfo) -> None:
        """What a pod in here is filed by may have changed; its place is kept if it has not."""
        if self._filed[queued.key][0] != _rejection(queued):
            self.put(queued)

    def refile_all(self, file: Rejection, like: QueuedPodInfo) -> int:
        """File all pods of a file under what rejected another pod of their class; how many they are."""
        pods = self._files.pop(file, None)
        if pods is None:
            return 0
        rejection = _rejection(like)
        into = self._files.setdefault(rejection, OrderedDict())
        for key, queued in pods.items():
            queued.unschedulable_plugins = set(like.unschedulable_plugins)
            queued.pending_plugins = set(like.pending_plugins)
            self._filed[key] = (rejection, self._filed[key][1])
            into[key] = queued
        return len(pods)

    def put_first(self, queued: QueuedPodInfo) -> None:
        """Put a pod that is in here before all others of its file."""
        rejection, _ = self._filed[queued.key]
        self._files[rejection].move_to_end(queued.key, last=False)
        self._filed[queued.key] = (rejection, self._first_number)
        self._first_number -= 1

    def remove(self, key: str) -> QueuedPodInfo | None:
        filed = self._filed.pop(key, None)
        if filed is None:
            return None
        pods = self._files[filed[0]]
        queued = pods.pop(key)
        if not pods:
            del self._files[filed[0]]
        return queued

    def validate(self) -> None:
        """Raise InvariantError unless every pod is filed once, under what rejected it."""
        filed = {key: rejection for rejection, pods in self._files.items() for key in pods}
        if filed != {key: rejection for key, (rejection, _) in self._filed.items()}:
            raise InvariantError("the files of unschedulable pods are not those in the register")
        numbers = [number for _, number in self._filed.values()]
        if len(set(numbers)) != len(numbers):
            raise InvariantError("two unschedulable pods have the same number")
        if not all(self._first_number < number < self._next_number for number in numbers):
            raise InvariantError("an unschedulable pod has a number that is yet to be given out")
        for rejection, pods in self._files.items():
            if not pods:
                raise InvariantError(f"a file of unschedulable pods is empty: {rejection}")
            for key, queued in pods.items():
                if queued.key != key or _rejection(queued) != rejection:
                    raise InvariantError(f"{queued.key} is filed as {key} under {rejection}")


def _rejection(queued: QueuedPodInfo) -> Rejection:
    return Rejection(
        queued.pod.scheduler_name, frozenset(queued.rejectors), queued.gated, queued.pod_class
    )
