"""RuntimeClass: the overhead of a runtime, and the nodes that have it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from mooring.objects.admission.refusal import Refusal
from mooring.objects.pod import PodSpec
from mooring.objects.policies import RuntimeClass, RuntimeScheduling
from mooring.objects.taints import Toleration

OVERHEAD_DIFFERS = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
OVERHEAD_WITHOUT_CLASS = (
    "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
)


class RuntimeClasses:
    """The runtime classes of a cluster."""

    def __init__(self, classes: Iterable[RuntimeClass] = ()) -> None:
        self._by_name = {each.name: each for each in classes}
        #: The last argument and result of `applied`. The pods of a template share them.
        self._given: PodSpec | None = None
        self._applied = PodSpec()

    def applied(self, spec: PodSpec) -> PodSpec:
        """The spec with what its class adds. Raises Refusal."""
        if spec.runtime_class_name is None:
            return spec
        if spec is not self._given:
            self._applied = self._with_class(spec, self._class_of(spec))
            self._given = spec
        return self._applied

    def check(self, spec: PodSpec) -> None:
        """Raises Refusal if the overhead is not that of the class."""
        found = self._class_of(spec)
        if found is None or found.overhead is None:
            if spec.overhead:
                raise Refusal(OVERHEAD_WITHOUT_CLASS)
        elif spec.overhead != found.overhead.pod_fixed:
            raise Refusal(OVERHEAD_DIFFERS)

    def _class_of(self, spec: PodSpec) -> RuntimeClass | None:
        name = spec.runtime_class_name
        if name is None:
            return None
        found = self._by_name.get(name)
        if found is None:
            raise Refusal(f'pod rejected: RuntimeClass "{name}" not found')
        return found

    def _with_class(self, spec: PodSpec, found: RuntimeClass | None) -> PodSpec:
        if found is None:
            return spec
        if found.overhead is not None:
            overhead = found.overhead.pod_fixed
            if spec.overhead and spec.overhead != overhead:
                raise Refusal(OVERHEAD_DIFFERS)
            spec = replace(spec, overhead=overhead)
        return spec if found.scheduling is None else _scheduled(spec, found.scheduling)


def _scheduled(spec: PodSpec, scheduling: RuntimeScheduling) -> PodSpec:
    selector = dict(spec.node_selector or {})
    for key, value in scheduling.node_selector.items():
        if selector.get(key, value) != value:
            raise Refusal(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value};"
                f" pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
        selector[key] = value
    return replace(
        spec,
        node_selector=selector or spec.node_selector,
        tolerations=merged(spec.tolerations, scheduling.tolerations),
    )


def merged(first: Sequence[Toleration], second: Sequence[Toleration]) -> list[Toleration]:
    """All tolerations but those that another one covers."""
    together = [*first, *second]
    kept: list[Toleration] = []
    for index, each in enumerate(together):
        later = (other for other in together[index + 1 :] if other != each)
        if not any(_covers(other, each) for other in (*kept, *later)):
            kept.append(each)
    return kept


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether one toleration tolerates everything that the other does."""
    if wide == narrow:
        return True
    if narrow.key != wide.key and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect not in ("", narrow.effect):
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator == "Exists":
        return True
    # As in the reference, an operator that is left out is not taken for Equal on this side.
    return (
        wide.operator in ("", "Equal") and narrow.operator == "Equal" and narrow.value == wide.value
    )
