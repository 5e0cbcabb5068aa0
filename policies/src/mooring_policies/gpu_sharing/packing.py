"""GpuPackingScore: use shared GPUs first, then free GPUs of used nodes, then unused nodes.

    on GPUs in use          100 less a tenth of what is free on them, in percent; at least 50
    needs n unused GPUs     50 - n; at least 33
    on an unused node       33 less its GPUs, and no less than their number

Pods without GPUs score 0 everywhere.
"""

from __future__ import annotations

import numpy as np

from mooring.plugin import MAX_SCORE, Ints
from mooring_policies.gpu_sharing.free_gpus import GpuRows
from mooring_policies.gpu_sharing.gpu_score import GpuScore
from mooring_policies.gpu_sharing.requests import WHOLE
from mooring_policies.gpu_sharing.typical_pods import Shape

_HALF = MAX_SCORE // 2
_THIRD = MAX_SCORE // 3
#: More than is left of any GPU.
_NEVER = 2 * WHOLE


class GpuPackingScore(GpuScore):
    name = "GpuPackingScore"

    def scores(self, shape: Shape, nodes: GpuRows) -> Ints:
        request = shape.request
        if not request.gpus:
            return np.zeros(len(nodes.counts), np.int64)
        # The fullest GPUs that have enough left.
        suffices = nodes.free >= request.milli
        fits = np.count_nonzero(suffices, axis=1) >= request.gpus
        usable = np.sort(np.where(suffices, nodes.free, _NEVER), axis=1)
        taken = usable[:, : request.gpus]
        untouched = np.count_nonzero(taken == WHOLE, axis=1)
        free_percent = (taken * 100 // WHOLE).sum(axis=1)
        in_use = np.maximum(MAX_SCORE - free_percent // 10, _HALF)
        used_node = np.maximum(_HALF - untouched, _THIRD)
        unused_node = np.maximum(_THIRD - nodes.counts, nodes.counts)
        is_unused = np.count_nonzero(nodes.free == WHOLE, axis=1) == nodes.counts
        scores = np.where(is_unused, unused_node, np.where(untouched > 0, used_node, in_use))
        return np.where(fits, scores, 0)
