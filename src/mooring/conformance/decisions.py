"""Golden cases: what kube-scheduler decided on them, and what mooring decides.

The format is that of `tests/golden/README.md`. A case is replayed through the real engine, one pending pod
after the other, and every answer is written down in the very form of the file, so that comparing is
nothing but a difference of two documents.

A case is replayed twice. The cold replay asks every plugin about every pod for the first time. In the warm
replay the plugins have answered about an equal pod before, and rows have changed since: a decision from kept
answers must be the same.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from mooring.cluster.node_info import NodeInfo
from mooring.config import ExtensionPoint as Point
from mooring.config import default_config, load_config
from mooring.config.types import KubeSchedulerConfiguration
from mooring.conformance.claim_stores import ListedObjects
from mooring.errors import InputError
from mooring.framework.clock import Timer
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Nomination, PostFilterResult
from mooring.framework.silent_writer import SilentWriter
from mooring.framework.status import Code, Status
from mooring.objects.decoding import decode_json, decode_object, kind_of
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugins.default_preemption import PreemptionDetail
from mooring.plugins.dynamic_resources import DynamicResources
from mooring.plugins.registry import default_registry
from mooring.plugins.volume_binding import VolumeBinding
from mooring.runtime.evaluation import Evaluation
from mooring.runtime.filtering import NOT_ASKED
from mooring.runtime.framework import Framework
from mooring.runtime.metrics import Metrics
from mooring.runtime.plugin_calls import PluginFailure
from mooring.runtime.question import Question
from mooring.scheduler.choosing import first_by_name
from mooring.scheduler.decision import Decision, NoNodesError
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.engine import Engine
from mooring.sim.claim_api import StoredClaims
from mooring.sim.clock import VirtualLoop

_START = datetime(2026, 1, 1, tzinfo=UTC)

#: What comes and goes in the warm replay, named as nothing in a case is.
_FURTHER_NODE = decode_json(
    b"""{"metadata": {"name": "further-node", "labels": {"topology.kubernetes.io/zone": "further"}},
         "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}}}""",
    Node,
)
_FURTHER_POD = decode_json(
    b"""{"metadata": {"name": "further-pod", "namespace": "default", "uid": "further-pod"},
         "spec": {"containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}}""",
    Pod,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Case:
    """One line of a golden file."""

    name: str
    config: Mapping[str, Any] | None
    objects: list[dict[str, Any]]
    pending: list[dict[str, Any]]
    expect: dict[str, Any]


def read_lines(path: Path, decode: Callable[[dict[str, Any]], T]) -> Iterator[T]:
    """Every case of a golden file. `decode` raises KeyError, TypeError or AttributeError if a line is none.

    Raises InputError, naming the line that is not a case.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield decode(msgspec.json.decode(line))
                except (msgspec.DecodeError, KeyError, TypeError, AttributeError) as error:
                    raise InputError(
                        [f"{path}: line {number}: not a golden case: {error}"]
                    ) from error
    except (OSError, EOFError, gzip.zlib.error) as error:  # type: ignore[attr-defined]
        why = getattr(error, "strerror", None) or error
        raise InputError([f"{path}: cannot be read: {why}"]) from error


def decision_case(line: dict[str, Any]) -> Case:
    return Case(
        name=line["name"],
        config=line.get("config"),
        objects=line["objects"],
        pending=line["pending"],
        expect={"results": line["expect"]["results"], "final": line["expect"]["final"]},
    )


def replay(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
    """What mooring decides on the case, cold and warm, in the form of `expect`."""
    decoded = _Decoded(case)
    return _Replay(decoded).run(), _WarmReplay(decoded).run()


class _Decoded:
    """A case as the engine reads it."""

    def __init__(self, case: Case) -> None:
        config = default_config() if case.config is None else load_config(case.config)
        self.config = _looking_at_every_node(config)
        # Devices are left out: mooring does not read them, and refuses the pods that claim any.
        self.objects: list[KubeObject] = [
            decode_object(raw)
            for raw in case.objects
            if kind_of(raw.get("apiVersion"), raw.get("kind")) is not None
        ]
        #: A pod that comes, or the `namespace/name` of one that is tried again.
        self.pending = [
            entry["retry"] if "retry" in entry else _pod(entry) for entry in case.pending
        ]


class _FixedClock:
    """Nothing in these cases depends on the time of day."""

    def now(self) -> float:
        return _START.timestamp()

    def call_later(self, delay_s: float, callback: object) -> Timer:
        raise NotImplementedError("no golden case waits")


def _discard(work: Coroutine[Any, Any, None]) -> None:
    """Evictions and claims given back are carried out by the replay itself, as the format says."""
    work.close()


class _Replay:
    def __init__(self, case: _Decoded) -> None:
        self._case = case
        self._loop = VirtualLoop()
        writer = SilentWriter()
        self._scheduler = Engine(
            case.config,
            Dependencies(
                clock=_FixedClock(),
                writer=writer,
                spawn=_discard,
                registry=default_registry(),
                metrics=Metrics(),
            ),
        )
        #: Every pod that exists, by `namespace/name`.
        self._pods = self._scheduler.observed_pods
        listers = self._scheduler.cluster.listers
        writer.claims = StoredClaims(ListedObjects(listers, self._pods))
        self._scheduler.nominator.queued_pod = self._pods.get
        self._deleted: list[str] = []
        self._load()

    def run(self) -> dict[str, Any]:
        try:
            results = [
                self._attempt(entry, position) for position, entry in enumerate(self._case.pending)
            ]
            return {"results": results, "final": self._final()}
        finally:
            self._loop.close()

    def _load(self) -> None:
        cluster, nominator = self._scheduler.cluster, self._scheduler.nominator
        for obj in self._case.objects:
            if isinstance(obj, Node):
                cluster.add_node(obj)
            elif not isinstance(obj, Pod):
                cluster.listers.put(obj)
            elif not obj.finished:
                self._pods[obj.key] = obj
                if obj.node_name:
                    cluster.add_pod(obj)
        pending = [entry for entry in self._case.pending if isinstance(entry, Pod)]
        self._pods.update({pod.key: pod for pod in pending})
        for pod in list(self._pods.values()):
            if not pod.node_name:
                nominator.add(pod)

    # One attempt

    def _attempt(self, entry: Pod | str, position: int) -> dict[str, Any]:
        key = entry.key if isinstance(entry, Pod) else entry
        result: dict[str, Any] = {"pod": key}
        if isinstance(entry, str):
            result["retry"] = True
        pod = self._pods.get(key)
        if pod is None:
            return {**result, "outcome": "gone"}
        if pod.node_name:
            return {**result, "outcome": "bound"}
        framework = self._scheduler.frameworks.get(pod.scheduler_name)
        if framework is None:
            return {**result, "outcome": "ignored"}
        if pod.terminating:
            return {**result, "outcome": "deleting"}
        gate = self._scheduler.gate(pod)
        if gate is not None:
            return {**result, "outcome": "gated", "preEnqueue": status_data(gate)}
        return {**result, **self._decide(framework, pod, position)}

    def _decide(self, framework: Framework, pod: Pod, position: int) -> dict[str, Any]:
        self._prepare(pod)
        state = CycleState()
        try:
            decision = self._scheduler.decide(pod, state)
        except NoNodesError as error:
            self._take_nomination_back(pod)
            return {"outcome": "error", "error": str(error)}
        except PluginFailure as error:
            self._take_nomination_back(pod)
            return {**self._failed(framework, pod), "outcome": "error", "error": str(error)}
        answer = self._looked_at(decision, framework, state)
        if decision.node_name is None:
            answer |= self._fits_nowhere(decision, framework, state)
        else:
            answer |= self._placed(decision, framework, state, position)
        return answer

    def _prepare(self, pod: Pod) -> None:
        """Nothing: the replay is cold."""

    def _looked_at(
        self, decision: Decision, framework: Framework, state: CycleState
    ) -> dict[str, Any]:
        """PreFilter, the nominated node, and the verdict on every node."""
        pod, outcome, diagnosis = decision.pod, decision.pre_filter, decision.diagnosis
        answer: dict[str, Any] = {"preFilter": status_data(outcome.status)}
        if not outcome.status.ok:
            return answer
        if outcome.node_names is not None:
            answer["preFilter"]["nodes"] = sorted(outcome.node_names)
        snapshot = diagnosis.snapshot
        if pod.nominated_node_name:
            node = snapshot.get(pod.nominated_node_name)
            fits = node is not None and framework.filter_node(state, pod, node, snapshot).ok
            answer["nominated"] = {"node": pod.nominated_node_name, "fits": fits}
        if not diagnosis.has_verdicts:
            # The nominated node fits, so the engine looked no further; the file has all of them.
            diagnosis = self._scheduler.decide_in_full(pod).diagnosis
        answer["filter"] = {node.name: _verdict(diagnosis, node) for node in snapshot}
        return answer

    def _failed(self, framework: Framework, pod: Pod) -> dict[str, Any]:
        """PreFilter and, node by node, what passed and what failed in an attempt that failed."""
        state, snapshot = CycleState(), self._scheduler.cluster.snapshot()
        try:
            outcome = Evaluation.in_full(framework, first_by_name.keys).run_pre_filters(
                Question(state, pod, snapshot)
            )
        except PluginFailure as error:
            return {"preFilter": status_data(error.as_status())}
        statuses = {}
        for node in snapshot:
            try:
                status = framework.filter_node(state, pod, node, snapshot)
            except PluginFailure as error:
                status = error.as_status()
            statuses[node.name] = status_data(status)
        return {"preFilter": status_data(outcome.status), "filter": statuses}

    def _placed(
        self, decision: Decision, framework: Framework, state: CycleState, position: int
    ) -> dict[str, Any]:
        assert decision.node_name is not None
        names = decision.diagnosis.snapshot.columns.names
        answer: dict[str, Any] = {
            "outcome": "scheduled",
            "winners": sorted(names[row] for row in decision.winners),
            "chosen": decision.node_name,
        }
        if decision.scores is not None and framework.points[Point.SCORE]:
            answer["scores"] = _scores(decision, names)
        pod = decision.pod
        placed = pod.placed_on(decision.node_name).with_status(
            nominated_node_name="", start_time=_START + timedelta(seconds=position)
        )
        self._scheduler.cluster.add_pod(placed)
        self._scheduler.nominator.delete(pod)
        self._pods[pod.key] = placed
        if (volumes := _volumes(framework, state, decision.node_name)) is not None:
            answer["volumes"] = volumes
        status = framework.run_reserve(state, placed, decision.node_name)
        if not status.ok:
            answer["reserve"] = status_data(status)
        elif (devices := _device_plugin(framework)) is not None:
            self._loop.run_until_complete(devices.write_claims(state, placed, decision.node_name))
            if held := devices.devices(state):
                answer["devices"] = held
        return answer

    def _fits_nowhere(
        self, decision: Decision, framework: Framework, state: CycleState
    ) -> dict[str, Any]:
        diagnosis = decision.diagnosis
        answer: dict[str, Any] = {
            "outcome": "unschedulable",
            "fitError": diagnosis.fit_error,
            "unschedulablePlugins": sorted(diagnosis.unschedulable_plugins),
            "message": diagnosis.fit_error,
        }
        if framework.points[Point.POST_FILTER]:
            result, status = framework.run_post_filters(state, decision.pod, diagnosis)
            diagnosis.post_filter_message = status.message
            answer["postFilter"] = _post_filter(result, status)
            answer["message"] = diagnosis.message
            self._carry_out(decision.pod, result)
            if (devices := _device_plugin(framework)) is not None:
                self._loop.run_until_complete(devices.give_back(state, decision.pod))
        else:
            self._take_nomination_back(decision.pod)
        return answer

    def _carry_out(self, pod: Pod, result: PostFilterResult | None) -> None:
        """Evict the victims and move the nominations, all at once."""
        if result is None or result.nomination is None:
            return
        node_name = result.nomination.node_name
        if isinstance(result.detail, PreemptionDetail) and node_name:
            for victim in result.detail.victims:
                self._scheduler.cluster.remove_pod(victim)
                del self._pods[victim.key]
                self._deleted.append(victim.key)
            for other in self._scheduler.nominator.nominated_pods_for_node(node_name):
                if other.priority < pod.priority:
                    self._take_nomination_back(other)
        self._nominate(pod, node_name)

    def _take_nomination_back(self, pod: Pod) -> None:
        self._nominate(pod, "")

    def _nominate(self, pod: Pod, node_name: str) -> None:
        nominated = pod.with_status(nominated_node_name=node_name)
        self._pods[pod.key] = nominated
        self._scheduler.nominator.add(nominated, Nomination(node_name))

    def _final(self) -> dict[str, Any]:
        bound = {pod.key: pod.node_name for pod in self._scheduler.cluster.pods.values()}
        waiting = [pod for pod in self._pods.values() if not pod.node_name]
        nominated = {pod.key: pod.nominated_node_name for pod in waiting if pod.nominated_node_name}
        rest = {
            "nominated": nominated,
            "pending": sorted(pod.key for pod in waiting),
            "deleted": sorted(self._deleted),
        }
        return {"bound": bound} | {key: value for key, value in rest.items() if value}


class _WarmReplay(_Replay):
    """Before each attempt an equal pod is decided on while a further node and a further pod are there."""

    def __init__(self, case: _Decoded) -> None:
        super().__init__(case)
        # From now on there is a row for the node, so that the answers on the other rows can be kept.
        with self._a_node_and_a_pod_more():
            self._scheduler.cluster.snapshot()

    def _prepare(self, pod: Pod) -> None:
        metadata = msgspec.structs.replace(
            pod.metadata, name=f"{pod.name}-copy", uid=f"{pod.uid}-copy"
        )
        copy = msgspec.structs.replace(pod, metadata=metadata)
        with self._a_node_and_a_pod_more():
            # Not all that is found out for the first pod of its kind is kept, so ask twice.
            for _ in range(2):
                with contextlib.suppress(PluginFailure):
                    self._scheduler.decide(copy)

    @contextlib.contextmanager
    def _a_node_and_a_pod_more(self) -> Iterator[None]:
        """The cluster is the same afterwards."""
        with self._scheduler.trial():
            cluster = self._scheduler.cluster
            first = next(iter(cluster.snapshot()), None)
            cluster.add_node(_FURTHER_NODE)
            cluster.add_pod(_FURTHER_POD.placed_on(first.name if first else _FURTHER_NODE.name))
            yield


def _looking_at_every_node(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The cases were decided with every node looked at, whatever their configuration says."""
    return msgspec.structs.replace(
        config,
        percentage_of_nodes_to_score=0,
        profiles=tuple(
            msgspec.structs.replace(profile, percentage_of_nodes_to_score=None)
            for profile in config.profiles
        ),
    )


def _pod(entry: Mapping[str, Any]) -> Pod:
    pod = decode_object({"apiVersion": "v1", "kind": "Pod", **entry})
    assert isinstance(pod, Pod)
    return pod


def _verdict(diagnosis: Diagnosis, node: NodeInfo) -> dict[str, Any]:
    status = status_data(diagnosis.get(node.name))
    if diagnosis.matrix.refused_by[node.row] == NOT_ASKED:
        status["byPreFilter"] = True
    return status


def _post_filter(result: PostFilterResult | None, status: Status) -> dict[str, Any]:
    data: dict[str, Any] = {"code": status.code.title}
    if not status.ok:
        data |= {"plugin": status.plugin, "message": status.message}
    if result is None:
        return data
    if result.nomination is not None:
        data["nominatedNode"] = result.nomination.node_name
    detail = result.detail
    if isinstance(detail, PreemptionDetail):
        if detail.candidates:
            data["victims"] = sorted(victim.key for victim in detail.victims)
            data["candidates"] = {
                name: {
                    "victims": [victim.key for victim in candidate.victims],
                    "pdbViolations": candidate.violations,
                }
                for name, candidate in detail.candidates.items()
            }
            data["tied"] = list(detail.tied)
        if detail.rejected:
            data["rejected"] = {
                name: status_data(status) for name, status in detail.rejected.items()
            }
    return data


def _device_plugin(framework: Framework) -> DynamicResources | None:
    found = framework.plugins.get("DynamicResources")
    plugin = None if found is None else found.plugin
    return plugin if isinstance(plugin, DynamicResources) else None


def _volumes(framework: Framework, state: CycleState, node_name: str) -> dict[str, Any] | None:
    binding = framework.plugins.get("VolumeBinding")
    if binding is None or not isinstance(binding.plugin, VolumeBinding):
        return None
    decided = binding.plugin.pod_volumes(state, node_name)
    data: dict[str, Any] = {}
    if decided is not None and decided.static:
        data["static"] = {claim.key: volume.name for claim, volume in decided.static}
    if decided is not None and decided.provisions:
        data["provision"] = sorted(claim.key for claim in decided.provisions)
    return data or None


def _scores(decision: Decision, names: list[str]) -> dict[str, Any]:
    scores = decision.scores
    assert scores is not None
    return {
        names[row]: {
            "total": int(scores.total[i]),
            "plugins": {
                plugin: int(scores.normalized[k][i]) * scores.weights[k]
                for k, plugin in enumerate(scores.plugins)
            },
            "raw": {plugin: int(scores.raw[k][i]) for k, plugin in enumerate(scores.plugins)},
        }
        for i, row in enumerate(np.asarray(scores.rows).tolist())
    }


def status_data(status: Status) -> dict[str, Any]:
    """A status in the form of the files: reasons sorted, nothing said of a success."""
    data: dict[str, Any] = {"code": status.code.title}
    if status.code != Code.SUCCESS:
        if status.plugin:
            data["plugin"] = status.plugin
        if status.all_reasons:
            data["reasons"] = sorted(status.all_reasons)
    return data
