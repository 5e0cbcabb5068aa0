"""What is left of each GPU, node by node: kept for all rows, and computed for one node.

A pod on a node holds the GPUs that its annotation names. Between Reserve and the moment at which the watch
shows the annotation, this module remembers them. A pod that has neither, because another scheduler placed
it, is assumed where it fits best, so that its GPU is not given away twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.plugin import Columns, CycleState, Ints, NodeInfo, PluginError, Rows
from mooring_policies.gpu_sharing import gpu_choice
from mooring_policies.gpu_sharing.requests import (
    WHOLE,
    GpuRequest,
    gpu_count,
    gpu_model,
    gpu_request,
)

#: The indices of a pod's GPUs on its node, such as `2-3`; the name that Alibaba's device plugin reads.
GPU_INDEX = "alibabacloud.com/gpu-index"
_SEPARATOR = "-"

_STATE = "mooring-policies/free-gpus"
_NEVER = -1


@dataclass(frozen=True, slots=True)
class GpuRows:
    """The GPUs of some nodes."""

    #: int64[row, gpu]: what is left, in thousandths; 0 beyond the node's GPUs.
    free: Ints
    #: int64[row]: how many GPUs the node has.
    counts: Ints
    #: int64[row]: the code of their model; see `FreeGpus.models`.
    models: Ints
    #: int64[row]: a bit for each kind of pods on the node; see `kind_of`.
    kinds: Ints
    #: int64[row]: cpu that is left, and all of it, in thousandths.
    cpu_free: Ints
    cpu_all: Ints


def kind_of(request: GpuRequest) -> int:
    """1 for a share, 2 to the power of n for n whole GPUs, 0 without GPUs."""
    return 1 if request.is_share else (1 << request.gpus) & ~1


class NodeGpus(NamedTuple):
    """The GPUs of one node; see `GpuRows`."""

    free: list[int]
    model: int
    kinds: int


_NO_GPUS = NodeGpus([], 0, 0)


class FreeGpus:
    def __init__(self, infos: Mapping[str, NodeInfo]) -> None:
        self._infos = infos
        #: Pod UID → its GPUs, from Reserve until its annotation is seen.
        self._chosen: dict[str, tuple[int, ...]] = {}
        #: Node → its GPUs, with the generation of the node that they were computed from.
        self._nodes: dict[str, tuple[int, NodeGpus]] = {}
        #: Model → its code. The first is for nodes without a model.
        self.models: dict[str, int] = {"": 0}
        self._node_epoch = _NEVER
        #: int64[row]: the generation that the row was computed from.
        self._generations: Ints = np.full(0, _NEVER, np.int64)
        self._free: Ints = np.zeros((0, 1), np.int64)
        self._counts: Ints = np.zeros(0, np.int64)
        self._models: Ints = np.zeros(0, np.int64)
        self._kinds: Ints = np.zeros(0, np.int64)

    # Pods get GPUs

    def hold(self, pod: Pod, info: NodeInfo, gpus: tuple[int, ...]) -> None:
        self._chosen[pod.uid] = gpus
        self._nodes.pop(info.name, None)
        if info.row < len(self._generations):
            self._generations[info.row] = _NEVER

    def release(self, pod: Pod) -> None:
        self._chosen.pop(pod.uid, None)

    def held_by(self, pod: Pod) -> tuple[int, ...]:
        """The GPUs of a pod; empty if they are not known."""
        annotated = _indices(pod)
        chosen = self._chosen.get(pod.uid)
        if chosen is None:
            return annotated
        if chosen == annotated:
            del self._chosen[pod.uid]
        return chosen

    # What is left

    def of_rows(self, columns: Columns, rows: Rows) -> GpuRows:
        self._catch_up(columns, rows)
        return GpuRows(
            self._free[rows],
            self._counts[rows],
            self._models[rows],
            self._kinds[rows],
            columns.allocatable[0][rows] - columns.requested[0][rows],
            columns.allocatable[0][rows],
        )

    def of_node(self, info: NodeInfo, *, without: Pod | None = None) -> GpuRows:
        """A single row; `without` leaves out a pod that is assumed there."""
        free, model, kinds = self.at(info) if without is None else self._count(info, without)
        cpu_all = info.allocatable.get("cpu", 0)
        cpu_free = cpu_all - info.requested.get("cpu", 0)
        if without is not None and without.uid in info.pods:
            cpu_free += without.held.get("cpu", 0)
        return GpuRows(
            np.array([free], np.int64).reshape(1, len(free)),
            *np.array([[len(free)], [model], [kinds], [cpu_free], [cpu_all]], np.int64),
        )

    def at(self, info: NodeInfo) -> NodeGpus:
        """The GPUs of a node; kept, unless it is a changed copy for a dry run."""
        if self._infos.get(info.name) is not info:
            return self._count(info, None)
        kept = self._nodes.get(info.name)
        if kept is None or kept[0] != info.generation:
            kept = self._nodes[info.name] = info.generation, self._count(info, None)
        return kept[1]

    def _catch_up(self, columns: Columns, rows: Rows) -> None:
        self._grow(columns)
        if self._node_epoch != columns.node_epoch:
            self._node_epoch = columns.node_epoch
            self._generations[:] = _NEVER
        asked = np.arange(columns.size)[rows] if isinstance(rows, slice) else rows
        stale = asked[self._generations[asked] != columns.generations[asked]]
        for row in stale.tolist():
            self._write(row, self._infos.get(columns.names[row]))
        self._generations[stale] = columns.generations[stale]

    def _write(self, row: int, info: NodeInfo | None) -> None:
        free, model, kinds = self.at(info) if info is not None else _NO_GPUS
        if len(free) > self._free.shape[1]:
            self._free = _padded(self._free, self._free.shape[0], len(free))
        self._free[row, : len(free)] = free
        self._free[row, len(free) :] = 0
        self._counts[row] = len(free)
        self._models[row] = model
        self._kinds[row] = kinds

    def _count(self, info: NodeInfo, without: Pod | None) -> NodeGpus:
        free = [WHOLE] * gpu_count(info.node)
        kinds = 0
        elsewhere: list[GpuRequest] = []
        for pod in info.pods.values():
            request = gpu_request(pod)
            if not request.gpus or (without is not None and pod.uid == without.uid):
                continue
            kinds |= kind_of(request)
            gpus = self.held_by(pod)
            if len(gpus) == request.gpus and max(gpus) < len(free):
                for gpu in gpus:
                    free[gpu] -= request.milli
            else:
                elsewhere.append(request)
        for request in elsewhere:
            for gpu in gpu_choice.best(free, request):
                free[gpu] -= request.milli
        return NodeGpus([max(0, left) for left in free], self._model_code(info), kinds)

    def _model_code(self, info: NodeInfo) -> int:
        return self.models.setdefault(gpu_model(info.node), len(self.models))

    def _grow(self, columns: Columns) -> None:
        capacity = columns.capacity
        if len(self._counts) == capacity:
            return
        self._free = _padded(self._free, capacity, self._free.shape[1])
        self._counts, self._models, self._kinds = (
            _longer(array, capacity, 0) for array in (self._counts, self._models, self._kinds)
        )
        self._generations = _longer(self._generations, capacity, _NEVER)

    # Plugins find it in the state of an attempt

    def put_into(self, state: CycleState) -> None:
        state.write(_STATE, self)

    @classmethod
    def within(cls, state: CycleState) -> FreeGpus:
        found = state.read(_STATE, cls)
        if found is None:
            raise PluginError("policies for GPUs need the plugin Open-Gpu-Share; enable it too")
        return found


def annotation_of(gpus: tuple[int, ...]) -> str:
    return _SEPARATOR.join(map(str, gpus))


def _indices(pod: Pod) -> tuple[int, ...]:
    """The GPUs that the pod's annotation names; empty if it has none that can be read."""
    annotations = pod.metadata.annotations
    text = annotations.get(GPU_INDEX, "") if annotations else ""
    parts = text.split(_SEPARATOR)
    if not all(part.isascii() and part.isdigit() for part in parts):
        return ()
    return tuple(map(int, parts))


def _padded(array: Ints, rows: int, width: int) -> Ints:
    padded = np.zeros((rows, width), np.int64)
    padded[: array.shape[0], : array.shape[1]] = array
    return padded


def _longer(array: NDArray[np.int64], length: int, fill: int) -> Ints:
    longer = np.full(length, fill, np.int64)
    longer[: len(array)] = array
    return longer
