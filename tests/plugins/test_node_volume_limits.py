import pytest

from mooring.config.gates import FeatureGates
from mooring.errors import MooringError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, Hint
from mooring.framework.status import SKIP, SUCCESS, unresolvable, unschedulable
from mooring.objects.storage import (
    ISCSI,
    AWSElasticBlockStore,
    AzureDisk,
    Cinder,
    CSIVolumeSource,
    GCEPersistentDisk,
    Volume,
    VsphereVolume,
)
from mooring.plugins.node_volume_limits import NodeVolumeLimits
from tests.makers import make_node
from tests.volume_world import (
    World,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_ephemeral,
    make_volume,
    pod_with,
)

TOO_MANY = unschedulable("node(s) exceed max volume count")
EBS = "ebs.csi.aws.com"


def make_plugin(world):
    return NodeVolumeLimits(None, world)


def on_volume(claim, volume=None, **fields):
    """A claim that is bound to a CSI volume."""
    return (
        make_claim(claim, volume=volume or f"v-{claim}", bound=True),
        make_volume(volume or f"v-{claim}", **{"driver": "drv", **fields}),
    )


def ebs(volume_id="vol-1"):
    return Volume(name="v", aws_elastic_block_store=AWSElasticBlockStore(volume_id=volume_id))


def limited_world():
    """Of the driver two volumes can be attached: h1 is used by a pod, h2 is only attached."""
    return World(
        make_node("n1"),
        make_csi_node("n1", {"drv": 2}),
        *on_volume("c1", handle="h1"),
        *on_volume("c2", handle="h2"),
        *on_volume("c3", handle="h3"),
        pod_with("c1", name="there", node="n1"),
        make_attachment("a", "n1", "v-c2"),
    )


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param(["c3"], TOO_MANY, id="one too many"),
        pytest.param(["c1"], SUCCESS, id="one that is used here already"),
        pytest.param(["c2"], TOO_MANY, id="one that is only attached counts twice"),
    ],
)
def test_a_node_takes_no_more_volumes_than_its_driver_can_attach(claims, expected):
    world = limited_world()

    assert world.filter(make_plugin(world), pod_with(*claims)) == expected


def test_a_volume_used_by_two_pods_is_one_volume():
    world = limited_world()
    world.show(pod_with("c1", name="another", node="n1"), make_csi_node("n1", {"drv": 3}))

    assert world.filter(make_plugin(world), pod_with("c3", "c3")) == SUCCESS


def test_a_copy_of_a_node_is_counted_by_the_pods_it_has():
    world = limited_world()
    plugin, pod = make_plugin(world), pod_with("c3")
    assert world.filter(plugin, pod) == TOO_MANY

    copy = world.node("n1").copy()
    copy.remove_pod(world.pods["ns/there"])

    assert plugin.filter(CycleState(), pod, copy) == SUCCESS
    assert world.filter(plugin, pod) == TOO_MANY


def test_pods_that_come_and_go_are_counted():
    world = limited_world()
    plugin = make_plugin(world)
    assert world.filter(plugin, pod_with("c3")) == TOO_MANY

    world.cluster.remove_pod(world.pods["ns/there"])
    assert world.filter(plugin, pod_with("c3")) == SUCCESS

    world.show(pod_with("c1", name="back", node="n1"))
    assert world.filter(plugin, pod_with("c3")) == TOO_MANY


IN_TREE = make_volume("v", aws_elastic_block_store=AWSElasticBlockStore(volume_id="vol-1"))


@pytest.mark.parametrize(
    ("claim", "objects", "drivers", "expected"),
    [
        pytest.param(make_claim(volume="v"), [IN_TREE], {EBS: 0}, TOO_MANY, id="an in-tree volume"),
        pytest.param(
            make_claim(volume="v"),
            [make_volume("v", vsphere_volume=VsphereVolume())],
            {"csi.vsphere.vmware.com": 0},
            SUCCESS,
            id="of a kind that is never taken as migrated",
        ),
        pytest.param(
            make_claim(volume="v"),
            [make_volume("v", azure_disk=AzureDisk(kind="Dedicated"))],
            {"disk.csi.azure.com": 0},
            SUCCESS,
            id="that cannot be translated",
        ),
        pytest.param(
            make_claim(volume="v"),
            [make_volume("v", iscsi=ISCSI())],
            {"drv": 0},
            SUCCESS,
            id="of no driver",
        ),
        pytest.param(
            make_claim(volume="v"),
            [make_volume("v", csi=CSIVolumeSource(driver="drv"))],
            {"drv": 0},
            SUCCESS,
            id="without a handle",
        ),
        pytest.param(
            make_claim(storage_class="made"),
            [make_class("made", provisioner="drv")],
            {"drv": 0},
            TOO_MANY,
            id="one that is still to be made",
        ),
        pytest.param(
            make_claim(volume="gone", storage_class="made"),
            [make_class("made", provisioner="drv")],
            {"drv": 0},
            TOO_MANY,
            id="one that is not there yet",
        ),
        pytest.param(
            make_claim(storage_class="made"),
            [make_class("made", provisioner="kubernetes.io/aws-ebs")],
            {EBS: 0},
            TOO_MANY,
            id="to be made by an in-tree plugin",
        ),
        pytest.param(
            make_claim(storage_class="made"),
            [make_class("made", provisioner="kubernetes.io/vsphere-volume")],
            {"csi.vsphere.vmware.com": 0, "kubernetes.io/vsphere-volume": 0},
            SUCCESS,
            id="by one that is never taken as migrated",
        ),
        pytest.param(make_claim(storage_class=None), [], {"drv": 0}, SUCCESS, id="no class"),
        pytest.param(
            make_claim(storage_class="ghost"), [], {"drv": 0}, SUCCESS, id="no such class"
        ),
        pytest.param(
            make_claim(volume="v"),
            [make_volume("v", driver="drv")],
            {},
            SUCCESS,
            id="a node without drivers",
        ),
        pytest.param(
            make_claim(volume="v"),
            [make_volume("v", driver="drv")],
            {"drv": None},
            SUCCESS,
            id="a driver that sets no limit",
        ),
        pytest.param(
            make_claim(volume="v"),
            [make_volume("v", driver="drv")],
            {"other": 0},
            SUCCESS,
            id="the limit of another driver",
        ),
    ],
)
def test_a_claim_counts_for_the_driver_of_its_volume(claim, objects, drivers, expected):
    world = World(make_node("n1"), make_csi_node("n1", drivers), claim, *objects)

    assert world.filter(make_plugin(world), pod_with("c")) == expected


def test_without_a_csi_node_nothing_is_limited():
    world = World(make_node("n1"), make_claim(volume="v"), IN_TREE)

    assert world.filter(make_plugin(world), pod_with("c")) == SUCCESS
    assert world.filter(make_plugin(world), pod_with(volumes=[ebs("aws://bad")])) == SUCCESS


def test_two_claims_to_be_provided_for_are_two_volumes():
    world = World(
        make_node("n1"),
        make_csi_node("n1", {"drv": 1}),
        make_class("made", provisioner="drv"),
        make_claim("c1", storage_class="made"),
        make_claim("c2", storage_class="made"),
    )
    plugin = make_plugin(world)

    assert world.filter(plugin, pod_with("c1")) == SUCCESS
    assert world.filter(plugin, pod_with("c1", "c2")) == TOO_MANY


@pytest.mark.parametrize(
    ("volume", "driver", "expected"),
    [
        (ebs(), EBS, TOO_MANY),
        (
            Volume(gce_persistent_disk=GCEPersistentDisk(pd_name="pd")),
            "pd.csi.storage.gke.io",
            TOO_MANY,
        ),
        (Volume(vsphere_volume=VsphereVolume()), "csi.vsphere.vmware.com", SUCCESS),
    ],
)
def test_a_pods_own_in_tree_volume_counts_for_the_driver(volume, driver, expected):
    world = World(make_node("n1"), make_csi_node("n1", {driver: 0}))

    assert world.filter(make_plugin(world), pod_with(volumes=[volume])) == expected


def test_a_pods_own_csi_volume_never_counts():
    world = World(make_node("n1"), make_csi_node("n1", {"drv": 0}))
    volume = Volume(csi=CSIVolumeSource(driver="drv"))

    assert world.pre_filter(make_plugin(world), pod_with(volumes=[volume]))[1] == SKIP


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        ([], SKIP),
        ([Volume(iscsi=ISCSI())], SKIP),
        ([Volume(cinder=Cinder())], SUCCESS),
        ([make_ephemeral("data")], SUCCESS),
    ],
)
def test_only_pods_whose_volumes_may_count_are_filtered(volumes, expected):
    world = World()

    assert world.pre_filter(make_plugin(world), pod_with(volumes=volumes))[1] == expected


def test_a_claim_that_is_not_there_is_refused():
    world = World(make_node("n1"))

    assert world.filter(make_plugin(world), pod_with("c")) == unresolvable(
        'looking up PVC ns/c: persistentvolumeclaim "c" not found'
    )


def test_an_existing_pods_claim_that_is_not_there_does_not_count():
    world = limited_world()
    world.show(make_csi_node("n1", {"drv": 3}), pod_with("gone", name="another", node="n1"))

    assert world.filter(make_plugin(world), pod_with("c3")) == SUCCESS


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        (pod_with("", name="x"), "PersistentVolumeClaim had no name"),
        (
            pod_with(name="x", volumes=[make_ephemeral("data")]),
            "PVC ns/x-data was not created for pod ns/x (pod is not owner)",
        ),
        (
            pod_with(name="x", volumes=[ebs("aws://bad")]),
            "converting volume(v) from inline to csi: failed to translate Kubernetes ID to EBS"
            " Volume ID Invalid format for AWS volume (aws://bad)",
        ),
    ],
)
def test_volumes_that_make_no_sense_fail_the_attempt(pod, problem):
    world = limited_world()
    world.show(make_claim("x-data"))
    plugin = make_plugin(world)

    with pytest.raises(MooringError) as failed:
        world.filter(plugin, pod)
    assert str(failed.value) == problem

    # So they do on a pod that is there.
    world.show(pod.placed_on("n1"))
    with pytest.raises(MooringError) as failed:
        world.filter(plugin, pod_with("c3"))
    assert str(failed.value) == problem


def test_the_claim_of_an_ephemeral_volume_counts():
    pod = pod_with(name="x", volumes=[make_ephemeral("data")])
    world = World(
        make_node("n1"),
        make_csi_node("n1", {"drv": 0}),
        make_claim("x-data", volume="v", owner=pod),
        make_volume("v", driver="drv"),
    )

    assert world.filter(make_plugin(world), pod) == TOO_MANY


@pytest.mark.parametrize(
    "attachment",
    [
        make_attachment("b", "n2", "v-c3"),
        make_attachment("b", "n1", None),
        make_attachment("b", "n1", "gone"),
        make_attachment("b", "n1", "v-c3", attacher=""),
        make_attachment("b", "n1", "v-c3", attacher="other"),
        make_attachment("b", "n1", "disk"),
        make_attachment("b", "n1", "v-c1"),
    ],
    ids=[
        "another node",
        "no volume",
        "no such volume",
        "no attacher",
        "another attacher",
        "not a CSI volume",
        "used by a pod, so counted already",
    ],
)
def test_an_attachment_that_does_not_count_is_passed_over(attachment):
    world = limited_world()
    world.show(make_csi_node("n1", {"drv": 3}), make_volume("disk", iscsi=ISCSI()), attachment)

    assert world.filter(make_plugin(world), pod_with("c3")) == SUCCESS


SCALING = FeatureGates({"VolumeLimitScaling": True})


@pytest.mark.parametrize(
    ("driver", "csi_node", "expected"),
    [
        (None, None, SUCCESS),
        (make_driver(), None, SUCCESS),
        (make_driver(prevent_pod_scheduling_if_missing=False), None, SUCCESS),
        (make_driver(prevent_pod_scheduling_if_missing=True), None, "missing"),
        (make_driver(prevent_pod_scheduling_if_missing=True), {"other": None}, "missing"),
        (make_driver(prevent_pod_scheduling_if_missing=True), {"drv": None}, SUCCESS),
    ],
)
def test_with_the_gate_a_driver_may_insist_on_being_installed(driver, csi_node, expected):
    objects = [make_node("n1"), *on_volume("c")]
    objects += [driver] if driver is not None else []
    objects += [make_csi_node("n1", csi_node)] if csi_node is not None else []
    missing = unschedulable("drv CSI driver is not installed on the node")
    gated, plain = World(*objects, gates=SCALING), World(*objects)

    answer = gated.filter(make_plugin(gated), pod_with("c"))

    assert answer == (missing if expected == "missing" else SUCCESS)
    assert plain.filter(make_plugin(plain), pod_with("c")) == SUCCESS


def hint(resource, action, pod, old, new):
    hints = {e.event: e.hint for e in make_plugin(World()).events_to_register()}
    return hints[ClusterEvent(resource, action)](pod, old, new)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"drv": 1}, {"drv": 2}, Hint.QUEUE),
        ({"drv": 2}, {"drv": 1}, Hint.SKIP),
        ({"drv": 2}, {"drv": 2}, Hint.SKIP),
        ({}, {"drv": 1}, Hint.QUEUE),
        ({"drv": None}, {"drv": 1}, Hint.QUEUE),
        ({}, {"drv": 0}, Hint.SKIP),
        pytest.param({"drv": 2}, {"drv": None}, Hint.SKIP, id="a limit lifted is no rise"),
        ({"drv": 2, "other": 1}, {"drv": 1, "other": 2}, Hint.QUEUE),
    ],
)
def test_a_limit_that_rises_wakes_the_pod(old, new, expected):
    answer = hint(
        EventResource.CSI_NODE,
        Action.UPDATE,
        pod_with("c"),
        make_csi_node("n1", old),
        make_csi_node("n1", new),
    )

    assert answer == expected


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        (pod_with(node="n1"), Hint.SKIP),
        (pod_with("c"), Hint.SKIP),
        (pod_with("c", node="n1"), Hint.QUEUE),
        (pod_with("c", nominated="n1"), Hint.QUEUE),
        (pod_with(volumes=[make_ephemeral("data")], node="n1"), Hint.QUEUE),
        (pod_with(volumes=[ebs()], node="n1"), Hint.QUEUE),
        (pod_with(volumes=[Volume(iscsi=ISCSI())], node="n1"), Hint.SKIP),
    ],
)
def test_the_end_of_a_pod_whose_volumes_count_wakes_the_pod(gone, expected):
    assert hint(EventResource.POD, Action.DELETE, pod_with("c", name="q"), gone, None) == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (make_claim("c"), Hint.QUEUE),
        (make_claim("p-data"), Hint.QUEUE),
        (make_claim("other"), Hint.SKIP),
        (make_claim("c", namespace="another"), Hint.SKIP),
    ],
)
def test_a_claim_that_comes_wakes_the_pod_that_uses_it(claim, expected):
    pod = pod_with("c", volumes=[make_ephemeral("data")])

    assert hint(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, pod, None, claim) == expected


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (pod_with("c"), Hint.QUEUE),
        (pod_with(volumes=[ebs()]), Hint.QUEUE),
        (pod_with(volumes=[Volume(cinder=Cinder())]), Hint.SKIP),
        pytest.param(pod_with(volumes=[make_ephemeral("data")]), Hint.SKIP, id="ephemeral"),
        (pod_with(), Hint.SKIP),
    ],
)
def test_a_detached_volume_wakes_pods_that_may_have_the_driver(pod, expected):
    detached = make_attachment("a", "n1", "v", attacher=EBS)

    assert hint(EventResource.VOLUME_ATTACHMENT, Action.DELETE, pod, detached, None) == expected


def test_a_hint_that_cannot_tell_fails():
    """The queue takes that for a reason to try."""
    pod, detached = pod_with(volumes=[ebs("aws://bad")]), make_attachment("a", "n1", "v")

    with pytest.raises(MooringError):
        hint(EventResource.VOLUME_ATTACHMENT, Action.DELETE, pod, detached, None)


def test_every_csi_node_that_comes_wakes_the_pod():
    events = {e.event: e.hint for e in make_plugin(World()).events_to_register()}

    assert len(events) == 5
    assert events[ClusterEvent(EventResource.CSI_NODE, Action.ADD)] is None
