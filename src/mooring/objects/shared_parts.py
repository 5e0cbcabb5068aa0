"""Pods that one controller made, or that follow each other without one, share the parts of equal specs.

Their specs differ in the node at most. Shared parts are in memory once, and are checked, defaulted
and derived once.
"""

from __future__ import annotations

from operator import attrgetter, is_
from typing import NamedTuple

from msgspec.structs import replace

from mooring.objects.pod import Pod, PodSpec

#: How many controllers are remembered. Beyond that all are forgotten.
MOST_CONTROLLERS = 16_384

_parts_of = attrgetter(*(name for name in PodSpec.__struct_fields__ if name != "node_name"))


class Joined(NamedTuple):
    """A pod, and the earlier pod whose parts it shares; None if it is the first with its spec."""

    pod: Pod
    shares_with: Pod | None


class SharedParts:
    def __init__(self) -> None:
        #: UID of a controller → its latest pod that shared nothing with the previous one; for pods without a
        #: controller, under their namespace.
        self._of: dict[str, Pod] = {}

    def join(self, pod: Pod) -> Joined:
        owner = pod.metadata.controller
        maker = pod.namespace if owner is None or not owner.uid else owner.uid
        earlier = self._of.get(maker)
        if earlier is None or earlier.namespace != pod.namespace:
            return self._first(maker, pod)
        spec = replace(earlier.spec, node_name=pod.spec.node_name)
        if spec != pod.spec:
            return self._first(maker, pod)
        metadata, known = pod.metadata, earlier.metadata
        if metadata.labels == known.labels:
            metadata = replace(metadata, labels=known.labels)
        if metadata.owner_references == known.owner_references:
            metadata = replace(metadata, owner_references=known.owner_references)
        return Joined(replace(pod, spec=spec, metadata=metadata), earlier)

    def _first(self, maker: str, pod: Pod) -> Joined:
        if len(self._of) >= MOST_CONTROLLERS:
            self._of.clear()
        self._of[maker] = pod
        return Joined(pod, None)


def have_same_parts(one: PodSpec, other: PodSpec) -> bool:
    """Whether two specs share all parts but the node."""
    return all(map(is_, _parts_of(one), _parts_of(other)))
