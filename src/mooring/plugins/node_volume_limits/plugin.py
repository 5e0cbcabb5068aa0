"""NodeVolumeLimits: a node gets no more volumes of a driver than the driver can attach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mooring.objects.claims import (
    claim_name,
    claim_not_found,
    class_of_claim,
    ownership_problem,
    uses_claim,
)
from mooring.objects.csi_translation import (
    IN_TREE_PLUGINS,
    TranslationError,
    plugin_of,
    translate_inline,
    translate_volume,
)
from mooring.objects.pod import Pod
from mooring.objects.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Volume,
    VolumeAttachment,
)
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
    Index,
    MooringError,
    NodeInfo,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    by_mask,
    on_add_or_update,
    on_change,
    on_delete,
    on_update,
    unresolvable,
    unschedulable,
)
from mooring.plugin.storage import sign_volumes
from mooring.plugins.node_volume_limits.attached_volumes import (
    Attachable,
    AttachedVolumes,
    NodeVolumes,
)

#: Preemption may help.
TOO_MANY = unschedulable("node(s) exceed max volume count")
DRIVER_MISSING = "{} CSI driver is not installed on the node"
NAMELESS_CLAIM = "PersistentVolumeClaim had no name"

_PRE_FILTER = "PreFilterNodeVolumeLimits"


class _NoClaim(MooringError):
    """A pod's claim does not exist."""


class _BadVolume(MooringError):
    """A pod's volume cannot be read: the attempt fails."""


@dataclass(slots=True)
class _NewVolumes:
    """What a pod would attach: computed once for nodes with a CSINode and once for the others."""

    by_migration: dict[bool, tuple[Attachable, ...]] = field(default_factory=dict)


class NodeVolumeLimits:
    name = "NodeVolumeLimits"
    #: See `framework.interface.DependsPlugin`.
    signature_fields = ("spec.volumes",)

    def __init__(self, args: object, handle: Handle) -> None:
        self._listers = listers = handle.cluster.listers
        self._scaling = handle.gates.enabled("VolumeLimitScaling")
        self._attachments = Index(listers, VolumeAttachment, lambda it: it.spec.node_name)
        self._attached_volumes = AttachedVolumes(listers, handle.cluster.infos, self._volumes_of)

    def pre_filter(self, state: CycleState, pod: Pod, snapshot: Snapshot) -> Status:
        if not any(_may_count(pod, volume) for volume in pod.spec.volumes):
            return SKIP
        state.write(_PRE_FILTER, _NewVolumes())
        return SUCCESS

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        csi_node = self._listers.get(CSINode, node.name)
        try:
            wanted = self._wanted(state, pod, migrated=csi_node is not None)
        except _NoClaim as error:
            return unresolvable(str(error))
        if not wanted:
            return SUCCESS
        if self._scaling and (driver := self._missing_driver(wanted, csi_node)):
            return unschedulable(DRIVER_MISSING.format(driver))
        if not _limits(csi_node):
            return SUCCESS
        return _judge(wanted, self._volumes_of(node))

    def filter_rows(
        self, state: CycleState, pod: Pod, columns: Columns, rows: Rows
    ) -> RowVerdicts | None:
        """The same rule for many rows, from kept counts. Only nodes with a CSINode have limits."""
        if self._scaling:
            return None
        try:
            wanted = self._wanted(state, pod, migrated=True)
            return by_mask(~self._attached_volumes.too_many(wanted, columns, rows), TOO_MANY)
        except MooringError:
            # `filter` shows on which node the error is.
            return None

    def events_to_register(self) -> Sequence[EventWithHint]:
        return (
            on_change(CSINode, Action.ADD),
            on_update(CSINode, Action.UPDATE, _after_csi_node_update),
            on_delete(Pod, _after_pod_is_gone),
            on_add_or_update(PersistentVolumeClaim, Action.ADD, _after_claim_is_added),
            on_delete(VolumeAttachment, _after_detachment),
        )

    def depends_on(self, pod: Pod) -> Depends:
        return Depends.CLUSTER if pod.spec.volumes else Depends.NODE

    def sign(self, pod: Pod) -> Mapping[str, object] | Status:
        return sign_volumes(pod)

    def _wanted(self, state: CycleState, pod: Pod, *, migrated: bool) -> tuple[Attachable, ...]:
        """The volumes to attach; in-tree volumes count only on nodes with a CSINode."""
        known = state.read(_PRE_FILTER, _NewVolumes) or _NewVolumes()
        wanted = known.by_migration.get(migrated)
        if wanted is None:
            found = dict.fromkeys(self._attachables(pod, migrated=migrated, strict=True))
            wanted = known.by_migration[migrated] = tuple(found)
        return wanted

    def _volumes_of(self, node: NodeInfo) -> NodeVolumes:
        """Raises _BadVolume."""
        csi_node = self._listers.get(CSINode, node.name)
        pods = [pod for pod in node.pods.values() if pod.spec.volumes]
        claims = {
            f"{pod.namespace}/{name}"
            for pod in pods
            for volume in pod.spec.volumes
            if (name := claim_name(pod, volume)) is not None
        }
        known = (self._listers.get(PersistentVolumeClaim, key) for key in claims)
        bound_to = {claim.spec.volume_name for claim in known if claim is not None}
        attached_to = {_volume_name(it) or "" for it in self._attachments.under(node.name)}
        return NodeVolumes(
            used=frozenset(
                attachable
                for pod in pods
                for attachable in self._attachables(
                    pod, migrated=csi_node is not None, strict=False
                )
            ),
            attached=frozenset(self._attached(node.name)),
            limits=_limits(csi_node),
            claims=frozenset(claims),
            volumes=frozenset(bound_to | attached_to),
        )

    def _attached(self, node_name: str) -> Iterator[Attachable]:
        """The CSI volumes of VolumeAttachments, whether or not any pod uses them."""
        for attachment in self._attachments.under(node_name):
            attacher, volume_name = attachment.spec.attacher, _volume_name(attachment)
            if attacher and volume_name is not None:
                volume = self._listers.get(PersistentVolume, volume_name)
                if volume is not None and volume.spec.csi is not None:
                    yield Attachable(attacher, volume.spec.csi.volume_handle)

    def _attachables(self, pod: Pod, *, migrated: bool, strict: bool) -> Iterator[Attachable]:
        """What a pod attaches to a node. Without `strict`, missing claims do not count.

        Raises _NoClaim, or _BadVolume if a volume cannot be read.
        """
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name is None:
                attachable = _inline(volume) if migrated else None
            elif not name:
                raise _BadVolume(NAMELESS_CLAIM)
            else:
                claim = self._listers.get(PersistentVolumeClaim, f"{pod.namespace}/{name}")
                if claim is None:
                    if strict:
                        where = f"looking up PVC {pod.namespace}/{name}"
                        raise _NoClaim(f"{where}: {claim_not_found(name)}")
                    continue
                if volume.ephemeral is not None and (problem := ownership_problem(pod, claim)):
                    raise _BadVolume(problem)
                attachable = self._behind(claim, migrated=migrated)
            if attachable is not None:
                yield attachable

    def _behind(self, claim: PersistentVolumeClaim, *, migrated: bool) -> Attachable | None:
        """The volume of a claim, or the volume that the claim's class will provision."""
        name = claim.spec.volume_name
        volume = self._listers.get(PersistentVolume, name) if name else None
        if volume is None:
            return self._to_come(claim, migrated=migrated)
        source = volume.spec.csi
        if source is None:
            plugin = plugin_of(volume.spec)
            if plugin is None or not (plugin.migrated and migrated):
                return None
            try:
                source = translate_volume(volume).spec.csi
            except TranslationError:
                return None
        if source is None or not source.driver or not source.volume_handle:
            return None
        return Attachable(source.driver, source.volume_handle)

    def _to_come(self, claim: PersistentVolumeClaim, *, migrated: bool) -> Attachable | None:
        storage_class = self._listers.get(StorageClass, class_of_claim(claim))
        if storage_class is None:
            return None
        driver = storage_class.provisioner
        plugin = IN_TREE_PLUGINS.get(driver)
        if plugin is not None:
            if not (plugin.migrated and migrated):
                return None
            driver = plugin.driver
        return Attachable(driver, "", claim.key) if driver else None

    def _missing_driver(self, wanted: Iterable[Attachable], csi_node: CSINode | None) -> str | None:
        """A driver that is not installed on the node and has preventPodSchedulingIfMissing."""
        installed = {driver.name for driver in csi_node.spec.drivers} if csi_node else set()
        for name in (attachable.driver for attachable in wanted):
            driver = self._listers.get(CSIDriver, name)
            if driver is not None and driver.spec.prevent_pod_scheduling_if_missing:
                if name not in installed:
                    return name
        return None


def _judge(wanted: Iterable[Attachable], there: NodeVolumes) -> Status:
    # An attached volume counts even if no pod on the node uses it. As in the reference, it counts
    # again if the incoming pod uses it.
    counts = Counter(attachable.driver for attachable in there.used | there.attached)
    new_counts = Counter(each.driver for each in wanted if each not in there.used)
    for driver, count in new_counts.items():
        if driver in there.limits and counts[driver] + count > there.limits[driver]:
            return TOO_MANY
    return SUCCESS


def _may_count(pod: Pod, volume: Volume) -> bool:
    return claim_name(pod, volume) is not None or plugin_of(volume) is not None


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    """Driver → the limit of the node, without drivers that report no limit."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _volume_name(attachment: VolumeAttachment) -> str | None:
    return attachment.spec.source.persistent_volume_name


def _inline(volume: Volume) -> Attachable | None:
    """An in-tree volume in the pod's spec. Inline CSI volumes are never counted."""
    plugin = plugin_of(volume)
    if plugin is None or not plugin.migrated:
        return None
    return Attachable(plugin.driver, _translated(volume))


def _translated(volume: Volume) -> str:
    try:
        return translate_inline(volume).volume_handle
    except TranslationError as error:
        text = f"converting volume({volume.name}) from inline to csi: {error}"
        raise _BadVolume(text) from error


def _after_csi_node_update(pod: Pod, old: CSINode, new: CSINode) -> Hint:
    """Queue the pod if a limit rose.

    As in the reference, a missing limit counts as 0, so removing a limit does not queue the pod.
    """
    before = _limits(old)
    rose = any(limit > before.get(driver, 0) for driver, limit in _limits(new).items())
    return Hint.QUEUE if rose else Hint.SKIP


def _after_pod_is_gone(pod: Pod, old: Pod, new: Pod | None) -> Hint:
    if not old.node_name and not old.nominated_node_name:
        return Hint.SKIP
    counted = any(_may_count(old, volume) for volume in old.spec.volumes)
    return Hint.QUEUE if counted else Hint.SKIP


def _after_claim_is_added(
    pod: Pod, old: PersistentVolumeClaim | None, new: PersistentVolumeClaim
) -> Hint:
    return Hint.QUEUE if uses_claim(pod, new) else Hint.SKIP


def _after_detachment(pod: Pod, old: VolumeAttachment, new: VolumeAttachment | None) -> Hint:
    """Queue the pod if it may use a volume of the driver.

    Claims are not looked up, so any claim may. As in the reference, ephemeral volumes are left out.
    If the hint cannot tell, it raises, and the queue tries the pod.
    """
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return Hint.QUEUE
        plugin = plugin_of(volume)
        if plugin is not None:
            _translated(volume)
            if plugin.driver == old.spec.attacher:
                return Hint.QUEUE
    return Hint.SKIP
