"""BestFitScore: prefer nodes on which little cpu and GPU would be left."""

from __future__ import annotations

import numpy as np

from mooring.objects.pod import Pod
from mooring.plugin import MAX_SCORE, CycleState, Ints
from mooring_policies.gpu_sharing.free_gpus import GpuRows
from mooring_policies.gpu_sharing.gpu_score import GpuScore
from mooring_policies.gpu_sharing.largest_node import LARGEST_CPU_MILLI, LARGEST_GPU_MILLI
from mooring_policies.gpu_sharing.typical_pods import Shape


class BestFitScore(GpuScore):
    name = "BestFitScore"
    normalizes_by_extremes = True

    def scores(self, shape: Shape, nodes: GpuRows) -> Ints:
        """100 × (1 - mean of what would be left of cpu and GPUs, as parts of the largest node), truncated."""
        cpu_left = (nodes.cpu_free - shape.cpu_milli) / LARGEST_CPU_MILLI
        gpu_left = (nodes.free.sum(axis=1) - shape.request.total_milli) / LARGEST_GPU_MILLI
        left = cpu_left * 0.5 + gpu_left * 0.5
        scores: Ints = ((1.0 - left) * MAX_SCORE).astype(np.int64)
        return scores

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        """The lowest becomes 0 and the highest 100; all become 0 if they are equal."""
        if not len(scores):
            return
        lowest, highest = int(scores.min()), int(scores.max())
        scores -= lowest
        scores *= MAX_SCORE
        scores //= max(highest - lowest, 1)
