"""The class of a pod: pods that differ only in their names have the same class.

Pods of one controller usually have one class. What the scheduler finds for one of them holds for
the others.
"""

from __future__ import annotations

from mooring.objects.pod import Pod, SelectorKey

#: How many classes are remembered. Beyond that all are forgotten, and pods get new classes.
MOST_CLASSES = 65_536

_Key = tuple[SelectorKey, str]


class PodClasses:
    """Gives each pod the number of its class."""

    def __init__(self) -> None:
        #: Namespace, labels and controller → the first pod of each class, with the class's number.
        self._known: dict[_Key, list[tuple[Pod, int]]] = {}
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
            self._size = 0
        number = self._next_number
        self._next_number += 1
        self._size += 1
        self._known.setdefault(key, []).append((pod, number))
        return number


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
