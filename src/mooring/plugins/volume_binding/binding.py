"""Write the decisions on a pod's volumes to the API server, and wait until all claims are bound.

The scheduler only says which volume is for which claim, or for which node to provision one. The PV
controller and the provisioners do the rest:

    volume.claimRef, claim's selected-node ──▶ claim.volumeName, claim's bind-completed
"""

from __future__ import annotations

from mooring.objects.claims import SELECTED_NODE, fully_bound, is_accessible_from
from mooring.objects.csi_translation import TranslationError, seen_from
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from mooring.plugin import Handle, MooringError, sleep
from mooring.plugins.volume_binding import reservation
from mooring.plugins.volume_binding.search import Binding, PodVolumes

#: How often to check; the timeout is a multiple of this.
_POLL_S = 1.0


class BindingFailed(MooringError):
    """The pod's volumes cannot be bound as decided: another attempt must decide again."""


async def bind_pod_volumes(
    pod: Pod, volumes: PodVolumes, handle: Handle, *, timeout_s: int
) -> None:
    """Write the assumed objects, and return when all claims are bound.

    Raises ApiError if a write fails, and BindingFailed. Writes are not undone: the next attempt
    starts from them.
    """
    if not volumes.assumed:
        raise BindingFailed(f'failed to get cached bindings for pod "{pod.key}"')
    written = await _write(volumes, handle)
    for _ in range(timeout_s):
        await sleep(handle.clock, _POLL_S)
        try:
            if _all_bound(pod, volumes.static, written, handle):
                return
        except MooringError as error:
            raise BindingFailed(f"binding volumes: {error}") from error
    raise BindingFailed("binding volumes: context deadline exceeded")


async def _write(volumes: PodVolumes, handle: Handle) -> list[PersistentVolumeClaim]:
    """Write the volumes, changed or not, then the claims. Return the claims as stored.

    A stored volume replaces the assumed one, so that the assumption stays. As in the reference, the
    assumption of a claim ends with the reservation.
    """
    unsent = PodVolumes(list(volumes.static), list(volumes.provisions))
    written: list[PersistentVolumeClaim] = []
    try:
        for position, (claim, volume) in enumerate(volumes.static):
            volumes.static[position] = (claim, await handle.writer.update_object(volume))
            unsent.static.pop(0)
        for claim in volumes.provisions:
            written.append(await handle.writer.update_object(claim))
            unsent.provisions.pop(0)
    finally:
        reservation.restore(unsent, handle.cluster.volumes)
    return written


def _all_bound(
    pod: Pod, static: list[Binding], provisions: list[PersistentVolumeClaim], handle: Handle
) -> bool:
    """Whether all claims are bound, by what was observed. Raises MooringError if they cannot be."""
    info = handle.cluster.infos.get(pod.node_name)
    if info is None or info.node is None:
        name = pod.node_name
        raise BindingFailed(f'failed to get node "{name}": node "{name}" not found')
    if handle.observed_pod(pod.key) is None:
        raise BindingFailed(f'pod does not exist any more: pod "{pod.name}" not found')
    check = _Check(info.node, handle)
    return all(check.bound(*binding) for binding in static) and all(
        check.provisioned(claim) for claim in provisions
    )


class _Check:
    """One check of claims and volumes, for a pod on one node."""

    def __init__(self, node: Node, handle: Handle) -> None:
        self._node = node
        self._csi_node = handle.cluster.listers.get(CSINode, node.name)
        self._volumes = handle.cluster.volumes.volumes
        self._claims = handle.cluster.volumes.claims

    def bound(self, written_claim: PersistentVolumeClaim, written: PersistentVolume) -> bool:
        volume = self._volumes.observed(written.key)
        if volume is None:
            raise BindingFailed(f"failed to check binding: {self._volumes.not_found(written.key)}")
        claim = self._claims.observed(written_claim.key)
        if claim is None:
            missing = self._claims.not_found(written_claim.key)
            raise BindingFailed(f"failed to check binding: {missing}")
        if _is_older(volume, written):
            return False
        try:
            self._check_affinity(volume)
        except TranslationError as error:
            raise BindingFailed(f"failed to translate pv to csi: {error}") from error
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingFailed(f'ClaimRef got reset for pv "{volume.name}"')
        return fully_bound(claim)

    def provisioned(self, written: PersistentVolumeClaim) -> bool:
        claim = self._claims.observed(written.key)
        if claim is None:
            missing = self._claims.not_found(written.key)
            raise BindingFailed(f"failed to check provisioning pvc: {missing}")
        if _is_older(claim, written):
            return False
        if not claim.metadata.annotations:
            raise BindingFailed(f'selectedNode annotation reset for PVC "{claim.name}"')
        if claim.metadata.annotations.get(SELECTED_NODE) != self._node.name:
            # A provisioner asks for another node by removing the annotation.
            raise BindingFailed(f'provisioning failed for PVC "{claim.name}"')
        if claim.spec.volume_name:
            volume = self._volumes.observed(claim.spec.volume_name)
            if volume is None:
                return False
            self._check_affinity(volume)
        return fully_bound(claim)

    def _check_affinity(self, volume: PersistentVolume) -> None:
        """The node's labels, or the volume's terms, may have changed since Filter."""
        if not is_accessible_from(seen_from(volume, self._csi_node), self._node.labels):
            raise BindingFailed(
                f'pv "{volume.name}" node affinity doesn\'t match node "{self._node.name}":'
                " no matching NodeSelectorTerms"
            )


def _is_older(observed: KubeObject, written: KubeObject) -> bool:
    """Whether the watch has not shown the written version yet. Versions increase, as in etcd."""
    return int(observed.metadata.resource_version or 0) < int(
        written.metadata.resource_version or 0
    )
