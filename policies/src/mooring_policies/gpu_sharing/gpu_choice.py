"""Which GPUs of a node a pod gets.

Whole GPUs are the first free ones. A share goes to a GPU with enough left: to the fullest (`best`), to the
emptiest (`worst`), or to any (`random`). Among equals it is the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from mooring_policies.gpu_sharing.requests import WHOLE, GpuRequest

#: What is left of each GPU, the request, and the pod's UID → the GPUs by index; empty if they do not suffice.
ChooseGpus = Callable[[Sequence[int], GpuRequest, str], tuple[int, ...]]


def best(free: Sequence[int], request: GpuRequest, uid: str = "") -> tuple[int, ...]:
    if not request.is_share:
        return whole(free, request)
    enough = _enough(free, request)
    return (min(enough, key=free.__getitem__),) if enough else ()


def worst(free: Sequence[int], request: GpuRequest, uid: str = "") -> tuple[int, ...]:
    if not request.is_share:
        return whole(free, request)
    enough = _enough(free, request)
    return (max(enough, key=free.__getitem__),) if enough else ()


def at_random(free: Sequence[int], request: GpuRequest, uid: str) -> tuple[int, ...]:
    """The same GPU each time that the same pod is asked about."""
    if not request.is_share:
        return whole(free, request)
    enough = _enough(free, request)
    return (enough[draw(f"gpu/{uid}", len(enough))],) if enough else ()


def whole(free: Sequence[int], request: GpuRequest) -> tuple[int, ...]:
    untouched = [gpu for gpu, left in enumerate(free) if left == WHOLE][: request.gpus]
    return tuple(untouched) if len(untouched) == request.gpus else ()


def draw(text: str, count: int) -> int:
    """A number below `count` that looks random, and depends on the text alone."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count


METHODS: dict[str, ChooseGpus] = {"best": best, "worst": worst, "random": at_random}


def _enough(free: Sequence[int], request: GpuRequest) -> list[int]:
    return [gpu for gpu, left in enumerate(free) if left >= request.milli]
