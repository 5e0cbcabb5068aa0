"""Pods that change while they wait or are tried, and what is kept about them beside."""

from __future__ import annotations

import pytest

from mooring.framework.events import Action, ClusterEvent, EventResource, Hint
from mooring.framework.interface import Nomination
from mooring.objects.taints import Toleration
from mooring.runtime.nominator import Nominator
from tests.makers import make_pod
from tests.queue.world import (
    FIT,
    NODE_ADD,
    POD_LABEL,
    HintSpy,
    World,
)

# Pods change


def test_a_change_to_an_active_pod_gives_it_its_new_turn():
    world = World()
    old = world.add("p", priority=1)
    world.add("q", priority=5)

    world.queue.update(old, make_pod("p", priority=9))

    assert world.where() == "active"
    assert world.pop_names() == ["p", "q"]


def test_a_change_that_does_not_concern_its_order_keeps_an_active_pods_turn():
    world = World()
    old = world.add("p")
    world.add("q")

    world.queue.update(old, make_pod("p", labels={"a": "b"}))

    assert world.pop_names() == ["p", "q"]


@pytest.mark.parametrize("plugins", [(FIT,), ()], ids=["rejected", "failed"])
def test_a_change_to_a_pod_in_backoff_leaves_it_there(plugins):
    world = World(hints=[(NODE_ADD, FIT, None), (POD_LABEL, FIT, None)])
    old = world.add()
    queued = world.pop()
    world.queue.move_all(NODE_ADD)
    world.fail(queued, *plugins)
    assert world.where() == "backoff"

    new = make_pod("p", labels={"a": "b"}, priority=3)
    world.queue.update(old, new)

    assert world.where() == "backoff"
    assert queued.pod is new


def test_a_change_that_a_hint_calls_helpful_gets_a_rejected_pod_out():
    world = World(hints=[(POD_LABEL, FIT, None)])
    queued = world.reject()
    new = make_pod("p", labels={"a": "b"})

    world.queue.update(queued.pod, new)

    assert world.where() == "backoff"
    assert queued.pod is new


def test_a_change_after_the_backoff_makes_a_rejected_pod_active():
    world = World(hints=[(POD_LABEL, FIT, None)])
    queued = world.reject()
    world.clock.advance(2)

    world.queue.update(queued.pod, make_pod("p", labels={"a": "b"}))

    assert world.where() == "active"


@pytest.mark.parametrize(
    "hint", [None, HintSpy(Hint.SKIP)], ids=["not registered", "the hint says skip"]
)
def test_a_change_that_does_not_help_leaves_a_rejected_pod_where_it_is(hint):
    world = World(hints=[(POD_LABEL, FIT, hint)] if hint else [])
    queued = world.reject()
    new = make_pod("p", labels={"a": "b"})

    world.queue.update(queued.pod, new)

    assert world.where() == "unschedulable"
    assert queued.pod is new


def test_of_several_things_that_changed_each_is_asked_about_until_the_pod_is_out():
    hint, unasked = HintSpy(Hint.SKIP), HintSpy(Hint.QUEUE)
    toleration = ClusterEvent(EventResource.POD, Action.UPDATE_POD_TOLERATION)
    gates_gone = ClusterEvent(EventResource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    world = World(
        hints=[(POD_LABEL, FIT, hint), (gates_gone, FIT, None), (toleration, FIT, unasked)]
    )
    queued = world.reject("p", gates=["g"])

    world.queue.update(
        queued.pod, make_pod("p", labels={"a": "b"}, tolerations=[Toleration(operator="Exists")])
    )

    assert len(hint.asked) == 1
    assert unasked.asked == []
    assert world.where() == "backoff"


def test_a_change_to_a_pod_in_flight_is_kept_for_when_it_comes_back():
    world = World(hints=[(POD_LABEL, FIT, None)])
    old = world.add()
    queued = world.pop()

    world.queue.update(old, make_pod("p", labels={"a": "b"}))
    assert world.where() == "in flight"
    world.fail(queued, FIT)

    assert world.where() == "backoff"


def test_a_change_to_an_unknown_pod_makes_it_active():
    world = World()

    world.queue.update(make_pod(), make_pod(labels={"a": "b"}))

    assert world.where() == "active"
    assert world.metrics.incoming["active", "UnschedulablePodUpdate"] == 1


# Nominations


def test_a_pod_that_comes_with_a_nomination_is_nominated():
    world = World()
    pod = world.add("p", nominated="n1")

    assert world.queue.nominator.nominated_pods_for_node("n1") == [pod]


def test_a_nomination_follows_a_pods_status_wherever_it_waits():
    world = World()
    queued = world.reject("p")

    world.queue.update(queued.pod, make_pod("p", nominated="n1"))
    assert world.queue.nominator.nominated_node("default/p") == "n1"
    world.queue.activate({"p": queued.pod})
    world.queue.update(queued.pod, make_pod("p", nominated="n2"))
    assert world.queue.nominator.nominated_node("default/p") == "n2"


def test_a_nomination_that_the_api_has_not_shown_yet_survives_an_update():
    world = World()
    queued = world.reject()
    world.queue.nominator.add(queued.pod, Nomination("n1"))

    world.queue.update(queued.pod, make_pod("p", labels={"a": "b"}))

    assert world.queue.nominator.nominated_node("default/p") == "n1"


def test_a_generic_update_that_makes_a_pod_active_leaves_it_with_what_its_status_says():
    """As in the reference, which takes it for a pod that was just added."""
    any_update = ClusterEvent(EventResource.POD, Action.UPDATE)
    world = World(hints=[(any_update, FIT, None)])
    queued = world.reject()
    world.clock.advance(2)
    world.queue.nominator.add(queued.pod, Nomination("n1"))

    world.queue.update(queued.pod, make_pod("p", annotations={"a": "b"}))

    assert world.where() == "active"
    assert world.queue.nominator.nominated_node("default/p") is None


def test_a_deleted_pod_is_nominated_no_more():
    world = World()
    pod = world.add("p", nominated="n1")

    world.queue.delete(pod)

    assert not world.queue.nominator.has_any


def test_a_nominator_that_is_passed_in_finds_its_pods_in_the_queue():
    nominator = Nominator()
    world = World(nominator=nominator)
    pod = world.add("p", nominated="n1", priority=7)

    assert world.queue.nominator is nominator
    assert nominator.nominated_pods_for_node("n1") == [pod]
    world.pop()
    assert [other.priority for other in nominator.nominated_pods_for_node("n1")] == [0]


# Classes


def test_a_pod_has_a_class_when_it_comes_and_another_when_it_changes():
    world = World(class_of=lambda pod: int(pod.labels["a"]))
    pod = world.add("p", labels={"a": "1"})
    assert world.queue.get("default/p").pod_class == 1

    world.queue.update(pod, make_pod("p", labels={"a": "2"}))

    assert world.queue.get("default/p").pod_class == 2
