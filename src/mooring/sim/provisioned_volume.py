"""Where a provisioned volume can be used: the node affinity that a provisioner gives it.

A volume for a claim that waited for its pod is created where the pod goes. Other volumes are
created before anybody knows the node: the provisioner chooses among the zones that the class
allows, so that the claims of a StatefulSet are spread over them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mooring.objects.claims import allows_topology
from mooring.objects.node import Node
from mooring.objects.provisioners import (
    VolumeTopology,
    driver_name,
    is_annotated,
    topology_labels,
    topology_of,
)
from mooring.objects.selectors import NodeSelector, NodeSelectorTerm, SelectorRequirement
from mooring.objects.storage import (
    CSINode,
    PersistentVolumeClaim,
    StorageClass,
    VolumeNodeAffinity,
)

#: The labels that describe a place, with their values.
_Place = tuple[tuple[str, str], ...]

_FNV_START, _FNV_PRIME = 2166136261, 16777619


def volume_affinity(
    storage_class: StorageClass,
    claim: PersistentVolumeClaim,
    *,
    selected: Node | None,
    nodes: Iterable[Node],
    csi_nodes: Mapping[str, CSINode],
) -> VolumeNodeAffinity | None:
    """The affinity of the claim's volume; None if every node can use it.

    `selected` is the node of the claim's pod; None if the claim does not wait for a pod.
    """
    topology = topology_of(storage_class, claim)
    if topology == VolumeTopology.NONE:
        return _within_allowed(storage_class)
    if selected is not None:
        place = _place(selected, storage_class, topology, csi_nodes)
        return _within(place) if place else _within_allowed(storage_class)
    allowed = [node for node in nodes if allows_topology(storage_class, node.labels)]
    if topology == VolumeTopology.NODE:
        # A provisioner of local disks runs where pods run.
        allowed = [node for node in allowed if _takes_pods(node)] or allowed
    places = sorted({_place(node, storage_class, topology, csi_nodes) for node in allowed} - {()})
    if not places:
        return _within_allowed(storage_class)
    return _within(places[spread_number(claim.name) % len(places)])


def spread_number(claim_name: str) -> int:
    """The number by which the reference's provisioners choose a zone.

    `data-web-0`, `data-web-1` and so on get consecutive numbers; so do `logs-web-0` and so on.
    """
    hashed, offset = claim_name, 0
    start, dash, ordinal = claim_name.rpartition("-")
    if dash and ordinal.isdecimal():
        hashed, offset = start.rpartition("-")[2], int(ordinal)
    number = _FNV_START
    for byte in hashed.encode():
        number = (number * _FNV_PRIME % 2**32) ^ byte
    return number + offset


def _takes_pods(node: Node) -> bool:
    return not node.spec.unschedulable and not any(taint.refuses for taint in node.taints)


def _place(
    node: Node,
    storage_class: StorageClass,
    topology: VolumeTopology,
    csi_nodes: Mapping[str, CSINode],
) -> _Place:
    """The place of the node, as the driver on it says, or else by its labels."""
    if not is_annotated(storage_class):
        keys = _driver_keys(csi_nodes.get(node.name), driver_name(storage_class))
        if keys and all(key in node.labels for key in keys):
            return tuple((key, node.labels[key]) for key in keys)
    for key in topology_labels(storage_class, topology):
        if key in node.labels:
            return ((key, node.labels[key]),)
    return ()


def _driver_keys(csi_node: CSINode | None, driver: str) -> list[str]:
    drivers = () if csi_node is None else csi_node.spec.drivers
    return next((sorted(each.topology_keys) for each in drivers if each.name == driver), [])


def _within(place: _Place) -> VolumeNodeAffinity:
    return _affinity([[(key, [value]) for key, value in place]])


def _within_allowed(storage_class: StorageClass) -> VolumeNodeAffinity | None:
    """Everywhere that the class allows."""
    terms = [
        [(line.key, line.values) for line in term.match_label_expressions]
        for term in storage_class.allowed_topologies
    ]
    return _affinity(terms) if terms else None


def _affinity(terms: Iterable[Iterable[tuple[str, list[str]]]]) -> VolumeNodeAffinity:
    return VolumeNodeAffinity(
        required=NodeSelector(
            node_selector_terms=[
                NodeSelectorTerm(
                    match_expressions=[
                        SelectorRequirement(key=key, operator="In", values=values)
                        for key, values in term
                    ]
                )
                for term in terms
            ]
        )
    )
