"""LoadVariationRiskBalancing: prefer nodes whose load is low and steady."""

from __future__ import annotations

import math

from mooring.objects.kinds import Kind
from mooring.objects.pod import Pod
from mooring.plugin import MAX_SCORE, MIN_SCORE, CycleState, Handle, NodeInfo
from mooring_policies.arguments import read_args
from mooring_policies.trimaran.load import CPU, MEMORY
from mooring_policies.trimaran.objects import NODE_METRICS
from mooring_policies.trimaran.resources import ResourceStats, requests_of, rounded, stats_of
from mooring_policies.trimaran.sources import LoadSource, TrimaranArgs, kinds_of, source_of


class LoadVariationRiskBalancingArgs(TrimaranArgs, frozen=True):
    #: By how much the deviation counts.
    safe_variance_margin: float = 1.0
    #: The root that is taken of the deviation.
    safe_variance_sensitivity: float = 1.0

    def __post_init__(self) -> None:
        self.check_source()

    @property
    def margin(self) -> float:
        return self.safe_variance_margin if self.safe_variance_margin >= 0 else 1.0

    @property
    def sensitivity(self) -> float:
        return self.safe_variance_sensitivity if self.safe_variance_sensitivity >= 0 else 1.0


class LoadVariationRiskBalancing:
    name = "LoadVariationRiskBalancing"
    kinds: tuple[Kind, ...] = (NODE_METRICS,)
    Args = LoadVariationRiskBalancingArgs

    def __init__(self, args: object, handle: Handle, source: LoadSource | None = None) -> None:
        self._args = read_args(args, LoadVariationRiskBalancingArgs)
        self._source = source or source_of(self._args, handle)
        self.kinds = kinds_of(self._source)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        load = self._source.current()
        metrics = load.of(node.name) if load is not None else None
        if metrics is None or node.node is None:
            return MIN_SCORE
        request = requests_of(pod)
        scores = [
            risk_score(stats, self._args.margin, self._args.sensitivity)
            for resource in (CPU, MEMORY)
            if (stats := stats_of(metrics, node.node, request, resource)) is not None
        ]
        return rounded(min(scores, default=0.0))


def risk_score(stats: ResourceStats, margin: float, sensitivity: float) -> float:
    """From 0 to 100: half the mean and half the deviation are the risk."""
    capacity = stats.capacity
    if capacity <= 0:
        return 0.0
    bounded = ResourceStats(
        max(min(stats.used_average, capacity), 0.0),
        max(min(stats.used_deviation, capacity), 0.0),
        max(stats.requested, 0.0),
        capacity,
    )
    mean, deviation = bounded.mean_and_deviation
    if sensitivity >= 0:
        deviation = math.pow(deviation, 1 / sensitivity if sensitivity else math.inf)
    deviation = max(min(deviation * margin, 1.0), 0.0)
    return (1.0 - (mean + deviation) / 2) * float(MAX_SCORE)
