"""LowRiskOverCommitment: prefer nodes where limits above the capacity are unlikely to hurt.

The risk of a node has two parts: how far the limits of its pods exceed what it has, and how likely its
load exceeds what its pods request.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.objects.kinds import Kind
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.quantity import ZERO
from mooring.objects.requests import CPU as CPU_NAME
from mooring.objects.requests import MEMORY as MEMORY_NAME
from mooring.plugin import MAX_SCORE, MIN_SCORE, CycleState, Handle, NodeInfo, Rows, Snapshot
from mooring_policies.arguments import read_args
from mooring_policies.trimaran.beta import max_variance, probability_below
from mooring_policies.trimaran.load import CPU, MEMORY, Metric
from mooring_policies.trimaran.objects import NODE_METRICS
from mooring_policies.trimaran.resources import (
    CpuAndMemory,
    limits_of,
    requests_of,
    rounded,
    stats_of,
)
from mooring_policies.trimaran.sources import LoadSource, TrimaranArgs, kinds_of, source_of

_STATE = "LowRiskOverCommitment.PodResources"
_VARIANCE_ALLOWANCE = 0.99
_DEFAULT_WINDOW = 5
_DEFAULT_WEIGHT = 0.5


class LowRiskOverCommitmentArgs(TrimaranArgs, frozen=True):
    #: Over how many windows the measured deviation is smoothed.
    smoothing_window_size: int = _DEFAULT_WINDOW
    #: Resource → how much limits above the capacity count, beside the load; between 0 and 1.
    risk_limit_weights: dict[str, float] = {}

    def __post_init__(self) -> None:
        self.check_source()

    @property
    def windows(self) -> int:
        return self.smoothing_window_size if self.smoothing_window_size > 0 else _DEFAULT_WINDOW

    @property
    def weights(self) -> dict[str, float]:
        given = {
            name: weight if 0 <= weight <= 1 else _DEFAULT_WEIGHT
            for name, weight in self.risk_limit_weights.items()
        }
        return {CPU_NAME: _DEFAULT_WEIGHT, MEMORY_NAME: _DEFAULT_WEIGHT, **given}


@dataclass(frozen=True, slots=True)
class PodResources:
    requests: CpuAndMemory
    #: At least the requests.
    limits: CpuAndMemory

    @classmethod
    def of(cls, pod: Pod) -> PodResources:
        requests = requests_of(pod)
        return cls(requests, limits_of(pod).at_least(requests))


@dataclass(frozen=True, slots=True)
class Committed:
    """What the pods of a node ask for, of one resource."""

    request: int
    limit: int
    request_without_pod: int
    limit_without_pod: int
    capacity: int


class LowRiskOverCommitment:
    name = "LowRiskOverCommitment"
    kinds: tuple[Kind, ...] = (NODE_METRICS,)
    Args = LowRiskOverCommitmentArgs

    def __init__(self, args: object, handle: Handle, source: LoadSource | None = None) -> None:
        self._args = read_args(args, LowRiskOverCommitmentArgs)
        self._weights = self._args.weights
        self._source = source or source_of(self._args, handle)
        self.kinds = kinds_of(self._source)

    def pre_score(self, state: CycleState, pod: Pod, snapshot: Snapshot, rows: Rows) -> None:
        state.write(_STATE, PodResources.of(pod))

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        resources = state.read(_STATE, PodResources) or PodResources.of(pod)
        if resources == PodResources(CpuAndMemory(), CpuAndMemory()):
            return MIN_SCORE
        load = self._source.current()
        metrics = load.of(node.name) if load is not None else None
        if metrics is None or node.node is None:
            return MIN_SCORE
        committed = committed_on(node.node, node.pods.values(), resources)
        risk = max(
            self._risk(metrics, node.node, CPU, committed),
            self._risk(metrics, node.node, MEMORY, committed),
        )
        return rounded((1 - risk) * float(MAX_SCORE))

    def _risk(
        self,
        metrics: Sequence[Metric],
        node: Node,
        resource: str,
        committed: Mapping[str, Committed],
    ) -> float:
        of = committed[resource]
        by_limit = 0.0
        if of.limit > of.capacity:
            by_limit = (of.limit - of.capacity) / (of.limit - of.request)
        by_load = self._risk_by_load(metrics, node, resource, of)
        weight = self._weights[CPU_NAME if resource == CPU else MEMORY_NAME]
        return min(max(weight * by_limit + (1 - weight) * by_load, 0.0), 1.0)

    def _risk_by_load(
        self, metrics: Sequence[Metric], node: Node, resource: str, of: Committed
    ) -> float:
        stats = stats_of(metrics, node, CpuAndMemory(), resource)
        if stats is None or of.capacity <= 0:
            return 0.0
        mean, deviation = stats.mean_and_deviation
        deviation *= math.pow(self._args.windows, 0.5)
        deviation = min(deviation, math.sqrt(max_variance(mean) * _VARIANCE_ALLOWANCE))
        threshold = min(max(of.request_without_pod / of.capacity, 0.0), 1.0)
        probability, distribution = probability_below(mean, deviation, threshold)
        if of.limit_without_pod < of.capacity and of.request_without_pod <= of.limit_without_pod:
            limit = of.limit_without_pod / of.capacity
            if limit == 0:
                probability = 1.0
            elif distribution is not None and (below := distribution.below(limit)) > 0:
                probability = min(max(probability / below, 0.0), 1.0)
        return 1 - probability


def committed_on(node: Node, pods: Iterable[Pod], resources: PodResources) -> dict[str, Committed]:
    """What the pods on a node, and the pod that may come, ask for."""
    others = [PodResources.of(pod) for pod in pods]
    allocatable = node.status.allocatable
    return {
        CPU: _committed(
            allocatable.get(CPU_NAME, ZERO).milli_value,
            [(each.requests.cpu, each.limits.cpu) for each in others],
            (resources.requests.cpu, resources.limits.cpu),
        ),
        MEMORY: _committed(
            allocatable.get(MEMORY_NAME, ZERO).value,
            [(each.requests.memory, each.limits.memory) for each in others],
            (resources.requests.memory, resources.limits.memory),
        ),
    }


def _committed(capacity: int, others: Iterable[tuple[int, int]], pod: tuple[int, int]) -> Committed:
    """Requests count up to the capacity; limits count in full."""
    request = limit = 0
    for each_request, each_limit in others:
        request += each_request
        limit += each_limit
    return Committed(
        request=min(request + pod[0], capacity),
        limit=limit + pod[1],
        request_without_pod=min(request, capacity),
        limit_without_pod=limit,
        capacity=capacity,
    )
