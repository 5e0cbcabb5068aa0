import pytest

from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, Hint
from mooring.framework.status import SKIP, SUCCESS, unresolvable, unschedulable
from mooring.objects.storage import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    Cinder,
    GCEPersistentDisk,
    Volume,
)
from mooring.plugins.volume_restrictions import VolumeRestrictions
from tests.makers import make_node
from tests.volume_world import World, make_claim, make_ephemeral, pod_with

NO_DISK = unschedulable("node(s) had no available disk")
IN_USE = unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already"
    " in-use by another pod"
)
EXCLUSIVE = make_claim("c", modes=["ReadWriteOncePod"])


def make_plugin(world):
    return VolumeRestrictions(None, world)


def gce(name="pd1", *, ro=False):
    return Volume(gce_persistent_disk=GCEPersistentDisk(pd_name=name, read_only=ro))


def ebs(volume_id="vol1", *, ro=False):
    disk = AWSElasticBlockStore(volume_id=volume_id, read_only=ro)
    return Volume(aws_elastic_block_store=disk)


def iscsi(iqn="iqn1", *, ro=False):
    return Volume(iscsi=ISCSI(iqn=iqn, read_only=ro))


def rbd(*monitors, pool="p", image="i", ro=False):
    return Volume(rbd=RBD(monitors=list(monitors), pool=pool, image=image, read_only=ro))


DISKS = [
    pytest.param(gce(ro=True), gce(ro=True), SUCCESS, id="both only read"),
    pytest.param(gce(ro=True), gce(), NO_DISK, id="one writes"),
    pytest.param(gce(), gce("pd2"), SUCCESS, id="another disk"),
    pytest.param(ebs(ro=True), ebs(ro=True), NO_DISK, id="even readers of an EBS volume"),
    pytest.param(ebs(), ebs("vol2"), SUCCESS, id="another EBS volume"),
    pytest.param(iscsi(ro=True), iscsi(ro=True), SUCCESS, id="iSCSI, both only read"),
    pytest.param(iscsi(), iscsi(ro=True), NO_DISK, id="iSCSI, one writes"),
    pytest.param(iscsi(), iscsi("iqn2"), SUCCESS, id="another target"),
    pytest.param(rbd("a", "b"), rbd("b", "c"), NO_DISK, id="RBD, a monitor in common"),
    pytest.param(rbd("a"), rbd("b"), SUCCESS, id="RBD, no monitor in common"),
    pytest.param(rbd("a"), rbd("a", pool="q"), SUCCESS, id="another pool"),
    pytest.param(rbd("a"), rbd("a", image="j"), SUCCESS, id="another image"),
    pytest.param(rbd("a", ro=True), rbd("a", ro=True), SUCCESS, id="RBD, both only read"),
    pytest.param(ebs("x"), gce("x"), SUCCESS, id="two kinds of disks"),
]


@pytest.mark.parametrize(("there", "wanted", "expected"), DISKS)
def test_a_disk_is_not_mounted_twice_on_a_node(there, wanted, expected):
    world = World(
        make_node("n1"),
        make_node("n2"),
        pod_with(name="there", volumes=[there], node="n1", namespace="another"),
    )
    pod = pod_with(volumes=[wanted])

    assert world.filter(make_plugin(world), pod, "n1") == expected
    assert world.filter(make_plugin(world), pod, "n2") == SUCCESS


def test_any_disk_of_a_pod_may_be_the_one():
    world = World(make_node("n1"), pod_with(name="there", volumes=[gce(), iscsi()], node="n1"))

    assert world.filter(make_plugin(world), pod_with(volumes=[rbd("a"), iscsi()])) == NO_DISK


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (pod_with(), SKIP),
        (pod_with(volumes=[Volume(cinder=Cinder())]), SKIP),
        (pod_with(volumes=[gce()]), SUCCESS),
        (pod_with("shared"), SKIP),
        pytest.param(pod_with("c"), SKIP, id="an exclusive claim that is free"),
        pytest.param(pod_with("used"), SUCCESS, id="an exclusive claim in use"),
        pytest.param(
            pod_with("missing"), unresolvable('persistentvolumeclaim "missing" not found')
        ),
        pytest.param(pod_with(volumes=[make_ephemeral("data")]), SKIP, id="not looked up"),
    ],
)
def test_only_pods_with_disks_or_claims_in_use_are_filtered(pod, expected):
    world = World(
        make_node("n1"),
        EXCLUSIVE,
        make_claim("shared"),
        make_claim("used", modes=["ReadWriteOncePod"]),
        pod_with("used", "shared", name="there", node="n1"),
    )

    assert world.pre_filter(make_plugin(world), pod)[1] == expected


def test_a_claim_for_one_pod_is_refused_everywhere_until_that_pod_is_removed():
    world = World(make_node("n1"), make_node("n2"), EXCLUSIVE, pod_with("c", name="a", node="n1"))
    plugin, pod = make_plugin(world), pod_with("c", name="b", priority=10)
    state, status = world.pre_filter(plugin, pod)
    assert status == SUCCESS
    first = world.pods["ns/a"]

    assert plugin.filter(state, pod, world.node("n1")) == IN_USE
    assert plugin.filter(state, pod, world.node("n2")) == IN_USE

    tried = state.clone()
    plugin.remove_pod(tried, pod, first, world.node("n1"))
    assert plugin.filter(tried, pod, world.node("n2")) == SUCCESS
    assert plugin.filter(state, pod, world.node("n2")) == IN_USE

    plugin.add_pod(tried, pod, first, world.node("n1"))
    assert plugin.filter(tried, pod, world.node("n2")) == IN_USE


def test_pods_taken_in_and_out_are_counted_by_name_whatever_their_namespace():
    world = World(make_node("n1"), EXCLUSIVE, pod_with("c", name="a", node="n1"))
    plugin, pod = make_plugin(world), pod_with("c", name="b")
    state, _ = world.pre_filter(plugin, pod)

    plugin.remove_pod(state, pod, pod_with("c", namespace="another"), world.node("n1"))

    assert plugin.filter(state, pod, world.node("n1")) == SUCCESS


def test_a_claim_of_that_name_in_another_namespace_is_another_claim():
    world = World(make_node("n1"), EXCLUSIVE, pod_with("c", namespace="another", node="n1"))

    assert world.pre_filter(make_plugin(world), pod_with("c"))[1] == SKIP


def test_without_pre_filter_only_a_disk_can_be_judged():
    world = World(make_node("n1"), pod_with(name="there", volumes=[gce()], node="n1"))
    plugin = make_plugin(world)

    assert plugin.filter(CycleState(), pod_with(volumes=[gce()]), world.node("n1")) == NO_DISK
    with pytest.raises(PluginError, match='cannot read "PreFilterVolumeRestrictions"'):
        plugin.filter(CycleState(), pod_with(), world.node("n1"))


def hint(event, pod, old, new):
    hints = {e.event: e.hint for e in make_plugin(World()).events_to_register()}
    return hints[ClusterEvent(*event)](pod, old, new)


@pytest.mark.parametrize(("there", "wanted", "expected"), DISKS)
def test_the_end_of_a_pod_that_has_the_disk_wakes_the_pod(there, wanted, expected):
    gone = pod_with(name="there", volumes=[there], node="n1")

    answer = hint((EventResource.POD, Action.DELETE), pod_with(volumes=[wanted]), gone, None)

    assert answer == (Hint.QUEUE if expected == NO_DISK else Hint.SKIP)


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        (pod_with("c", name="there"), Hint.QUEUE),
        (pod_with("other", name="there"), Hint.SKIP),
        (pod_with(name="there"), Hint.SKIP),
        pytest.param(
            pod_with("c", name="there", volumes=[ebs()], namespace="another"),
            Hint.SKIP,
            id="of another namespace, even with the disk",
        ),
    ],
)
def test_the_end_of_a_pod_that_has_the_claim_wakes_the_pod(gone, expected):
    pod = pod_with("c", volumes=[ebs()])

    assert hint((EventResource.POD, Action.DELETE), pod, gone, None) == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (make_claim("c"), Hint.QUEUE),
        (make_claim("other"), Hint.SKIP),
        (make_claim("c", namespace="another"), Hint.SKIP),
        pytest.param(make_claim("p-data"), Hint.SKIP, id="of an ephemeral volume"),
    ],
)
def test_a_claim_that_comes_wakes_the_pod_that_names_it(claim, expected):
    pod = pod_with("c", volumes=[make_ephemeral("data")])

    assert hint((EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD), pod, None, claim) == expected


def test_every_node_that_comes_wakes_the_pod():
    events = {e.event: e.hint for e in make_plugin(World()).events_to_register()}

    assert len(events) == 3
    assert events[ClusterEvent(EventResource.NODE, Action.ADD)] is None
