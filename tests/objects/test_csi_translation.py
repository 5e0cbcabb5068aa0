import pytest

from mooring.objects.csi_translation import (
    AWS_EBS,
    AZURE_FILE,
    IN_TREE_PLUGINS,
    TranslationError,
    migrated_on,
    plugin_of,
    seen_from,
    translate_inline,
    translate_volume,
)
from mooring.objects.storage import (
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    AzureFile,
    Cinder,
    GCEPersistentDisk,
    Portworx,
    Volume,
    VolumeSources,
    VsphereVolume,
)
from mooring.objects.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from tests.makers import make_node_term
from tests.volume_world import make_csi_node, make_volume

EBS_ZONE = "topology.ebs.csi.aws.com/zone"
GCE_ZONE = "topology.gke.io/zone"


def ebs(volume_id="vol-1"):
    return {"aws_elastic_block_store": AWSElasticBlockStore(volume_id=volume_id)}


def gce(name="pd"):
    return {"gce_persistent_disk": GCEPersistentDisk(pd_name=name)}


def in_zone(*zones, key=ZONE):
    return (key, "In", list(zones))


@pytest.mark.parametrize(
    ("source", "name", "driver", "handle", "migrated"),
    [
        (ebs(), "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "vol-1", True),
        (
            gce(),
            "kubernetes.io/gce-pd",
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd",
            True,
        ),
        (
            {"azure_disk": AzureDisk(disk_uri="/disks/d")},
            "kubernetes.io/azure-disk",
            "disk.csi.azure.com",
            "/disks/d",
            True,
        ),
        (
            {"cinder": Cinder(volume_id="id")},
            "kubernetes.io/cinder",
            "cinder.csi.openstack.org",
            "id",
            True,
        ),
        (
            {"portworx_volume": Portworx(volume_id="id")},
            "kubernetes.io/portworx-volume",
            "pxd.portworx.com",
            "id",
            True,
        ),
        (
            {"azure_file": AzureFile(share_name="s")},
            "kubernetes.io/azure-file",
            "file.csi.azure.com",
            "",
            False,
        ),
        (
            {"vsphere_volume": VsphereVolume(volume_path="[ds] p")},
            "kubernetes.io/vsphere-volume",
            "csi.vsphere.vmware.com",
            "[ds] p",
            False,
        ),
    ],
)
def test_seven_kinds_of_volumes_have_a_csi_form(source, name, driver, handle, migrated):
    plugin = plugin_of(VolumeSources(**source))

    assert plugin is IN_TREE_PLUGINS[name]
    assert (plugin.driver, plugin.migrated) == (driver, migrated)
    inline = translate_inline(Volume(name="v", **source))
    assert (inline.driver, inline.volume_handle) == (driver, handle)


def test_no_other_volume_has_one():
    assert plugin_of(VolumeSources(rbd=RBD())) is None
    with pytest.raises(TranslationError, match='translation logic for "v"'):
        translate_inline(Volume(name="v"))
    with pytest.raises(TranslationError, match='translation logic for "v"'):
        translate_volume(make_volume(driver="drv"))


@pytest.mark.parametrize(
    ("volume_id", "handle"),
    [
        ("vol-1", "vol-1"),
        ("aws:///vol-1", "vol-1"),
        ("aws://us-east-1a/vol-1", "vol-1"),
        pytest.param("whatever", "whatever", id="not a URL, so taken as it stands"),
    ],
)
def test_an_ebs_volume_goes_by_the_last_part_of_its_id(volume_id, handle):
    assert translate_inline(Volume(**ebs(volume_id))).volume_handle == handle


@pytest.mark.parametrize("volume_id", ["aws://zone/x-1", "aws://zone/vol-1/more", "aws://zone"])
def test_an_ebs_volume_of_another_form_cannot_be_translated(volume_id):
    with pytest.raises(TranslationError) as failed:
        translate_inline(Volume(**ebs(volume_id)))

    assert str(failed.value) == (
        "failed to translate Kubernetes ID to EBS Volume ID"
        f" Invalid format for AWS volume ({volume_id})"
    )


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        ({}, "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/pd"),
        ({ZONE: "us-east1-a"}, "projects/UNSPECIFIED/zones/us-east1-a/disks/pd"),
        pytest.param(
            {ZONE: "us-east1-a", BETA_ZONE: "us-east1-b"},
            "projects/UNSPECIFIED/zones/us-east1-b/disks/pd",
            id="the beta label counts first",
        ),
        pytest.param(
            {ZONE: "us-east1-a__us-east1-b"},
            "projects/UNSPECIFIED/regions/us-east1/disks/pd",
            id="two zones of one region",
        ),
    ],
)
def test_a_gce_disk_goes_by_its_zone_or_region(labels, handle):
    assert translate_volume(make_volume(labels=labels, **gce())).spec.csi.volume_handle == handle


@pytest.mark.parametrize(
    ("zones", "problem"),
    [
        (
            "a__b",
            "zone in unexpected format, expected: {locale}-{region}-{zone}, got: a",
        ),
        (
            "us-west1-a__us-east1-a",
            "multiple or no regions gotten from zones, got: map[us-east1:{} us-west1:{}]",
        ),
    ],
)
def test_zones_that_make_no_region_are_an_error(zones, problem):
    with pytest.raises(TranslationError) as failed:
        translate_volume(make_volume(labels={ZONE: zones}, **gce()))

    assert str(failed.value) == f"failed to get region from zones: {problem}"


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (None, None),
        ("Managed", None),
        ("managed", None),
        ("Dedicated", "kind(Dedicated) is not supported in csi migration"),
    ],
)
def test_only_managed_azure_disks_can_be_translated(kind, error):
    volume = make_volume(azure_disk=AzureDisk(disk_uri="/d", kind=kind))
    if error is None:
        assert translate_volume(volume).spec.csi.volume_handle == "/d"
        return
    with pytest.raises(TranslationError) as failed:
        translate_volume(volume)
    assert str(failed.value) == error


@pytest.mark.parametrize(
    ("terms", "labels", "translated"),
    [
        pytest.param(None, {}, None, id="nothing to translate"),
        pytest.param(
            [[in_zone("a")]], {ZONE: "b"}, [[in_zone("a", key=EBS_ZONE)]], id="terms before labels"
        ),
        pytest.param(
            [[in_zone("a"), ("disk", "Exists", [])], [in_zone("b", "c")]],
            {},
            [
                [in_zone("a", key=EBS_ZONE), ("disk", "Exists", [])],
                [in_zone("b", "c", key=EBS_ZONE)],
            ],
            id="in every term",
        ),
        pytest.param(
            [[in_zone("a", key=BETA_ZONE), ("x", "In", ["1"])]],
            {ZONE: "b"},
            [[in_zone("a", key=EBS_ZONE), ("x", "In", ["1"])]],
            id="the beta key of a term",
        ),
        pytest.param(
            None, {ZONE: "b__a"}, [[in_zone("a", "b", key=EBS_ZONE)]], id="the label makes a term"
        ),
        pytest.param(
            [[("x", "In", ["1"])], [("y", "In", ["1"])]],
            {BETA_ZONE: "a"},
            [
                [("x", "In", ["1"]), in_zone("a", key=EBS_ZONE)],
                [("y", "In", ["1"]), in_zone("a", key=EBS_ZONE)],
            ],
            id="the beta label goes into every term",
        ),
        pytest.param(
            None,
            {ZONE: "a", BETA_ZONE: "b"},
            [[in_zone("a", key=EBS_ZONE)]],
            id="of two labels the current one",
        ),
        pytest.param([[("x", "In", ["1"])]], {ZONE: "__"}, [[("x", "In", ["1"])]], id="no zone"),
        pytest.param(
            [[(ZONE, "Exists", [])]],
            {ZONE: "a"},
            [[(ZONE, "Exists", []), in_zone("a", key=EBS_ZONE)]],
            id="a term that names no zone leaves it to the label",
        ),
        pytest.param(
            [[in_zone("a", key=BETA_ZONE), in_zone("r", key=BETA_REGION)]],
            {},
            [[in_zone("a", key=EBS_ZONE), in_zone("r", key=REGION)]],
            id="beta regions become current ones",
        ),
        pytest.param(
            [[in_zone("a"), in_zone("r", key=BETA_REGION)]],
            {},
            [[in_zone("a", key=EBS_ZONE), in_zone("r", key=BETA_REGION)]],
            id="unless the zone is current",
        ),
    ],
)
def test_a_zone_is_said_with_the_label_of_the_driver(terms, labels, translated):
    given = None if terms is None else [make_node_term(*lines) for lines in terms]
    volume = make_volume(terms=given, labels=labels, **ebs())

    affinity = translate_volume(volume).spec.node_affinity

    if translated is None:
        assert affinity is None
    else:
        expected = [make_node_term(*lines) for lines in translated]
        assert affinity.required.node_selector_terms == expected


def test_a_zone_of_an_azure_disk_stays_as_it_is():
    volume = make_volume(terms=[make_node_term(in_zone("a"))], azure_disk=AzureDisk(disk_uri="/d"))

    assert translate_volume(volume).spec.node_affinity == volume.spec.node_affinity


@pytest.mark.parametrize(
    ("modes", "enforced"),
    [
        ([], []),
        (["ReadWriteMany"], ["ReadWriteOnce"]),
        (["ReadWriteOnce", "ReadOnlyMany"], ["ReadWriteOnce"]),
        (["ReadOnlyMany"], ["ReadOnlyMany"]),
        (["ReadWriteOncePod"], ["ReadWriteOnce"]),
    ],
)
def test_a_gce_disk_is_written_by_one_or_read_by_many(modes, enforced):
    volume = make_volume(modes=modes, **gce())

    assert translate_volume(volume).spec.access_modes == enforced


def test_the_translated_volume_is_a_csi_volume():
    spec = translate_volume(make_volume(**ebs())).spec

    assert (spec.csi.driver, spec.csi.volume_handle) == ("ebs.csi.aws.com", "vol-1")
    assert plugin_of(spec) is None


@pytest.mark.parametrize(
    ("plugin", "annotation", "expected"),
    [
        (AWS_EBS, "kubernetes.io/aws-ebs", True),
        (AWS_EBS, "kubernetes.io/gce-pd,kubernetes.io/aws-ebs", True),
        pytest.param(AWS_EBS, "kubernetes.io/gce-pd, kubernetes.io/aws-ebs", False, id="a space"),
        (AWS_EBS, "", False),
        (AWS_EBS, None, False),
        pytest.param(AZURE_FILE, "kubernetes.io/azure-file", False, id="never on"),
    ],
)
def test_a_node_says_which_plugins_it_has_handed_over(plugin, annotation, expected):
    assert migrated_on(plugin, make_csi_node("n", migrated=annotation)) == expected
    assert not migrated_on(plugin, None)


def test_a_volume_is_seen_as_csi_only_from_where_it_is_migrated():
    volume = make_volume(**ebs())

    assert seen_from(volume, make_csi_node("n")) is volume
    assert seen_from(volume, make_csi_node("n", migrated=AWS_EBS.name)).spec.csi is not None
    with pytest.raises(TranslationError, match=r"^could not translate pv: failed to translate"):
        seen_from(make_volume(**ebs("aws://x")), make_csi_node("n", migrated=AWS_EBS.name))
