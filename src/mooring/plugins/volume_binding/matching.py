"""Which volume a claim is bound to on a node: one reserved for it, or the smallest that fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cmp_to_key
from typing import Any

from mooring.objects.claims import (
    bound_to,
    is_accessible_from,
    offers_modes,
    requested_storage,
    same_attributes_class,
    same_volume_mode,
    storage_capacity,
)
from mooring.objects.quantity import Quantity
from mooring.objects.selectors import compile_selector
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.plugin import MooringError
from mooring.plugin.pods import Terms, TopologyIndex

#: A sort key for exact quantities.
by_quantity: Callable[[Quantity], Any] = cmp_to_key(lambda a, b: a.exceeds(b) - b.exceeds(a))


class Candidates:
    """The volumes that one claim can be bound to, on any node."""

    def __init__(self, claim: PersistentVolumeClaim, volumes: Sequence[PersistentVolume]) -> None:
        """`volumes` are all volumes of the claim's class, in order of their names.

        Raises MooringError if the claim's selector is malformed.
        """
        usable = [volume for volume in volumes if _is_usable(volume, claim)]
        selects = _selector(claim)
        free = [volume for volume in usable if _is_free(volume, claim) and selects(volume)]
        # The sort is stable: volumes of one size stay in order of their names.
        free.sort(key=lambda volume: by_quantity(storage_capacity(volume)))
        #: Volumes that are reserved for this claim (claimRef).
        self._own = [volume for volume in usable if bound_to(volume, claim)]
        #: The other volumes, the smallest first.
        self._free = TopologyIndex((volume, _terms(volume)) for volume in free)

    def best(
        self, node_labels: Mapping[str, str], chosen: AbstractSet[str]
    ) -> PersistentVolume | None:
        """The best volume for a node with these labels, except those that are `chosen` already.

        If a volume is reserved for the claim, no other is considered: None if the node cannot use
        that one.
        """
        for volume in self._own:
            if volume.name not in chosen:
                return volume if is_accessible_from(volume, node_labels) else None
        found = self._free.from_node(node_labels)
        return next((volume for volume in found if volume.name not in chosen), None)


def _is_usable(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        (volume.spec.claim_ref is None or bound_to(volume, claim))
        and not requested_storage(claim).exceeds(storage_capacity(volume))
        and same_volume_mode(volume, claim)
        and same_attributes_class(volume, claim)
        and not volume.terminating
    )


def _is_free(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == "Available"
        and offers_modes(volume, claim)
    )


def _selector(claim: PersistentVolumeClaim) -> Callable[[PersistentVolume], bool]:
    if claim.spec.selector is None:
        return lambda volume: True
    try:
        selector = compile_selector(claim.spec.selector)
    except ValueError as error:
        doing = "error creating internal label selector for claim"
        raise MooringError(f"{doing}: {claim.key}: {error}") from error
    return lambda volume: selector.matches(volume.labels)


def _terms(volume: PersistentVolume) -> Terms:
    terms = volume.node_terms
    return None if terms is None else [term.requirements for term in terms]
