"""Pods that come back after a failed attempt: where they go, and how long they wait there."""

from __future__ import annotations

import pytest

from mooring.framework.events import Hint
from tests.makers import make_node, make_pod
from tests.queue.world import (
    ASSIGNED_POD_DELETE,
    CLAIM_ADD,
    CLAIMS,
    FIT,
    NODE_ADD,
    NODE_LABEL,
    HintSpy,
    World,
)

# Pods fail


def test_a_rejected_pod_waits_for_something_to_happen():
    world = World()

    queued = world.reject()

    assert world.where() == "unschedulable"
    assert (queued.unschedulable_count, queued.consecutive_errors_count) == (1, 0)


def test_a_pod_that_failed_without_a_plugin_waits_out_an_error_backoff():
    world = World()
    world.add()

    queued = world.fail(world.pop())

    assert world.where() == "backoff"
    assert (queued.unschedulable_count, queued.consecutive_errors_count) == (0, 1)
    assert world.queue.pop() is None


def test_a_rejection_ends_the_row_of_errors():
    world = World()
    world.add()
    queued = world.fail_again("p", times=3)
    assert queued.consecutive_errors_count == 3

    world.fail_again("p", FIT)

    assert (queued.unschedulable_count, queued.consecutive_errors_count) == (1, 0)


def test_errors_keep_the_count_of_rejections():
    world = World()
    queued = world.reject("p", times=2)

    world.fail_again("p")

    assert (queued.unschedulable_count, queued.consecutive_errors_count) == (2, 1)


def test_a_failed_attempt_starts_the_backoff_afresh():
    """With three rejections: 4 s from the last failure, whatever was worked out before."""
    world = World()
    queued = world.reject("p", times=2)
    world.queue.move_all(NODE_ADD)
    assert queued.backoff_expiration == 1002
    world.clock.advance(10)

    world.fail_again("p", FIT)
    world.queue.move_all(NODE_ADD)

    assert queued.backoff_expiration == 1014
    assert world.where() == "backoff"


def test_a_failed_attempt_clears_the_marks_of_a_flush():
    world = World()
    queued = world.reject()
    world.clock.advance(301)
    world.queue.flush_unschedulable_leftover()
    assert queued.was_flushed

    world.fail_again("p", FIT)

    assert not queued.was_flushed
    assert queued.flush_timestamp is None


def test_a_pod_that_comes_back_is_no_longer_in_flight():
    world = World()
    world.reject()

    assert world.queue.in_flight_pods() == []


def test_a_pod_does_not_come_back_beside_one_of_its_name_but_is_done_all_the_same():
    world = World()
    world.add("p", uid="1")
    queued = world.pop()
    world.add("p", uid="2")
    queued.unschedulable_plugins = {FIT}

    assert not world.queue.add_unschedulable_if_not_present(queued)
    assert world.reports
    assert world.where() == "active"
    assert world.pop().uid == "2"
    assert queued.unschedulable_count == 0


def test_a_pod_that_comes_back_without_having_been_in_flight_is_retried_and_reported():
    world = World()
    world.add()
    queued = world.pop()
    world.queue.done(queued.uid)

    world.fail(queued, FIT)

    assert world.where() == "backoff"
    assert "without having been in flight" in world.reports[0]


@pytest.mark.parametrize(
    ("happened", "place"),
    [
        pytest.param([], "unschedulable", id="nothing"),
        pytest.param([NODE_LABEL], "unschedulable", id="nothing a plugin registered"),
        pytest.param([ASSIGNED_POD_DELETE], "backoff", id="what a plugin waits for"),
        pytest.param([CLAIM_ADD], "active", id="what a pending plugin waits for"),
        pytest.param([ASSIGNED_POD_DELETE, CLAIM_ADD], "active", id="both"),
    ],
)
def test_what_happened_while_a_pod_was_in_flight_decides_where_it_goes(happened, place):
    world = World()
    world.add()
    queued = world.pop()
    for event in happened:
        world.queue.move_all(event)

    world.fail(queued, FIT, pending=[CLAIMS])

    assert world.where() == place


def test_what_happened_before_a_pod_was_popped_does_not_count():
    world = World()
    world.add("p", priority=1)
    world.add("q")
    queued = world.pop()
    world.queue.move_all(NODE_ADD)
    later = world.pop()

    world.fail(queued, FIT)
    world.fail(later, FIT)

    assert world.where("p") == "backoff"
    assert world.where("q") == "unschedulable"


def test_hints_are_asked_about_what_happened_in_flight_with_its_objects():
    hint, node = HintSpy(Hint.SKIP), make_node()
    world = World(hints=[(NODE_ADD, FIT, hint)])
    world.add()
    queued = world.pop()
    world.queue.move_all(NODE_ADD, None, node)
    assert hint.asked == []

    world.fail(queued, FIT)

    assert hint.asked == [(queued.pod, None, node)]
    assert world.where() == "unschedulable"


def test_a_pod_whose_backoff_is_over_skips_the_backoff_queue():
    world = World(max_backoff_s=0)
    world.add()
    queued = world.pop()
    world.queue.move_all(NODE_ADD)

    world.fail(queued, FIT)

    assert world.where() == "active"


# Backoff


def test_when_nothing_is_active_a_rejected_pod_is_popped_before_its_backoff_is_over():
    world = World()
    world.reject("low", priority=1)
    world.reject("high", priority=2)
    world.queue.move_all(NODE_ADD)
    world.add("active")

    assert world.pop_names() == ["active", "high", "low"]


def test_a_pod_that_errors_put_in_backoff_is_never_popped_early():
    world = World()
    world.add("failed", priority=9)
    world.fail(world.pop())
    world.reject("rejected")
    world.queue.move_all(NODE_ADD)

    assert world.pop_names() == ["rejected"]
    assert world.where("failed") == "backoff"
    assert not world.queue.ready


def test_with_the_gate_off_no_pod_is_popped_before_its_backoff_is_over():
    world = World(pop_from_backoff=False)
    world.reject()
    world.queue.move_all(NODE_ADD)
    assert world.where() == "backoff"

    assert world.queue.pop() is None
    assert not world.queue.ready
    world.clock.advance(1.01)
    world.queue.flush_backoff_completed()
    assert world.where() == "active"


def test_the_flush_activates_what_has_waited_out_its_backoff_whatever_put_it_there():
    world = World()
    world.reject("rejected")
    world.reject("rejected-twice", times=2)
    world.queue.move_all(NODE_ADD)
    world.add("failed")
    world.fail(world.queue.pop_specific(make_pod("failed")))

    world.clock.advance(1)
    world.queue.flush_backoff_completed()
    assert world.queue.counts().active == 0
    world.clock.advance(1)
    world.queue.flush_backoff_completed()

    assert world.where("rejected") == "active"
    assert world.where("failed") == "active"
    assert world.where("rejected-twice") == "backoff"


def test_backoff_follows_the_configured_bounds():
    world = World(initial_backoff_s=3, max_backoff_s=5)

    queued = world.reject("p", times=2)
    world.queue.move_all(NODE_ADD)

    assert queued.backoff_expiration == 1005
