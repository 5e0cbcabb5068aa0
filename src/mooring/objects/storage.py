"""Storage objects: volumes of pods, claims, volumes, classes and the objects of CSI drivers."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from mooring.objects.cached_property import cached_property
from mooring.objects.meta import KubeObject, ObjectMeta, Part, ResourceList
from mooring.objects.quantity import Quantity
from mooring.objects.selectors import LabelSelector, NodeSelector, NodeTerm, compile_node_terms


class ClaimVolumeSource(Part, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class ImageVolumeSource(Part, frozen=True):
    reference: str = ""


class GCEPersistentDisk(Part, frozen=True):
    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStore(Part, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")
    read_only: bool = False


class AzureDisk(Part, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(name="diskURI", default="")
    kind: str | None = None


class AzureFile(Part, frozen=True):
    share_name: str = ""


class Cinder(Part, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")


class Portworx(Part, frozen=True):
    volume_id: str = msgspec.field(name="volumeID", default="")


class VsphereVolume(Part, frozen=True):
    volume_path: str = ""


class RBD(Part, frozen=True):
    monitors: list[str] = []
    image: str = ""
    pool: str = ""
    read_only: bool = False


class ISCSI(Part, frozen=True):
    iqn: str = ""
    read_only: bool = False


class CSIVolumeSource(Part, frozen=True):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool = False


class VolumeSources(Part, frozen=True):
    """The sources that a pod's volume and a PersistentVolume have in common."""

    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: Cinder | None = None
    portworx_volume: Portworx | None = None
    vsphere_volume: VsphereVolume | None = None
    rbd: RBD | None = None
    iscsi: ISCSI | None = None
    csi: CSIVolumeSource | None = None


class VolumeResources(Part, frozen=True):
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Part, frozen=True):
    access_modes: list[str] = []
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class ClaimTemplate(Part, frozen=True):
    """A template for a claim: of an ephemeral volume, or of each pod of a StatefulSet."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Part, frozen=True):
    volume_claim_template: ClaimTemplate | None = None


class Volume(VolumeSources, frozen=True):
    """A volume of a pod."""

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None

    @property
    def matters(self) -> bool:
        """Whether a plugin reads the volume's source; a ConfigMap is available everywhere."""
        return _sources_of(self) != _NO_SOURCES


_SOURCES = tuple(name for name in Volume.__struct_fields__ if name != "name")
_sources_of = attrgetter(*_SOURCES)
_NO_SOURCES = (None,) * len(_SOURCES)


class PersistentVolumeClaimStatus(Part, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(KubeObject, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ObjectReference(Part, frozen=True):
    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class VolumeNodeAffinity(Part, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(VolumeSources, frozen=True):
    capacity: ResourceList = {}
    access_modes: list[str] = []
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Part, frozen=True):
    phase: str = ""


class PersistentVolume(KubeObject, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @cached_property
    def node_terms(self) -> tuple[NodeTerm, ...] | None:
        """The terms, one of which a node must match; None if every node can use the volume."""
        affinity = self.spec.node_affinity
        if affinity is None or affinity.required is None:
            return None
        return compile_node_terms(affinity.required.node_selector_terms)


class TopologySelectorExpression(Part, frozen=True):
    key: str = ""
    values: list[str] = []


class TopologySelectorTerm(Part, frozen=True):
    match_label_expressions: list[TopologySelectorExpression] = []


class StorageClass(KubeObject, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] = []


class CSINodeDriverAllocatable(Part, frozen=True):
    count: int | None = None


class CSINodeDriver(Part, frozen=True):
    name: str = ""
    node_id: str = msgspec.field(name="nodeID", default="")
    topology_keys: list[str] = []
    allocatable: CSINodeDriverAllocatable | None = None


class CSINodeSpec(Part, frozen=True):
    drivers: list[CSINodeDriver] = []


class CSINode(KubeObject, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Part, frozen=True):
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True):
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Part, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Part, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(KubeObject, frozen=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
