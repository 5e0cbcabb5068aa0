"""Which scheduler pods ask for. Pods that ask for another one are not a scheduler's business."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec.structs import replace

from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod, PodSpec


def wanted_schedulers(objects: Iterable[KubeObject]) -> Counter[str]:
    """Scheduler name → how many pods wait for it."""
    return Counter(obj.scheduler_name for obj in objects if isinstance(obj, Pod) and _waits(obj))


def asking_for(objects: Iterable[KubeObject], scheduler_name: str) -> list[KubeObject]:
    """The objects, with every pod that has no node asking for this scheduler."""
    # Pods of one controller share a spec, and go on sharing it.
    specs: dict[int, PodSpec] = {}
    changed: list[KubeObject] = []
    for obj in objects:
        if isinstance(obj, Pod) and _waits(obj) and obj.scheduler_name != scheduler_name:
            spec = specs.get(id(obj.spec))
            if spec is None:
                spec = specs[id(obj.spec)] = replace(obj.spec, scheduler_name=scheduler_name)
            obj = replace(obj, spec=spec)
        changed.append(obj)
    return changed


def _waits(pod: Pod) -> bool:
    return not pod.node_name and not pod.finished
