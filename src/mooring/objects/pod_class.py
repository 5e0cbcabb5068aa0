"""The class of a pod: pods that nothing tells apart but their names are of one class.

Pods of one controller are such pods, as long as their specs stay the same. What a scheduler finds out about
one of them is true of the others.
"""

from __future__ import annotations

from mooring.objects.pod import Pod, SelectorKey

#: How many classes are remembered; then they are forgotten, all at once, and pods get new ones.
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
        """None for a pod that is in a class of its own: see `_is_ordinary`."""
        if not _is_ordinary(pod):
            return None
        owner = pod.metadata.controller
        key = pod.selector_key, owner.uid if owner is not None else ""
        known = self._known.get(key)
        if known is not None:
            for other, number in known:
                # Specs are compared and not trusted to be equal: a controller's pods may differ.
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


def _is_ordinary(pod: Pod) -> bool:
    """Without a node that is held for it, and without claims: some are found by the pod's own name."""
    return not (
        pod.nominated_node_name
        or pod.spec.resource_claims
        or any(
            volume.persistent_volume_claim is not None or volume.ephemeral is not None
            for volume in pod.spec.volumes
        )
    )
