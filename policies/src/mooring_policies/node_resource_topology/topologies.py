"""The topology of a node as far as the scheduler knows it, with what it has given away since.

An agent on the node brings the object up to date some time after a pod has started. Until then, upstream
offers three ways, which the arguments choose between: take the object as it is, leave out nodes with pods
that are about to be bound, or count reserved pods against every zone.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from mooring.objects.pod import Pod
from mooring.objects.quantity import ZERO, Quantity
from mooring.plugin import Listers
from mooring_policies.node_resource_topology.numa import minus, pod_request
from mooring_policies.node_resource_topology.objects import NodeResourceTopology, Zone


class Topologies(Protocol):
    def get(self, node_name: str) -> tuple[NodeResourceTopology | None, bool]:
        """The object, and whether it can be relied on."""
        ...

    def reserve(self, node_name: str, pod: Pod) -> None: ...
    def unreserve(self, node_name: str, pod: Pod) -> None: ...
    def bound(self, node_name: str, pod: Pod) -> None: ...


class AsTheyAre:
    def __init__(self, listers: Listers) -> None:
        self._listers = listers

    def get(self, node_name: str) -> tuple[NodeResourceTopology | None, bool]:
        return self._listers.get(NodeResourceTopology, node_name), True

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
    """`cacheResyncPeriodSeconds`: reserved pods count against every zone, until the object changes."""

    def __init__(self, listers: Listers) -> None:
        super().__init__(listers)
        #: Node → UID of a reserved pod → what it takes.
        self._taken: dict[str, dict[str, dict[str, Quantity]]] = {}
        listers.follow(NodeResourceTopology, self._changed)

    def get(self, node_name: str) -> tuple[NodeResourceTopology | None, bool]:
        found, _ = super().get(node_name)
        taken = self._taken.get(node_name)
        if found is None or not taken:
            return found, True
        zones = found.zones
        for request in taken.values():
            zones = [_less(zone, request) for zone in zones]
        return replace(found, zones=zones), True

    def reserve(self, node_name: str, pod: Pod) -> None:
        self._taken.setdefault(node_name, {})[pod.uid] = pod_request(pod)

    def unreserve(self, node_name: str, pod: Pod) -> None:
        self._taken.get(node_name, {}).pop(pod.uid, None)

    def _changed(self, node_name: str) -> None:
        self._taken.pop(node_name, None)


def _less(zone: Zone, request: dict[str, Quantity]) -> Zone:
    resources = []
    for each in zone.resources:
        if each.name in request:
            left = minus(each.available, request[each.name])
            each = replace(each, available=ZERO if left.unscaled < 0 else left)
        resources.append(each)
    return replace(zone, resources=resources)
