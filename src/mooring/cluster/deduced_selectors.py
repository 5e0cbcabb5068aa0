"""The selector of a pod's services and controller, which default spread constraints use."""

from __future__ import annotations

from typing import NamedTuple

from mooring.cluster.listers import Listers
from mooring.errors import check_kept
from mooring.objects.kinds import ReplicaSet, ReplicationController, Service, StatefulSet
from mooring.objects.pod import Pod, SelectorKey
from mooring.objects.selectors import (
    Requirement,
    Selector,
    compile_selector,
    selector_from_map,
)

#: For how many different pods the selectors are remembered.
_MOST_REMEMBERED = 4096


class _Owner(NamedTuple):
    """A pod's controller: where to look for a selector."""

    api_version: str
    kind: str
    name: str


class DeducedSelectors:
    """Selectors are kept by labels and controller, until a listed object changes."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        #: The generation of the listers that the rest was derived from.
        self._generation = -1
        self._services: dict[str, list[tuple[Selector, dict[str, str]]]] = {}
        self._deduced: dict[tuple[SelectorKey, _Owner | None], Selector] = {}

    def of(self, pod: Pod) -> Selector:
        """The selector of a pod; without requirements if nothing selects the pod."""
        if self._generation != self._listers.generation:
            self._forget()
        key = pod.selector_key, _owner_of(pod)
        selector = self._deduced.get(key)
        if selector is None:
            if len(self._deduced) >= _MOST_REMEMBERED:
                self._deduced.clear()
            selector = self._deduced[key] = self._deduce(*key)
        return selector

    def validate(self) -> None:
        """Raise InvariantError unless the kept selectors equal those deduced again."""
        if self._generation != self._listers.generation:
            # The kept selectors are outdated and never read.
            return
        rebuilt = DeducedSelectors(self._listers)
        rebuilt._forget()
        check_kept("the selectors of services", self._services, rebuilt._services)
        deduced = {key: rebuilt._deduce(*key) for key in self._deduced}
        check_kept("deduced selectors", self._deduced, deduced)

    def _forget(self) -> None:
        self._generation = self._listers.generation
        self._deduced = {}
        self._services = {}
        for service in self._listers.all(Service):
            # A missing selector selects no pods, an empty one all pods.
            if (labels := service.spec.selector) is not None:
                known = self._services.setdefault(service.namespace, [])
                known.append((selector_from_map(labels), labels))

    def _deduce(self, pods: SelectorKey, owner: _Owner | None) -> Selector:
        namespace, label_items = pods
        of_pods, labels = dict(label_items), dict[str, str]()
        for selector, selected in self._services.get(namespace, ()):
            if selector.matches(of_pods):
                labels |= selected
        if owner is None:
            return selector_from_map(labels)
        key = f"{namespace}/{owner.name}"
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


def _owner_of(pod: Pod) -> _Owner | None:
    owner = pod.metadata.controller
    return None if owner is None else _Owner(owner.api_version, owner.kind, owner.name)


def _requirements(controller: ReplicaSet | StatefulSet | None) -> tuple[Requirement, ...]:
    """The requirements of a controller; none if it or its selector is missing or malformed."""
    if controller is None:
        return ()
    try:
        return compile_selector(controller.spec.selector).requirements
    except ValueError:
        return ()
