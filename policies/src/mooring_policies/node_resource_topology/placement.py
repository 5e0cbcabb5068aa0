"""On which zone each container runs, as the agent of a node writes it into the object.

The object says how many containers with resources of their own there are, and on which zone most of them
run; every other zone lists its containers. They have no names: a container is its position in the ascending
order of the hashes of all of them, so a reader must know the same containers as the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mooring.objects.pod import Pod
from mooring_policies.node_resource_topology.fingerprint import xxhash
from mooring_policies.node_resource_topology.numa import (
    exclusive_containers,
    resource_names,
    zone_id,
)
from mooring_policies.node_resource_topology.objects import (
    SINGLE_NUMA_NODE,
    NodeResourceTopology,
    attribute,
)

METADATA = "topology.node.k8s.io/numaplacement-metadata"
VECTOR = "topology.node.k8s.io/numaplacement-vector"

_FORMAT = "npv0v001"
_SEPARATOR = "::"
#: The digits that need no escape in JSON; the first 64 end a number, the others go on.
_DIGITS = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"&<>\\')
_ENDING = 64
_CONTINUING = len(_DIGITS) - _ENDING

#: The hash of a container → the id of its zone.
Placement = Mapping[int, int]


def container_hash(pod: Pod, container_name: str) -> int:
    return xxhash("\0".join((pod.namespace, pod.name, container_name)).encode(), 0)


def read_placement(topology: NodeResourceTopology, pods: Iterable[Pod]) -> Placement:
    """Where the containers of these pods run; empty if the object does not say it of exactly these pods."""
    if attribute(topology.attributes, "topologyManagerPolicy") != SINGLE_NUMA_NODE:
        return {}
    names = resource_names(topology)
    hashes = sorted(
        container_hash(pod, container.name)
        for pod in pods
        for container in exclusive_containers(pod, names)
    )
    try:
        metadata = _Metadata.read(attribute(topology.attributes, METADATA))
        if not hashes or len(hashes) != metadata.containers:
            return {}
        return _decoded(hashes, metadata, _vectors(topology))
    except ValueError:
        return {}


@dataclass(frozen=True, slots=True)
class _Metadata:
    containers: int
    zones: int
    #: The id of the zone that has no list: it has all containers that no list names.
    busiest: int

    @classmethod
    def read(cls, text: str) -> _Metadata:
        """Raises ValueError."""
        form, *fields = text.split(_SEPARATOR)
        given = dict(field.split("=", 1) for field in fields)
        if form != _FORMAT or given.pop("ve", "") != "leb89" or given.keys() - {"cc", "nn", "bn"}:
            raise ValueError(text)
        read = cls(*(int(given.get(name, "-1")) for name in ("cc", "nn", "bn")))
        if not 0 <= read.busiest < read.zones:
            raise ValueError(text)
        return read


def _vectors(topology: NodeResourceTopology) -> dict[int, str]:
    """The id of a zone → its list. Raises ValueError if the name of a zone has no number."""
    vectors = {}
    for zone in topology.zones:
        written = next((each for each in zone.attributes if each.name == VECTOR), None)
        if written is not None:
            found = zone_id(zone.name)
            if found is None:
                raise ValueError(zone.name)
            vectors[found] = written.value
    return vectors


def _decoded(hashes: list[int], metadata: _Metadata, vectors: Mapping[int, str]) -> Placement:
    """Raises ValueError."""
    placement: dict[int, int] = {}
    for zone, vector in vectors.items():
        if zone == metadata.busiest or zone >= metadata.zones:
            raise ValueError(vector)
        for position in _positions(vector):
            if position >= len(hashes) or hashes[position] in placement:
                raise ValueError(vector)
            placement[hashes[position]] = zone
    return {each: placement.get(each, metadata.busiest) for each in hashes}


def _positions(vector: str) -> Iterator[int]:
    """Each number is the distance from the one before. Raises ValueError."""
    position = high = 0
    continues = False
    for character in vector:
        digit = _DIGITS.index(character)
        if digit >= _ENDING:
            high, continues = high * _CONTINUING + digit - _ENDING, True
            continue
        position += (high + 1) * _ENDING + digit if continues else digit
        yield position
        high, continues = 0, False
    if continues:
        raise ValueError(vector)
