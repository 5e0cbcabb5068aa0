"""Pods of a group: back to backoff after each failure, and out of it early only for a reason."""

from __future__ import annotations

from mooring.framework.events import Action, ClusterEvent, EventResource
from tests.queue.world import FIT, NODE_ADD, World

UNRELATED = ClusterEvent(EventResource.DEVICE_CLASS, Action.ADD)


def world() -> World:
    return World(groups_back_off=True)


def test_a_member_that_was_rejected_waits_in_backoff_and_not_for_an_event():
    w = world()

    queued = w.reject("p", FIT, group="g")

    assert w.where("p") == "backoff"
    assert queued.waits_out
    assert w.queue.pop() is None, "nothing has happened that may help"
    w.queue.validate()


def test_without_a_group_or_without_the_gate_it_waits_for_an_event():
    w = world()
    w.reject("p", FIT)
    off = World()
    off.reject("p", FIT, group="g")

    assert w.where("p") == off.where("p") == "unschedulable"


def test_an_event_that_may_help_lets_a_member_go_before_its_backoff_ends():
    w = world()
    w.reject("p", FIT, group="g")

    w.queue.move_all(UNRELATED)
    assert not w.queue.ready
    w.queue.move_all(NODE_ADD)

    assert w.queue.ready
    assert w.pop().pod.name == "p"
    w.queue.validate()


def test_what_happened_during_the_attempt_counts_too():
    w = world()
    w.add("p", group="g")
    queued = w.pop()
    w.queue.move_all(NODE_ADD)
    w.fail(queued, FIT)

    assert not queued.waits_out
    assert w.pop() is queued


def test_a_member_is_tried_again_when_its_backoff_is_over():
    w = world()
    w.reject("p", FIT, group="g")
    w.clock.advance(3)
    w.queue.flush_backoff_completed()

    assert w.pop().pod.name == "p"


def test_a_closed_gate_is_not_asked():
    from mooring.framework.status import unresolvable

    asked = []

    def gate(pod):
        asked.append(pod.name)
        return unresolvable("no")

    event = ClusterEvent(EventResource.NODE, Action.ADD)
    w = World(pre_enqueue=[("Gate", gate)], hints=[(event, "Gate", None)])
    w.add("p")
    asked.clear()

    w.queue.move_all(NODE_ADD, closed_gate="Gate")
    assert asked == []
    w.queue.move_all(NODE_ADD)
    assert asked == ["p"]
