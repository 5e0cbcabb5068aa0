"""From where the volumes of a provisioner can be used."""

from __future__ import annotations

import pytest

from mooring.objects.manifests import decode_object
from mooring.objects.provisioners import (
    VOLUME_TOPOLOGY,
    VolumeTopology,
    topology_labels,
    topology_of,
)
from mooring.objects.validation import problems_of
from mooring.objects.well_known import BETA_ZONE, HOSTNAME, REGION, ZONE
from tests.volume_world import make_claim, make_class, with_annotations

CLAIM = make_claim()


@pytest.mark.parametrize(
    "provisioner",
    [
        "ebs.csi.aws.com",
        "kubernetes.io/aws-ebs",
        "pd.csi.storage.gke.io",
        "kubernetes.io/gce-pd",
        "disk.csi.azure.com",
        "kubernetes.io/azure-disk",
        "cinder.csi.openstack.org",
        "kubernetes.io/cinder",
        "csi.vsphere.vmware.com",
        "kubernetes.io/vsphere-volume",
        "disk.example.com",
    ],
)
def test_network_disks_belong_to_a_zone_and_so_do_those_of_unknown_provisioners(provisioner):
    storage_class = make_class(provisioner=provisioner)

    assert topology_of(storage_class, CLAIM) == VolumeTopology.ZONE
    assert topology_labels(storage_class, VolumeTopology.ZONE)[-2:] == (ZONE, BETA_ZONE)


@pytest.mark.parametrize(
    "provisioner",
    [
        "efs.csi.aws.com",
        "filestore.csi.storage.gke.io",
        "file.csi.azure.com",
        "kubernetes.io/azure-file",
        "nfs.csi.k8s.io",
        "cluster.local/nfs-subdir-external-provisioner",
        "rook-ceph.cephfs.csi.ceph.com",
        "rook-ceph.rbd.csi.ceph.com",
        "kubernetes.io/glusterfs",
        "driver.longhorn.io",
    ],
)
def test_shared_storage_can_be_used_everywhere(provisioner):
    assert topology_of(make_class(provisioner=provisioner), CLAIM) == VolumeTopology.NONE


@pytest.mark.parametrize(
    "provisioner",
    [
        "rancher.io/local-path",
        "cluster.local/local-path-provisioner",
        "openebs.io/local",
        "topolvm.io",
        "hostpath.csi.k8s.io",
        "microk8s.io/hostpath",
    ],
)
def test_local_disks_belong_to_their_node(provisioner):
    storage_class = make_class(provisioner=provisioner)

    assert topology_of(storage_class, CLAIM) == VolumeTopology.NODE
    assert topology_labels(storage_class, VolumeTopology.NODE)[-1] == HOSTNAME


@pytest.mark.parametrize("mode", ["ReadWriteMany", "ReadOnlyMany"])
@pytest.mark.parametrize("provisioner", ["ebs.csi.aws.com", "disk.example.com", "openebs.io/local"])
def test_a_claim_for_many_nodes_gets_a_volume_for_all_nodes(provisioner, mode):
    claim = make_claim(modes=["ReadWriteOnce", mode])

    assert topology_of(make_class(provisioner=provisioner), claim) == VolumeTopology.NONE


@pytest.mark.parametrize("said", ["zone", "node", "none"])
@pytest.mark.parametrize("modes", [["ReadWriteOnce"], ["ReadWriteMany"]])
def test_the_annotation_of_a_class_comes_first(said, modes):
    for provisioner in ("ebs.csi.aws.com", "efs.csi.aws.com", "rancher.io/local-path"):
        storage_class = with_annotations(
            make_class(provisioner=provisioner), {VOLUME_TOPOLOGY: said}
        )

        assert topology_of(storage_class, make_claim(modes=modes)) == said


def test_an_annotation_for_zones_means_zones_also_if_the_driver_has_regions():
    storage_class = make_class(provisioner="csi.hetzner.cloud")

    assert topology_labels(storage_class, VolumeTopology.ZONE)[-1] == REGION
    annotated = with_annotations(storage_class, {VOLUME_TOPOLOGY: "zone"})
    assert topology_labels(annotated, VolumeTopology.ZONE) == (ZONE, BETA_ZONE)


def test_another_word_in_the_annotation_is_a_problem():
    obj = decode_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "fast", "annotations": {VOLUME_TOPOLOGY: "rack"}},
            "provisioner": "efs.csi.aws.com",
        }
    )

    assert list(problems_of(obj)) == [
        (f"metadata.annotations[{VOLUME_TOPOLOGY}]", "must be zone, node or none")
    ]
    # A class of a real cluster is not validated.
    assert topology_of(obj, CLAIM) == VolumeTopology.NONE
