"""Which events may make a pod schedulable that VolumeBinding refused."""

from __future__ import annotations

from mooring.objects.claims import uses_claim
from mooring.objects.csi_translation import MIGRATED_PLUGINS
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from mooring.plugin import Action, Hint, on_add_or_update, on_change, on_update
from mooring.plugins.volume_binding.provisioning import volume_limit


def after_class_change(pod: Pod, old: StorageClass | None, new: StorageClass) -> Hint:
    """Queue the pod if the class is new, or its allowed topologies changed."""
    if old is not None and old.allowed_topologies == new.allowed_topologies:
        return Hint.SKIP
    return Hint.QUEUE


def after_claim_change(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> Hint:
    return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP


def after_csi_node_change(pod: Pod, old: CSINode | None, new: CSINode) -> Hint:
    """Queue the pod if the migrated plugins of the node changed."""
    if old is not None and _migrated_plugins(old) == _migrated_plugins(new):
        return Hint.SKIP
    return Hint.QUEUE


def after_driver_update(pod: Pod, old: CSIDriver, new: CSIDriver) -> Hint:
    """Queue the pod if the driver no longer tracks its storage capacity.

    The reference looks for the driver among the inline volumes of the pod, which are never refused
    for lack of storage. Pods with claims of the driver are not queued.
    """
    if not old.spec.storage_capacity or new.spec.storage_capacity:
        return Hint.SKIP
    uses_driver = any(
        volume.csi is not None and volume.csi.driver == new.name for volume in pod.spec.volumes
    )
    return Hint.QUEUE if uses_driver else Hint.SKIP


def after_capacity_change(
    pod: Pod, old: CSIStorageCapacity | None, new: CSIStorageCapacity
) -> Hint:
    """Queue the pod if there is room for larger volumes, in any class."""
    if old is None:
        return Hint.QUEUE
    before, after = volume_limit(old), volume_limit(new)
    grew = after is not None and (before is None or after.value > before.value)
    return Hint.QUEUE if grew else Hint.SKIP


def _migrated_plugins(csi_node: CSINode) -> str:
    return csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "")


_ADD_OR_UPDATE = Action.ADD | Action.UPDATE

EVENTS = (
    on_add_or_update(StorageClass, _ADD_OR_UPDATE, after_class_change),
    on_add_or_update(PersistentVolumeClaim, _ADD_OR_UPDATE, after_claim_change),
    on_change(PersistentVolume, _ADD_OR_UPDATE),
    on_change(Node, Action.ADD | Action.UPDATE_NODE_LABEL),
    on_add_or_update(CSINode, _ADD_OR_UPDATE, after_csi_node_change),
    on_update(CSIDriver, Action.UPDATE, after_driver_update),
    on_add_or_update(CSIStorageCapacity, _ADD_OR_UPDATE, after_capacity_change),
)
