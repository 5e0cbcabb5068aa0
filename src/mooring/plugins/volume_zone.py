"""VolumeZone: a pod stays in the zones and regions that its volumes are labelled with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.objects.claims import (
    claim_not_found,
    class_not_found,
    class_of_claim,
    named_claims,
    names_claim,
    no_binding_mode,
    volume_not_found,
    waits_for_consumer,
)
from mooring.objects.csi_translation import (
    ZONES_DELIMITER,
)
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.selectors import NodeTerm, Requirement
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from mooring.objects.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Action,
    Columns,
    CycleState,
    Depends,
    EventWithHint,
    Handle,
    Hint,
    NodeInfo,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    by_mask,
    on_add_or_update,
    on_change,
    unresolvable,
)
from mooring.plugin.nodes import match_rows_any
from mooring.plugin.storage import sign_volumes

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
CONFLICT = unresolvable("node(s) had no available volume zone")
NAMELESS_CLAIM = unresolvable("PersistentVolumeClaim had no name")
NEITHER_VOLUME_NOR_CLASS = unresolvable(
    "PersistentVolumeClaim had no pv name and storageClass name"
)
NAMELESS_VOLUME = unresolvable("PersistentVolume had no name")

#: The topology labels of a volume, and the label that a node may have instead.
TOPOLOGY_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION, ZONE: ZONE, REGION: REGION}

_PRE_FILTER = "PreFilterVolumeZone"

#: A node with none of the labels is assumed to be in a cluster with a single zone.
_UNLABELLED = NodeTerm(tuple(Requirement(key, "DoesNotExist") for key in TOPOLOGY_LABELS), ())

_NODE_EVENTS = Action.ADD | Action.UPDATE_NODE_LABEL
_CLAIM_EVENTS = Action.ADD | Action.UPDATE
_VOLUME_EVENTS = Action.ADD | Action.UPDATE


@dataclass(frozen=True, slots=True)
class Topology:
    """One label of a volume: the zones or regions that it is in."""

    key: str
    values: frozenset[str]

    @property
    def terms(self) -> tuple[NodeTerm, ...]:
        """The terms, one of which a node must match.

        A node may have the current label instead of the beta label, but not the reverse.
        """
        same = Requirement(self.key, "In", self.values)
        current = TOPOLOGY_LABELS[self.key]
        if current == self.key:
            return (_UNLABELLED, NodeTerm((same,), ()))
        instead = (
            Requirement(self.key, "DoesNotExist"),
            Requirement(current, "In", self.values),
        )
        return (_UNLABELLED, NodeTerm((same,), ()), NodeTerm(instead, ()))


#: What each volume requires of a node; all must hold.
Demands = tuple[tuple[NodeTerm, ...], ...]


class VolumeZone:
    name = "VolumeZone"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("spec.volumes",)

    def __init__(self, args: object, handle: Handle) -> None:
        self._listers = handle.cluster.listers

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        demands = self._demands(pod)
        if isinstance(demands, Status):
            return demands
        if not demands:
            return SKIP
        state.write(_PRE_FILTER, demands)
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        demands = self._demands_in(state, pod)
        if isinstance(demands, Status):
            return demands
        met = all(any(term.matches(node.labels, "") for term in terms) for terms in demands)
        return SUCCESS if met else CONFLICT

    def filter_rows(self, state: CycleState, pod: Pod, columns: Columns, rows: Rows) -> RowVerdicts:
        passes = np.ones_like(columns.alive[rows])
        demands = self._demands_in(state, pod)
        if isinstance(demands, Status):
            return by_mask(~passes, demands)
        for terms in demands:
            passes &= match_rows_any(terms, columns, rows)
        return by_mask(passes, CONFLICT)

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            on_add_or_update(StorageClass, Action.ADD, _after_class_is_added),
            on_change(Node, _NODE_EVENTS),
            on_add_or_update(PersistentVolumeClaim, _CLAIM_EVENTS, _after_claim_change),
            on_add_or_update(PersistentVolume, _VOLUME_EVENTS, _after_volume_change),
        )

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER if pod.spec.volumes else Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        return sign_volumes(pod)

    def _demands_in(self, state: CycleState, pod: Pod) -> Demands | Status:
        """The state of PreFilter; computed here if PreFilter is disabled."""
        demands: Demands | None = state.read(_PRE_FILTER, tuple)
        return self._demands(pod) if demands is None else demands

    def _demands(self, pod: Pod) -> Demands | Status:
        """The demands of the volumes of all claims that the pod names, or why they are unknown."""
        demands: list[tuple[NodeTerm, ...]] = []
        for name in named_claims(pod):
            volume = self._volume_behind(pod.namespace, name)
            if isinstance(volume, Status):
                return volume
            if volume is not None:
                demands += (topology.terms for topology in topologies_of(volume))
        return tuple(demands)

    def _volume_behind(self, namespace: str, name: str) -> PersistentVolume | Status | None:
        """The volume of a claim; None if the claim waits for its first consumer."""
        if not name:
            return NAMELESS_CLAIM
        claim = self._listers.get(PersistentVolumeClaim, f"{namespace}/{name}")
        if claim is None:
            return unresolvable(claim_not_found(name))
        if not claim.spec.volume_name:
            return self._missing_volume(claim)
        volume = self._listers.get(PersistentVolume, claim.spec.volume_name)
        return volume or unresolvable(volume_not_found(claim.spec.volume_name))

    def _missing_volume(self, claim: PersistentVolumeClaim) -> Status | None:
        class_name = class_of_claim(claim)
        if not class_name:
            return NEITHER_VOLUME_NOR_CLASS
        storage_class = self._listers.get(StorageClass, class_name)
        if storage_class is None:
            return unresolvable(class_not_found(class_name))
        if storage_class.volume_binding_mode is None:
            return unresolvable(no_binding_mode(class_name))
        return None if waits_for_consumer(storage_class) else NAMELESS_VOLUME


def topologies_of(volume: PersistentVolume) -> list[Topology]:
    """The topology labels of the volume, without those that have an empty value."""
    found = []
    for key in TOPOLOGY_LABELS:
        label = volume.labels.get(key)
        if label is not None:
            values = frozenset(value.strip() for value in label.split(ZONES_DELIMITER))
            if "" not in values:
                found.append(Topology(key, values))
    return found


def _after_class_is_added(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
    """Queue the pod if the class has WaitForFirstConsumer."""
    return Hint.QUEUE if waits_for_consumer(new) else Hint.SKIP


def _after_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> Hint:
    return Hint.QUEUE if names_claim(pod, new) else Hint.SKIP


def _after_volume_change(pod: Pod, old: PersistentVolume | None, new: PersistentVolume) -> Hint:
    if old is not None and topologies_of(old) == topologies_of(new):
        return Hint.SKIP
    return Hint.QUEUE
