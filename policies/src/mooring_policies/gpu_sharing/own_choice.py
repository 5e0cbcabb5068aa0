"""How a score plugin tells Open-Gpu-Share which GPU of the node it scored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mooring.objects.pod import Pod
from mooring.plugin import CycleState
from mooring_policies.gpu_sharing.free_gpus import FreeGpus, GpuRows

_STATE = "mooring-policies/gpu-choice/"


@dataclass(frozen=True, slots=True)
class OwnChoice:
    #: The GPUs for a pod on a node, which is the only row; empty if they do not suffice.
    choose: Callable[[FreeGpus, Pod, GpuRows], tuple[int, ...]]

    def put_into(self, state: CycleState, plugin: str) -> None:
        state.write(_STATE + plugin, self)

    @staticmethod
    def of(state: CycleState, plugin: str) -> OwnChoice | None:
        return state.read(_STATE + plugin, OwnChoice)
