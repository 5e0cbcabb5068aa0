"""The objects of a cluster after changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mooring.framework.changes import Change
from mooring.framework.node_changes import AddNodes
from mooring.objects.daemons import home
from mooring.objects.devices import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.node_devices import slices_like
from mooring.objects.pod import (
    Pod,
)
from mooring.objects.storage import PersistentVolumeClaim


def apply_changes(
    objects: Iterable[KubeObject], pod: str, changes: Sequence[Change]
) -> list[KubeObject]:
    """The objects of the cluster after the changes for the pod `namespace/name`."""
    known = list(objects)
    nodes = {obj.name: obj for obj in known if isinstance(obj, Node)}
    pods: dict[str, list[Pod]] = {}
    for obj in known:
        if isinstance(obj, Pod):
            pods.setdefault(home(obj), []).append(obj)
    for change in changes:
        gone = set(change.removed_pods)
        known = [
            _applied(change, obj, pod)
            for obj in known
            if not (isinstance(obj, Pod) and obj.key in gone)
        ]
        slices = [obj for obj in known if isinstance(obj, ResourceSlice)]
        known += with_devices(change, change.added(nodes, pods), slices)
    return known


def with_devices(
    change: Change, added: list[KubeObject], slices: Iterable[ResourceSlice]
) -> list[KubeObject]:
    """The objects that a change adds, with the devices of the nodes among them."""
    if not isinstance(change, AddNodes):
        return added
    known = list(slices)
    nodes = [obj.name for obj in added if isinstance(obj, Node)]
    return [*added, *(each for name in nodes for each in slices_like(known, change.like, name))]


def _applied(change: Change, obj: KubeObject, pod: str) -> KubeObject:
    if isinstance(obj, Pod) and obj.key == pod:
        return change.on_pod(obj)
    if isinstance(obj, Node) and obj.name == change.node_name:
        return change.on_node(obj)
    if isinstance(obj, ResourceClaim):
        return change.on_resource_claim(obj)
    if isinstance(obj, ResourceClaimTemplate):
        return change.on_claim_template(obj)
    return change.on_claim(obj) if isinstance(obj, PersistentVolumeClaim) else obj
