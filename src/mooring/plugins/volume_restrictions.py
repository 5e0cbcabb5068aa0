"""VolumeRestrictions: no disk twice on a node, no ReadWriteOncePod claim for two pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mooring.objects.claims import (
    READ_WRITE_ONCE_POD,
    claim_not_found,
    named_claims,
    names_claim,
)
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolumeClaim, Volume
from mooring.plugin import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Depends,
    EventWithHint,
    Handle,
    Hint,
    NodeInfo,
    PluginError,
    Snapshot,
    Status,
    on_add_or_update,
    on_change,
    on_delete,
    unresolvable,
    unschedulable,
)
from mooring.plugin.storage import sign_volumes

#: Preempting the pod that has the disk helps.
DISK_CONFLICT = unschedulable("node(s) had no available disk")
#: For every node, wherever the other pod is. Preempting that pod helps.
IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already"
    " in-use by another pod"
)

_PRE_FILTER = "PreFilterVolumeRestrictions"


@dataclass(slots=True)
class _ExclusiveClaims:
    """The ReadWriteOncePod claims of a pod, and how often they are in use."""

    names: frozenset[str]
    conflicts: int

    def count(self, pod: Pod, sign: int) -> None:
        """As in the reference, names are compared without namespaces."""
        self.conflicts += sign * sum(name in self.names for name in named_claims(pod))

    def clone(self) -> _ExclusiveClaims:
        return _ExclusiveClaims(self.names, self.conflicts)


class VolumeRestrictions:
    name = "VolumeRestrictions"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("spec.volumes",)

    def __init__(self, args: object, handle: Handle) -> None:
        self._listers = handle.cluster.listers

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        if not pod.spec.volumes:
            return SKIP
        exclusive = set()
        for name in named_claims(pod):
            claim = self._listers.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
            if claim is None:
                return unresolvable(claim_not_found(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.add(name)
        conflicts = sum(_in_use(f"{pod.namespace}/{name}", snapshot) for name in exclusive)
        if not conflicts and not any(map(_is_disk, pod.spec.volumes)):
            return SKIP
        state.write(_PRE_FILTER, _ExclusiveClaims(frozenset(exclusive), conflicts))
        return SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> None:
        _exclusive(state).count(added, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> None:
        _exclusive(state).count(removed, -1)

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if _disks_conflict(pod, node.pods.values()):
            return DISK_CONFLICT
        return IN_USE if _exclusive(state).conflicts > 0 else SUCCESS

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            on_delete(Pod, _after_pod_is_gone),
            on_change(Node, Action.ADD),
            on_add_or_update(PersistentVolumeClaim, Action.ADD, _after_claim_is_added),
        )

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER if pod.spec.volumes else Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        return sign_volumes(pod)


def _in_use(claim_key: str, snapshot: Snapshot) -> bool:
    return any(claim_key in node.pvc_refs for node in snapshot)


def _exclusive(state: CycleState) -> _ExclusiveClaims:
    exclusive = state.read(_PRE_FILTER, _ExclusiveClaims)
    if exclusive is None:
        raise PluginError(f'cannot read "{_PRE_FILTER}" from cycleState')
    return exclusive


def _is_disk(volume: Volume) -> bool:
    return (
        volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    )


def _disks_conflict(pod: Pod, others: Iterable[Pod]) -> bool:
    disks = [volume for volume in pod.spec.volumes if _is_disk(volume)]
    return bool(disks) and any(
        _conflict(disk, mounted)
        for other in others
        for mounted in other.spec.volumes
        for disk in disks
    )


def _conflict(a: Volume, b: Volume) -> bool:
    """Whether both use the same disk. Two readers do not conflict, except for EBS volumes."""
    if a.gce_persistent_disk is not None and b.gce_persistent_disk is not None:
        one, two = a.gce_persistent_disk, b.gce_persistent_disk
        if one.pd_name == two.pd_name and not (one.read_only and two.read_only):
            return True
    if a.aws_elastic_block_store is not None and b.aws_elastic_block_store is not None:
        if a.aws_elastic_block_store.volume_id == b.aws_elastic_block_store.volume_id:
            return True
    if a.iscsi is not None and b.iscsi is not None:
        if a.iscsi.iqn == b.iscsi.iqn and not (a.iscsi.read_only and b.iscsi.read_only):
            return True
    if a.rbd is not None and b.rbd is not None:
        same = (a.rbd.pool, a.rbd.image) == (b.rbd.pool, b.rbd.image)
        if same and not (a.rbd.read_only and b.rbd.read_only):
            return not set(a.rbd.monitors).isdisjoint(b.rbd.monitors)
    return False


def _after_pod_is_gone(pod: Pod, old: Pod, new: Pod | None) -> Hint:
    """Queue the pod if the other pod had one of its disks or claims.

    As in the reference, disks of pods in other namespaces do not count here, but do in Filter.
    """
    if old.namespace != pod.namespace:
        return Hint.SKIP
    shares_claim = not set(named_claims(pod)).isdisjoint(named_claims(old))
    return Hint.QUEUE if shares_claim or _disks_conflict(pod, (old,)) else Hint.SKIP


def _after_claim_is_added(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> Hint:
    return Hint.QUEUE if names_claim(pod, new) else Hint.SKIP
