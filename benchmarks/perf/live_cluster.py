"""A real cluster for scheduler_perf: an API server and etcd, and a scheduler as a process of its own.

It has the methods of `PerfCluster`. Time is real here: a rate is pods per second of wall time, as upstream's.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import yaml
from control_plane import ADMIN, ControlPlane
from plain_client import RESOURCES, ApiFailure, Json, PlainClient

from benchmarks.perf.cluster import Stuck, usable_gates
from benchmarks.perf.language import Unsupported
from benchmarks.schedulers import SCHEDULERS
from mooring.objects.decoding import decode_object
from mooring.objects.meta import KubeObject, encode_hook
from mooring.objects.node import Node
from mooring.objects.pod import Pod

#: Of both schedulers, so that it limits neither; upstream's own tests have it too.
_QPS = 5000
_WORKERS = 16
_PATIENCE_S = 600.0
_LOOK_EVERY_S = 0.02
#: Objects whose status the API server leaves out when they are created.
_STATUS_APART = ("PersistentVolume", "PersistentVolumeClaim", "ResourceClaim")


class LiveCluster:
    """Objects go in as manifests; the scheduler decides all the time."""

    clock = staticmethod(time.perf_counter)

    def __init__(self, scheduler: str, gates: Mapping[str, bool], config: Path | None) -> None:
        _, self.ignored_gates = usable_gates(gates)
        chosen = [
            f"{name}={str(value).lower()}"
            for name, value in gates.items()
            if f"{name}={str(value).lower()}" not in self.ignored_gates
        ]
        self._closing = threading.Event()
        self._things = ExitStack()
        try:
            control_plane = self._things.enter_context(
                ControlPlane(gates=chosen, apis=["api/all"] * bool(chosen))
            )
            self._client = self._things.enter_context(control_plane.client())
            control_plane.start_controllers("resourceclaim-controller")
            path = _config(control_plane, config)
            gate_flags = [f"--feature-gates={','.join(chosen)}"] * bool(chosen)
            component = SCHEDULERS[scheduler](control_plane, path, gate_flags)
            self._things.callback(component.stop)
            self._check = component.check
            self._pods = self._things.enter_context(_Pods(control_plane.client()))
            self._pool = self._things.enter_context(ThreadPoolExecutor(_WORKERS))
        except BaseException:
            self._things.close()
            raise

    def close(self) -> None:
        self._closing.set()
        self._things.close()
        self._pods.join()

    # Objects

    def create(self, manifests: Iterable[Mapping[str, Any]], namespace: str = "") -> list[str]:
        """Create objects, several at a time; return their names once the pods among them are known."""
        created = list(self._pool.map(lambda each: self._create(each, namespace), manifests))
        self._pods.wait_for(each["metadata"]["uid"] for each in created if each["kind"] == "Pod")
        return [each["metadata"]["name"] for each in created]

    create_beside = create

    def _create(self, manifest: Mapping[str, Any], namespace: str) -> Json:
        document = _document(manifest, namespace)
        try:
            created = self._client.create(document)
            if document["kind"] in _STATUS_APART and document.get("status"):
                self._patch_status(created, document["status"])
        except ApiFailure as failure:
            raise Unsupported(f"{document['kind']}: {failure}") from None
        return {**created, "kind": document["kind"]}

    def _patch_status(self, created: Json, status: Any) -> None:
        metadata = created["metadata"]
        self._client.patch(
            created["kind"],
            metadata["name"],
            {"status": status},
            namespace=metadata.get("namespace", ""),
            part="status",
        )

    def update(self, manifest: Mapping[str, Any], namespace: str) -> None:
        document = _document(manifest, namespace)
        name, place = document["metadata"]["name"], document["metadata"].get("namespace", "")
        self._client.patch(document["kind"], name, document, namespace=place)

    def delete(self, manifest: Mapping[str, Any], namespace: str, name: str) -> None:
        document = _document(manifest, namespace)
        place = document["metadata"].get("namespace", "")
        try:
            self._client.delete(document["kind"], name, place, grace_s=0)
        except ApiFailure as failure:
            if failure.status != 404:
                raise

    def delete_pods(self, pods: Iterable[Pod]) -> None:
        def delete(pod: Pod) -> None:
            self.delete({"apiVersion": "v1", "kind": "Pod"}, pod.namespace, pod.name)

        for _ in self._pool.map(delete, pods):
            pass

    def pods(self, namespace: str, labels: Mapping[str, str] | None = None) -> list[Pod]:
        return self._pods.of(namespace, labels or {})

    def scheduled(self, namespace: str) -> int:
        """How many pods of the namespace have got a node since the cluster began."""
        return len(self._pods.scheduled[namespace])

    def nodes(self) -> list[Node]:
        return [node for node in self.all(Node) if isinstance(node, Node)]

    def all(self, kind: type[KubeObject]) -> list[KubeObject]:
        page = self._client.list_document(kind.__name__, "")
        named = {"apiVersion": page["apiVersion"], "kind": kind.__name__}
        return [decode_object({**item, **named}) for item in page["items"]]

    def put_status(self, obj: KubeObject) -> None:
        raw = msgspec.to_builtins(obj, enc_hook=encode_hook)
        self._patch_status(raw, raw["status"])

    # Time

    def wait(self, done: Callable[[], bool]) -> None:
        """Raises Stuck."""
        deadline = time.monotonic() + _PATIENCE_S
        while not done():
            self._check()
            if time.monotonic() > deadline:
                raise Stuck("the pods that must be scheduled are not")
            time.sleep(_LOOK_EVERY_S)

    def run_for(self, seconds: float) -> None:
        time.sleep(seconds)

    def every(self, interval_s: float, action: Callable[[], bool]) -> None:
        """Do something at an interval, beside everything else, until it says that it is done."""

        def act() -> None:
            while not self._closing.wait(interval_s) and action():
                pass

        thread = threading.Thread(target=act, name="every", daemon=True)
        self._things.callback(thread.join)
        thread.start()


class _Pods:
    """All pods, by a watch in a thread of its own."""

    def __init__(self, client: PlainClient) -> None:
        self._client = client
        self._known: dict[str, Json] = {}
        self._seen: set[str] = set()
        #: Namespace → UIDs of the pods that have got a node.
        self.scheduled: dict[str, set[str]] = defaultdict(set)
        self._closing = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="pods", daemon=True)

    def __enter__(self) -> _Pods:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # The watch ends with the API server.
        self._closing = True

    def of(self, namespace: str, labels: Mapping[str, str]) -> list[Pod]:
        with self._lock:
            found = [
                each
                for each in self._known.values()
                if each["metadata"]["namespace"] == namespace
                and labels.items() <= each["metadata"].get("labels", {}).items()
            ]
        pods = (decode_object({**each, "apiVersion": "v1", "kind": "Pod"}) for each in found)
        return [pod for pod in pods if isinstance(pod, Pod)]

    def wait_for(self, uids: Iterable[str]) -> None:
        for uid in uids:
            while uid not in self._seen:
                if not self._thread.is_alive():
                    raise Stuck("the watch of pods ended")
                time.sleep(_LOOK_EVERY_S)

    def join(self) -> None:
        """Wait for the end of the watch, once the API server has stopped."""
        self._thread.join()

    def _watch(self) -> None:
        with self._client:
            self._follow()

    def _follow(self) -> None:
        version = self._client.list_document("Pod", "")["metadata"]["resourceVersion"]
        while not self._closing:
            try:
                for event in self._events(version):
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._note(event["type"], event["object"])
            except (OSError, http.client.HTTPException):
                if not self._closing:
                    raise

    def _events(self, version: str) -> Iterator[Json]:
        yield from self._client.watch("Pod", "", version=version, timeout_s=300)

    def _note(self, change: str, pod: Json) -> None:
        metadata = pod["metadata"]
        with self._lock:
            if change == "DELETED":
                self._known.pop(metadata["uid"], None)
            else:
                self._known[metadata["uid"]] = pod
            if pod["spec"].get("nodeName"):
                self.scheduled[metadata["namespace"]].add(metadata["uid"])
        self._seen.add(metadata["uid"])


def _config(control_plane: ControlPlane, given: Path | None) -> Path:
    """The workload's configuration, with the connection of this cluster."""
    document: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    if given is not None:
        document = yaml.safe_load(given.read_text())
    document["clientConnection"] = {
        "kubeconfig": str(control_plane.kubeconfig(ADMIN)),
        "qps": _QPS,
        "burst": _QPS,
    }
    document["leaderElection"] = {"leaderElect": False}
    path = control_plane.folder / "scheduler.json"
    path.write_text(json.dumps(document))
    return path


def _document(manifest: Mapping[str, Any], namespace: str) -> Json:
    """What is sent: in its namespace, and without what only the server can know."""
    kind = manifest.get("kind", "")
    if kind not in RESOURCES:
        raise Unsupported(f"{manifest.get('apiVersion')} {kind} cannot be created live")
    metadata = {k: v for k, v in (manifest.get("metadata") or {}).items() if k != "uid"}
    if namespace and RESOURCES[kind][2]:
        metadata["namespace"] = namespace
    document = {**manifest, "metadata": metadata}
    if kind == "PersistentVolume":
        reference = {k: v for k, v in manifest["spec"].get("claimRef", {}).items() if k != "uid"}
        document["spec"] = {**manifest["spec"], "claimRef": reference}
    return document
