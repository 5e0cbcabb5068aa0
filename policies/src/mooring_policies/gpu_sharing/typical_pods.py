"""Typical pods: the most frequent shapes of a workload, and how frequent they are.

A shape is what fragmentation asks about: cpu, GPUs, how much of each, and their models. Shapes are taken in
order of frequency until they make up 95 % of the pods; among equally frequent ones, the larger first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from mooring.objects.pod import Pod
from mooring_policies.gpu_sharing.requests import (
    WHOLE,
    GpuRequest,
    cpu_milli,
    gpu_models,
    gpu_request,
)


class Shape(NamedTuple):
    """Shapes are ordered by these fields."""

    cpu_milli: int
    gpu_milli: int
    gpu_count: int
    gpu_models: tuple[str, ...]

    @property
    def request(self) -> GpuRequest:
        return GpuRequest(self.gpu_count, self.gpu_milli)


class TypicalPod(NamedTuple):
    shape: Shape
    #: How often it occurs, relative to the others.
    weight: float


def shape_of(pod: Pod) -> Shape:
    request = gpu_request(pod)
    models = gpu_models(pod) if request.gpus else ()
    return Shape(cpu_milli(pod), request.milli, request.gpus, models)


def typical_pods(
    pods: Iterable[Pod],
    *,
    popularity_percent: float = 95,
    increase_step: int = 1,
    with_cpu_pods: bool = True,
    gpu_weight: float = 0,
) -> list[TypicalPod]:
    """The most frequent shapes, most frequent first.

    popularity_percent
        Shapes are added until they make up this share of the pods.
    increase_step
        How many shapes are added at a time.
    gpu_weight
        A pod with n whole GPUs counts as 1 + n × this many pods.
    """
    counts: Counter[Shape] = Counter(map(shape_of, pods))
    weights = {
        shape: count * _pods_counted(shape, gpu_weight)
        for shape, count in counts.items()
        if with_cpu_pods or shape.gpu_count
    }
    wanted = sum(weights.values()) * popularity_percent / 100
    by_frequency = sorted(weights.items(), key=lambda item: (item[1], item[0]), reverse=True)
    chosen: list[TypicalPod] = []
    reached = 0.0
    while reached < wanted and len(chosen) < len(by_frequency):
        for shape, weight in by_frequency[len(chosen) : len(chosen) + increase_step]:
            chosen.append(TypicalPod(shape, weight))
            reached += weight
    return chosen


def _pods_counted(shape: Shape, gpu_weight: float) -> float:
    return 1 + shape.gpu_count * gpu_weight if shape.gpu_milli == WHOLE and gpu_weight > 0 else 1
