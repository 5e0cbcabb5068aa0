"""The claims of a pod on a node: bound volumes must be usable there, other claims need a volume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from mooring.objects.claims import (
    SELECTED_NODE,
    class_of_claim,
    fully_bound,
    is_accessible_from,
    no_binding_mode,
    requested_storage,
    waits_for_consumer,
)
from mooring.objects.csi_translation import migrated_on, plugin_of, seen_from
from mooring.objects.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from mooring.plugin import Listers, MooringError, NodeInfo
from mooring.plugin.storage import VolumeCache
from mooring.plugins.volume_binding.matching import Candidates, by_quantity
from mooring.plugins.volume_binding.provisioning import (
    BIND_CONFLICT,
    NOT_ENOUGH_SPACE,
    Provisioning,
)

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

#: The order of reasons in messages.
_REASONS = (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_GONE)

Binding = tuple[PersistentVolumeClaim, PersistentVolume]


@dataclass(slots=True)
class PodVolumes:
    """What to do for a pod's unbound claims on one node."""

    #: Claims, each with the volume to bind.
    static: list[Binding] = field(default_factory=list)
    #: Claims for which to provision a volume.
    provisions: list[PersistentVolumeClaim] = field(default_factory=list)
    #: Claim → the pool that its volume would come from; for scoring only.
    pools: dict[str, CSIStorageCapacity] = field(default_factory=dict)
    #: Whether Reserve has assumed the objects, so that they are ready to write.
    assumed: bool = False


#: For pods whose claims are all bound. It is shared: do not change it.
NOTHING_TO_DO = PodVolumes()


class BoundVolume:
    """The volume that a claim is bound to, which may not exist."""

    def __init__(self, volume: PersistentVolume | None) -> None:
        self.volume = volume
        self.plugin = None if volume is None else plugin_of(volume.spec)
        self._in_csi: PersistentVolume | None = None

    @property
    def is_everywhere(self) -> bool:
        """Whether every node can use the volume."""
        return self.volume is not None and self.plugin is None and self.volume.node_terms is None

    def refusal(self, node_labels: Mapping[str, str], csi_node: CSINode | None) -> str | None:
        """Raises TranslationError."""
        if self.volume is None:
            return VOLUME_GONE
        migrated = self.plugin is not None and migrated_on(self.plugin, csi_node)
        volume = self._translated(csi_node) if migrated else self.volume
        return None if is_accessible_from(volume, node_labels) else NODE_CONFLICT

    def _translated(self, csi_node: CSINode | None) -> PersistentVolume:
        """The CSI form of the volume, translated once."""
        if self._in_csi is None:
            assert self.volume is not None
            self._in_csi = seen_from(self.volume, csi_node)
        return self._in_csi


class DelayedClaim:
    """A claim that waits for its first consumer: its volume depends on the node."""

    def __init__(
        self,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass,
        cache: VolumeCache,
        listers: Listers,
    ) -> None:
        self.claim = claim
        #: The node for which a volume is being provisioned.
        self.selected_node = claim.metadata.annotations.get(SELECTED_NODE)
        self._class = storage_class
        self._cache = cache
        self._listers = listers

    @cached_property
    def candidates(self) -> Candidates:
        """Raises MooringError if the claim's selector is malformed."""
        return Candidates(self.claim, self._cache.volumes_of_class(class_of_claim(self.claim)))

    @cached_property
    def provisioning(self) -> Provisioning:
        return Provisioning(self.claim, self._class, self._listers)


@dataclass(frozen=True, slots=True)
class PodClaims:
    """The claims of a pod, in the order of its volumes."""

    bound: tuple[BoundVolume, ...] = ()
    delayed: tuple[DelayedClaim, ...] = ()


def classify(
    claims: Sequence[PersistentVolumeClaim], cache: VolumeCache, listers: Listers
) -> PodClaims | None:
    """None if an unbound claim has immediate binding: the PV controller must bind it first.

    The same holds for a claim that names a volume but is not bound to it, and for a claim whose
    class does not exist. Raises MooringError if a class has no binding mode.
    """
    bound: list[BoundVolume] = []
    delayed: list[DelayedClaim] = []
    immediate = False
    for claim in claims:
        if fully_bound(claim):
            bound.append(BoundVolume(cache.volumes.get(claim.spec.volume_name)))
            continue
        storage_class = _delaying_class(claim, listers)
        if storage_class is None or claim.spec.volume_name:
            immediate = True
        else:
            delayed.append(DelayedClaim(claim, storage_class, cache, listers))
    return None if immediate else PodClaims(tuple(bound), tuple(delayed))


def _delaying_class(claim: PersistentVolumeClaim, listers: Listers) -> StorageClass | None:
    name = class_of_claim(claim)
    storage_class = listers.get(StorageClass, name) if name else None
    if storage_class is None:
        return None
    if storage_class.volume_binding_mode is None:
        raise MooringError(no_binding_mode(name))
    return storage_class if waits_for_consumer(storage_class) else None


def find_pod_volumes(
    claims: PodClaims, node: NodeInfo, listers: Listers
) -> PodVolumes | tuple[str, ...]:
    """What to do for the claims on this node, or why the node is refused.

    Raises MooringError if an object is malformed.
    """
    refusal = _check_bound(claims.bound, node, listers)
    if not claims.delayed:
        return (refusal,) if refusal else NOTHING_TO_DO
    volumes = PodVolumes()
    refusals = (refusal, _find_unbound(claims.delayed, node, volumes))
    return tuple(reason for reason in _REASONS if reason in refusals) or volumes


def _check_bound(bound: Sequence[BoundVolume], node: NodeInfo, listers: Listers) -> str | None:
    """Why the first unusable volume refuses the node; None if all volumes are usable."""
    labels = node.labels
    for volume in bound:
        csi_node = listers.get(CSINode, node.name) if volume.plugin is not None else None
        if refusal := volume.refusal(labels, csi_node):
            return refusal
    return None


def _find_unbound(
    delayed: Sequence[DelayedClaim], node: NodeInfo, volumes: PodVolumes
) -> str | None:
    """Add volumes for the claims to `volumes`, or say why one claim can have none.

    If no existing volume fits a claim, one may be provisioned.
    """
    to_provision = [claim for claim in delayed if claim.selected_node is not None]
    if any(claim.selected_node != node.name for claim in to_provision):
        return BIND_CONFLICT
    to_match = [claim for claim in delayed if claim.selected_node is None]
    # The smallest claim first, so that larger volumes are left for the others.
    to_match.sort(key=lambda each: by_quantity(requested_storage(each.claim)))
    chosen: set[str] = set()
    for delayed_claim in to_match:
        volume = delayed_claim.candidates.best(node.labels, chosen)
        if volume is None:
            to_provision.append(delayed_claim)
        else:
            chosen.add(volume.name)
            volumes.static.append((delayed_claim.claim, volume))
    for delayed_claim in to_provision:
        if refusal := delayed_claim.provisioning.refusal(node.labels):
            return refusal
        volumes.provisions.append(delayed_claim.claim)
        pool = delayed_claim.provisioning.pool_for(node.labels)
        if pool is not None:
            volumes.pools[delayed_claim.claim.key] = pool
    return None
