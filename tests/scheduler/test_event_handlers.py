"""What happens in the cluster, told to the books and to the queue."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import pytest
from msgspec.structs import replace

from mooring.framework.events import Action, ClusterEvent, EventResource, EventWithHint, Hint
from mooring.framework.status import unschedulable, wait
from mooring.objects.kinds import KINDS
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod
from mooring.objects.storage import PersistentVolume
from tests.makers import make_node, make_pod
from tests.scheduler.world import World

#: What moved the waiting pod, in order: (resource, what happened, old, new).
HEARD: list[tuple[str, str, str, str]] = []

RESOURCES = [resource for resource in EventResource if resource not in ("*", "AssignedPod")]
DELETING = datetime(2026, 1, 1, tzinfo=UTC)


def hear(resource, pod, old, new):
    what = "add" if old is None else "delete" if new is None else "update"
    HEARD.append((str(resource), what, getattr(old, "name", ""), getattr(new, "name", "")))
    return Hint.SKIP


class Listens:
    """Rejects pods called `waiting`, and hears of everything ever after."""

    name = "Listens"

    def filter(self, state, pod, node):
        return unschedulable("no") if pod.name.startswith("waiting") else None

    def events_to_register(self):
        return [
            EventWithHint(ClusterEvent(resource, Action.ALL), partial(hear, resource))
            for resource in RESOURCES
        ]


class Holds:
    def permit(self, state, pod, node_name):
        return wait() if pod.name.startswith("held") else None


@pytest.fixture
def world():
    """A node, and a pod of priority 5 that waits for something to happen."""
    world = World(Listens, Holds).with_node("n")
    world.attempt(make_pod("waiting", priority=5))
    HEARD.clear()
    yield world
    for work in world.spawned:
        work.close()
    world.scheduler.validate()


def heard() -> list[tuple[str, str]]:
    return [(resource, what) for resource, what, _, _ in HEARD]


def changed(pod: Pod, **metadata) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, **metadata))


# Pods on nodes


def test_a_pod_that_appears_on_a_node_counts_there_and_is_news(world):
    world.handlers.added(make_pod("p", node="n", cpu=1))

    assert world.scheduler.cluster.infos["n"].requested["cpu"] == 1000
    assert HEARD == [("Pod", "add", "", "p")]


def test_a_pod_on_a_node_that_changes_is_counted_anew_and_each_change_is_news(world):
    pod = make_pod("p", node="n", cpu=2)
    world.handlers.added(pod)
    HEARD.clear()

    world.handlers.updated(pod, make_pod("p", node="n", cpu=1, labels={"app": "x"}))

    assert world.scheduler.cluster.infos["n"].requested["cpu"] == 1000
    assert heard() == [("Pod", "update"), ("Pod", "update")], "a label, and less cpu"


def test_a_pod_that_leaves_its_node_frees_it_and_is_news(world):
    pod = make_pod("p", node="n", cpu=2)
    world.handlers.added(pod)
    HEARD.clear()

    world.handlers.deleted(pod)

    assert world.scheduler.cluster.pods == {}
    assert HEARD == [("Pod", "delete", "p", "")]


def test_a_pod_that_finishes_leaves_its_node_as_if_it_were_deleted(world):
    pod = make_pod("p", node="n", cpu=2)
    world.handlers.added(pod)
    HEARD.clear()

    finished = pod.with_status(phase="Succeeded")
    world.handlers.updated(pod, finished)

    assert world.scheduler.cluster.pods == {}
    assert heard() == [("Pod", "delete")]
    assert pod.key not in world.scheduler.observed_pods


def test_what_happens_to_a_finished_pod_is_no_news(world, caplog):
    pod = make_pod("p", node="n")
    finished = pod.with_status(phase="Failed")
    world.handlers.added(pod)
    world.handlers.updated(pod, finished)
    HEARD.clear()

    world.handlers.updated(finished, changed(finished, labels={"a": "b"}))
    world.handlers.deleted(finished)
    world.handlers.added(finished)

    assert HEARD == []
    assert caplog.records == []


def test_a_pod_that_is_given_its_node_leaves_the_queue(world):
    pod = make_pod("waiting-too")
    world.attempt(pod)
    HEARD.clear()

    world.handlers.updated(pod, make_pod("waiting-too", node="n"))

    assert world.where(pod) == "nowhere"
    assert "default/waiting-too" in world.scheduler.cluster.pods
    assert heard().count(("Pod", "add")) >= 1


@pytest.mark.parametrize(
    ("handle", "message"),
    [
        pytest.param(
            lambda on: (on.added(make_pod("p", node="n")), on.added(make_pod("p", node="n"))),
            "was already in added state",
            id="added twice",
        ),
        pytest.param(
            lambda on: on.updated(make_pod("p", node="n"), make_pod("p", node="n", cpu=1)),
            "is not added to scheduler cache, so cannot be updated",
            id="updated without being added",
        ),
        pytest.param(
            lambda on: on.deleted(make_pod("p", node="n")),
            "is not found in scheduler cache",
            id="deleted without being added",
        ),
        pytest.param(
            lambda on: on.deleted(make_node("m")), "node m is not found", id="an unknown node"
        ),
    ],
)
def test_what_the_books_do_not_allow_is_logged_and_what_comes_next_decides(
    world, caplog, handle, message
):
    handle(world.handlers)

    assert message in caplog.text


# Pods that wait for a node


def test_a_pod_without_a_node_is_queued_if_a_profile_handles_it(world):
    world.handlers.added(make_pod("p"))
    world.handlers.added(make_pod("q", scheduler="another"))

    assert world.where(make_pod("p")) == "active"
    assert world.where(make_pod("q")) == "nowhere"
    assert HEARD == []


def test_a_change_of_a_queued_pod_reaches_the_queue(world):
    pod = make_pod("p")
    world.handlers.added(pod)

    world.handlers.updated(pod, make_pod("p", labels={"app": "x"}))

    (queued,) = world.scheduler.queue.active_pods()
    assert queued.pod.labels == {"app": "x"}


def test_a_resync_that_changes_nothing_is_ignored(world):
    pod = changed(make_pod("p"), resource_version="7")
    world.handlers.added(pod)

    world.handlers.updated(pod, changed(make_pod("p", labels={"app": "x"}), resource_version="7"))

    (queued,) = world.scheduler.queue.active_pods()
    assert queued.pod is pod


def test_a_queued_pod_that_is_deleted_leaves_the_queue(world):
    pod = make_pod("p")
    world.handlers.added(pod)

    world.handlers.deleted(pod)

    assert world.where(pod) == "nowhere"
    assert HEARD == [], "nothing was held for it"


@pytest.mark.parametrize(
    ("priority", "told"),
    [
        pytest.param(6, True, id="more important than the pod that waits"),
        pytest.param(5, True, id="as important"),
        pytest.param(4, False, id="less important: it never stood in its way"),
    ],
)
@pytest.mark.parametrize("how", ["deleted", "moved"])
def test_a_node_held_no_longer_is_news_to_those_it_was_held_against(world, how, priority, told):
    pod = make_pod("p", priority=priority, nominated="n")
    world.handlers.added(pod)
    HEARD.clear()

    if how == "deleted":
        world.handlers.deleted(pod)
    else:
        world.handlers.updated(pod, make_pod("p", priority=priority, nominated="m"))

    assert ([("Pod", "delete", "p", "")] if told else []) == HEARD


def test_a_nomination_that_stays_is_no_news(world):
    pod = make_pod("p", priority=9, nominated="n")
    world.handlers.added(pod)

    world.handlers.updated(pod, make_pod("p", priority=9, nominated="n", labels={"a": "b"}))

    assert HEARD == []


# Pods that are assumed


def assume(world, pod: Pod) -> None:
    """Try it; its binding cycle is not run."""
    world.handlers.added(pod)
    world.scheduler.schedule_one()
    assert world.scheduler.cluster.is_assumed(pod)
    HEARD.clear()


def test_an_assumed_pod_is_confirmed_by_the_watch(world):
    pod = make_pod("p")
    assume(world, pod)

    world.handlers.updated(pod, make_pod("p", node="n"))

    assert not world.scheduler.cluster.is_assumed(pod)
    assert heard() == [("Pod", "add")]


def test_an_assumed_pod_that_changes_stays_as_it_was_assumed(world):
    pod = make_pod("p")
    assume(world, pod)

    world.handlers.updated(pod, make_pod("p", labels={"app": "x"}))

    assert world.scheduler.cluster.pods[pod.uid].labels == {}
    assert world.where(pod) == "nowhere"
    assert world.scheduler.observed_pods[pod.key].labels == {"app": "x"}
    assert HEARD == []


@pytest.mark.parametrize("how", ["deleted", "terminating"])
def test_an_assumed_pod_that_goes_away_frees_its_place_at_once(world, how):
    pod = make_pod("p", cpu=1)
    assume(world, pod)

    if how == "deleted":
        world.handlers.deleted(pod)
    else:
        world.handlers.updated(pod, make_pod("p", cpu=1, deleting=DELETING))

    assert world.scheduler.cluster.pods == {}
    assert HEARD == [("Pod", "delete", "p", "")]


@pytest.mark.parametrize("how", ["deleted", "terminating"])
def test_a_waiting_pod_that_goes_away_is_rejected_and_its_place_freed_by_its_binding(world, how):
    pod = make_pod("held")
    assume(world, pod)

    if how == "deleted":
        world.handlers.deleted(pod)
    else:
        world.handlers.updated(pod, make_pod("held", deleting=DELETING))

    assert world.scheduler.waiting_pods.get(pod.uid).decided
    assert world.scheduler.cluster.is_assumed(pod)
    assert HEARD == [("Pod", "delete", "held", "")]


def test_a_pod_that_went_on_terminating_is_not_freed_twice(world):
    pod = make_pod("p", deleting=DELETING)
    assumed = make_pod("p")
    assume(world, assumed)
    world.handlers.updated(assumed, pod)
    HEARD.clear()

    world.handlers.updated(pod, changed(pod, labels={"a": "b"}))

    assert ("Pod", "delete") not in heard()


# Nodes


def test_a_node_that_joins_can_be_used_and_is_news(world):
    world.handlers.added(make_node("m"))

    assert "m" in world.scheduler.cluster.snapshot()
    assert HEARD == [("Node", "add", "", "m")]


def test_each_change_of_a_node_is_news(world):
    world.handlers.updated(
        make_node("n"), make_node("n", cpu=8, labels={"a": "b"}, taints=["k:NoSchedule"])
    )

    assert heard() == [("Node", "update")] * 3
    assert world.scheduler.cluster.infos["n"].allocatable["cpu"] == 8000


def test_a_heartbeat_is_no_news(world):
    world.handlers.updated(make_node("n"), make_node("n"))

    assert HEARD == []


def test_a_node_that_leaves_is_news_before_it_is_gone():
    """A hint may look at the node that is about to leave."""
    was_there = []

    def look(pod, old, new):
        was_there.append(old.name in world.scheduler.cluster.infos)
        return Hint.SKIP

    class Looks(Listens):
        name = "Looks"

        def events_to_register(self):
            return [EventWithHint(ClusterEvent(EventResource.NODE, Action.DELETE), look)]

    world = World(Looks).with_node("n")
    world.attempt(make_pod("waiting"))

    world.handlers.deleted(make_node("n"))

    assert was_there == [True]
    assert "n" not in world.scheduler.cluster.infos


# Everything else


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.listed and kind.events], ids=lambda kind: kind.name
)
def test_other_objects_are_known_and_news_when_they_come_change_and_go(world, kind):
    listers = world.scheduler.cluster.listers
    obj, resource = kind.struct(metadata=ObjectMeta(name="x")), kind.event_resource
    after = replace(obj, metadata=replace(obj.metadata, labels={"a": "b"}))

    world.handlers.added(obj)
    assert listers.get(type(obj), obj.key) is obj
    world.handlers.updated(obj, after)
    assert listers.get(type(obj), obj.key) is after
    world.handlers.deleted(after)
    assert listers.get(type(obj), obj.key) is None

    assert [
        (resource, "add", "", "x"),
        (resource, "update", "x", "x"),
        (resource, "delete", "x", ""),
    ] == HEARD


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.listed and not kind.events], ids=lambda kind: kind.name
)
def test_objects_that_no_event_is_about_are_known_and_no_news(world, kind):
    obj = kind.struct(metadata=ObjectMeta(name="x"))
    world.handlers.added(obj)

    assert world.scheduler.cluster.listers.get(type(obj), obj.key) is obj
    assert HEARD == []


def test_an_object_that_nobody_knows_is_not_there(world):
    assert world.scheduler.cluster.listers.get(PersistentVolume, "x") is None
