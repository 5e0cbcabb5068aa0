"""Provisioners: from where the volumes that they create can be used.

The table has the names that people write in StorageClasses, those of CSI drivers and those of the
in-tree plugins that the drivers replace. A class can say otherwise with an annotation.
"""

from __future__ import annotations

from enum import StrEnum

from mooring.objects.csi_translation import IN_TREE_PLUGINS
from mooring.objects.storage import PersistentVolumeClaim, StorageClass
from mooring.objects.well_known import BETA_ZONE, HOSTNAME, REGION, ZONE

#: On a StorageClass: `zone`, `node` or `none`.
VOLUME_TOPOLOGY = "mooring.dev/volume-topology"

_SHARED_MODES = frozenset(("ReadWriteMany", "ReadOnlyMany"))


class VolumeTopology(StrEnum):
    """From where a volume can be used."""

    #: From the zone of the node that it was created for.
    ZONE = "zone"
    #: From that node only.
    NODE = "node"
    #: From every node.
    NONE = "none"


#: Network disks: provisioner → the labels that its driver gives to nodes, the first that a node has.
_DISKS: dict[str, tuple[str, ...]] = {
    # Amazon, Google, Microsoft
    "ebs.csi.aws.com": ("topology.ebs.csi.aws.com/zone",),
    "ebs.csi.eks.amazonaws.com": ("topology.ebs.csi.eks.amazonaws.com/zone",),
    "pd.csi.storage.gke.io": ("topology.gke.io/zone",),
    "disk.csi.azure.com": ("topology.disk.csi.azure.com/zone",),
    # OpenStack, vSphere, IBM, Oracle
    "cinder.csi.openstack.org": ("topology.cinder.csi.openstack.org/zone",),
    "csi.vsphere.vmware.com": ("topology.csi.vmware.com/k8s-zone",),
    "vpc.block.csi.ibm.io": (),
    "powervs.csi.ibm.com": (),
    "ibm.io/ibmc-block": (),
    "blockvolume.csi.oraclecloud.com": (),
    # Alibaba, Tencent, Huawei, Yandex
    "diskplugin.csi.alibabacloud.com": ("topology.diskplugin.csi.alibabacloud.com/zone",),
    "com.tencent.cloud.csi.cbs": ("topology.com.tencent.cloud.csi.cbs/zone",),
    "disk.csi.everest.io": (),
    "disk-csi-driver.mks.ycloud.io": (),
    # Scaleway, Exoscale
    "csi.scaleway.com": ("topology.csi.scaleway.com/zone",),
    "csi.exoscale.com": ("topology.csi.exoscale.com/zone",),
    # Their disks can be used in a whole region.
    "csi.hetzner.cloud": ("csi.hetzner.cloud/location", REGION),
    "dobs.csi.digitalocean.com": ("region", REGION),
    "linodebs.csi.linode.com": ("topology.linode.com/region", REGION),
    "block.csi.vultr.com": ("region", REGION),
}

#: File systems and block storage that every node reaches over the network.
_SHARED = frozenset(
    (
        "efs.csi.aws.com",
        "fsx.csi.aws.com",
        "fsx.openzfs.csi.aws.com",
        "s3.csi.aws.com",
        "filestore.csi.storage.gke.io",
        "gcsfuse.csi.storage.gke.io",
        "file.csi.azure.com",
        "blob.csi.azure.com",
        "nfs.manila.csi.openstack.org",
        "cephfs.manila.csi.openstack.org",
        "nasplugin.csi.alibabacloud.com",
        "ossplugin.csi.alibabacloud.com",
        "nfs.csi.k8s.io",
        "smb.csi.k8s.io",
        "fuseim.pri/ifs",
        "ceph.com/rbd",
        "ceph.com/cephfs",
        "rbd.csi.ceph.com",
        "cephfs.csi.ceph.com",
        "driver.longhorn.io",
        "rancher.io/longhorn",
        "pxd.portworx.com",
        "csi.trident.netapp.io",
        "netapp.io/trident",
        "linstor.csi.linbit.com",
        "io.openebs.csi-mayastor",
        "cstor.csi.openebs.io",
        "csi.juicefs.com",
        "csi.weka.io",
        "csi.san.synology.com",
        "csi.nutanix.com",
        "csi-nutanix",
        "kubernetes.io/rbd",
        "kubernetes.io/cephfs",
        "kubernetes.io/glusterfs",
        "kubernetes.io/quobyte",
        "kubernetes.io/scaleio",
        "kubernetes.io/storageos",
        # For clusters of one node: their volumes name no node.
        "k8s.io/minikube-hostpath",
        "docker.io/hostpath",
    )
)

#: Disks of the node itself: provisioner → the labels that its driver gives to nodes.
_LOCAL: dict[str, tuple[str, ...]] = {
    "rancher.io/local-path": (),
    "openebs.io/local": (),
    "local.csi.openebs.io": ("openebs.io/nodename",),
    "zfs.csi.openebs.io": ("openebs.io/nodeid",),
    "topolvm.io": ("topology.topolvm.io/node",),
    "topolvm.cybozu.com": ("topology.topolvm.cybozu.com/node",),
    "hostpath.csi.k8s.io": ("topology.hostpath.csi/node",),
    "microk8s.io/hostpath": (),
    "kubevirt.io/hostpath-provisioner": (),
    "kubevirt.io.hostpath-provisioner": ("topology.hostpath.csi/node",),
    "directpv-min-io": ("directpv.min.io/node",),
    "direct-csi-min-io": ("direct.csi.min.io/identity",),
    "lvm.csi.metal-stack.io": ("topology.lvm.csi/node",),
    "lvm.hwameistor.io": ("topology.lvm.hwameistor.io/node",),
    "carina.storage.io": ("topology.carina.storage.io/node",),
    "localplugin.csi.alibabacloud.com": ("topology.localplugin.csi.alibabacloud.com/hostname",),
}

#: Parts of names, for provisioners that are installed under names of their own, such as
#: `rook-ceph.rbd.csi.ceph.com` and `cluster.local/nfs-subdir-external-provisioner`.
_PARTS = (
    ("csi.ceph.com", VolumeTopology.NONE),
    ("cephfs", VolumeTopology.NONE),
    ("nfs", VolumeTopology.NONE),
    ("local-path", VolumeTopology.NODE),
    ("hostpath", VolumeTopology.NODE),
)


def topology_of(storage_class: StorageClass, claim: PersistentVolumeClaim) -> VolumeTopology:
    """From where a volume of the class can be used, if it is created for the claim.

    A provisioner that is not in the table counts as one of network disks.
    """
    if is_annotated(storage_class):
        return VolumeTopology(storage_class.metadata.annotations[VOLUME_TOPOLOGY])
    if _SHARED_MODES.intersection(claim.spec.access_modes):
        return VolumeTopology.NONE
    name = driver_name(storage_class)
    if name in _DISKS:
        return VolumeTopology.ZONE
    if name in _LOCAL:
        return VolumeTopology.NODE
    if name in _SHARED:
        return VolumeTopology.NONE
    return next((kind for part, kind in _PARTS if part in name), VolumeTopology.ZONE)


def topology_labels(storage_class: StorageClass, topology: VolumeTopology) -> tuple[str, ...]:
    """The labels of nodes that can hold the zone or the node; the first that a node has counts."""
    table = {VolumeTopology.ZONE: _DISKS, VolumeTopology.NODE: _LOCAL}.get(topology, {})
    own = () if is_annotated(storage_class) else table.get(driver_name(storage_class), ())
    match topology:
        case VolumeTopology.ZONE:
            return own if REGION in own else (*own, ZONE, BETA_ZONE)
        case VolumeTopology.NODE:
            return (*own, HOSTNAME)
    return ()


def is_annotated(storage_class: StorageClass) -> bool:
    """Whether the class itself says it. What it says in other words does not count."""
    return storage_class.metadata.annotations.get(VOLUME_TOPOLOGY) in list(VolumeTopology)


def driver_name(storage_class: StorageClass) -> str:
    """The name of the CSI driver, also if the class has the name of the plugin that it replaces."""
    name = storage_class.provisioner
    plugin = IN_TREE_PLUGINS.get(name)
    return name if plugin is None else plugin.driver
