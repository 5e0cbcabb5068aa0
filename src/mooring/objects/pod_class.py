"""The class of a pod: pods that differ only in their names have the same class.

Pods of one controller usually have one class. What the scheduler finds for one of them holds for
the others.
"""

from __future__ import annotations

from mooring.objects.pod import Pod, SelectorKey
from mooring.objects.quantity import Quantity

#: How many classes are remembered. Beyond that all are forgotten, and pods get new classes.
MOST_CLASSES = 65_536

_Key = tuple[SelectorKey, str]

#: Up to this many pods are compared one by one; more are told apart by their requests first.
_FEW = 4


class PodClasses:
    """Gives each pod the number of its class."""

    def __init__(self) -> None:
        #: Namespace, labels and controller → the first pod of each class, with the class's number.
        self._known: dict[_Key, list[tuple[Pod, int]]] = {}
        #: The same with the requests, for pods of many classes that have these in common.
        self._by_requests: dict[tuple[_Key, Requests], list[tuple[Pod, int]]] = {}
        self._size = 0
        self._next_number = 0

    def of(self, pod: Pod) -> int | None:
        """The number of the pod's class; None for a pod without one: see `is_ordinary`."""
        if not is_ordinary(pod):
            return None
        owner = pod.metadata.controller
        key = pod.selector_key, owner.uid if owner is not None else ""
        known = self._known.get(key)
        if known is not None:
            if len(known) >= _FEW:
                known = self._by_requests.get((key, first_requests(pod)), [])
            for other, number in known:
                # Specs are compared, because the pods of one controller may differ.
                if (
                    other.spec == pod.spec
                    and other.metadata.annotations == pod.metadata.annotations
                ):
                    return number
        return self._add(key, pod)

    def _add(self, key: _Key, pod: Pod) -> int:
        if self._size >= MOST_CLASSES:
            self._known.clear()
            self._by_requests.clear()
            self._size = 0
        number = self._next_number
        self._next_number += 1
        self._size += 1
        known = self._known.setdefault(key, [])
        known.append((pod, number))
        if len(known) >= _FEW:
            for each in known if len(known) == _FEW else known[-1:]:
                by_requests = key, first_requests(each[0])
                self._by_requests.setdefault(by_requests, []).append(each)
        return number


#: What `first_requests` gives.
Requests = frozenset[tuple[str, Quantity]]


def first_requests(pod: Pod) -> Requests:
    """What the first container requests: pods without labels and owners rarely have more in common."""
    containers = pod.spec.containers
    return frozenset(containers[0].resources.requests.items()) if containers else frozenset()


def is_ordinary(pod: Pod) -> bool:
    """Whether the pod has no nominated node and no claims, whose names may depend on the pod's."""
    return not (
        pod.nominated_node_name
        or pod.spec.resource_claims
        or any(
            volume.persistent_volume_claim is not None or volume.ephemeral is not None
            for volume in pod.spec.volumes
        )
    )
