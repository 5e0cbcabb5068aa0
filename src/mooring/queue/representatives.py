"""One pod is tried for all that are alike.

Pods of one class that wait after the same rejection get the same answer from the same cluster. So when an
event may help them, only the first of them is tried, as their representative; the others stay where they
are until it is known what comes of it:

    an event may help ──▶ the first pod becomes active or backs off; the file is woken
    it is rejected    ──▶ the others would be, too: they wait on, after the same rejection as the first
    anything else     ──▶ it is placed, gone, or failed without a rejection: the next pod is tried

Pods that another one was tried for back off as that one does, as if they had been tried themselves: while
that lasts, pods that have just come go before them. The one that was rejected stays the first of its file.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.errors import InvariantError
from mooring.queue.hints import Strategy
from mooring.queue.metrics import QueueMetrics
from mooring.queue.places import Places
from mooring.queue.queued_pod import QueuedPodInfo
from mooring.queue.unschedulable_pods import Rejection

#: For how many classes it is remembered when they were last rejected.
_MOST_REJECTIONS = 16_384


@dataclass(slots=True)
class _Woken:
    """A file of unschedulable pods whose representative is to be tried, or being tried."""

    representative: QueuedPodInfo
    strategy: Strategy
    #: What woke it, as metrics call it.
    label: str
    #: The pods that were in the file when it was woken have lower numbers: each is tried once.
    before: int


class Representatives:
    """The files that are woken."""

    def __init__(self, places: Places, metrics: QueueMetrics) -> None:
        self._places = places
        self._metrics = metrics
        #: Class → file → its representative.
        self._woken: dict[int, dict[Rejection, _Woken]] = {}
        #: `namespace/name` of a representative that waits → its file.
        self._waiting: dict[str, Rejection] = {}
        #: The files whose representative was popped.
        self._tried: list[Rejection] = []
        #: The classes that a rejected pod spoke for.
        self.spoken_for: set[int] = set()
        #: Class → when a pod that spoke for others was last rejected, and how often it had been.
        self._rejections: dict[int, tuple[float, int]] = {}

    def wake(self, file: Rejection, first: QueuedPodInfo, strategy: Strategy, label: str) -> None:
        """Try this pod of the file, unless one is to be tried already."""
        if not self.is_awake(file):
            number = self._places.unschedulable.next_number
            self._try(file, first, _Woken(first, strategy, label, number))

    def is_awake(self, file: Rejection) -> bool:
        """Whether a pod is to be tried for the file, or is being tried."""
        woken = self._woken.get(_class_of(file), {}).get(file)
        if woken is None:
            return False
        key = woken.representative.key
        if file in self._tried or key in self._places.active or key in self._places.backoff:
            return True
        # PreEnqueue has held it back on its way from backoff.
        self._sleep(file)
        return False

    def popped(self, queued: QueuedPodInfo) -> None:
        """A pod is in flight: whether it speaks for others is known when the next one is popped."""
        file = self._waiting.pop(queued.key, None)
        if file is not None:
            self._tried.append(file)

    def gone(self, key: str) -> None:
        """A waiting pod is gone, or is no longer what it was."""
        file = self._waiting.pop(key, None)
        if file is not None:
            self._try_next(file)

    def rejected(self, queued: QueuedPodInfo) -> None:
        """A pod was rejected and waits: every woken pod of its class would be rejected as well."""
        if queued.pod_class is None:
            return
        woken_files = self._woken.pop(queued.pod_class, {})
        for file, woken in woken_files.items():
            self._stop_waiting(file, woken)
            self._file_as(queued, file)
        if woken_files:
            self._tried = [file for file in self._tried if file not in woken_files]
            self.spoken_for.add(queued.pod_class)
            if len(self._rejections) >= _MOST_REJECTIONS:
                self._rejections.clear()
            self._rejections[queued.pod_class] = queued.timestamp, queued.unschedulable_count
            self._places.unschedulable.put_first(queued)

    def go_on(self) -> None:
        """Before a pod is popped: where a representative was not rejected, the next one follows."""
        while self._tried:
            file = self._tried.pop()
            if file in self._woken.get(_class_of(file), {}):
                self._try_next(file)

    def _try_next(self, file: Rejection) -> None:
        woken = self._sleep(file)
        first = self._places.unschedulable.first_before(file, woken.before)
        if first is not None:
            self._try(file, first, woken)

    def validate(self) -> None:
        """Raise InvariantError unless each woken file has one representative, to be tried or tried."""
        for key, file in self._waiting.items():
            woken = self._woken.get(_class_of(file), {}).get(file)
            if woken is None or woken.representative.key != key:
                raise InvariantError(f"{key} is the representative of a file that is not woken")
            if self._places.get(key) is not woken.representative:
                raise InvariantError(f"{key} is a representative and does not wait")
        if len(set(self._tried)) != len(self._tried):
            raise InvariantError("a representative was popped twice")
        for pod_class, woken_files in self._woken.items():
            if not woken_files:
                raise InvariantError(f"class {pod_class} is kept as woken, and no file of it is")
            for file, woken in woken_files.items():
                self._validate_woken(pod_class, file, woken)

    def _validate_woken(self, pod_class: int, file: Rejection, woken: _Woken) -> None:
        key = woken.representative.key
        if file.pod_class != pod_class or file.gated:
            raise InvariantError(
                f"a file is woken for class {pod_class}, which it is not of: {file}"
            )
        if self._waiting.get(key) != file and file not in self._tried:
            raise InvariantError(
                f"{key} neither waits nor was popped for the file that it stands for"
            )
        if woken.before > self._places.unschedulable.next_number:
            raise InvariantError(f"{key} stands for pods that are yet to come")

    def _sleep(self, file: Rejection) -> _Woken:
        of_class = self._woken[_class_of(file)]
        woken = of_class.pop(file)
        if not of_class:
            del self._woken[_class_of(file)]
        self._stop_waiting(file, woken)
        return woken

    def _stop_waiting(self, file: Rejection, woken: _Woken) -> None:
        """A pod that was tried for this file may wait for another one, under which it came back."""
        key = woken.representative.key
        if self._waiting.get(key) == file:
            del self._waiting[key]

    def _try(self, file: Rejection, first: QueuedPodInfo, woken: _Woken) -> None:
        unschedulable = self._places.unschedulable
        candidate: QueuedPodInfo | None = first
        while candidate is not None:
            unschedulable.remove(candidate.key)
            self._back_off_as_others(candidate)
            self._places.requeue(candidate, woken.strategy, woken.label)
            if not candidate.gated:
                woken.representative = candidate
                self._woken.setdefault(_class_of(file), {})[file] = woken
                self._waiting[candidate.key] = file
                return
            # PreEnqueue holds this one back; it speaks for itself alone.
            candidate = unschedulable.first_before(file, woken.before)

    def _back_off_as_others(self, queued: QueuedPodInfo) -> None:
        """Count the attempts that another pod made for this one while it waited."""
        assert queued.pod_class is not None
        at, count = self._rejections.get(queued.pod_class, (0.0, 0))
        if queued.timestamp < at:
            queued.timestamp = at
            queued.unschedulable_count = max(queued.unschedulable_count, count)
            queued.backoff_expiration = None

    def _file_as(self, rejected: QueuedPodInfo, file: Rejection) -> None:
        """File pods under what rejected one of them, if that is not what rejected them before."""
        if file.rejectors == rejected.rejectors:
            return
        count = self._places.unschedulable.refile_all(file, rejected)
        for plugin in file.rejectors:
            self._metrics.unschedulable_pods(plugin, file.profile, -count)
        for plugin in rejected.rejectors:
            self._metrics.unschedulable_pods(plugin, file.profile, count)


def _class_of(file: Rejection) -> int:
    assert file.pod_class is not None, "only pods with a class are filed as alike"
    return file.pod_class
