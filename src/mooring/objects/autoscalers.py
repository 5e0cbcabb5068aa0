"""HorizontalPodAutoscalers: the least and the most replicas that a workload gets.

There are no metrics here, so a number of replicas within the limits stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from msgspec.structs import replace

from mooring.objects.meta import KubeObject
from mooring.objects.policies import HorizontalPodAutoscaler

K = TypeVar("K", bound=KubeObject)


class Autoscalers:
    """The autoscalers of a cluster, by what they scale."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._of: dict[tuple[str, str, str], HorizontalPodAutoscaler] = {}
        for obj in objects:
            if isinstance(obj, HorizontalPodAutoscaler):
                target = obj.spec.scale_target_ref
                self._of[obj.namespace, target.kind, target.name] = obj

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, workload: KubeObject) -> HorizontalPodAutoscaler | None:
        return self._of.get((workload.namespace, workload.kind, workload.name))

    def scaled(self, workload: K) -> K:
        """The workload with as many replicas as its autoscaler gives it."""
        autoscaler = self.of(workload)
        spec: Any = getattr(workload, "spec", None)
        if autoscaler is None or not hasattr(spec, "replicas"):
            return workload
        replicas = _within(autoscaler, spec.replicas)
        if replicas == spec.replicas:
            return workload
        changed: Any = replace(spec, replicas=replicas)
        return replace(workload, spec=changed)


def _within(autoscaler: HorizontalPodAutoscaler, replicas: int | None) -> int | None:
    least = 1 if autoscaler.spec.min_replicas is None else autoscaler.spec.min_replicas
    wanted = 1 if replicas is None else replicas
    if wanted == 0:
        # 0 replicas turn autoscaling off.
        return replicas
    within = max(wanted, least)
    if autoscaler.spec.max_replicas:
        within = min(within, autoscaler.spec.max_replicas)
    return replicas if within == wanted else within
