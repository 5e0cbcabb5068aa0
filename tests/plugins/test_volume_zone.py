import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, Hint
from mooring.framework.status import SKIP, SUCCESS, unresolvable
from mooring.objects.well_known import BETA_REGION, BETA_ZONE, REGION, ZONE
from mooring.plugins.volume_zone import VolumeZone
from tests.makers import make_node
from tests.plugins.agreement import assert_filters_agree
from tests.volume_world import (
    World,
    make_claim,
    make_class,
    make_ephemeral,
    make_volume,
    pod_with,
)

CONFLICT = unresolvable("node(s) had no available volume zone")


def make_plugin(world):
    return VolumeZone(None, world)


def verdict(volume_labels, node_labels):
    """Of a pod whose one claim is bound to a volume with these labels."""
    world = World(
        make_node("n1", labels=node_labels),
        make_volume("v", labels=volume_labels),
        make_claim("c", volume="v", bound=True),
    )
    plugin, pod = make_plugin(world), pod_with("c")
    state, status = world.pre_filter(plugin, pod)
    if status == SKIP:
        return SKIP
    assert_filters_agree(plugin, state, pod, world.cluster.snapshot())
    # Where PreFilter is switched off, Filter finds the same by itself.
    assert_filters_agree(plugin, CycleState(), pod, world.cluster.snapshot())
    return plugin.filter(state, pod, world.node("n1"))


@pytest.mark.parametrize(
    ("volume", "node", "expected"),
    [
        pytest.param({ZONE: "a__b"}, {ZONE: "b"}, SUCCESS, id="one of its zones"),
        pytest.param({ZONE: "a__b"}, {ZONE: "c"}, CONFLICT, id="another zone"),
        pytest.param({ZONE: "a__b"}, {}, SUCCESS, id="a node without any label"),
        pytest.param({BETA_ZONE: "a"}, {ZONE: "a"}, SUCCESS, id="a beta label on a new node"),
        pytest.param({ZONE: "a"}, {BETA_ZONE: "a"}, CONFLICT, id="but not the reverse"),
        pytest.param(
            {BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, CONFLICT, id="the same label first"
        ),
        pytest.param({ZONE: "a"}, {REGION: "r"}, CONFLICT, id="any of the labels counts as one"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, CONFLICT, id="both"),
        pytest.param({BETA_REGION: "r"}, {REGION: "r"}, SUCCESS, id="a beta region"),
        pytest.param({ZONE: " a __ b "}, {ZONE: "b"}, SUCCESS, id="spaces around zones"),
        pytest.param({ZONE: "a__"}, {ZONE: "b"}, SKIP, id="an empty part voids the label"),
        pytest.param({}, {ZONE: "b"}, SKIP, id="a volume without labels"),
    ],
)
def test_a_pod_stays_where_the_labels_of_its_volumes_are(volume, node, expected):
    assert verdict(volume, node) == expected


topology_labels = st.dictionaries(
    st.sampled_from((ZONE, REGION, BETA_ZONE, BETA_REGION)),
    st.sampled_from(("a", "b", "a__b")),
)


@given(volume=topology_labels, node=topology_labels)
def test_all_rows_at_once_say_what_each_node_says(volume, node):
    verdict(volume, node)


def test_all_volumes_of_a_pod_have_a_say():
    world = World(
        make_node("n1", zone="a"),
        make_volume("v1", labels={ZONE: "a"}),
        make_volume("v2", labels={ZONE: "b"}),
        make_claim("c1", volume="v1"),
        make_claim("c2", volume="v2"),
    )

    assert world.filter(make_plugin(world), pod_with("c1")) == SUCCESS
    assert world.filter(make_plugin(world), pod_with("c1", "c2")) == CONFLICT


@pytest.mark.parametrize(
    ("claim", "classes", "expected"),
    [
        pytest.param(None, [], unresolvable('persistentvolumeclaim "c" not found'), id="no claim"),
        pytest.param(
            make_claim("c", storage_class=None),
            [],
            unresolvable("PersistentVolumeClaim had no pv name and storageClass name"),
            id="neither volume nor class",
        ),
        pytest.param(
            make_claim("c", storage_class="ghost"),
            [],
            unresolvable('storageclass.storage.k8s.io "ghost" not found'),
            id="no such class",
        ),
        pytest.param(
            make_claim("c"),
            [make_class("wait", mode=None)],
            unresolvable('VolumeBindingMode not set for StorageClass "wait"'),
            id="a class without a mode",
        ),
        pytest.param(make_claim("c"), [make_class("wait")], SKIP, id="a claim that waits"),
        pytest.param(
            make_claim("c"),
            [make_class("wait", mode="Immediate")],
            unresolvable("PersistentVolume had no name"),
            id="a claim that does not wait",
        ),
        pytest.param(
            make_claim("c", volume="gone"),
            [],
            unresolvable('persistentvolume "gone" not found'),
            id="no such volume",
        ),
    ],
)
def test_a_claim_whose_volume_cannot_be_known_is_refused(claim, classes, expected):
    world = World(*classes, *([claim] if claim else []))
    plugin, pod = make_plugin(world), pod_with("c")

    assert world.pre_filter(plugin, pod)[1] == expected
    if expected != SKIP:
        world.show(make_node("n1"))
        assert plugin.filter(CycleState(), pod, world.node("n1")) == expected
        assert_filters_agree(plugin, CycleState(), pod, world.cluster.snapshot())


def test_a_claim_without_a_name_is_refused():
    world = World()

    assert world.pre_filter(make_plugin(world), pod_with(""))[1] == unresolvable(
        "PersistentVolumeClaim had no name"
    )


@pytest.mark.parametrize(
    "pod", [pod_with(), pod_with(volumes=[make_ephemeral("data")])], ids=["none", "ephemeral"]
)
def test_only_claims_that_a_pod_names_are_looked_at(pod):
    world = World()

    assert world.pre_filter(make_plugin(world), pod)[1] == SKIP


CLASS_ADD = (EventResource.STORAGE_CLASS, Action.ADD)
CLAIM = (EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD | Action.UPDATE)
VOLUME = (EventResource.PERSISTENT_VOLUME, Action.ADD | Action.UPDATE)


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        (CLASS_ADD, None, make_class(), Hint.QUEUE),
        (CLASS_ADD, None, make_class(mode="Immediate"), Hint.SKIP),
        (CLASS_ADD, None, make_class(mode=None), Hint.SKIP),
        (CLAIM, None, make_claim("c"), Hint.QUEUE),
        (CLAIM, make_claim("c"), make_claim("c", volume="v"), Hint.QUEUE),
        (CLAIM, None, make_claim("other"), Hint.SKIP),
        (CLAIM, None, make_claim("c", namespace="other"), Hint.SKIP),
        pytest.param(CLAIM, None, make_claim("p-data"), Hint.SKIP, id="an ephemeral volume"),
        (VOLUME, None, make_volume(), Hint.QUEUE),
        (VOLUME, make_volume(), make_volume(labels={ZONE: "a"}), Hint.QUEUE),
        (VOLUME, make_volume(labels={ZONE: "a"}), make_volume(labels={ZONE: "b"}), Hint.QUEUE),
        (VOLUME, make_volume(), make_volume(phase="Bound"), Hint.SKIP),
        pytest.param(
            VOLUME,
            make_volume(labels={ZONE: "a__b"}),
            make_volume(labels={ZONE: "b__a"}),
            Hint.SKIP,
            id="the same zones",
        ),
    ],
)
def test_an_event_that_may_help_wakes_the_pod(event, old, new, expected):
    pod = pod_with("c", volumes=[make_ephemeral("data")])
    hints = {e.event: e.hint for e in make_plugin(World()).events_to_register()}

    assert hints[ClusterEvent(*event)](pod, old, new) == expected


def test_every_node_that_comes_or_changes_its_labels_wakes_the_pod():
    events = {e.event: e.hint for e in make_plugin(World()).events_to_register()}

    assert len(events) == 4
    assert events[ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)] is None
