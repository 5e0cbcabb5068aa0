"""Fragmentation: how much of a node's free GPUs typical pods cannot use.

From "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent" (USENIX
ATC 2023). For one typical pod, all that is free on a node is a fragment if the pod does not fit there, or if
it wants no GPU at all. If it fits, those GPUs are fragments that have less left than the pod wants of each.
The fragmentation of a node is the mean over the typical pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mooring.plugin import Ints
from mooring_policies.gpu_sharing.typical_pods import TypicalPod

Floats = NDArray[np.float64]


class Fragmentation:
    """The rule for one list of typical pods, for many nodes at once."""

    def __init__(self, typical: Sequence[TypicalPod], models: Mapping[str, int]) -> None:
        """`models`: model → code. It may grow later."""
        self._typical = [each for each in typical if each.shape.gpu_count]
        self._models = models
        self.total_weight = float(sum(each.weight for each in typical))
        shapes = [each.shape for each in self._typical]
        #: Of each typical pod with GPUs: float64[pod] and int64[pod].
        self._weights: Floats = np.array([each.weight for each in self._typical], np.float64)
        self._cpu: Ints = np.array([shape.cpu_milli for shape in shapes], np.int64)
        self._gpus: Ints = np.array([shape.gpu_count for shape in shapes], np.int64)
        #: int64[level]: the distinct amounts that pods want of a GPU; and the level of each pod.
        self._levels, self._level_of = np.unique(
            np.array([shape.gpu_milli for shape in shapes], np.int64), return_inverse=True
        )
        #: bool[model, pod]: whether the pod may use the model.
        self._allowed: NDArray[np.bool_] = np.zeros((0, len(shapes)), np.bool_)

    def of(self, free: Ints, cpu_free: Ints, models: Ints) -> Floats:
        """float64[row]: the fragmentation of each row, times `total_weight`.

        A sum of whole numbers, as long as the weights are whole and the sum is below 2**53: so it is exact,
        and equal nodes have equal fragmentation.

        free
            ``int64[row, gpu]``: what is left of each GPU, in thousandths.
        cpu_free, models
            ``int64[row]``.
        """
        total = free.sum(axis=1)
        # [level, row, gpu]
        suffices = free >= self._levels[:, None, None]
        gpus = np.count_nonzero(suffices, axis=2)
        usable = (free * suffices).sum(axis=2)
        # [pod, row]
        fits = gpus[self._level_of] >= self._gpus[:, None]
        fits &= cpu_free >= self._cpu[:, None]
        fits &= self._allowed_on(models)
        used: Floats = self._weights @ (usable[self._level_of] * fits).astype(np.float64)
        fragments: Floats = total * self.total_weight - used
        return fragments

    def _allowed_on(self, models: Ints) -> NDArray[np.bool_]:
        """bool[pod, row]."""
        if len(self._allowed) < len(self._models):
            self._allowed = np.array(
                [
                    [
                        not each.shape.gpu_models or model in each.shape.gpu_models
                        for each in self._typical
                    ]
                    for model in self._models
                ],
                np.bool_,
            ).reshape(len(self._models), len(self._typical))
        return self._allowed[models].T
