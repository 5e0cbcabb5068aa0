"""The queue: pods come, are counted, wake the driver and go."""

from __future__ import annotations

import pytest

from mooring.errors import InvariantError
from tests.makers import make_pod
from tests.queue.world import (
    FIT,
    NODE_ADD,
    POD_LABEL,
    ByPriority,
    ByPriorityKey,
    Gate,
    World,
)

# Pods come and are popped


def test_a_new_pod_is_active_and_then_in_flight_until_done():
    world = World()
    pod = world.add()
    assert world.where() == "active"

    queued = world.pop()

    assert queued.pod is pod
    assert world.reports == []
    assert world.where() == "in flight"
    world.queue.done(pod.uid)
    assert world.where() == "nowhere"


@pytest.mark.parametrize("sort", [ByPriority(), ByPriorityKey()], ids=["less", "sort_key"])
def test_pods_are_popped_as_queue_sort_says_and_of_equals_the_first_to_come(sort):
    world = World(queue_sort=sort)
    world.add("low", priority=1)
    world.add("high-1", priority=5)
    world.add("high-2", priority=5)
    world.clock.advance(1)
    world.add("high-later", priority=5)
    world.add("no-priority")

    names = world.pop_names()

    assert names == ["high-1", "high-2", "high-later", "low", "no-priority"]


def test_an_empty_queue_has_nothing_to_pop():
    world = World()

    assert world.queue.pop() is None
    assert not world.queue.ready


def test_every_pop_is_an_attempt():
    world = World()
    queued = world.reject("p", times=2)
    world.add("other")
    world.pop()

    assert queued.attempts == 2


def test_the_first_attempt_is_dated_by_the_first_arrival_in_the_active_queue():
    world = World()
    queued = world.reject()
    world.clock.advance(100)

    world.fail_again("p", FIT)

    assert queued.initial_attempt_timestamp == 1000
    assert queued.timestamp == 1100


def test_a_pod_that_is_in_flight_already_is_dropped_when_popped_again():
    """1. p is popped. 2. Its add is told a second time. 3. It is popped again, with q behind it."""
    world = World()
    pod = world.add("p", priority=1)
    world.add("q")
    world.pop()
    world.queue.add(pod)

    queued = world.pop()

    assert queued.pod.name == "q"
    assert "the same pod is tracked in multiple places in the scheduler: default/p" in world.reports
    assert world.where("p") == "in flight"


def test_a_pod_re_created_under_its_name_takes_its_place_in_the_queue():
    world = World()
    world.add("p", uid="1")

    world.add("p", uid="2")

    assert world.where() == "active"
    assert [queued.uid for queued in world.queue.active_pods()] == ["2"]


@pytest.mark.parametrize("place", ["unschedulable", "backoff"])
def test_a_pod_re_created_while_its_predecessor_waits_elsewhere_replaces_it(place):
    world = World()
    world.reject("p", uid="1")
    if place == "backoff":
        world.queue.move_all(NODE_ADD)
    assert world.where() == place

    world.add("p", uid="2")

    assert world.where() == "active"


def test_a_pod_re_created_while_its_predecessor_is_in_flight_waits_beside_it():
    world = World()
    world.add("p", uid="1")
    world.pop()

    world.add("p", uid="2")
    world.queue.done("1")

    assert world.where() == "active"
    assert world.pop().uid == "2"


def test_pop_specific_takes_the_pod_from_wherever_it_waits():
    world = World()
    active = world.add("active")
    world.reject("unschedulable")
    world.reject("backoff", times=1)
    world.queue.move_all(NODE_ADD, pre_check=lambda pod: pod.name == "backoff")
    assert world.where("backoff") == "backoff"

    for pod in (active, make_pod("unschedulable"), make_pod("backoff")):
        queued = world.queue.pop_specific(pod)
        assert queued is not None
        assert world.where(pod.name) == "in flight"
    assert world.queue.pop_specific(make_pod("unknown")) is None


def test_pop_specific_drops_a_pod_that_is_in_flight_already():
    world = World()
    pod = world.add()
    world.pop()
    world.queue.add(pod)

    assert world.queue.pop_specific(pod) is None
    assert world.reports
    assert world.where() == "in flight"


# Pods go


@pytest.mark.parametrize("place", ["active", "backoff", "failed", "unschedulable"])
def test_a_deleted_pod_leaves_wherever_it_waits(place):
    world = World()
    pod = world.add()
    if place != "active":
        queued = world.pop()
        if place == "backoff":
            world.queue.move_all(NODE_ADD)
        world.fail(queued, *([] if place == "failed" else [FIT]))

    world.queue.delete(pod)

    assert world.where() == "nowhere"
    assert "default/p" not in world.queue


def test_a_deleted_pod_in_flight_stays_so_until_it_is_done():
    world = World()
    pod = world.add()
    world.pop()

    world.queue.delete(pod)

    assert world.where() == "in flight"


# What is in the queue


def test_the_pods_of_every_place_are_counted_and_listed():
    world = World(pre_enqueue=[("Gate", Gate("gated"))])
    world.reject("backoff")
    world.queue.move_all(NODE_ADD)
    world.reject("unschedulable")
    world.add("active-1")
    world.add("active-2")

    world.add("gated")

    pods, summary = world.queue.pending_pods()

    names = ["active-1", "active-2", "backoff", "unschedulable", "gated"]
    assert summary == "activeQ:2; backoffQ:1; unschedulablePods:2"
    assert [pod.name for pod in pods] == names
    assert all(f"default/{name}" in world.queue for name in names)
    assert world.queue.counts() == (2, 1, 1, 1)
    assert world.queue.get("default/backoff").pod.name == "backoff"
    assert world.queue.get("default/none") is None


# Waking the driver


def test_the_driver_is_woken_once_for_each_operation_that_makes_something_poppable():
    world = World()
    world.add()
    assert world.wakes == 1
    queued = world.pop()
    assert world.wakes == 1
    world.fail(queued, FIT)
    assert world.wakes == 1, "an unschedulable pod cannot be popped"
    world.reject("q")
    wakes = world.wakes

    world.queue.move_all(NODE_ADD)

    assert world.queue.counts().backoff == 2
    assert world.wakes == wakes + 1


@pytest.mark.parametrize(
    "operation",
    [
        lambda queue: queue.add(make_pod("new")),
        lambda queue: queue.update(make_pod("new"), make_pod("new", labels={"a": "b"})),
        lambda queue: queue.update(make_pod(), make_pod(labels={"a": "b"})),
        lambda queue: queue.activate({"p": make_pod()}),
        lambda queue: queue.move_all(NODE_ADD),
        lambda queue: queue.flush_unschedulable_leftover(),
    ],
    ids=["add", "update unknown", "update helpful", "activate", "move_all", "flush"],
)
def test_whatever_brings_in_a_pod_wakes_the_driver(operation):
    world = World(hints=[(NODE_ADD, FIT, None), (POD_LABEL, FIT, None)])
    world.reject()
    world.clock.advance(301)
    wakes = world.wakes

    operation(world.queue)

    assert world.queue.ready
    assert world.wakes == wakes + 1


def test_a_pod_that_comes_back_for_another_try_wakes_the_driver():
    world = World()
    world.add()
    queued = world.pop()
    world.queue.move_all(NODE_ADD)
    wakes = world.wakes

    world.fail(queued, FIT)

    assert world.wakes == wakes + 1


def test_an_operation_that_brings_in_nothing_wakes_nobody_though_pods_are_waiting():
    world = World(pre_enqueue=[("Gate", Gate("gated"))])
    world.add()
    assert (world.queue.ready, world.wakes) == (True, 1)

    world.add("gated")
    world.queue.move_all(NODE_ADD)
    world.queue.flush_backoff_completed()

    assert world.wakes == 1


def test_the_driver_is_not_woken_for_a_pod_that_waits_out_an_error_backoff():
    world = World()
    world.add()
    queued = world.pop()
    wakes = world.wakes

    world.fail(queued)
    assert world.wakes == wakes
    world.clock.advance(2)
    world.queue.flush_backoff_completed()
    assert world.wakes == wakes + 1


def test_a_closed_queue_forgets_what_is_in_flight_and_moves_nothing_by_time():
    world = World()
    world.add("in-flight", priority=9)
    world.pop()
    world.add("failed", priority=8)
    world.fail(world.pop())
    world.reject("rejected", priority=7)
    world.add("active")
    wakes = world.wakes

    world.queue.close()

    assert world.queue.closed
    assert world.wakes == wakes + 1
    assert world.queue.in_flight_pods() == []
    world.clock.advance(1000)
    world.queue.flush_backoff_completed()
    world.queue.flush_unschedulable_leftover()
    assert world.where("failed") == "backoff"
    assert world.where("rejected") == "unschedulable"
    assert world.pop_names() == ["active"]
    world.queue.done("default/in-flight")


# Consistency


def test_a_pod_that_waits_in_two_queues_is_found_out():
    world = World()
    world.add()
    queued = world.queue.active_pods()[0]

    world.queue._queues.unschedulable.put(queued)

    with pytest.raises(InvariantError, match="two queues"):
        world.queue.validate()
