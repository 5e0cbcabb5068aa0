"""DotProductScore: prefer nodes whose free cpu and GPUs are least aligned with the request.

Tetris prefers the largest product of free and requested resources; the published comparison turns that round,
so that nodes with little left come first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec
import numpy as np

from mooring.plugin import MAX_SCORE, Ints
from mooring_policies.gpu_sharing.free_gpus import GpuRows
from mooring_policies.gpu_sharing.gpu_score import GpuScore
from mooring_policies.gpu_sharing.largest_node import LARGEST_CPU_MILLI, LARGEST_GPU_MILLI
from mooring_policies.gpu_sharing.requests import WHOLE
from mooring_policies.gpu_sharing.typical_pods import Shape


class DotProductArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    #: `merge`: the GPUs of a node are one amount.
    dim_ext_method: Literal["merge"] = "merge"
    #: Amounts are parts of the largest node (`max`), or of the node (`node`).
    norm_method: Literal["max", "node"] = "max"


class DotProductScore(GpuScore):
    name = "DotProductScore"
    Args = DotProductArgs

    def __init__(self, args: DotProductArgs | Mapping[str, object] | None) -> None:
        if not isinstance(args, DotProductArgs):
            args = msgspec.convert(args or {}, DotProductArgs)
        self._by_node = args.norm_method == "node"

    def scores(self, shape: Shape, nodes: GpuRows) -> Ints:
        """100 × (1 - mean over cpu and GPUs of free × requested), truncated."""
        cpu, gpu = self._whole(nodes)
        product = (nodes.cpu_free / cpu) * (shape.cpu_milli / cpu) + (
            nodes.free.sum(axis=1) / gpu
        ) * (shape.request.total_milli / gpu)
        scores: Ints = (MAX_SCORE * (1.0 - product / 2)).astype(np.int64)
        return scores

    def _whole(self, nodes: GpuRows) -> tuple[Ints, Ints]:
        if self._by_node:
            return np.maximum(nodes.cpu_all, 1), np.maximum(nodes.counts * WHOLE, 1)
        return np.array([LARGEST_CPU_MILLI]), np.array([LARGEST_GPU_MILLI])
