"""A control plane under pressure: what a scenario does to it, and what its audit log says meanwhile.

There are no kubelets, so a `Cluster` plays them where a scenario asks for it: a pod that is bound becomes
Running and Ready. Pods have no grace period, so what is deleted is gone at once.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from control_plane import ControlPlane
from plain_client import ApiFailure, Json, PlainClient, collection

from benchmarks.pressure_audit import Answer, Pods
from tests.live.proxy import Proxy

_WORKERS = 12
#: How often the audit log is read on: not so often as to be in the scheduler's way.
_READ_EVERY_S = 0.1
#: How long to wait before evictions are tried again that a PodDisruptionBudget forbids for the moment.
_EVICT_AGAIN_S = 1.0

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_STRATEGIC = "application/strategic-merge-patch+json"


class Cluster:
    """What a scenario works with; leave it (`with`) to end its threads."""

    def __init__(
        self, control_plane: ControlPlane, client: PlainClient, *, scale: float, proxy: Proxy | None
    ) -> None:
        self.client = client
        #: Between the scheduler and the API server, for the scenarios that ask for it.
        self.proxy = proxy
        self.pods = Pods()
        self.answers: list[Answer] = []
        #: When the pressure began, by the clock of the audit log.
        self.began_s = 0.0
        self._control_plane = control_plane
        self._scale = scale
        self._pool = ThreadPoolExecutor(_WORKERS)
        self._when_bound: list[Callable[[str], object]] = []
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._read_on, name="audit log")]
        self._read_bytes = 0

    def __enter__(self) -> Cluster:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self._pool.shutdown(cancel_futures=True)

    def scaled(self, count: int) -> int:
        """A number of nodes, pods or seconds at the scale of this run."""
        return max(1, round(count * self._scale))

    # Objects

    def create(self, documents: Iterable[Json]) -> None:
        """All at once, several requests at a time."""
        _finish([self._pool.submit(self.client.create, document) for document in documents])

    def create_steadily(self, documents: Iterable[Json], *, per_s: float) -> None:
        began_s = time.monotonic()
        requests = []
        for number, document in enumerate(documents):
            time.sleep(max(0.0, began_s + number / per_s - time.monotonic()))
            requests.append(self._pool.submit(self.client.create, document))
        _finish(requests)

    def delete_pods(self, names: Iterable[str]) -> None:
        _finish([self._pool.submit(self._delete_pod, name) for name in names])

    def bind(self, places: Iterable[tuple[str, str]]) -> None:
        """Bind pods to nodes, before there is a scheduler."""
        _finish([self._pool.submit(self._bind, pod, node) for pod, node in places])

    def make_ready(self, names: Iterable[str]) -> None:
        """Say that pods run and are ready, as their kubelets would."""
        _finish([self._pool.submit(self._make_ready, name) for name in names])

    def cordon(self, nodes: Iterable[str]) -> None:
        change = {"spec": {"unschedulable": True}}
        _finish([self._pool.submit(self.client.patch, "Node", node, change) for node in nodes])

    def evict(self, pods: Sequence[str], *, within_s: float) -> int:
        """Evict pods as `kubectl drain` does; returns how many could not be evicted in time.

        What a PodDisruptionBudget forbids is tried again, a second later and not five, so that
        the time measured is the scheduler's rather than the drain's.
        """
        left = list(pods)
        deadline = time.monotonic() + within_s
        while True:
            done = list(self._pool.map(self._evict, left))
            left = [pod for pod, is_evicted in zip(left, done, strict=True) if not is_evicted]
            if not left or time.monotonic() > deadline:
                return len(left)
            time.sleep(_EVICT_AGAIN_S)

    # What goes on meanwhile

    def play_kubelets(self) -> None:
        """From here on, a pod that is bound is Running and Ready soon after."""
        self._when_bound.append(lambda name: self._pool.submit(self._make_ready, name))

    def delete_when_bound(self, *, prefix: str, after_s: float) -> None:
        """From here on, pods with such names are deleted some time after they were bound."""
        due: deque[tuple[float, str]] = deque()

        def when_bound(name: str) -> None:
            if name.startswith(prefix):
                due.append((self.pods.bound_at_s[name] + after_s, name))

        def delete() -> None:
            while due and due[0][0] <= time.time():
                self._pool.submit(self._delete_pod, due.popleft()[1])

        self._when_bound.append(when_bound)
        self._start(lambda: self._repeat(delete, every_s=_READ_EVERY_S))

    @contextmanager
    def repeating(self, work: Callable[[], None], *, every_s: float) -> Iterator[None]:
        """Do something again and again in a thread of its own for as long as the block takes."""
        enough = threading.Event()

        def repeat() -> None:
            while not enough.wait(every_s):
                work()

        thread = threading.Thread(target=repeat)
        thread.start()
        try:
            yield
        finally:
            enough.set()
            thread.join()

    def flip_readiness(self, node: str, *, is_ready: bool) -> None:
        """Change a node's Ready condition and the taint that goes with it."""
        taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
        condition = {"type": "Ready", "status": "True" if is_ready else "False", "reason": "Flaps"}
        self.client.patch("Node", node, {"spec": {"taints": [] if is_ready else [taint]}})
        self._patch_status("Node", node, {"conditions": [condition]})

    # Looking

    def wait_for(self, look: Callable[[], bool], *, within_s: float) -> bool:
        """Look again and again until something holds; False if it does not in time."""
        deadline = time.monotonic() + within_s
        while not look():
            if time.monotonic() > deadline:
                return False
            time.sleep(2 * _READ_EVERY_S)
        return True

    def placed(self, *, prefix: str = "") -> int:
        """How many pods that were created since the pressure began are bound, and still there."""
        return len(self.pods.placed_since(self.began_s, prefix=prefix))

    def last_answer_s(self, user: str) -> float:
        """When a user's last request was answered; 0 if there was none."""
        return next((each.at_s for each in reversed(self.answers) if each.user == user), 0.0)

    # Inside

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work)
        thread.start()
        self._threads.append(thread)

    def _repeat(self, work: Callable[[], None], *, every_s: float) -> None:
        while not self._is_over.wait(every_s):
            work()

    def _read_on(self) -> None:
        self._repeat(self._read_audit_log, every_s=_READ_EVERY_S)

    def _read_audit_log(self) -> None:
        if not self._control_plane.audit_log.exists():
            return
        with self._control_plane.audit_log.open("rb") as log:
            log.seek(self._read_bytes)
            # The last line may be half written.
            text = log.read().rpartition(b"\n")[0]
        if not text:
            return
        self._read_bytes += len(text) + 1
        for line in text.splitlines():
            answer = Answer.read(json.loads(line))
            self.answers.append(answer)
            self.pods.note(answer)
            if answer.resource == "pods/binding" and answer.is_good:
                for tell in self._when_bound:
                    tell(answer.name)

    def _delete_pod(self, name: str) -> None:
        _ignoring(404, lambda: self.client.delete("Pod", name, grace_s=0))

    def _bind(self, pod: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self._post_to_pod(pod, "binding", "v1", "Binding", {"target": target})

    def _evict(self, pod: str) -> bool:
        try:
            self._post_to_pod(pod, "eviction", "policy/v1", "Eviction", {})
        except ApiFailure as failure:
            return failure.status == 404
        return True

    def _post_to_pod(self, pod: str, part: str, version: str, kind: str, fields: Json) -> None:
        document = {"apiVersion": version, "kind": kind, "metadata": {"name": pod}, **fields}
        self.client.request("POST", f"{collection('Pod')}/{pod}/{part}", document)

    def _make_ready(self, name: str) -> None:
        condition = {"type": "Ready", "status": "True"}
        status = {"phase": "Running", "conditions": [condition]}
        _ignoring(404, lambda: self._patch_status("Pod", name, status))

    def _patch_status(self, kind: str, name: str, status: Json) -> None:
        path = f"{collection(kind)}/{name}/status"
        self.client.request("PATCH", path, {"status": status}, content_type=_STRATEGIC)


def _ignoring(status: int, request: Callable[[], object]) -> None:
    try:
        request()
    except ApiFailure as failure:
        if failure.status != status:
            raise


def _finish(requests: Sequence[Future[Any]]) -> None:
    """Wait for all; raise what the first that failed raised."""
    for request in requests:
        request.result()
