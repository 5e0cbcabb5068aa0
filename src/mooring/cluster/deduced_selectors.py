"""The selector that a pod's services and controller share: what default spreading counts by."""

from __future__ import annotations

from mooring.cluster.listers import Listers
from mooring.objects.kinds import ReplicaSet, ReplicationController, Service, StatefulSet
from mooring.objects.pod import Pod
from mooring.objects.selectors import (
    Requirement,
    Selector,
    compile_selector,
    selector_from_map,
)

#: How many different pods' selectors are remembered at most.
_MOST_REMEMBERED = 4096


class DeducedSelectors:
    """Deduced once for pods that are alike, and anew whenever a listed object changes."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        #: What follows was derived from the listers at this generation.
        self._generation = -1
        self._services: dict[str, list[tuple[Selector, dict[str, str]]]] = {}
        self._deduced: dict[tuple[object, ...], Selector] = {}

    def of(self, pod: Pod) -> Selector:
        """One without requirements if nothing selects the pod."""
        if self._generation != self._listers.generation:
            self._start_anew()
        owner = pod.metadata.controller
        key = pod.selector_key, owner and (owner.api_version, owner.kind, owner.name)
        selector = self._deduced.get(key)
        if selector is None:
            if len(self._deduced) >= _MOST_REMEMBERED:
                self._deduced.clear()
            selector = self._deduced[key] = self._deduce(pod)
        return selector

    def _start_anew(self) -> None:
        self._generation = self._listers.generation
        self._deduced = {}
        self._services = {}
        for service in self._listers.all(Service):
            # A missing selector stands for no pods, an empty one for all of them.
            if (labels := service.spec.selector) is not None:
                known = self._services.setdefault(service.namespace, [])
                known.append((selector_from_map(labels), labels))

    def _deduce(self, pod: Pod) -> Selector:
        labels: dict[str, str] = {}
        for selector, selected in self._services.get(pod.namespace, ()):
            if selector.matches(pod.labels):
                labels |= selected
        owner = pod.metadata.controller
        if owner is None:
            return selector_from_map(labels)
        key = f"{pod.namespace}/{owner.name}"
        match owner.api_version, owner.kind:
            case "v1", "ReplicationController":
                controller = self._listers.get(ReplicationController, key)
                if controller is not None:
                    labels |= controller.spec.selector or {}
            case "apps/v1", "ReplicaSet":
                return selector_from_map(labels).plus(
                    _requirements(self._listers.get(ReplicaSet, key))
                )
            case "apps/v1", "StatefulSet":
                return selector_from_map(labels).plus(
                    _requirements(self._listers.get(StatefulSet, key))
                )
        return selector_from_map(labels)


def _requirements(controller: ReplicaSet | StatefulSet | None) -> tuple[Requirement, ...]:
    """None of a controller that is not there, or whose selector is missing or malformed."""
    if controller is None:
        return ()
    try:
        return compile_selector(controller.spec.selector).requirements
    except ValueError:
        return ()
