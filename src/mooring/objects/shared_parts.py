"""Pods that one controller made, or that have none and run the same image, share their equal parts.

Their specs differ in the node at most. Shared parts are in memory once; those of specs are also checked,
defaulted and derived once.
"""

from __future__ import annotations

from operator import attrgetter, is_
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from mooring.objects.meta import Part
from mooring.objects.pod import Pod, PodSpec

#: How many controllers are remembered. Beyond that all are forgotten.
MOST_CONTROLLERS = 16_384

_PartT = TypeVar("_PartT", bound=Part)


class _Fields:
    def __init__(self, *names: str) -> None:
        self.names = names
        self.of = attrgetter(*names)


#: What pods with the same spec often have in common beside it.
_OF_METADATA = _Fields(
    "namespace", "generate_name", "labels", "annotations", "owner_references", "finalizers"
)
_OF_STATUS = _Fields(
    "phase",
    "container_statuses",
    "init_container_statuses",
    "resources",
    "allocated_resources",
    "resource_claim_statuses",
)

_parts_of = attrgetter(*(name for name in PodSpec.__struct_fields__ if name != "node_name"))


class Joined(NamedTuple):
    """A pod, and the earlier pod whose parts it shares; None if it is the first with its spec."""

    pod: Pod
    shares_with: Pod | None


class SharedParts:
    def __init__(self) -> None:
        #: UID of a controller → its latest pod; for pods without one, under namespace and image.
        self._of: dict[str | tuple[str, str], Pod] = {}

    def join(self, pod: Pod) -> Joined:
        owner = pod.metadata.controller
        maker = owner.uid if owner is not None and owner.uid else (pod.namespace, _image(pod))
        earlier = self._of.get(maker)
        if earlier is None or earlier.namespace != pod.namespace:
            return self._first(maker, pod)
        spec = earlier.spec
        if pod.node_name != earlier.node_name:
            spec = replace(spec, node_name=pod.node_name)
        if spec != pod.spec:
            return self._first(maker, pod)
        metadata = _sharing(pod.metadata, earlier.metadata, _OF_METADATA)
        status = pod.status
        if pod.node_name:
            # A pod that waits has next to nothing in its status.
            status = _sharing(status, earlier.status, _OF_STATUS)
        joined = replace(
            pod,
            api_version=_same(pod.api_version, earlier.api_version),
            kind=_same(pod.kind, earlier.kind),
            spec=spec,
            metadata=metadata,
            status=status,
        )
        # The latest, since a status changes over time: pods that wait have none, and those that run have one.
        self._of[maker] = joined
        return Joined(joined, earlier)

    def _first(self, maker: str | tuple[str, str], pod: Pod) -> Joined:
        if len(self._of) >= MOST_CONTROLLERS:
            self._of.clear()
        self._of[maker] = pod
        return Joined(pod, None)


def _image(pod: Pod) -> str:
    containers = pod.spec.containers
    return containers[0].image if containers else ""


def _same(text: str, other: str) -> str:
    return other if text == other else text


def _sharing(part: _PartT, other: _PartT, fields: _Fields) -> _PartT:
    """The part with the other one's values in these fields, where they are equal."""
    theirs, ours = fields.of(other), fields.of(part)
    if theirs == ours:
        return replace(part, **dict(zip(fields.names, theirs, strict=True)))
    pairs = zip(fields.names, theirs, ours, strict=True)
    return replace(part, **{name: their for name, their, our in pairs if their == our})


def have_same_parts(one: PodSpec, other: PodSpec) -> bool:
    """Whether two specs share all parts but the node."""
    return one is other or all(map(is_, _parts_of(one), _parts_of(other)))
