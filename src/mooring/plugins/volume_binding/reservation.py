"""Assume the decisions on a pod's volumes, so that other pods see them before they are written."""

from __future__ import annotations

from msgspec.structs import replace

from mooring.objects.claims import BOUND_BY_CONTROLLER, SELECTED_NODE, bound_to, reference_to
from mooring.objects.meta import ObjectMeta
from mooring.objects.storage import PersistentVolume, PersistentVolumeClaim
from mooring.plugin.storage import AssumeError, VolumeCache
from mooring.plugins.volume_binding.search import PodVolumes


def assume(volumes: PodVolumes, node_name: str, cache: VolumeCache) -> PodVolumes:
    """Assume the volumes and claims, and return them as they will be written.

    Raises AssumeError, with nothing assumed, if one of them has changed or is gone.
    """
    assumed = PodVolumes(assumed=True)
    try:
        for claim, volume in volumes.static:
            bound = _bound(volume, claim)
            if bound != volume:
                cache.volumes.assume(bound)
            assumed.static.append((claim, bound))
        for claim in volumes.provisions:
            selected = _selected(claim, node_name)
            cache.claims.assume(selected)
            assumed.provisions.append(selected)
    except AssumeError:
        restore(assumed, cache)
        raise
    return assumed


def restore(volumes: PodVolumes, cache: VolumeCache) -> None:
    """Drop the assumptions; what was written stays written."""
    for _, volume in volumes.static:
        cache.volumes.restore(volume)
    for claim in volumes.provisions:
        cache.claims.restore(claim)


def _bound(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume reserved for the claim, in the form that the PV controller uses."""
    metadata, spec = volume.metadata, volume.spec
    ref = spec.claim_ref
    if ref is None or (ref.namespace, ref.name, ref.uid) != (
        claim.namespace,
        claim.name,
        claim.uid,
    ):
        spec = replace(spec, claim_ref=reference_to(claim))
    if not bound_to(volume, claim) and BOUND_BY_CONTROLLER not in metadata.annotations:
        metadata = _annotated(metadata, BOUND_BY_CONTROLLER, "yes")
    return replace(volume, metadata=metadata, spec=spec)


def _selected(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    return replace(claim, metadata=_annotated(claim.metadata, SELECTED_NODE, node_name))


def _annotated(metadata: ObjectMeta, key: str, value: str) -> ObjectMeta:
    return replace(metadata, annotations={**metadata.annotations, key: value})
