import pytest
from msgspec.structs import replace

from mooring.cluster.volume_cache import AssumeError
from mooring.config.args import UtilizationShapePoint, VolumeBindingArgs
from mooring.errors import MooringError, PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import PreFlight
from mooring.framework.status import SKIP, SUCCESS, unresolvable
from mooring.objects.claims import BOUND_BY_CONTROLLER, SELECTED_NODE
from mooring.objects.storage import AWSElasticBlockStore, ObjectReference
from mooring.objects.well_known import ZONE
from mooring.plugins.volume_binding import VolumeBinding
from tests.makers import make_node, make_node_term, make_selector
from tests.volume_world import (
    World,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_ephemeral,
    make_pool,
    make_volume,
    pod_with,
    with_version,
)

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
VOLUME_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND = unresolvable("pod has unbound immediate PersistentVolumeClaims")

WAIT = make_class("wait")
MADE = make_class("made", provisioner="drv")
N1 = make_node("n1", zone="a")
N2 = make_node("n2", zone="b")


def make_plugin(world, **args):
    return VolumeBinding(VolumeBindingArgs(**args), world)


def outcome(world, pod, node):
    """On one node: the names of volumes by claim and the claims to provide for; or the reasons."""
    plugin = make_plugin(world)
    state, status = world.pre_filter(plugin, pod)
    assert status == SUCCESS
    verdict = plugin.filter(state, pod, world.node(node))
    if verdict != SUCCESS:
        assert plugin.pod_volumes(state, node) is None
        assert verdict == unresolvable(*verdict.reasons)
        return verdict.reasons
    volumes = plugin.pod_volumes(state, node)
    static = {claim.name: volume.name for claim, volume in volumes.static}
    return static, [claim.name for claim in volumes.provisions]


# PreFilter


def test_a_pod_without_claims_has_nothing_to_bind():
    world = World(N1)
    plugin, pod = make_plugin(world), pod_with()
    state, status = world.pre_filter(plugin, pod)

    assert status == SKIP
    assert plugin.reserve(state, pod, "n1") is None
    assert plugin.pre_bind_pre_flight(state, pod, "n1") == SKIP
    plugin.unreserve(state, pod, "n1")


@pytest.mark.parametrize(
    ("claim", "classes"),
    [
        pytest.param(make_claim(), [make_class("wait", mode="Immediate")]),
        pytest.param(make_claim(volume="pv1"), [WAIT], id="names a volume, is not bound to it"),
        pytest.param(make_claim(storage_class="ghost"), [], id="no such class"),
        pytest.param(make_claim(storage_class=None), [], id="no class"),
        pytest.param(make_claim(storage_class=""), [make_class("")], id="the empty class"),
    ],
)
def test_a_claim_that_does_not_wait_for_its_pod_must_be_bound_before(claim, classes):
    world = World(claim, *classes)

    assert world.pre_filter(make_plugin(world), pod_with("c"))[1] == UNBOUND


POD = pod_with(name="p", volumes=[make_ephemeral("data")])


@pytest.mark.parametrize(
    ("pod", "claim", "reason"),
    [
        pytest.param(
            pod_with("c"), None, 'persistentvolumeclaim "c" not found', id="no such claim"
        ),
        pytest.param(
            pod_with("c"),
            make_claim(phase="Lost", volume="pv-a", bound=True, deleting=True),
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "pv-a"',
            id="lost",
        ),
        pytest.param(
            POD,
            None,
            'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-data"',
        ),
        pytest.param(
            pod_with("c"),
            make_claim(deleting=True),
            'persistentvolumeclaim "c" is being deleted',
            id="being deleted",
        ),
        pytest.param(
            POD,
            make_claim("p-data", deleting=True),
            'persistentvolumeclaim "p-data" is being deleted',
            id="which is said before whose it is",
        ),
        pytest.param(
            POD,
            make_claim("p-data"),
            "PVC ns/p-data was not created for pod ns/p (pod is not owner)",
            id="somebody else's",
        ),
    ],
)
def test_a_claim_that_is_of_no_use_is_refused(pod, claim, reason):
    world = World(WAIT, *([claim] if claim else []))

    assert world.pre_filter(make_plugin(world), pod)[1] == unresolvable(reason)


def test_the_first_claim_that_is_of_no_use_is_told():
    world = World(WAIT, make_claim("b", deleting=True))

    status = world.pre_filter(make_plugin(world), pod_with("a", "b"))[1]

    assert status == unresolvable('persistentvolumeclaim "a" not found')


def test_a_class_that_does_not_say_when_to_bind_fails_the_attempt():
    world = World(make_class("wait", mode=None), make_claim())

    with pytest.raises(MooringError) as failed:
        world.pre_filter(make_plugin(world), pod_with("c"))

    assert str(failed.value) == 'VolumeBindingMode not set for StorageClass "wait"'


def test_the_claim_of_an_ephemeral_volume_is_a_claim():
    world = World(N1, WAIT, make_claim("p-data", owner=POD), make_volume("v", node="n1"))

    assert outcome(world, POD, "n1") == ({"p-data": "v"}, [])


# Filter


@pytest.mark.parametrize(("node", "expected"), [("n1", ({"c": "b"}, [])), ("n2", ({"c": "c"}, []))])
def test_a_claim_gets_the_smallest_volume_that_the_node_reaches(node, expected):
    world = World(
        N1,
        N2,
        WAIT,
        make_claim(storage="1Gi"),
        make_volume("a", storage="5Gi", node="n1"),
        make_volume("b", storage="2Gi", node="n1"),
        make_volume("c", storage="1Gi", node="n2"),
    )

    assert outcome(world, pod_with("c"), node) == expected


BIG_AND_SMALL = (make_claim("big", storage="5Gi"), make_claim("small", storage="1Gi"))


def test_the_smallest_claim_chooses_first():
    world = World(
        N1,
        WAIT,
        *BIG_AND_SMALL,
        make_volume("a", storage="5Gi", node="n1"),
        make_volume("b", storage="10Gi", node="n1"),
    )

    assert outcome(world, pod_with("big", "small"), "n1") == ({"small": "a", "big": "b"}, [])


def test_a_claim_left_over_has_to_be_provided_for():
    world = World(N1, WAIT, *BIG_AND_SMALL, make_volume("a", storage="5Gi", node="n1"))

    assert outcome(world, pod_with("big", "small"), "n1") == (BIND_CONFLICT,)


def test_a_claim_that_has_a_volume_of_its_own_takes_no_other():
    world = World(
        N1,
        N2,
        WAIT,
        make_claim("c"),
        make_volume("x", claim="c", node="n2"),
        make_volume("y", node="n1"),
    )

    assert outcome(world, pod_with("c"), "n1") == (BIND_CONFLICT,)
    assert outcome(world, pod_with("c"), "n2") == ({"c": "x"}, [])


def test_reasons_come_in_one_order():
    world = World(
        N2,
        WAIT,
        make_claim("bound", volume="pv1", bound=True),
        make_volume("pv1", terms=[make_node_term((ZONE, "In", ["a"]))]),
        make_claim("c"),
    )

    reasons = outcome(world, pod_with("c", "bound"), "n2")

    assert reasons == (NODE_CONFLICT, BIND_CONFLICT)


def test_a_claim_bound_to_a_volume_that_is_gone_fits_nowhere():
    world = World(N1, make_claim(volume="gone", bound=True))

    assert outcome(world, pod_with("c"), "n1") == (VOLUME_GONE,)


def test_the_first_bound_volume_in_the_way_is_told():
    near = make_node_term((ZONE, "In", ["a"]))
    world = World(
        N1,
        N2,
        make_claim("far", volume="v", bound=True),
        make_volume("v", terms=[near]),
        make_claim("lost", volume="gone", bound=True),
    )

    assert outcome(world, pod_with("far", "lost"), "n2") == (NODE_CONFLICT,)
    assert outcome(world, pod_with("lost", "far"), "n2") == (VOLUME_GONE,)
    assert outcome(world, pod_with("far", "lost"), "n1") == (VOLUME_GONE,)


def test_a_claim_that_is_being_provided_for_goes_to_that_node():
    world = World(N1, N2, MADE, make_claim(storage_class="made", selected_node="n1"))

    assert outcome(world, pod_with("c"), "n1") == ({}, ["c"])
    assert outcome(world, pod_with("c"), "n2") == (BIND_CONFLICT,)


def test_a_claim_that_is_being_provided_for_takes_no_existing_volume():
    claim = make_claim(storage_class="made", selected_node="n1")
    world = World(N1, MADE, claim, make_volume("v", storage_class="made"))

    assert outcome(world, pod_with("c"), "n1") == ({}, ["c"])


def test_claims_may_be_bound_and_provided_for_on_one_node():
    world = World(
        N1,
        MADE,
        make_claim("c1", storage_class="made", storage="1Gi"),
        make_claim("c2", storage_class="made", storage="2Gi"),
        make_volume("v", storage_class="made", storage="2Gi"),
    )

    assert outcome(world, pod_with("c1", "c2"), "n1") == ({"c1": "v"}, ["c2"])


def test_a_claim_mounted_twice_takes_two_volumes():
    world = World(N1, WAIT, make_claim(), make_volume("a"))
    assert outcome(world, pod_with("c", "c"), "n1") == (BIND_CONFLICT,)

    world.show(make_volume("b"))
    state, _ = world.pre_filter(plugin := make_plugin(world), pod_with("c", "c"))
    plugin.filter(state, pod_with("c", "c"), world.node("n1"))

    assert [v.name for _, v in plugin.pod_volumes(state, "n1").static] == ["a", "b"]


@pytest.mark.parametrize(
    ("storage_class", "expected"),
    [
        (make_class("made", provisioner="drv"), ({}, ["c"])),
        (make_class("made", provisioner=""), (BIND_CONFLICT,)),
        (make_class("made"), (BIND_CONFLICT,)),
        (make_class("made", provisioner="drv", topologies=[{ZONE: ["a"]}]), ({}, ["c"])),
        (make_class("made", provisioner="drv", topologies=[{ZONE: ["b"]}]), (BIND_CONFLICT,)),
    ],
)
def test_a_volume_can_be_made_where_its_class_allows(storage_class, expected):
    world = World(N1, storage_class, make_claim(storage_class="made"))

    assert outcome(world, pod_with("c"), "n1") == expected


IN_ZONE_A = make_selector({ZONE: "a"})
TRACKED = make_driver("drv", storage_capacity=True)
SMALL_POOL = make_pool(topology=IN_ZONE_A, capacity="10Gi", largest="1Gi")


@pytest.mark.parametrize(
    ("storage", "objects", "expected", "pool"),
    [
        pytest.param("2Gi", [TRACKED, SMALL_POOL], (NOT_ENOUGH_SPACE,), None),
        pytest.param("1Gi", [TRACKED, SMALL_POOL], ({}, ["c"]), "pool"),
        pytest.param("2Gi", [SMALL_POOL], ({}, ["c"]), None, id="nobody keeps track"),
        pytest.param(
            "2Gi", [make_driver("drv"), SMALL_POOL], ({}, ["c"]), None, id="nor with this driver"
        ),
        pytest.param(None, [TRACKED], ({}, ["c"]), None, id="nothing is asked for"),
        pytest.param("2Gi", [TRACKED], (NOT_ENOUGH_SPACE,), None, id="no pool"),
        pytest.param(
            "2Gi",
            [TRACKED, make_pool(topology=IN_ZONE_A, capacity="2Gi")],
            ({}, ["c"]),
            "pool",
            id="by capacity alone",
        ),
        pytest.param(
            "1",
            [TRACKED, make_pool(topology=IN_ZONE_A)],
            (NOT_ENOUGH_SPACE,),
            None,
            id="a pool that does not say",
        ),
        pytest.param(
            "1",
            [TRACKED, make_pool(topology=IN_ZONE_A, capacity="1Gi", storage_class="other")],
            (NOT_ENOUGH_SPACE,),
            None,
            id="of another class",
        ),
        pytest.param(
            "1",
            [TRACKED, make_pool(capacity="1Gi")],
            (NOT_ENOUGH_SPACE,),
            None,
            id="without a topology",
        ),
        pytest.param(
            "1",
            [TRACKED, make_pool(topology=make_selector(), capacity="1Gi")],
            ({}, ["c"]),
            "pool",
            id="with one for all nodes",
        ),
        pytest.param(
            "1",
            [TRACKED, make_pool(topology=make_selector({ZONE: "b"}), capacity="1Gi")],
            (NOT_ENOUGH_SPACE,),
            None,
            id="in another zone",
        ),
        pytest.param(
            "1",
            [TRACKED, make_pool(topology=make_selector({}, (ZONE, "Bad", [])), capacity="1Gi")],
            (NOT_ENOUGH_SPACE,),
            None,
            id="with one that cannot be read",
        ),
    ],
)
def test_a_volume_can_be_made_where_there_is_room(storage, objects, expected, pool):
    claim = make_claim(storage_class="made", storage=storage)
    world = World(N1, MADE, claim, *objects)
    pod = pod_with("c")

    assert outcome(world, pod, "n1") == expected

    plugin = make_plugin(world)
    state, _ = world.pre_filter(plugin, pod)
    plugin.filter(state, pod, world.node("n1"))
    volumes = plugin.pod_volumes(state, "n1")
    pools = {} if volumes is None else {key: found.name for key, found in volumes.pools.items()}
    assert pools == ({"ns/c": pool} if pool else {})


def test_claims_are_provided_for_one_by_one_until_the_first_that_cannot_be():
    world = World(
        N1,
        WAIT,
        MADE,
        TRACKED,
        make_claim("a", storage="2Gi"),
        make_claim("b", storage="1Gi", storage_class="made"),
    )

    # The smaller claim is looked at first.
    assert outcome(world, pod_with("a", "b"), "n1") == (NOT_ENOUGH_SPACE,)


EBS_VOLUME = make_volume(
    "v",
    labels={ZONE: "a"},
    aws_elastic_block_store=AWSElasticBlockStore(volume_id="vol-1"),
    terms=[make_node_term((ZONE, "In", ["a"]))],
)
CSI_LABELS = {"topology.ebs.csi.aws.com/zone": "a"}


@pytest.mark.parametrize(
    ("csi_node", "expected"),
    [
        pytest.param(None, (NODE_CONFLICT,), id="no CSINode"),
        pytest.param(make_csi_node("n3"), (NODE_CONFLICT,), id="not handed over"),
        pytest.param(
            make_csi_node("n3", migrated="kubernetes.io/aws-ebs"), ({}, []), id="handed over"
        ),
    ],
)
def test_a_bound_in_tree_volume_is_seen_as_the_node_sees_it(csi_node, expected):
    world = World(
        make_node("n3", labels=CSI_LABELS), EBS_VOLUME, make_claim(volume="v", bound=True)
    )
    world.show(*([csi_node] if csi_node else []))

    assert outcome(world, pod_with("c"), "n3") == expected


def test_an_unbound_in_tree_volume_is_taken_as_it_stands():
    world = World(
        make_node("n3", labels=CSI_LABELS),
        make_csi_node("n3", migrated="kubernetes.io/aws-ebs"),
        WAIT,
        make_claim(),
        EBS_VOLUME,
    )

    assert outcome(world, pod_with("c"), "n3") == (BIND_CONFLICT,)


def test_a_volume_that_cannot_be_translated_fails_the_attempt():
    broken = replace(
        EBS_VOLUME,
        spec=replace(
            EBS_VOLUME.spec, aws_elastic_block_store=AWSElasticBlockStore(volume_id="aws://x")
        ),
    )
    world = World(
        N1,
        make_csi_node("n1", migrated="kubernetes.io/aws-ebs"),
        broken,
        make_claim(volume="v", bound=True),
    )

    with pytest.raises(MooringError, match=r"^could not translate pv: failed to translate"):
        outcome(world, pod_with("c"), "n1")


def test_a_selector_that_cannot_be_read_fails_the_attempt():
    claim = make_claim(selector=make_selector({}, ("tier", "Bad", [])))
    world = World(N1, WAIT, claim)

    with pytest.raises(
        MooringError, match=r"^error creating internal label selector for claim: ns/c: "
    ):
        outcome(world, pod_with("c"), "n1")


@pytest.mark.parametrize("method", ["filter", "score", "reserve", "pre_bind_pre_flight"])
def test_without_pre_filter_nothing_can_be_said(method):
    world = World(N1)
    node = world.node("n1") if method in ("filter", "score") else "n1"

    with pytest.raises(PluginError, match=r"^not found$"):
        getattr(make_plugin(world), method)(CycleState(), pod_with("c"), node)


# Score


SHAPE = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
CUSTOM = (
    UtilizationShapePoint(50, 0),
    UtilizationShapePoint(80, 3),
    UtilizationShapePoint(100, 5),
)


def score_of(*sizes, shape=SHAPE):
    """Of claims and volumes of these sizes, each pair of a class of its own."""
    world = World(N1)
    for number, (request, capacity) in enumerate(sizes):
        name = f"k{number}"
        world.show(
            make_class(name),
            make_claim(name, storage_class=name, storage=request),
            make_volume(name, storage_class=name, storage=capacity),
        )
    plugin, pod = make_plugin(world, shape=shape), pod_with(*(f"k{n}" for n in range(len(sizes))))
    state, _ = world.pre_filter(plugin, pod)
    assert plugin.filter(state, pod, world.node("n1")) == SUCCESS
    snapshot = world.cluster.snapshot()
    assert plugin.pre_score(state, pod, snapshot, snapshot.rows) == SUCCESS
    return plugin.score(state, pod, world.node("n1"))


@pytest.mark.parametrize(
    ("sizes", "shape", "expected"),
    [
        pytest.param([(50, 100)], SHAPE, 50),
        pytest.param([(30, 100), (60, 100)], SHAPE, 55, id="(70 + 40) / 2"),
        pytest.param([(90, 100), (90, 100)], CUSTOM, 40, id="30 + 20 * 10 / 20"),
        pytest.param([(30, 100), (60, 100)], CUSTOM, 5, id="(0 + 10) / 2"),
        pytest.param([(100, 100), (29, 100)], SHAPE, 36, id="(0 + 71) / 2, half up"),
        pytest.param([(0, 0)], SHAPE, 0, id="no capacity is a full one"),
    ],
)
def test_storage_is_scored_by_how_full_it_would_be(sizes, shape, expected):
    assert score_of(*sizes, shape=shape) == expected


def test_volumes_of_one_class_are_added_up():
    world = World(N1, WAIT)
    world.show(make_claim("a", storage=10), make_claim("b", storage=40))
    world.show(make_volume("x", storage=20), make_volume("y", storage=80))
    plugin, pod = make_plugin(world, shape=SHAPE), pod_with("a", "b")
    state, _ = world.pre_filter(plugin, pod)
    plugin.filter(state, pod, world.node("n1"))

    assert plugin.score(state, pod, world.node("n1")) == 50  # (10 + 40) of (20 + 80)


def test_volumes_to_be_made_of_one_class_share_a_pool():
    world = World(N1, MADE, TRACKED, make_pool(topology=IN_ZONE_A, capacity=100))
    world.show(make_claim("a", storage_class="made", storage=30))
    world.show(make_claim("b", storage_class="made", storage=30))
    plugin, pod = make_plugin(world, shape=SHAPE), pod_with("a", "b")
    state, _ = world.pre_filter(plugin, pod)
    plugin.filter(state, pod, world.node("n1"))

    assert plugin.score(state, pod, world.node("n1")) == 40  # (30 + 30) of 100


def test_volumes_to_be_made_do_not_count_beside_bound_ones():
    world = World(N1, WAIT, MADE, TRACKED, make_pool(topology=IN_ZONE_A, capacity=100))
    world.show(make_claim("a", storage=50), make_volume("v", storage=100))
    world.show(make_claim("b", storage_class="made", storage=90))
    plugin, pod = make_plugin(world, shape=SHAPE), pod_with("a", "b")
    state, _ = world.pre_filter(plugin, pod)
    plugin.filter(state, pod, world.node("n1"))

    assert plugin.score(state, pod, world.node("n1")) == 50


def test_a_node_on_which_nothing_is_to_be_done_scores_nothing():
    world = World(N1, make_volume("v"), make_claim(volume="v", bound=True))
    plugin, pod = make_plugin(world, shape=SHAPE), pod_with("c")
    state, _ = world.pre_filter(plugin, pod)

    assert plugin.score(state, pod, world.node("n1")) == 0
    plugin.filter(state, pod, world.node("n1"))
    assert plugin.score(state, pod, world.node("n1")) == 0


def test_without_a_shape_nothing_is_scored():
    world = World(N1, WAIT, make_claim(), make_volume())
    plugin, pod = make_plugin(world), pod_with("c")
    state, _ = world.pre_filter(plugin, pod)
    plugin.filter(state, pod, world.node("n1"))
    snapshot = world.cluster.snapshot()

    assert plugin.pre_score(state, pod, snapshot, snapshot.rows) == SKIP
    assert plugin.score(state, pod, world.node("n1")) == 0


# Reserve


def reserved(world, pod, node="n1", **args):
    plugin = make_plugin(world, **args)
    state, status = world.pre_filter(plugin, pod)
    assert status == SUCCESS
    assert plugin.filter(state, pod, world.node(node)) == SUCCESS
    plugin.reserve(state, pod, node)
    return plugin, state


def test_a_reserved_volume_is_taken_before_anything_is_written():
    world = World(
        N1,
        WAIT,
        make_claim("c"),
        make_claim("d"),
        make_volume("a", storage="5Gi", node="n1"),
        make_volume("b", storage="2Gi", node="n1"),
    )
    plugin, state = reserved(world, pod_with("c"))
    assert outcome(world, pod_with("d", name="q"), "n1") == ({"d": "a"}, [])

    plugin.unreserve(state, pod_with("c"), "n1")
    plugin.unreserve(state, pod_with("c"), "n1")
    assert outcome(world, pod_with("d", name="q"), "n1") == ({"d": "b"}, [])


def test_a_reserved_volume_is_taken_in_every_profile():
    world = World(N1, WAIT, make_claim("c"), make_claim("d"), make_volume("v"))
    reserved(world, pod_with("c"))

    assert outcome(world, pod_with("d", name="of another profile"), "n1") == (BIND_CONFLICT,)


def test_a_claim_reserved_to_be_provided_for_is_bound_to_its_node():
    world = World(N1, N2, MADE, make_claim(storage_class="made"))
    reserved(world, pod_with("c"))

    assert world.cluster.volumes.claims.get("ns/c").metadata.annotations == {SELECTED_NODE: "n1"}
    assert outcome(world, pod_with("c"), "n2") == (BIND_CONFLICT,)


REFERENCE = ObjectReference(
    kind="PersistentVolumeClaim",
    api_version="v1",
    namespace="ns",
    name="c",
    uid="uid-c",
    resource_version="1",
)


@pytest.mark.parametrize(
    ("volume", "annotations"),
    [
        (make_volume(), {BOUND_BY_CONTROLLER: "yes"}),
        pytest.param(make_volume(claim="c"), {}, id="set aside by a user"),
        pytest.param(
            make_volume(annotations={BOUND_BY_CONTROLLER: "of old"}),
            {BOUND_BY_CONTROLLER: "of old"},
            id="annotated already",
        ),
    ],
)
def test_a_volume_is_set_aside_for_its_claim_as_the_controller_would(volume, annotations):
    world = World(N1, WAIT, make_claim(), volume)
    reserved(world, pod_with("c"))

    assumed = world.cluster.volumes.volumes.get("v")
    assert assumed.spec.claim_ref == REFERENCE
    assert assumed.metadata.annotations == annotations


def test_a_volume_that_refers_to_its_claim_already_is_left_as_it_is():
    volume = make_volume(claim="c", claim_uid="uid-c")
    world = World(N1, WAIT, make_claim(), volume)
    plugin, state = reserved(world, pod_with("c"))

    assert world.cluster.volumes.volumes.get("v") is volume
    assert plugin.pod_volumes(state, "n1").static[0][1] == volume


def test_a_pod_whose_claims_are_all_bound_has_nothing_to_reserve():
    world = World(N1, make_volume("v"), make_claim(volume="v", bound=True))
    plugin, state = reserved(world, pod_with("c"))

    assert plugin.pre_bind_pre_flight(state, pod_with("c"), "n1") == SKIP


def test_what_is_to_be_bound_is_told_before_it_is():
    world = World(N1, WAIT, make_claim(), make_volume())
    plugin, state = reserved(world, pod_with("c"))

    assert plugin.pre_bind_pre_flight(state, pod_with("c"), "n1") == PreFlight(allow_parallel=True)
    with pytest.raises(PluginError, match=r'^no pod volume found for node "n2"$'):
        plugin.pre_bind_pre_flight(state, pod_with("c"), "n2")


def test_a_node_that_was_never_filtered_has_nothing_to_reserve():
    world = World(N1, WAIT, make_claim(), make_volume())
    plugin, pod = make_plugin(world), pod_with("c")
    state, _ = world.pre_filter(plugin, pod)

    plugin.reserve(state, pod, "n1")

    assert plugin.pre_bind_pre_flight(state, pod, "n1") == SKIP


def test_a_reservation_that_fails_leaves_nothing_assumed():
    volume = make_volume("v", storage_class="made", storage="1Gi")
    claims = [
        make_claim("c1", storage_class="made", storage="1Gi"),
        make_claim("c2", storage_class="made", storage="2Gi"),
        make_claim("c3", storage_class="made", storage="3Gi"),
    ]
    world = World(N1, MADE, volume, *claims)
    plugin, pod = make_plugin(world), pod_with("c1", "c2", "c3")
    state, _ = world.pre_filter(plugin, pod)
    assert plugin.filter(state, pod, world.node("n1")) == SUCCESS
    world.show(with_version(claims[2], "2"))

    with pytest.raises(AssumeError) as failed:
        plugin.reserve(state, pod, "n1")

    assert str(failed.value) == '"ns/c3" is out of sync (stored: 2, assume: 1)'
    assert world.cluster.volumes.volumes.get("v") is volume
    assert world.cluster.volumes.claims.get("ns/c2") is claims[1]
