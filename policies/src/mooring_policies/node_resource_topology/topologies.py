"""The topology of a node as far as the scheduler knows it, with what it has given away since.

An agent on the node brings the object up to date some time after a pod has started. Until then, upstream
offers three ways, which the arguments choose between: take the object as it is, leave out nodes with pods
that are about to be bound, or count reserved pods against every zone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from mooring.objects.meta import ResourceList
from mooring.objects.pod import Pod
from mooring.objects.quantity import ZERO, Quantity
from mooring.plugin import ClusterView, Listers
from mooring_policies.node_resource_topology.fingerprint import fingerprint
from mooring_policies.node_resource_topology.numa import (
    has_exclusive_resources,
    minus,
    pod_request,
    resource_names,
)
from mooring_policies.node_resource_topology.objects import (
    NodeResourceTopology,
    TopologyManager,
    Zone,
    attribute,
)
from mooring_policies.node_resource_topology.placement import Placement, read_placement

#: Attributes in which an agent says which pods its figures include; in older ones an annotation.
FINGERPRINT = "nodeTopologyPodsFingerprint"
FINGERPRINT_METHOD = "nodeTopologyPodsFingerprintMethod"
ANNOTATION = "topology.node.k8s.io/fingerprint"


class CacheSettings(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """How to find out that an object is up to date; for `cacheResyncPeriodSeconds`."""

    #: Which pods of other schedulers make a node unreliable.
    foreign_pods_detect: Literal["None", "All", "OnlyExclusiveResources"] = "All"
    #: Which pods a fingerprint includes.
    resync_method: Literal["Autodetect", "All", "OnlyExclusiveResources"] = "Autodetect"
    #: Of upstream's clients; mooring has one view of pods.
    informer_mode: Literal["Dedicated", "Shared"] = "Dedicated"
    #: All: another policy of the kubelet counts at once.
    resync_scope: Literal["All", "OnlyResources"] = "All"


class Topologies(Protocol):
    def get(self, node_name: str) -> tuple[NodeResourceTopology | None, bool]:
        """The object, and whether it can be relied on."""
        ...

    def placement(self, node_name: str) -> Placement:
        """On which zones containers run; empty if that is not known."""
        ...

    def reserve(self, node_name: str, pod: Pod) -> None: ...
    def unreserve(self, node_name: str, pod: Pod) -> None: ...
    def bound(self, node_name: str, pod: Pod) -> None: ...


class AsTheyAre:
    def __init__(self, listers: Listers) -> None:
        self._listers = listers

    def get(self, node_name: str) -> tuple[NodeResourceTopology | None, bool]:
        return self._listers.get(NodeResourceTopology, node_name), True

    def placement(self, node_name: str) -> Placement:
        return {}

    def reserve(self, node_name: str, pod: Pod) -> None:
        pass

    def unreserve(self, node_name: str, pod: Pod) -> None:
        pass

    def bound(self, node_name: str, pod: Pod) -> None:
        pass


class WithoutReserved(AsTheyAre):
    """`discardReservedNodes`: a node with a pod that is about to be bound is not relied on."""

    def __init__(self, listers: Listers) -> None:
        super().__init__(listers)
        #: Node → the UIDs of its reserved pods.
        self._reserved: dict[str, set[str]] = {}

    def get(self, node_name: str) -> tuple[NodeResourceTopology | None, bool]:
        return (None, False) if self._reserved.get(node_name) else super().get(node_name)

    def reserve(self, node_name: str, pod: Pod) -> None:
        self._reserved.setdefault(node_name, set()).add(pod.uid)

    def unreserve(self, node_name: str, pod: Pod) -> None:
        self._reserved.get(node_name, set()).discard(pod.uid)

    def bound(self, node_name: str, pod: Pod) -> None:
        self.unreserve(node_name, pod)


class LessReserved(AsTheyAre):
    """`cacheResyncPeriodSeconds`: reserved pods count against every zone, until the agent counts them.

    The agent writes into the object a fingerprint of the pods that its figures include. As long as it is
    not that of the pods that run on the node, an object is older than what the scheduler knows, and is not
    taken.
    """

    def __init__(
        self,
        cluster: ClusterView,
        profile_name: str,
        settings: CacheSettings,
        *,
        locates_containers: bool,
    ) -> None:
        super().__init__(cluster.listers)
        self._locates_containers = locates_containers
        self._infos = cluster.infos
        self._profile_name = profile_name
        self._settings = settings
        self._known: dict[str, _Known] = {}

    def get(self, node_name: str) -> tuple[NodeResourceTopology | None, bool]:
        known = self._brought_up_to_date(node_name)
        if known is None:
            return None, True
        if known.foreign != self._foreign(node_name, known.topology):
            return None, False
        zones = known.topology.zones
        for request in known.taken.values():
            zones = [_less(zone, request) for zone in zones]
        return replace(known.topology, zones=zones), True

    def placement(self, node_name: str) -> Placement:
        known = self._brought_up_to_date(node_name)
        if known is None:
            return {}
        if known.placement is None:
            self._locate_containers(node_name, known)
        return known.placement or {}

    def reserve(self, node_name: str, pod: Pod) -> None:
        known = self._brought_up_to_date(node_name)
        if known is not None:
            known.taken[pod.uid] = pod_request(pod)

    def unreserve(self, node_name: str, pod: Pod) -> None:
        if node_name in self._known:
            self._known[node_name].taken.pop(pod.uid, None)

    def _brought_up_to_date(self, node_name: str) -> _Known | None:
        latest = self._listers.get(NodeResourceTopology, node_name)
        if latest is None:
            self._known.pop(node_name, None)
            return None
        known = self._known.setdefault(node_name, _Known(latest))
        known.forget_pods_that_left(self._pods(node_name))
        foreign = self._foreign(node_name, latest)
        if known.taken or known.foreign != foreign:
            if self._is_configured_anew(known.topology, latest) or self._counts_the_pods(
                node_name, latest, known
            ):
                known = self._known[node_name] = _Known(latest, foreign)
                self._locate_containers(node_name, known)
        elif known.topology is not latest:
            known.topology, known.placement = latest, None
            self._locate_containers(node_name, known)
        return known

    def _locate_containers(self, node_name: str, known: _Known) -> None:
        """When an object is taken: pods that come later are not in its lists of containers."""
        if self._locates_containers and self._counts_the_pods(node_name, known.topology, known):
            known.placement = read_placement(known.topology, self._running(node_name))

    def _is_configured_anew(self, old: NodeResourceTopology, new: NodeResourceTopology) -> bool:
        """`resyncScope: All`: another policy of the kubelet counts at once."""
        return self._settings.resync_scope == "All" and (
            TopologyManager.of(old) != TopologyManager.of(new)
        )

    def _counts_the_pods(
        self, node_name: str, topology: NodeResourceTopology, known: _Known
    ) -> bool:
        """Whether the figures of the agent include the pods that run on the node, and no others.

        Upstream forgets all reservations at this moment. Here a pod that does not run yet stays reserved:
        the agent cannot have counted it.
        """
        expected = attribute(topology.attributes, FINGERPRINT) or topology.metadata.annotations.get(
            ANNOTATION, ""
        )
        pods = self._pods(node_name)
        if not expected or any(pod.uid in known.taken and not _runs(pod) for pod in pods):
            return False
        running = self._running(node_name)
        if self._counts_only_exclusive(topology):
            names = resource_names(topology)
            running = [pod for pod in running if has_exclusive_resources(pod, names)]
        return fingerprint(running) == expected

    def _counts_only_exclusive(self, topology: NodeResourceTopology) -> bool:
        if not attribute(topology.attributes, FINGERPRINT):
            return False
        method = self._settings.resync_method
        return method == "OnlyExclusiveResources" or (
            method == "Autodetect"
            and attribute(topology.attributes, FINGERPRINT_METHOD) == "with-exclusive-resources"
        )

    def _foreign(self, node_name: str, topology: NodeResourceTopology) -> frozenset[object]:
        """The pods of other schedulers on the node: what they took, only the agent knows."""
        detect = self._settings.foreign_pods_detect
        if detect == "None":
            return frozenset()
        names = resource_names(topology)
        return frozenset(
            (pod.uid, pod.status.phase)
            for pod in self._pods(node_name)
            if pod.scheduler_name != self._profile_name
            and (detect == "All" or has_exclusive_resources(pod, names))
        )

    def _running(self, node_name: str) -> list[Pod]:
        return [pod for pod in self._pods(node_name) if _runs(pod)]

    def _pods(self, node_name: str) -> list[Pod]:
        info = self._infos.get(node_name)
        return [] if info is None else list(info.pods.values())


@dataclass(slots=True)
class _Known:
    """What counts for a node, since its object was last taken."""

    topology: NodeResourceTopology
    #: The pods of other schedulers that its figures include.
    foreign: frozenset[object] = frozenset()
    #: UID of a pod that was reserved since → what it takes.
    taken: dict[str, ResourceList] = field(default_factory=dict)
    #: Those of them that were seen on the node.
    arrived: set[str] = field(default_factory=set)
    #: Where the containers of the pods run that its figures include; None if that is not known yet.
    placement: Placement | None = None

    def forget_pods_that_left(self, pods: list[Pod]) -> None:
        """What a pod took that is gone is free again, also if no agent ever says so."""
        if self.taken:
            present = {pod.uid for pod in pods}
            for uid in self.arrived - present:
                self.taken.pop(uid, None)
            self.arrived = present & self.taken.keys()


def _runs(pod: Pod) -> bool:
    return pod.status.phase not in ("", "Pending")


def _less(zone: Zone, request: dict[str, Quantity]) -> Zone:
    resources = []
    for each in zone.resources:
        if each.name in request:
            left = minus(each.available, request[each.name])
            each = replace(each, available=ZERO if left.unscaled < 0 else left)
        resources.append(each)
    return replace(zone, resources=resources)
