"""TopologyPlacementGenerator: all pods of a group go to nodes with the same value of a label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.plugin import Handle, MooringError, Snapshot, Status, failure
from mooring.plugin.groups import Placement, PodGroupInfo, PodGroupState

#: The reference's texts, verbatim.
_UNDETERMINED = "cannot determine domain for already scheduled pods: {}"
_NO_NODE = 'getting node for pod {}: nodeinfo not found for node name "{}"'
_NO_DOMAIN = "no topology domain found for pod {}"
_TWO_DOMAINS = "more than 1 domain found for pod group: {}, {}"


class TopologyPlacementGenerator:
    name = "TopologyPlacementGenerator"

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        #: The latest label, the position in the log of nodes, and the placements then.
        self._kept: tuple[str, int, Sequence[Placement]] = ("", -1, ())

    def generate_placements(
        self, group: PodGroupInfo, snapshot: Snapshot
    ) -> Sequence[Placement] | Status:
        """A placement for each value of the label, by name; the reference tries them in any order.

        If pods of the group already have nodes, the others go to theirs.
        """
        found = self._handle.cluster.listers.get(PodGroup, group.key)
        if found is None:
            return failure(MooringError(f'podgroup.scheduling.k8s.io "{group.name}" not found'))
        key = found.topology_key
        if key is None:
            return (Placement(""),)
        try:
            required = _domain_of(self._state(group).scheduled(), key, snapshot)
        except MooringError as error:
            return failure(error)
        placements = self._by_domain(key, snapshot)
        if required is None:
            return placements
        return [placement for placement in placements if placement.name == required]

    def _by_domain(self, key: str, snapshot: Snapshot) -> Sequence[Placement]:
        """The same object as long as no node changes."""
        position = self._handle.cluster.changes.nodes.position
        if self._kept[:2] != (key, position):
            nodes: dict[str, list[str]] = {}
            for node in snapshot:
                assert node.node is not None
                domain = node.node.labels.get(key)
                if domain is not None:
                    nodes.setdefault(domain, []).append(node.name)
            found = tuple(Placement(domain, tuple(nodes[domain])) for domain in sorted(nodes))
            self._kept = (key, position, found)
        return self._kept[2]

    def _state(self, group: PodGroupInfo) -> PodGroupState:
        """Raises NoGroupError."""
        groups = self._handle.cluster.pod_groups
        assert groups is not None, "only the group cycle asks for placements"
        return groups.get(group.key)


def _domain_of(pods: Iterable[Pod], key: str, snapshot: Snapshot) -> str | None:
    """The value of the label that these pods are on; None if there are no pods.

    Raises MooringError.
    """
    found: str | None = None
    for pod in pods:
        info = snapshot.get(pod.node_name)
        if info is None or info.node is None:
            raise MooringError(_UNDETERMINED.format(_NO_NODE.format(pod.key, pod.node_name)))
        domain = info.node.labels.get(key)
        if domain is None:
            raise MooringError(_UNDETERMINED.format(_NO_DOMAIN.format(pod.key)))
        if found is not None and found not in ("", domain):
            raise MooringError(_UNDETERMINED.format(_TWO_DOMAINS.format(found, domain)))
        found = domain
    return found
