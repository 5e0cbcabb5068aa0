"""A cluster in process for scheduler_perf: a simulation in which time passes while pods are decided.

Upstream's scripts do things at an interval ("delete 50 pods a second") while pods are scheduled. Decisions
take no virtual time of their own, so each counts as `DECISION_S`: a scheduler of 1,000 pods a second.
"""

from __future__ import annotations

import copy
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.perf.language import Unsupported
from mooring.config import default_config, load_config
from mooring.config.gates import GATES, FeatureGates
from mooring.objects.admission import Admission
from mooring.objects.decoding import decode_object, kind_of
from mooring.objects.kinds import KIND_OF
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.well_known import POD_SCHEDULED
from mooring.scheduler.decision import Decision
from mooring.sim.simulation import SimOptions, Simulation

DECISION_S = 0.001
#: Virtual seconds that a wait may take: no backoff and no flush of the queue takes longer.
_PATIENCE_S = 3600.0


class Stuck(Exception):
    """What was waited for does not happen."""


class PerfCluster:
    """Objects go in as manifests; the scheduler decides while someone waits."""

    clock = staticmethod(time.process_time)

    def __init__(self, gates: Mapping[str, bool], config: Path | None) -> None:
        chosen, self.ignored_gates = usable_gates(gates)
        loaded = default_config(chosen) if config is None else load_config(config, gates=chosen)
        self._simulation = Simulation(SimOptions(loaded, on_decision=self._decided))
        self._api = self._simulation.api
        self._loop = self._simulation.loop
        self._admission = Admission()
        self._progress = _Progress()
        self._api.watch(self._progress)

    def close(self) -> None:
        self._simulation.close()

    def _decided(self, _: Decision) -> None:
        self._loop.advance(DECISION_S)

    # Objects

    def create(self, manifests: Iterable[Mapping[str, Any]], namespace: str = "") -> list[str]:
        """Create objects; return their names."""
        objects = [self._complete(manifest, namespace) for manifest in manifests]
        self._api.create_all(objects)
        return [obj.name for obj in objects]

    def create_beside(self, manifests: Iterable[Mapping[str, Any]], namespace: str) -> list[str]:
        """As `create`, while the cluster runs."""
        objects = [self._complete(manifest, namespace) for manifest in manifests]
        for obj in objects:
            self._api.create(obj)
        return [obj.name for obj in objects]

    def update(self, manifest: Mapping[str, Any], namespace: str) -> None:
        """Replace an object. What the server owns, such as a pod's node, stays."""
        new = _decoded(manifest, namespace)
        old = self._api.get(type(new), new.key)
        if old is None:
            raise Unsupported(f"there is no {new.kind} {new.key} to update")
        merged = {**manifest, "metadata": {**manifest["metadata"], "uid": old.uid}}
        if isinstance(old, Pod) and old.node_name:
            merged["spec"] = {**manifest["spec"], "nodeName": old.node_name}
        complete = self._complete(merged, namespace)
        if isinstance(old, Pod) and isinstance(complete, Pod):
            phase, conditions = old.status.phase, old.status.conditions
            complete = complete.with_status(phase=phase, conditions=conditions)
        self._api.update(complete)

    def delete(self, manifest: Mapping[str, Any], namespace: str, name: str) -> None:
        named = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
        obj = _decoded(named, namespace)
        stored = self._api.get(type(obj), obj.key)
        if isinstance(stored, Pod):
            self._api.terminate(stored)
        elif stored is not None:
            self._api.delete(stored)

    def delete_pods(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            stored = self._api.get(Pod, pod.key)
            if stored is not None:
                self._api.delete(stored)

    def pods(self, namespace: str, labels: Mapping[str, str] | None = None) -> list[Pod]:
        wanted = (labels or {}).items()
        return [
            pod
            for pod in self._api.all(Pod)
            if pod.namespace == namespace and wanted <= pod.labels.items()
        ]

    def scheduled(self, namespace: str) -> int:
        """How many pods of the namespace have got a node since the cluster began."""
        return len(self._progress.scheduled[namespace])

    def nodes(self) -> list[Node]:
        return list(self._api.all(Node))

    def all(self, kind: type[KubeObject]) -> list[KubeObject]:
        return list(self._api.all(kind))

    def put_status(self, obj: KubeObject) -> None:
        self._api.update(obj)

    def _complete(self, manifest: Mapping[str, Any], namespace: str) -> KubeObject:
        obj = _decoded(manifest, namespace)
        created = self._admission.create(self._api.with_generated_name(obj))
        if created is None:
            raise Unsupported(f"{obj.kind} {obj.name} would be refused")
        return created

    # Time

    def wait(self, done: Callable[[], bool]) -> None:
        """Schedule until `done` is true, which is asked each time that nothing is ready to run.

        Raises Stuck.
        """
        end_s = self._loop.time() + _PATIENCE_S
        self._simulation.run(until_s=end_s, stops_when=done)
        if not done():
            raise Stuck("the pods that must be scheduled are not")

    def run_for(self, seconds: float) -> None:
        self._simulation.run(until_s=self._loop.time() + seconds)

    def every(self, interval_s: float, action: Callable[[], bool]) -> None:
        """Do something at an interval, beside everything else, until it says that it is done."""

        def act() -> None:
            if action():
                self._loop.call_later(interval_s, act)

        self._loop.call_later(interval_s, act)


def is_scheduled(pod: Pod) -> bool:
    return bool(pod.node_name)


def is_attempted(pod: Pod) -> bool:
    """Whether the pod has been tried at least once, or is held back by a gate."""
    return is_scheduled(pod) or pod.condition(POD_SCHEDULED) is not None


class _Progress:
    """Watches which pods have got a node, by namespace."""

    def __init__(self) -> None:
        #: UIDs.
        self.scheduled: dict[str, set[str]] = defaultdict(set)

    def added(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            self._note(obj)

    def updated(self, _: KubeObject, new: KubeObject) -> None:
        if isinstance(new, Pod):
            self._note(new)

    def deleted(self, obj: KubeObject) -> None: ...

    def _note(self, pod: Pod) -> None:
        if pod.node_name:
            self.scheduled[pod.namespace].add(pod.uid)


def usable_gates(gates: Mapping[str, bool]) -> tuple[FeatureGates, list[str]]:
    """The gates that can be set, and those that cannot: locked ones, and ones that mooring does not read."""
    usable, ignored = {}, []
    for name, value in gates.items():
        gate = GATES.get(name)
        if gate is None or (gate.locked and gate.default != value):
            ignored.append(f"{name}={str(value).lower()}")
        else:
            usable[name] = value
    return FeatureGates(usable), ignored


def _decoded(manifest: Mapping[str, Any], namespace: str) -> KubeObject:
    """Raises Unsupported."""
    try:
        return decode_object(_in_namespace(manifest, namespace))
    except ValueError as error:
        raise Unsupported(str(error)) from None


def _in_namespace(manifest: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    raw = copy.deepcopy(dict(manifest))
    metadata = raw.setdefault("metadata", {})
    if namespace and _is_namespaced(raw):
        metadata["namespace"] = namespace
    return raw


def _is_namespaced(raw: Mapping[str, Any]) -> bool:
    kind = kind_of(raw.get("apiVersion"), raw.get("kind"))
    if kind is None:
        raise Unsupported(
            f"{raw.get('apiVersion')} {raw.get('kind')} is not a kind that mooring reads"
        )
    return KIND_OF[kind].namespaced
