"""Storage objects for tests, and a cluster of them with all that a volume plugin asks of a scheduler.

Everything is in namespace `ns`, unless a case says otherwise. The class `wait` binds claims when their
pod comes, and nobody makes volumes for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from mooring.cluster.cache import Cluster
from mooring.config.gates import DEFAULT_GATES, FeatureGates
from mooring.errors import ApiError
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SUCCESS
from mooring.objects.claims import BIND_COMPLETED, SELECTED_NODE
from mooring.objects.csi_translation import MIGRATED_PLUGINS
from mooring.objects.meta import KubeObject, ObjectMeta, OwnerReference
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.selectors import LabelSelector, NodeSelector, NodeSelectorTerm
from mooring.objects.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeDriverAllocatable,
    CSINodeSpec,
    CSIStorageCapacity,
    CSIVolumeSource,
    EphemeralVolumeSource,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TopologySelectorExpression,
    TopologySelectorTerm,
    Volume,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeResources,
)
from tests.clock import FakeClock
from tests.makers import HOSTNAME, Amount, make_node_term, make_pod, quantity, resources

NS = "ns"
DELETED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def make_claim(
    name: str = "c",
    *,
    storage: Amount | None = "1Gi",
    storage_class: str | None = "wait",
    volume: str = "",
    bound: bool = False,
    selected_node: str | None = None,
    modes: Iterable[str] = ("ReadWriteOnce",),
    phase: str = "Pending",
    deleting: bool = False,
    annotations: Mapping[str, str] | None = None,
    owner: Pod | None = None,
    namespace: str = NS,
    version: str = "1",
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim; `bound` says that the controller has seen the binding to `volume` through."""
    notes = dict(annotations or {})
    if bound:
        notes[BIND_COMPLETED] = "yes"
    if selected_node is not None:
        notes[SELECTED_NODE] = selected_node
    owners = []
    if owner is not None:
        owners = [OwnerReference(kind="Pod", name=owner.name, uid=owner.uid, controller=True)]
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-{name}",
            annotations=notes,
            owner_references=owners,
            deletion_timestamp=DELETED_AT if deleting else None,
            resource_version=version,
        ),
        spec=PersistentVolumeClaimSpec(
            access_modes=list(modes),
            resources=VolumeResources(requests=resources(storage=storage)),
            volume_name=volume,
            storage_class_name=storage_class,
            **spec,
        ),
        status=PersistentVolumeClaimStatus(phase=phase),
    )


def make_volume(
    name: str = "v",
    *,
    storage: Amount | None = "1Gi",
    storage_class: str = "wait",
    node: str | None = None,
    terms: Iterable[NodeSelectorTerm] | None = None,
    claim: str | None = None,
    claim_uid: str = "",
    modes: Iterable[str] = ("ReadWriteOnce",),
    phase: str = "Available",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    deleting: bool = False,
    version: str = "1",
    driver: str | None = None,
    handle: str = "",
    **spec: Any,
) -> PersistentVolume:
    """A volume: on one `node`, within `terms`, or everywhere. `claim` is one that it is set aside for."""
    if node is not None:
        terms = [make_node_term((HOSTNAME, "In", [node]))]
    if terms is not None:
        required = NodeSelector(node_selector_terms=list(terms))
        spec["node_affinity"] = VolumeNodeAffinity(required=required)
    if claim is not None:
        spec["claim_ref"] = ObjectReference(namespace=NS, name=claim, uid=claim_uid)
    if driver is not None:
        spec["csi"] = CSIVolumeSource(driver=driver, volume_handle=handle or name)
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-{name}",
            labels=dict(labels or {}),
            annotations=dict(annotations or {}),
            deletion_timestamp=DELETED_AT if deleting else None,
            resource_version=version,
        ),
        spec=PersistentVolumeSpec(
            capacity=resources(storage=storage),
            access_modes=list(modes),
            storage_class_name=storage_class,
            **spec,
        ),
        status=PersistentVolumeStatus(phase=phase),
    )


def make_class(
    name: str = "wait",
    *,
    provisioner: str = "kubernetes.io/no-provisioner",
    mode: str | None = "WaitForFirstConsumer",
    topologies: Iterable[Mapping[str, Iterable[str]]] = (),
) -> StorageClass:
    """Each of `topologies` is a term: the values that each label may have."""
    return StorageClass(
        metadata=ObjectMeta(name=name),
        provisioner=provisioner,
        volume_binding_mode=mode,
        allowed_topologies=[
            TopologySelectorTerm(
                match_label_expressions=[
                    TopologySelectorExpression(key=key, values=list(values))
                    for key, values in term.items()
                ]
            )
            for term in topologies
        ],
    )


def make_csi_node(
    name: str, limits: Mapping[str, int | None] | None = None, *, migrated: str | None = None
) -> CSINode:
    """A limit of None is that of a driver which does not say."""
    return CSINode(
        metadata=ObjectMeta(
            name=name, annotations={} if migrated is None else {MIGRATED_PLUGINS: migrated}
        ),
        spec=CSINodeSpec(
            drivers=[
                CSINodeDriver(
                    name=driver,
                    allocatable=None if count is None else CSINodeDriverAllocatable(count=count),
                )
                for driver, count in (limits or {}).items()
            ]
        ),
    )


def make_driver(name: str = "drv", **spec: bool | None) -> CSIDriver:
    return CSIDriver(metadata=ObjectMeta(name=name), spec=CSIDriverSpec(**spec))


def make_pool(
    name: str = "pool",
    *,
    storage_class: str = "made",
    topology: LabelSelector | None = None,
    capacity: Amount | None = None,
    largest: Amount | None = None,
) -> CSIStorageCapacity:
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="kube-system"),
        storage_class_name=storage_class,
        node_topology=topology,
        capacity=None if capacity is None else quantity(capacity),
        maximum_volume_size=None if largest is None else quantity(largest),
    )


def make_attachment(
    name: str, node: str, volume: str | None, *, attacher: str = "drv"
) -> VolumeAttachment:
    return VolumeAttachment(
        metadata=ObjectMeta(name=name),
        spec=VolumeAttachmentSpec(
            attacher=attacher,
            node_name=node,
            source=VolumeAttachmentSource(persistent_volume_name=volume),
        ),
    )


def make_ephemeral(name: str) -> Volume:
    return Volume(name=name, ephemeral=EphemeralVolumeSource())


def pod_with(*claims: str, name: str = "p", volumes: Iterable[Volume] = (), **fields: Any) -> Pod:
    """A pod of namespace `ns` that names these claims, after `volumes`."""
    fields.setdefault("namespace", NS)
    return make_pod(name, claims=claims, volumes=volumes, **fields)


class FakeWriter:
    """Takes writes down and gives each object the next version; nobody hears of them by itself."""

    def __init__(self) -> None:
        self.volumes: list[PersistentVolume] = []
        self.claims: list[PersistentVolumeClaim] = []
        #: Writes of objects with these names fail.
        self.broken: set[str] = set()
        self._version = 100

    async def update_object(self, obj: Any) -> Any:
        (self.volumes if isinstance(obj, PersistentVolume) else self.claims).append(obj)
        if obj.name in self.broken:
            raise ApiError(f"cannot write {obj.name}")
        self._version += 1
        return with_version(obj, str(self._version))


class World:
    """A cluster, and the handle of a plugin that runs in it."""

    def __init__(self, *objects: KubeObject, gates: FeatureGates = DEFAULT_GATES) -> None:
        self.profile_name = "default-scheduler"
        self.cluster = Cluster()
        self.clock = FakeClock()
        self.writer = FakeWriter()
        self.gates = gates
        self.pods: dict[str, Pod] = {}
        self.show(*objects)

    def observed_pod(self, key: str) -> Pod | None:
        return self.pods.get(key)

    def show(self, *objects: KubeObject) -> None:
        """What a watch does."""
        for obj in objects:
            if isinstance(obj, Node):
                self.cluster.update_node(obj)
            elif isinstance(obj, Pod):
                self.pods[obj.key] = obj
                if obj.node_name:
                    self.cluster.add_pod(obj)
            else:
                self.cluster.listers.put(obj)

    def node(self, name: str) -> Any:
        return self.cluster.snapshot().get(name)

    def pre_filter(self, plugin: Any, pod: Pod) -> tuple[CycleState, Any]:
        state = CycleState()
        return state, plugin.pre_filter(state, pod, self.cluster.snapshot())

    def filter(self, plugin: Any, pod: Pod, node: str = "n1") -> Any:
        """The verdict on one node, of a pod that PreFilter lets pass."""
        state, status = self.pre_filter(plugin, pod)
        assert status == SUCCESS
        return plugin.filter(state, pod, self.node(node))


def with_version(obj: Any, version: str) -> Any:
    return replace(obj, metadata=replace(obj.metadata, resource_version=version))


def with_annotations(obj: Any, annotations: Mapping[str, str]) -> Any:
    return replace(obj, metadata=replace(obj.metadata, annotations=dict(annotations)))
