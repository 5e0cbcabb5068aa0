"""GpuClusteringScore: pods that want as many GPUs go to the same nodes.

75 to 100 for a node with such pods only, 50 to 75 if there are others too, 25 to 50 for a node without GPU
pods, 0 to 25 for a node with others only; more the less is free. Pods without GPUs score 0 everywhere.
"""

from __future__ import annotations

import numpy as np

from mooring.plugin import MAX_SCORE, Ints
from mooring_policies.gpu_sharing.free_gpus import GpuRows, kind_of
from mooring_policies.gpu_sharing.gpu_score import GpuScore
from mooring_policies.gpu_sharing.largest_node import LARGEST_GPU_MILLI
from mooring_policies.gpu_sharing.typical_pods import Shape

_QUARTER = MAX_SCORE // 4


class GpuClusteringScore(GpuScore):
    name = "GpuClusteringScore"

    def scores(self, shape: Shape, nodes: GpuRows) -> Ints:
        kind = kind_of(shape.request)
        if not kind:
            return np.zeros(len(nodes.counts), np.int64)
        alike = nodes.kinds & kind != 0
        only = nodes.kinds == kind
        none = nodes.kinds == 0
        quarters = np.where(only, 3, np.where(alike, 2, np.where(none, 1, 0)))
        used = LARGEST_GPU_MILLI - nodes.free.sum(axis=1)
        scores: Ints = quarters * _QUARTER + np.maximum(used, 0) * _QUARTER // LARGEST_GPU_MILLI
        return scores
