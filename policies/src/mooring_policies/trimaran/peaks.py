"""Peaks: prefer nodes where a pod raises the power by least.

A node takes K0 + K1 * e^(K2 * x) at a CPU use of x percent.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from mooring.objects.kinds import Kind
from mooring.objects.pod import Pod
from mooring.objects.quantity import MAX_INT64, MIN_INT64, ZERO
from mooring.objects.requests import CPU as CPU_NAME
from mooring.plugin import MAX_SCORE, MIN_SCORE, CycleState, Handle, Ints, NodeInfo
from mooring_policies.arguments import PluginArgs, read_args
from mooring_policies.trimaran.load import AVERAGE, CPU, LATEST
from mooring_policies.trimaran.objects import NODE_METRICS
from mooring_policies.trimaran.sources import LoadSource, TrimaranArgs, kinds_of, source_of

#: The environment variable that names a file with the models, if the arguments have none.
MODELS = "NODE_POWER_MODEL"
_UNIT = 1e15


class PowerModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    k0: float = 0.0
    k1: float = 0.0
    k2: float = 0.0


class PeaksArgs(PluginArgs, frozen=True):
    """Upstream's example writes the names in capitals."""

    watcher_address: str = ""
    #: Node → its model; a node without one costs nothing.
    node_power_model: dict[str, PowerModel] = {}
    capital_watcher_address: str = msgspec.field(default="", name="WatcherAddress")
    capital_node_power_model: dict[str, PowerModel] = msgspec.field(
        default_factory=dict, name="NodePowerModel"
    )

    @property
    def address(self) -> str:
        return self.watcher_address or self.capital_watcher_address

    @property
    def models(self) -> Mapping[str, PowerModel]:
        return self.node_power_model or self.capital_node_power_model


class Peaks:
    name = "Peaks"
    kinds: tuple[Kind, ...] = (NODE_METRICS,)
    Args = PeaksArgs
    #: Each result depends on its own score, the lowest and the highest.
    normalizes_by_extremes = True

    def __init__(self, args: object, handle: Handle, source: LoadSource | None = None) -> None:
        read = read_args(args, PeaksArgs)
        self._source = source or source_of(TrimaranArgs(watcher_address=read.address), handle)
        self.kinds = kinds_of(self._source)
        self._models = read.models or _models_of_file(os.environ.get(MODELS, ""))

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The power that the pod adds, in units of 10**-15; `normalize_scores` turns it around."""
        load = self._source.current()
        metrics = load.of(node.name) if load is not None else None
        if metrics is None or node.node is None:
            return MIN_SCORE
        for metric in metrics:
            if metric.type == CPU and metric.operator in (AVERAGE, LATEST):
                percent = metric.value
                break
        else:
            return MIN_SCORE
        capacity = float(node.node.status.capacity.get(CPU_NAME, ZERO).milli_value)
        predicted = 0.0
        if capacity:
            predicted = 100 * ((percent / 100) * capacity + float(cpu_request(pod))) / capacity
        if predicted > 100:
            return MIN_SCORE
        model = self._models.get(node.name, PowerModel())
        return _as_int64(power_jump(percent, predicted, model) * _UNIT)

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        if not len(scores):
            return
        lowest, highest = int(scores.min()), int(scores.max())
        if lowest == highest:
            if lowest:
                scores[:] = MAX_SCORE
            return
        cost = float(MAX_SCORE) * (scores - lowest).astype(np.float64) / float(highest - lowest)
        scores[:] = MAX_SCORE - cost.astype(np.int64)


def power_jump(before: float, after: float, model: PowerModel) -> float:
    return model.k1 * (math.exp(model.k2 * after) - math.exp(model.k2 * before))


def cpu_request(pod: Pod) -> int:
    """All containers, at least each init container; overhead only if there is a request."""
    total = ZERO
    for container in pod.spec.containers:
        total = total.plus(container.resources.requests.get(CPU_NAME, ZERO))
    for container in pod.spec.init_containers:
        asked = container.resources.requests.get(CPU_NAME, ZERO)
        total = asked if asked.exceeds(total) else total
    if total.unscaled:
        total = total.plus(pod.spec.overhead.get(CPU_NAME, ZERO))
    return total.milli_value


def _models_of_file(path: str) -> dict[str, PowerModel]:
    """Raises ValueError: without models there is nothing to score by."""
    if not path:
        raise ValueError(f"nodePowerModel: is missing; give it, or set {MODELS} to a file with it")
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=dict[str, PowerModel])
    except (OSError, msgspec.MsgspecError) as error:
        raise ValueError(f"{MODELS}: {path}: {error}") from error


def _as_int64(number: float) -> int:
    """Truncated; what does not fit is the lowest number, as on the processors that upstream runs on."""
    if not MIN_INT64 <= number <= MAX_INT64:
        return MIN_INT64
    return math.trunc(number)
