"""Two policies as plugins: one that was learned (train.py), and one that chooses at random."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.plugin import (
    MAX_SCORE,
    Columns,
    CycleState,
    Depends,
    Ints,
    NodeInfo,
    PluginError,
    Rows,
)

Floats = NDArray[np.float64]

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
FEATURES = ("cpu left", "memory left", "GPUs left", "GPUs idle", "GPUs full", "imbalance")
#: Scores are whole numbers; this many steps make 1.0.
_STEPS = 10_000


def features(free: Floats, allocatable: Floats, request: Floats) -> Floats:
    """float64[row, feature]: each node as if the pod were on it; only ratios, so that units do not matter.

    free, allocatable
        float64[resource, row].
    request
        float64[resource].
    """
    left = free - request[:, None]
    shares = np.divide(left, allocatable, out=np.zeros_like(left), where=allocatable > 0)
    offers_gpus, wants_gpus = allocatable[2] > 0, request[2] > 0
    idle = offers_gpus & ~wants_gpus
    full = offers_gpus & wants_gpus & (left[2] <= 0)
    imbalance = np.where(offers_gpus, np.abs(shares[0] - shares[2]), 0.0)
    return np.column_stack([*shares, idle, full, imbalance])


def scores_of(weights: Floats, seen: Floats) -> Ints:
    """int64[row]: the weighted sums of the features, as whole numbers.

    Not a product of matrices: that may give equal rows different last digits.
    """
    sums: Floats = (seen * weights).sum(axis=1)
    return np.round(_STEPS * sums).astype(np.int64)


class LearnedPolicy:
    """Scores a node by a weighted sum of its features; `weights` are arguments of the plugin."""

    name = "LearnedPolicy"

    def __init__(self, args: Mapping[str, Any] | None) -> None:
        weights = (args or {}).get("weights")
        if not isinstance(weights, list) or len(weights) != len(FEATURES):
            raise PluginError(
                f"weights: must be {len(FEATURES)} numbers, for {', '.join(FEATURES)}"
            )
        self.weights = np.array(weights, np.float64)

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.USAGE

    def sign(self, pod: Pod) -> Mapping[str, object]:
        return {"requests": tuple(sorted(pod.requests.items()))}

    def score_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> Ints:
        allocatable = _amounts(columns, columns.allocatable, rows)
        free = allocatable - _amounts(columns, columns.requested, rows)
        request = np.array([pod.requests.get(name, 0) for name in RESOURCES], np.float64)
        return scores_of(self.weights, features(free, allocatable, request))

    def normalize_scores(self, state: CycleState, pod: Pod, scores: Ints) -> None:
        """The best node gets 100; the others get less, down to 0."""
        low, high = int(scores.min()), int(scores.max())
        if high > low:
            scores[:] = (scores - low) * MAX_SCORE // (high - low)
        else:
            scores[:] = MAX_SCORE


def _amounts(columns: Columns, amounts: Ints, rows: Rows) -> Floats:
    """float64[resource, row]; 0 for a resource that no node has."""
    zeros = np.zeros_like(amounts[0])
    index = columns.resources
    found = [amounts[index[name]] if name in index else zeros for name in RESOURCES]
    return np.array([each[rows] for each in found], np.float64)


class RandomPolicy:
    """Gives each pair of a pod and a node a random score, the same one each time."""

    name = "RandomPolicy"

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        digest = blake2b(f"{pod.uid}/{node.name}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "little") % (MAX_SCORE + 1)
