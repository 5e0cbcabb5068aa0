"""A load of any size, drawn from the pods of a trace.

Pods are drawn at random, with replacement, until the GPUs that they request reach a multiple of all GPUs of
the nodes. They arrive one second apart in the order in which they were drawn, and never end. So the cluster
fills up, and what is allocated when the last pod has arrived says how well a policy packs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.errors import InputError
from mooring.objects.generated_names import generated_uid
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.requests import amounts
from mooring.sim.traces.openb import GPU, GPU_MILLI, WHOLE_MILLI
from mooring.sim.traces.trace import TracePod

#: Pods are drawn by the thousand: one call for each costs more than the draw.
_AT_ONCE = 1024


def draw_load(
    pods: Sequence[TracePod], nodes: Sequence[Node], *, load: float, seed: int
) -> list[TracePod]:
    """Pods whose requests are the first to reach `load` × all GPUs; the same ones for the same seed.

    Raises InputError if there is nothing to draw from, or no GPU to fill.
    """
    milli = np.array([_gpu_milli(each.pod.held) for each in pods], np.int64)
    offered = sum(_gpu_milli(amounts(node.status.allocatable)) for node in nodes)
    if not offered:
        raise InputError(["a load is drawn until it reaches the GPUs, but no node has GPUs"])
    if not milli.any():
        raise InputError(["a load is drawn until it reaches the GPUs, but no pod requests any"])
    drawn = _draw(milli, load * offered, np.random.default_rng(seed))
    return [TracePod(_copy(pods[index].pod, i), float(i)) for i, index in enumerate(drawn)]


def _draw(milli: NDArray[np.int64], wanted: float, rng: np.random.Generator) -> list[int]:
    drawn: list[int] = []
    reached = 0
    while reached < wanted:
        for index in rng.integers(len(milli), size=_AT_ONCE).tolist():
            if reached >= wanted:
                break
            drawn.append(index)
            reached += int(milli[index])
    return drawn


def _gpu_milli(resources: Mapping[str, int]) -> int:
    """In thousandths of a GPU; whole GPUs count only if shares are not requested as such."""
    return resources.get(GPU_MILLI) or WHOLE_MILLI * resources.get(GPU, 0)


def _copy(pod: Pod, number: int) -> Pod:
    name = f"{pod.name}-{number}"
    metadata = msgspec.structs.replace(
        pod.metadata, name=name, uid=generated_uid("", "Pod", pod.namespace, name)
    )
    copied = msgspec.structs.replace(pod, metadata=metadata)
    copied.take_derived_from(pod)
    return copied
