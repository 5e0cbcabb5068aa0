"""Open-Gpu-Share: a pod fits where single GPUs have enough left, and holds certain GPUs of its node.

Reserve chooses the GPUs (`gpuSelMethod`), and PreBind writes them into the annotation
`alibabacloud.com/gpu-index` of the pod, where device plugins and the next scheduler find them. Cpu and memory
are the business of NodeResourcesFit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from mooring.objects.pod import Pod
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Action,
    ApiError,
    ClusterEvent,
    Columns,
    Conflict,
    CycleState,
    Depends,
    EventResource,
    EventWithHint,
    Handle,
    NodeInfo,
    PluginError,
    PreFlight,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    by_table,
    failure,
    sleep,
    unresolvable,
    unschedulable,
)
from mooring_policies.gpu_sharing import gpu_choice
from mooring_policies.gpu_sharing.free_gpus import GPU_INDEX, FreeGpus, GpuRows, annotation_of
from mooring_policies.gpu_sharing.own_choice import OwnChoice
from mooring_policies.gpu_sharing.requests import gpu_models, gpu_request

#: Users read these texts in Events and in `kubectl describe`.
NO_GPU = unresolvable("node(s) have no GPU")
TOO_FEW = unresolvable("node(s) have too few GPUs")
OTHER_MODEL = unresolvable("node(s) have another GPU model")
NOT_FREE = unschedulable("Insufficient free GPU")
_TABLE = (SUCCESS, NO_GPU, OTHER_MODEL, TOO_FEW, NOT_FREE)

#: How often the annotation is written again after a conflict with another write to the pod.
_MOST_CONFLICTS = 5
_PAUSE_S = 0.2

_EVENTS = (
    ClusterEvent(EventResource.POD, Action.DELETE),
    ClusterEvent(
        EventResource.NODE,
        Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL,
    ),
)


class OpenGpuShareArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    #: best, worst, random, or the name of a score plugin that chooses itself: FGDScore.
    gpu_sel_method: str = "best"
    #: Configurations of the public simulator have these; they choose nothing here.
    dim_ext_method: str = "share"
    norm_method: str = "max"


class OpenGpuShare:
    name = "Open-Gpu-Share"
    Args = OpenGpuShareArgs

    def __init__(
        self, args: OpenGpuShareArgs | Mapping[str, object] | None, handle: Handle
    ) -> None:
        if not isinstance(args, OpenGpuShareArgs):
            args = msgspec.convert(args or {}, OpenGpuShareArgs)
        self._method = args.gpu_sel_method
        if self._method not in (*gpu_choice.METHODS, "FGDScore"):
            known = ", ".join((*gpu_choice.METHODS, "FGDScore"))
            raise PluginError(f"gpuSelMethod {self._method!r} is unknown; use one of {known}")
        self._infos = handle.cluster.infos
        self._writer = handle.writer
        self._clock = handle.clock
        self._observed_pod = handle.observed_pod
        self._gpus = FreeGpus(handle.cluster.infos)

    # Filter

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        """Scores of pods without GPUs depend on free GPUs too."""
        self._gpus.put_into(state)
        return SUCCESS if gpu_request(pod).gpus else SKIP

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        request, models = gpu_request(pod), gpu_models(pod)
        free, model, _ = self._gpus.at(node)
        if not free:
            return NO_GPU
        if models and model not in self._codes_of(models):
            return OTHER_MODEL
        if len(free) < request.gpus:
            return TOO_FEW
        enough = sum(left >= request.milli for left in free)
        return SUCCESS if enough >= request.gpus else NOT_FREE

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        request, models = gpu_request(pod), gpu_models(pod)
        nodes = self._gpus.of_rows(columns, rows)
        enough = np.count_nonzero(nodes.free >= request.milli, axis=1) >= request.gpus
        codes = np.where(enough, 0, _TABLE.index(NOT_FREE))
        codes[nodes.counts < request.gpus] = _TABLE.index(TOO_FEW)
        if models:
            allowed = np.isin(nodes.models, self._codes_of(models))
            codes[~allowed] = _TABLE.index(OTHER_MODEL)
        codes[nodes.counts == 0] = _TABLE.index(NO_GPU)
        return by_table(codes, _TABLE)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"gpus": gpu_request(pod), "models": gpu_models(pod)}

    def events_to_register(self) -> Sequence[EventWithHint]:
        return [EventWithHint(event) for event in _EVENTS]

    def _codes_of(self, models: Sequence[str]) -> list[int]:
        return [self._gpus.models[model] for model in models if model in self._gpus.models]

    # Reserve

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        if not gpu_request(pod).gpus:
            return SUCCESS
        info = self._infos[node_name]
        gpus = self._choose(state, pod, self._gpus.of_node(info, without=pod))
        if not gpus:
            return NOT_FREE
        self._gpus.hold(pod, info, gpus)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self._gpus.release(pod)

    def _choose(self, state: CycleState, pod: Pod, node: GpuRows) -> tuple[int, ...]:
        method = gpu_choice.METHODS.get(self._method)
        if method is not None:
            return method(node.free[0].tolist(), gpu_request(pod), pod.uid)
        own = OwnChoice.of(state, self._method)
        if own is None:
            raise PluginError(
                f"gpuSelMethod {self._method} needs the plugin {self._method}; enable it too"
            )
        return own.choose(self._gpus, pod, node)

    # PreBind

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> PreFlight | Status:
        return PreFlight() if gpu_request(pod).gpus else SKIP

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        text = annotation_of(self._gpus.held_by(pod))
        for _ in range(_MOST_CONFLICTS):
            stored = self._observed_pod(pod.key) or pod
            if stored.metadata.annotations.get(GPU_INDEX) == text:
                return SUCCESS
            annotations = {**stored.metadata.annotations, GPU_INDEX: text}
            metadata = msgspec.structs.replace(stored.metadata, annotations=annotations)
            try:
                await self._writer.update_object(msgspec.structs.replace(stored, metadata=metadata))
            except Conflict:
                # The watch will show what somebody else wrote.
                await sleep(self._clock, _PAUSE_S)
            except ApiError as error:
                return failure(error)
            else:
                return SUCCESS
        return unschedulable(
            f"the annotation {GPU_INDEX} could not be written: the pod keeps changing"
        )
