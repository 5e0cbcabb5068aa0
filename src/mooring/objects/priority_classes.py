"""Priority classes: the priority of a pod, as the admission of the API server resolves it."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.objects.kinds import PriorityClass
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import PodSpec
from mooring.objects.pod_groups import PodGroupSpec

PREEMPT = "PreemptLowerPriority"

#: These two exist in every cluster.
BUILT_IN = tuple(
    PriorityClass(
        api_version="scheduling.k8s.io/v1",
        kind="PriorityClass",
        metadata=ObjectMeta(name=name),
        value=value,
        preemption_policy=PREEMPT,
    )
    for name, value in (
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    )
)

_NO_CLASS = PriorityClass(value=0, preemption_policy=PREEMPT)


class PriorityClasses:
    """The classes of a cluster, by name."""

    def __init__(self, classes: Iterable[PriorityClass] = ()) -> None:
        given = tuple(classes)
        self._by_name = {each.name: each for each in (*BUILT_IN, *given)}
        defaults = [each for each in given if each.global_default]
        # A race can create two defaults; the lower one counts.
        self._default = min(defaults, key=lambda each: each.value, default=_NO_CLASS)

    def of(self, spec: PodSpec | PodGroupSpec) -> PriorityClass | None:
        """The class that the pod or pod group names, or the default; None if the class does not exist."""
        if not spec.priority_class_name:
            return self._default
        return self._by_name.get(spec.priority_class_name)

    def unknown_to(self, spec: PodSpec) -> bool:
        """Whether the pod names a class that does not exist, and has no priority yet."""
        return spec.priority is None and self.of(spec) is None

    @property
    def names(self) -> list[str]:
        return sorted(self._by_name)
