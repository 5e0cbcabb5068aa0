"""Carries out a workload of scheduler_perf, operation by operation, and measures what it says."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.perf.cluster import PerfCluster, is_attempted, is_scheduled
from benchmarks.perf.language import Operation, Template, TestCase, Unsupported, Workload
from mooring.config import parse_duration
from mooring.devices.allocated import AllocatedDevices
from mooring.devices.allocator import Allocator
from mooring.objects.devices import DeviceClass, ResourceClaim, ResourceSlice
from mooring.objects.node import Node

if TYPE_CHECKING:
    from benchmarks.perf.live_cluster import LiveCluster

_NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "spec": {},
    "status": {
        "capacity": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "allocatable": {"pods": "110", "cpu": "4", "memory": "32Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "pause",
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "100m", "memory": "500Mi"}},
            }
        ]
    },
}
_CHURN_INTERVAL_MS = 500


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured."""

    pods: int
    #: By the clock of the cluster.
    seconds: float
    #: Gates of the workload that were left at their default.
    ignored_gates: tuple[str, ...] = ()

    @property
    def per_s(self) -> float:
        return self.pods / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class _Collecting:
    """A measurement under way."""

    namespaces: tuple[str, ...]
    before: int
    started_s: float


class Executor:
    """One run of a workload. `run` may be called once."""

    def __init__(
        self, case: TestCase, workload: Workload, cluster: PerfCluster | LiveCluster
    ) -> None:
        self._case = case
        self._workload = workload
        self._cluster = cluster
        self._number = 0
        #: Namespace → pods that were created without waiting for them.
        self._awaited: dict[str, int] = {}
        self._namespaces: set[str] = set()
        #: Namespace and name of every claim that was made for a pod.
        self._claims: set[tuple[str, str]] = set()
        self._collecting: _Collecting | None = None
        self._measured: list[Outcome] = []

    def run(self) -> Outcome:
        """Raises Unsupported, Stuck and what the engine raises."""
        try:
            for number, operation in enumerate(self._case.operations_of(self._workload)):
                self._number = number
                self._carry_out(operation)
        finally:
            self._cluster.close()
        if not self._measured:
            raise Unsupported("the workload measures nothing")
        pods = sum(each.pods for each in self._measured)
        seconds = sum(each.seconds for each in self._measured)
        return Outcome(pods, seconds, tuple(self._cluster.ignored_gates))

    def _carry_out(self, operation: Operation) -> None:
        codes: Mapping[str, Callable[[Operation], None]] = {
            "createNodes": self._create_nodes,
            "createNamespaces": self._create_namespaces,
            "createPods": self._create_pods,
            "createPodSets": self._create_pod_sets,
            "createAny": self._create_any,
            "updateAny": self._update_any,
            "deletePods": self._delete_pods,
            "churn": self._churn,
            "barrier": self._barrier,
            "sleep": lambda op: self._cluster.run_for(_seconds(op)),
            "startCollectingMetrics": lambda op: self._start(op.get("namespaces", [])),
            "stopCollectingMetrics": lambda op: self._stop(),
            "createResourceDriver": self._create_driver,
            "allocResourceClaims": self._allocate_claims,
        }
        if operation.code not in codes:
            raise Unsupported(f"opcode {operation.code}")
        codes[operation.code](operation)

    # Nodes and namespaces

    def _create_nodes(self, operation: Operation) -> None:
        count = operation.get("count", 0)
        template = operation.template("nodeTemplatePath")
        known = len(self._cluster.nodes())
        manifests = [self._node(template, i, count, known) for i in range(count)]
        strategy = operation.get("nodeAllocatableStrategy")
        if strategy:
            manifests = [_with_allocatable(each, strategy) for each in manifests]
        labels = operation.get("labelNodePrepareStrategy")
        if labels:
            values = labels["labelValues"]
            for i, manifest in enumerate(manifests):
                manifest["metadata"]["labels"][labels["labelKey"]] = values[i % len(values)]
        unique = operation.get("uniqueNodeLabelStrategy")
        if unique:
            for manifest in manifests:
                labels = manifest["metadata"]["labels"]
                labels[unique["labelKey"]] = manifest["metadata"]["name"]
        self._cluster.create(manifests)
        if strategy and strategy.get("csiNodeAllocatable"):
            self._cluster.create(_csi_node(each, strategy) for each in manifests)

    def _node(self, template: Template | None, i: int, count: int, known: int) -> dict[str, Any]:
        manifest = dict(_NODE) if template is None else template.manifest(i, count)
        metadata = dict(manifest.get("metadata") or {})
        prefix = metadata.get("generateName") or f"node-{self._number}-"
        name = metadata.get("name") or f"{prefix}{known + i:05d}"
        labels = {**(metadata.get("labels") or {}), "kubernetes.io/hostname": name}
        return {**manifest, "metadata": {**metadata, "name": name, "labels": labels}}

    def _create_namespaces(self, operation: Operation) -> None:
        template = operation.template("namespaceTemplatePath")
        for i in range(operation.get("count", 0)):
            manifest = template.manifest(i) if template is not None else {}
            self._namespace(f"{operation.get('prefix')}-{i}", manifest)

    def _namespace(self, name: str, manifest: Mapping[str, Any] | None = None) -> None:
        if name in self._namespaces:
            return
        self._namespaces.add(name)
        metadata = {**((manifest or {}).get("metadata") or {}), "name": name}
        self._cluster.create([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])

    # Pods

    def _create_pods(self, operation: Operation) -> None:
        namespace = operation.get("namespace", f"namespace-{self._number}")
        self._namespace(namespace)
        count = operation.get("count", 0)
        measures = operation.get("collectMetrics", False)
        if operation.get("steadyState", False):
            self._keep_steady(operation, namespace, count, measures)
            return
        pods = self._pods(operation, namespace, count)
        if measures:
            self._start([namespace])
        before = self._cluster.scheduled(namespace)
        self._cluster.create(pods, namespace)
        if operation.get("skipWaitToCompletion", False):
            self._awaited[namespace] = self._awaited.get(namespace, 0) + count
            return
        self._wait_for(namespace, before + count)
        if measures:
            self._stop()

    def _wait_for(self, namespace: str, scheduled: int) -> None:
        self._cluster.wait(lambda: self._cluster.scheduled(namespace) >= scheduled)

    def _keep_steady(
        self, operation: Operation, namespace: str, count: int, measures: bool
    ) -> None:
        """Create so many pods, delete them once they are scheduled, and begin again."""
        left_s = _seconds(operation)
        batches = max(1, int(left_s * 1000 / count / 10))
        if measures:
            self._start([namespace])
        for _ in range(batches):
            before = self._cluster.scheduled(namespace)
            self._cluster.create(self._pods(operation, namespace, count), namespace)
            self._wait_for(namespace, before + count)
            self._cluster.delete_pods(self._cluster.pods(namespace))
        if measures:
            self._stop()

    def _pods(self, operation: Operation, namespace: str, count: int) -> list[dict[str, Any]]:
        template = operation.template("podTemplatePath")
        if template is None and self._case.pod_template is not None:
            given = {"opcode": "createPods", "podTemplatePath": self._case.pod_template}
            template = Operation(given, self._case.folder).template("podTemplatePath")
        pods = list(_manifests(template, count)) if template is not None else [_POD] * count
        claim = operation.template("persistentVolumeClaimTemplatePath")
        volume = operation.template("persistentVolumeTemplatePath")
        if claim is None or volume is None:
            return pods
        return [
            self._with_volume(pod, namespace, claim.manifest(), volume.manifest(), i)
            for i, pod in enumerate(pods)
        ]

    def _with_volume(
        self,
        pod: Mapping[str, Any],
        namespace: str,
        claim: dict[str, Any],
        volume: dict[str, Any],
        i: int,
    ) -> dict[str, Any]:
        """The pod with a claim of its own, which is bound to a volume of its own."""
        name, claim_name = f"vol-{self._number}-{i}", self._claim_name(namespace, i)
        volume["metadata"] = {**volume.get("metadata", {}), "name": name}
        spec = volume["spec"]
        spec["claimRef"] = {"namespace": namespace, "name": claim_name, "uid": claim_name}
        if "csi" in spec:
            spec["csi"]["volumeHandle"] = name
        elif "awsElasticBlockStore" in spec:
            spec["awsElasticBlockStore"]["volumeID"] = name
        volume["status"] = {"phase": "Bound"}
        claim["metadata"] = {
            **claim.get("metadata", {}),
            "name": claim_name,
            "uid": claim_name,
            "annotations": {"pv.kubernetes.io/bind-completed": "true"},
        }
        claim["spec"]["volumeName"] = name
        claim["status"] = {"phase": "Bound", "capacity": spec["capacity"]}
        self._cluster.create([volume])
        self._cluster.create([claim], namespace)
        mounted = {"name": "vol", "persistentVolumeClaim": {"claimName": claim_name}}
        return {**pod, "spec": {**pod["spec"], "volumes": [mounted]}}

    def _claim_name(self, namespace: str, i: int) -> str:
        """Later operations name the claims of earlier ones by number."""
        name = f"pvc-{i}"
        if (namespace, name) in self._claims:
            name = f"pvc-{self._number}-{i}"
        self._claims.add((namespace, name))
        return name

    def _create_pod_sets(self, operation: Operation) -> None:
        each = operation.get("createPodsOp")
        for i in range(operation.get("count", 0)):
            fields = {**each, "namespace": f"{operation.get('namespacePrefix')}-{i}"}
            self._create_pods(Operation(fields, operation.folder))

    def _delete_pods(self, operation: Operation) -> None:
        pods = self._cluster.pods(operation.get("namespace"), operation.get("labelSelector"))
        rate = operation.get("deletePodsPerSecond", 0)
        if not rate:
            self._cluster.delete_pods(pods)
            return
        waiting = iter(pods)

        def delete_one() -> bool:
            pod = next(waiting, None)
            self._cluster.delete_pods([pod] if pod is not None else [])
            return pod is not None

        self._cluster.every(1 / rate, delete_one)
        if not operation.get("skipWaitToCompletion", False):
            self._cluster.run_for(len(pods) / rate + 1)

    def _barrier(self, operation: Operation) -> None:
        namespaces = operation.get("namespaces", []) or list(self._awaited)
        selector = operation.get("labelSelector")
        reached = is_attempted if operation.get("stageRequirement") == "Attempted" else is_scheduled

        def all_reached() -> bool:
            pods = (pod for each in namespaces for pod in self._cluster.pods(each, selector))
            return all(map(reached, pods))

        self._cluster.wait(all_reached)

    # Other objects

    def _create_any(self, operation: Operation) -> None:
        namespace = operation.get("namespace", "")
        if namespace:
            self._namespace(namespace)
        template, count = _required(operation), operation.get("count", 1)
        self._cluster.create(_manifests(template, count), namespace)

    def _update_any(self, operation: Operation) -> None:
        namespace, count = operation.get("namespace", ""), operation.get("count", 1)
        manifests = _manifests(_required(operation), count)
        rate = operation.get("updatePerSecond", 0)
        if not rate:
            for manifest in manifests:
                self._cluster.update(manifest, namespace)
            return

        def update_one() -> bool:
            manifest = next(manifests, None)
            if manifest is not None:
                self._cluster.update(manifest, namespace)
            return manifest is not None

        self._cluster.every(1 / rate, update_one)
        self._cluster.run_for(count / rate)

    def _churn(self, operation: Operation) -> None:
        namespace = operation.get("namespace", f"namespace-{self._number}")
        self._namespace(namespace)
        paths = operation.get("templatePaths")
        manifests = [
            _required(
                Operation({**operation.fields, "templatePath": path}, operation.folder)
            ).manifest()
            for path in paths
        ]
        turns = _Turns(operation.get("mode"), operation.get("number", 0))

        def churn() -> bool:
            for slot, manifest in enumerate(manifests):
                known = turns.next(slot)
                if known is not None:
                    self._cluster.delete(manifest, namespace, known)
                else:
                    turns.created(slot, *self._cluster.create_beside([manifest], namespace))
            return turns.go_on()

        interval_ms = operation.get("intervalMilliseconds", _CHURN_INTERVAL_MS)
        self._cluster.every(interval_ms / 1000, churn)

    # Devices

    def _create_driver(self, operation: Operation) -> None:
        driver, devices = operation.get("driverName"), operation.get("maxClaimsPerNode", 0)
        pattern = operation.get("nodes")
        names = [node.name for node in self._cluster.nodes() if fnmatchcase(node.name, pattern)]
        self._cluster.create(_slice(driver, name, devices) for name in names)

    def _allocate_claims(self, operation: Operation) -> None:
        """Give each claim devices, as if a pod had used it before. Nodes take turns."""
        namespace = operation.get("namespace", "")
        claims = [
            each for each in self._cluster.all(ResourceClaim) if isinstance(each, ResourceClaim)
        ]
        slices = [
            each for each in self._cluster.all(ResourceSlice) if isinstance(each, ResourceSlice)
        ]
        classes = {
            each.name: each
            for each in self._cluster.all(DeviceClass)
            if isinstance(each, DeviceClass)
        }
        in_use = AllocatedDevices(claims)
        allocator = Allocator(in_use, classes, slices)
        nodes = deque(self._cluster.nodes())
        for claim in claims:
            if claim.status.allocation is not None or (namespace and claim.namespace != namespace):
                continue
            given = _allocated(claim, allocator, nodes)
            in_use.add(given)
            self._cluster.put_status(given)

    # Measuring

    def _start(self, namespaces: list[str]) -> None:
        gc.collect()
        before = sum(map(self._cluster.scheduled, namespaces))
        self._collecting = _Collecting(tuple(namespaces), before, self._cluster.clock())

    def _stop(self) -> None:
        ended_s, collecting = self._cluster.clock(), self._collecting
        if collecting is None:
            raise Unsupported("stopCollectingMetrics without a start")
        pods = sum(map(self._cluster.scheduled, collecting.namespaces)) - collecting.before
        self._measured.append(Outcome(pods, ended_s - collecting.started_s))
        self._collecting = None


class _Turns:
    """What a churn does next: create for so many turns, then delete for as many, over and over."""

    def __init__(self, mode: str, number: int) -> None:
        self._recreates = mode == "recreate"
        self._number = number
        self._turn = 0
        self._names: dict[tuple[int, int], str] = {}

    def next(self, slot: int) -> str | None:
        """The name of the object to delete; None if one is to be created."""
        if not self._recreates:
            return None
        return self._names.pop((slot, self._turn % self._number), None)

    def created(self, slot: int, name: str) -> None:
        if self._recreates:
            self._names[slot, self._turn % self._number] = name

    def go_on(self) -> bool:
        self._turn += 1
        return self._recreates or self._number == 0 or self._turn < self._number


def _seconds(operation: Operation) -> float:
    return parse_duration(operation.get("duration")).seconds


def _required(operation: Operation) -> Template:
    template = operation.template("templatePath")
    if template is None:
        raise Unsupported(f"{operation.code} without a template")
    return template


def _manifests(template: Template, count: int) -> Iterator[dict[str, Any]]:
    if template.is_constant:
        manifest = template.manifest()
        yield from (manifest for _ in range(count))
    else:
        yield from (template.manifest(i, count) for i in range(count))


def _with_allocatable(node: dict[str, Any], strategy: Mapping[str, Any]) -> dict[str, Any]:
    more = strategy.get("nodeAllocatable") or {}
    status = node.get("status") or {}
    given = status.get("allocatable") or status.get("capacity") or {}
    sizes = {part: {**given, **more} for part in ("capacity", "allocatable")}
    return {**node, "status": {**status, **sizes}}


def _csi_node(node: Mapping[str, Any], strategy: Mapping[str, Any]) -> dict[str, Any]:
    name = node["metadata"]["name"]
    migrated = ",".join(strategy.get("migratedPlugins") or ())
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "drivers": [
                {"name": driver, "nodeID": name, "allocatable": allocatable}
                for driver, allocatable in strategy["csiNodeAllocatable"].items()
            ]
        },
    }


def _slice(driver: str, node: str, devices: int) -> dict[str, Any]:
    """A pool with devices that differ in one attribute."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": node},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 0, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"instance-{i}",
                    "attributes": {
                        "model": {"string": "A100"},
                        "family": {"string": "GPU"},
                        "driverVersion": {"version": "1.2.3"},
                        "dra.example.com/numa": {"int": i},
                    },
                    "capacity": {"memory": {"value": "1Gi"}},
                }
                for i in range(devices)
            ],
        },
    }


def _allocated(claim: ResourceClaim, allocator: Allocator, nodes: deque[Node]) -> ResourceClaim:
    """The claim with devices of the first node that has them; that node comes last next time."""
    for _ in range(len(nodes)):
        node = nodes[0]
        nodes.rotate(-1)
        found = allocator.allocate(node, [claim])
        if found is not None:
            status = msgspec.structs.replace(claim.status, allocation=found[0])
            return msgspec.structs.replace(claim, status=status)
    raise Unsupported(f"no node has devices for claim {claim.name}")
