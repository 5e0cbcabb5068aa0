"""FGDScore: put a pod where fragmentation grows least (fragmentation gradient descent).

The score of a node is the sigmoid of how much less fragmented it would be, in GPUs, as a percentage: 50 where
nothing changes, more where fragmentation shrinks. A share goes to the GPU of the node with the best score,
which Open-Gpu-Share asks for with `gpuSelMethod: FGDScore`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.plugin import (
    MAX_SCORE,
    SUCCESS,
    Columns,
    CycleState,
    Depends,
    Handle,
    Ints,
    NodeInfo,
    Rows,
    Snapshot,
    Status,
)
from mooring_policies.gpu_sharing import gpu_choice
from mooring_policies.gpu_sharing.fragmentation import Floats, Fragmentation
from mooring_policies.gpu_sharing.free_gpus import FreeGpus, GpuRows
from mooring_policies.gpu_sharing.own_choice import OwnChoice
from mooring_policies.gpu_sharing.requests import WHOLE
from mooring_policies.gpu_sharing.typical_pods import Shape, TypicalPod, shape_of, typical_pods

_Amount = Annotated[int, msgspec.Meta(ge=0)]


class TypicalPodArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A shape of pods, and how often it occurs relative to the others."""

    weight: Annotated[float, msgspec.Meta(gt=0)]
    cpu_milli: _Amount = 0
    gpu_milli: Annotated[int, msgspec.Meta(ge=0, le=WHOLE)] = 0
    gpu_count: _Amount = 0
    gpu_models: list[str] = []

    def to_typical(self) -> TypicalPod:
        models = tuple(sorted(self.gpu_models))
        return TypicalPod(
            Shape(self.cpu_milli, self.gpu_milli, self.gpu_count, models), self.weight
        )


class FGDArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    #: Without a list, the pods of the trace are counted; without a trace, those that are known when the first
    #: pod is scored.
    typical_pods: list[TypicalPodArgs] = []
    pod_popularity_threshold: Annotated[float, msgspec.Meta(gt=0, le=100)] = 95
    pod_increase_step: Annotated[int, msgspec.Meta(ge=1)] = 1
    is_involved_cpu_pods: bool = True
    gpu_res_weight: Annotated[float, msgspec.Meta(ge=0)] = 0
    #: Configurations of the public simulator have these; they choose nothing here.
    dim_ext_method: str = "share"
    norm_method: str = "max"


class FGDScore:
    name = "FGDScore"
    Args = FGDArgs

    def __init__(self, args: FGDArgs | Mapping[str, object] | None, handle: Handle) -> None:
        self._args = msgspec.convert(args or {}, FGDArgs) if not isinstance(args, FGDArgs) else args
        self._cluster = handle.cluster
        self._expected_pods = handle.expected_pods
        #: The pods that came to the queue before the first one was scored, by UID.
        self._seen: dict[str, Pod] = {}
        self._fragmentation: Fragmentation | None = None

    # Typical pods

    def pre_enqueue(self, pod: Pod) -> Status:
        if self._fragmentation is None and not self._args.typical_pods:
            self._seen[pod.uid] = pod
        return SUCCESS

    def _fragments(self, gpus: FreeGpus) -> Fragmentation:
        if self._fragmentation is None:
            self._fragmentation = Fragmentation(self._typical_pods(), gpus.models)
            self._seen.clear()
        return self._fragmentation

    def _typical_pods(self) -> list[TypicalPod]:
        if self._args.typical_pods:
            return [each.to_typical() for each in self._args.typical_pods]
        if self._expected_pods:
            return self._count(self._expected_pods)
        placed = {
            pod.uid: pod for info in self._cluster.infos.values() for pod in info.pods.values()
        }
        return self._count((placed | self._seen).values())

    def _count(self, pods: Iterable[Pod]) -> list[TypicalPod]:
        args = self._args
        return typical_pods(
            pods,
            popularity_percent=args.pod_popularity_threshold,
            increase_step=args.pod_increase_step,
            with_cpu_pods=args.is_involved_cpu_pods,
            gpu_weight=args.gpu_res_weight,
        )

    # Score

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        OwnChoice(self._choose).put_into(state, self.name)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        gpus = FreeGpus.within(state)
        return int(self._scores(gpus, pod, gpus.of_node(node))[0])

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        gpus = FreeGpus.within(state)
        return self._scores(gpus, pod, gpus.of_rows(columns, rows))

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"shape": shape_of(pod)}

    def _scores(self, gpus: FreeGpus, pod: Pod, nodes: GpuRows) -> Ints:
        shape = shape_of(pod)
        scores: Ints = np.zeros(len(nodes.counts), np.int64)
        trials = _trials(nodes, shape)
        if len(trials.rows):
            # Ascending rows, so that the trials of a row lie side by side.
            starts = np.flatnonzero(np.diff(trials.rows, prepend=-1))
            by_trial = self._trial_scores(self._fragments(gpus), nodes, trials)
            scores[trials.rows[starts]] = np.maximum.reduceat(by_trial, starts)
        return scores

    def _choose(self, gpus: FreeGpus, pod: Pod, node: GpuRows) -> tuple[int, ...]:
        shape = shape_of(pod)
        if not shape.request.is_share:
            return gpu_choice.whole(node.free[0].tolist(), shape.request)
        trials = _trials(node, shape)
        if not len(trials.rows):
            return ()
        best = np.argmax(self._trial_scores(self._fragments(gpus), node, trials))
        return (int(trials.gpus[best]),)

    def _trial_scores(self, fragmentation: Fragmentation, nodes: GpuRows, trials: _Trials) -> Ints:
        rows = trials.rows
        # Before and after in one go: most calls are about a few rows.
        fragments = fragmentation.of(
            np.concatenate((nodes.free, trials.free)),
            np.concatenate((nodes.cpu_free, trials.cpu_free)),
            np.concatenate((nodes.models, nodes.models[rows])),
        )
        before, after = fragments[: len(nodes.counts)], fragments[len(nodes.counts) :]
        return _percent((before[rows] - after) / max(fragmentation.total_weight, 1e-9) / WHOLE)


class _Trials(NamedTuple):
    """Nodes as they would be with the pod: for a share, one for each GPU that could hold it."""

    #: intp[trial]: the row of the node, ascending; and the GPU of a share.
    rows: NDArray[np.intp]
    gpus: NDArray[np.intp]
    #: int64[trial, gpu] and int64[trial]: what would be left.
    free: Ints
    cpu_free: Ints


def _trials(nodes: GpuRows, shape: Shape) -> _Trials:
    request = shape.request
    if request.is_share:
        rows, gpus = np.nonzero((nodes.free >= request.milli) & ~_repeated(nodes.free))
        free = nodes.free[rows]
        free[np.arange(len(rows)), gpus] -= request.milli
    else:
        rows = np.flatnonzero(np.count_nonzero(nodes.free >= request.milli, axis=1) >= request.gpus)
        gpus = np.zeros_like(rows)
        free = nodes.free[rows]
        if request.gpus:
            untouched = free == WHOLE
            free[untouched & (np.cumsum(untouched, axis=1) <= request.gpus)] = 0
    return _Trials(rows, gpus, free, nodes.cpu_free[rows] - shape.cpu_milli)


def _repeated(free: Ints) -> NDArray[np.bool_]:
    """bool[row, gpu]: whether a GPU before it has as much left. Such a trial would have the same result."""
    same = free[:, :, None] == free[:, None, :]
    repeated: NDArray[np.bool_] = np.tril(same, k=-1).any(axis=2)
    return repeated


def _percent(gpus: Floats) -> Ints:
    return (MAX_SCORE / (1.0 + np.exp(-gpus))).astype(np.int64)
