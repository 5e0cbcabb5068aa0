import pytest

from mooring.framework.events import Action, ClusterEvent, EventResource, Hint
from mooring.objects.storage import CSIVolumeSource, Volume
from mooring.plugins.volume_binding import VolumeBinding
from tests.volume_world import (
    World,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_ephemeral,
    make_pool,
    pod_with,
)

ADD_OR_UPDATE = Action.ADD | Action.UPDATE
EVENTS = {e.event: e.hint for e in VolumeBinding(None, World()).events_to_register()}

POD = pod_with(
    "c",
    volumes=[
        make_ephemeral("data"),
        Volume(name="own", csi=CSIVolumeSource(driver="drv")),
    ],
)
TRACKED = make_driver("drv", storage_capacity=True)


@pytest.mark.parametrize(
    ("resource", "action", "old", "new", "expected"),
    [
        (EventResource.STORAGE_CLASS, ADD_OR_UPDATE, None, make_class(), Hint.QUEUE),
        (EventResource.STORAGE_CLASS, ADD_OR_UPDATE, make_class(), make_class(), Hint.SKIP),
        pytest.param(
            EventResource.STORAGE_CLASS,
            ADD_OR_UPDATE,
            make_class(),
            make_class(provisioner="other"),
            Hint.SKIP,
            id="a class that changes otherwise",
        ),
        pytest.param(
            EventResource.STORAGE_CLASS,
            ADD_OR_UPDATE,
            make_class(topologies=[{"zone": ["a"]}]),
            make_class(topologies=[{"zone": ["b"]}]),
            Hint.QUEUE,
            id="a class of other topologies",
        ),
        (EventResource.PERSISTENT_VOLUME_CLAIM, ADD_OR_UPDATE, None, make_claim("c"), Hint.QUEUE),
        (
            EventResource.PERSISTENT_VOLUME_CLAIM,
            ADD_OR_UPDATE,
            make_claim("p-data"),
            make_claim("p-data"),
            Hint.QUEUE,
        ),
        (EventResource.PERSISTENT_VOLUME_CLAIM, ADD_OR_UPDATE, None, make_claim("d"), Hint.SKIP),
        (
            EventResource.PERSISTENT_VOLUME_CLAIM,
            ADD_OR_UPDATE,
            None,
            make_claim("c", namespace="another"),
            Hint.SKIP,
        ),
        (EventResource.CSI_NODE, ADD_OR_UPDATE, None, make_csi_node("n"), Hint.QUEUE),
        (
            EventResource.CSI_NODE,
            ADD_OR_UPDATE,
            make_csi_node("n", migrated="a"),
            make_csi_node("n", migrated="a,b"),
            Hint.QUEUE,
        ),
        pytest.param(
            EventResource.CSI_NODE,
            ADD_OR_UPDATE,
            make_csi_node("n"),
            make_csi_node("n", {"drv": 1}, migrated=""),
            Hint.SKIP,
            id="a CSINode that changes otherwise",
        ),
        (EventResource.CSI_DRIVER, Action.UPDATE, TRACKED, make_driver("drv"), Hint.QUEUE),
        (
            EventResource.CSI_DRIVER,
            Action.UPDATE,
            TRACKED,
            make_driver("drv", storage_capacity=False),
            Hint.QUEUE,
        ),
        (EventResource.CSI_DRIVER, Action.UPDATE, TRACKED, TRACKED, Hint.SKIP),
        (EventResource.CSI_DRIVER, Action.UPDATE, make_driver("drv"), TRACKED, Hint.SKIP),
        pytest.param(
            EventResource.CSI_DRIVER,
            Action.UPDATE,
            make_driver("other", storage_capacity=True),
            make_driver("other"),
            Hint.SKIP,
            id="a driver that the pod names no volume of",
        ),
        (EventResource.CSI_STORAGE_CAPACITY, ADD_OR_UPDATE, None, make_pool(), Hint.QUEUE),
        (
            EventResource.CSI_STORAGE_CAPACITY,
            ADD_OR_UPDATE,
            make_pool(capacity=1),
            make_pool(capacity=2, storage_class="any"),
            Hint.QUEUE,
        ),
        (
            EventResource.CSI_STORAGE_CAPACITY,
            ADD_OR_UPDATE,
            make_pool(capacity=2),
            make_pool(capacity=1),
            Hint.SKIP,
        ),
        (
            EventResource.CSI_STORAGE_CAPACITY,
            ADD_OR_UPDATE,
            make_pool(),
            make_pool(capacity=1),
            Hint.QUEUE,
        ),
        (
            EventResource.CSI_STORAGE_CAPACITY,
            ADD_OR_UPDATE,
            make_pool(capacity=1),
            make_pool(),
            Hint.SKIP,
        ),
        pytest.param(
            EventResource.CSI_STORAGE_CAPACITY,
            ADD_OR_UPDATE,
            make_pool(capacity=1, largest=2),
            make_pool(capacity=9, largest=2),
            Hint.SKIP,
            id="the largest volume counts before the capacity",
        ),
    ],
)
def test_an_event_that_may_help_wakes_the_pod(resource, action, old, new, expected):
    assert EVENTS[ClusterEvent(resource, action)](POD, old, new) == expected


def test_a_driver_of_a_claim_is_not_looked_for():
    event = ClusterEvent(EventResource.CSI_DRIVER, Action.UPDATE)

    assert EVENTS[event](pod_with("c"), TRACKED, make_driver("drv")) == Hint.SKIP


@pytest.mark.parametrize(
    "event",
    [
        ClusterEvent(EventResource.PERSISTENT_VOLUME, ADD_OR_UPDATE),
        ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
    ],
)
def test_volumes_and_nodes_always_wake_the_pod(event):
    assert EVENTS[event] is None
    assert len(EVENTS) == 7
