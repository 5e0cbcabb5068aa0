"""The volume controller and the provisioner of a simulated cluster.

It completes claims that a volume is reserved for, binds claims with immediate binding, and provisions volumes
for claims with a selected node. Provisioning can take time, and can fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from mooring.errors import ApiError
from mooring.objects.claims import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    bound_to,
    class_of_claim,
    class_of_volume,
    fully_bound,
    misfit,
    misfit_by_name,
    provisions,
    reference_to,
    requested_storage,
    selects_volume,
    storage_capacity,
    waits_for_consumer,
)
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.node import Node
from mooring.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    VolumeNodeAffinity,
)
from mooring.sim.api import SimApi
from mooring.sim.provisioned_volume import volume_affinity

#: On a StorageClass: the seconds that provisioning takes, and whether it fails.
PROVISION_SECONDS = "mooring.dev/provision-seconds"
PROVISION_FAILS = "mooring.dev/provision-fails"


@dataclass(slots=True)
class VolumeController:
    """Watches volumes and claims; register it with `SimApi.watch`."""

    api: SimApi

    def added(self, obj: KubeObject) -> None:
        if not isinstance(obj, PersistentVolume | PersistentVolumeClaim):
            return
        # Read the current object: the one from the watch can be outdated.
        current = self.api.get(type(obj), obj.key)
        match current:
            case PersistentVolume():
                self._volume_changed(current)
            case PersistentVolumeClaim():
                self._claim_changed(current)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        self.added(new)

    def deleted(self, obj: KubeObject) -> None:
        """The volume of a deleted claim stays as it is."""

    def _volume_changed(self, volume: PersistentVolume) -> None:
        """Bind a volume that a claim names, or that names a claim. Find a claim for a free volume."""
        if volume.status.phase == "Bound":
            return
        for claim in self.api.all(PersistentVolumeClaim):
            if claim.spec.volume_name == volume.name:
                self._take_named(claim)
            elif bound_to(volume, claim) and not claim.spec.volume_name:
                if not misfit(volume, claim):
                    self._bind(claim, volume)
                return
        if _is_free(self.api.get(PersistentVolume, volume.name)):
            for claim in self.api.all(PersistentVolumeClaim):
                if self._binds_at_once(claim) and _fits(volume, claim):
                    if self._take_smallest(claim) == volume.name:
                        return

    def _claim_changed(self, claim: PersistentVolumeClaim) -> None:
        if claim.spec.volume_name:
            self._take_named(claim)
            return
        if claim.terminating:
            return
        if self._binds_at_once(claim) and self._take_smallest(claim):
            return
        storage_class = self.api.get(StorageClass, class_of_claim(claim))
        if storage_class is None or not provisions(storage_class):
            return
        node_name = claim.metadata.annotations.get(SELECTED_NODE, "")
        if waits_for_consumer(storage_class) and not node_name:
            return
        annotations = storage_class.metadata.annotations
        delay_s = float(annotations.get(PROVISION_SECONDS, "0"))
        fails = PROVISION_FAILS in annotations
        self.api.later(delay_s, lambda: self._provision(claim, node_name, fails=fails))

    def _binds_at_once(self, claim: PersistentVolumeClaim) -> bool:
        """Whether the claim has immediate binding and still needs a volume."""
        if claim.spec.volume_name or claim.terminating:
            return False
        storage_class = self.api.get(StorageClass, class_of_claim(claim))
        return storage_class is None or not waits_for_consumer(storage_class)

    def _take_named(self, claim: PersistentVolumeClaim) -> None:
        """Bind the claim to the volume that it names, unless the two do not fit."""
        if fully_bound(claim) or claim.terminating:
            return
        volume = self.api.get(PersistentVolume, claim.spec.volume_name)
        if volume is not None and not misfit_by_name(volume, claim):
            self._bind(claim, volume)

    def _take_smallest(self, claim: PersistentVolumeClaim) -> str:
        """Bind the claim to a volume that is reserved for it, or else to the smallest that fits.

        Return the volume's name, or "" if there is none.
        """
        volumes = [v for v in self.api.all(PersistentVolume) if _fits(v, claim)]
        if not volumes:
            return ""
        volume = min(volumes, key=lambda each: (_is_free(each), _size(each)))
        self._bind(claim, volume)
        return volume.name

    def _provision(self, claim: PersistentVolumeClaim, node_name: str, *, fails: bool) -> None:
        current = self.api.get(PersistentVolumeClaim, claim.key)
        if current is None or current.uid != claim.uid or current.spec.volume_name:
            return
        if current.metadata.annotations.get(SELECTED_NODE, "") != node_name:
            return
        if fails:
            if node_name:
                self._quietly(lambda: self.api.update(_annotated(current, {}, drop=SELECTED_NODE)))
            return
        storage_class = self.api.get(StorageClass, class_of_claim(current))
        if storage_class is None:
            return
        affinity = volume_affinity(
            storage_class,
            current,
            selected=self.api.get(Node, node_name),
            nodes=self.api.all(Node),
            csi_nodes={each.name: each for each in self.api.all(CSINode)},
        )
        self._bind(current, self.api.create(_volume_for(current, affinity)))

    def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        yes = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
        bound = _annotated(claim, yes)
        bound = msgspec.structs.replace(
            bound,
            spec=msgspec.structs.replace(bound.spec, volume_name=volume.name),
            status=msgspec.structs.replace(bound.status, phase="Bound"),
        )
        taken = msgspec.structs.replace(
            volume,
            spec=msgspec.structs.replace(volume.spec, claim_ref=reference_to(claim)),
            status=PersistentVolumeStatus(phase="Bound"),
        )
        self._quietly(lambda: self.api.update(taken))
        self._quietly(lambda: self.api.update(bound))

    def _quietly(self, write: Callable[[], object]) -> None:
        """A deleted object needs no volume, so ignore API errors."""
        with suppress(ApiError):
            write()


def _annotated(
    claim: PersistentVolumeClaim, more: Mapping[str, str], *, drop: str = ""
) -> PersistentVolumeClaim:
    annotations = {**claim.metadata.annotations, **more}
    annotations.pop(drop, None)
    metadata = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=metadata)


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if bound_to(volume, claim):
        return volume.status.phase != "Bound" and not misfit(volume, claim)
    return (
        _is_free(volume)
        and class_of_volume(volume) == class_of_claim(claim)
        and not misfit(volume, claim)
        and selects_volume(claim, volume)
    )


def _is_free(volume: PersistentVolume | None) -> bool:
    return (
        volume is not None and volume.spec.claim_ref is None and volume.status.phase == "Available"
    )


def _size(volume: PersistentVolume) -> tuple[int, str]:
    return storage_capacity(volume).value, volume.name


def _volume_for(
    claim: PersistentVolumeClaim, affinity: VolumeNodeAffinity | None
) -> PersistentVolume:
    """A volume as a provisioner creates it."""
    return PersistentVolume(
        api_version="v1",
        kind="PersistentVolume",
        metadata=ObjectMeta(name=f"pvc-{claim.uid}", uid=f"pv-of-{claim.uid}"),
        spec=PersistentVolumeSpec(
            capacity={"storage": requested_storage(claim)},
            access_modes=claim.spec.access_modes,
            storage_class_name=class_of_claim(claim),
            volume_mode=claim.spec.volume_mode,
            node_affinity=affinity,
            claim_ref=reference_to(claim),
        ),
        status=PersistentVolumeStatus(phase="Bound"),
    )
