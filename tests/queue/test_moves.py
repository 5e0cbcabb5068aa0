"""Reasons to try a waiting pod again: events, activation, time."""

from __future__ import annotations

import pytest

from mooring.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, Hint
from mooring.objects.pod import DEFAULT_SCHEDULER
from mooring.queue.scheduling_queue import SchedulingQueue
from tests.clock import FakeClock
from tests.makers import make_node, make_pod
from tests.queue.world import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    CLAIM_ADD,
    CLAIMS,
    FIT,
    GATES,
    NODE_ADD,
    NODE_LABEL,
    ByPriorityKey,
    Gate,
    HintSpy,
    World,
)

# Events


def test_an_event_that_may_help_moves_a_pod_to_backoff_while_that_lasts():
    world = World()
    world.reject()

    world.queue.move_all(NODE_ADD)

    assert world.where() == "backoff"


def test_an_event_that_may_help_makes_a_pod_active_whose_backoff_is_over():
    world = World()
    world.reject()
    world.clock.advance(2)

    world.queue.move_all(NODE_ADD)

    assert world.where() == "active"


def test_an_event_for_a_pending_plugin_makes_a_pod_active_at_once():
    world = World()
    world.reject("p", FIT, pending=[CLAIMS])

    world.queue.move_all(CLAIM_ADD)

    assert world.where() == "active"


def test_an_event_that_its_rejectors_did_not_register_leaves_a_pod_where_it_is():
    world = World()
    world.reject("p", FIT)
    world.reject("q", CLAIMS)

    world.queue.move_all(ASSIGNED_POD_DELETE)

    assert world.where("p") == "backoff"
    assert world.where("q") == "unschedulable"


def test_an_event_whose_hint_says_skip_leaves_a_pod_where_it_is():
    hint, node = HintSpy(Hint.SKIP), make_node()
    world = World(hints=[(NODE_ADD, FIT, hint)])
    queued = world.reject()

    world.queue.move_all(NODE_ADD, None, node)

    assert hint.asked == [(queued.pod, None, node)]
    assert world.where() == "unschedulable"
    assert world.metrics.incoming["unschedulable", "NodeAdd"] == 0


def test_a_hint_that_activates_the_pod_it_is_asked_about_does_not_have_it_moved_twice():
    def hint(pod, old, new):
        world.queue.activate({pod.name: pod})
        return Hint.QUEUE

    world = World(hints=[(NODE_ADD, FIT, hint)])
    world.reject()

    world.queue.move_all(NODE_ADD)

    assert world.where() == "active"


def test_a_hint_that_raises_moves_the_pod_and_breaks_nothing():
    world = World(hints=[(NODE_ADD, FIT, HintSpy(KeyError("zone")))])
    world.reject("p")
    world.reject("q")

    world.queue.move_all(NODE_ADD)

    assert world.where("p") == "backoff"
    assert world.where("q") == "backoff"
    assert len(world.reports) == 2


def test_pods_that_the_pre_check_refuses_stay():
    world = World()
    world.reject("low", priority=1)
    world.reject("high", priority=9)

    world.queue.move_all(NODE_ADD, pre_check=lambda pod: pod.priority <= 5)

    assert world.where("low") == "backoff"
    assert world.where("high") == "unschedulable"


def test_the_pre_check_is_not_asked_when_no_plugin_is_to_hear_of_the_event():
    world = World()
    world.reject()

    def pre_check(pod):
        raise AssertionError("asked")

    world.queue.move_all(ASSIGNED_POD_ADD, pre_check=pre_check)


def test_pods_in_backoff_are_not_touched_by_events():
    world = World(hints=[(NODE_ADD, FIT, None), (CLAIM_ADD, CLAIMS, None)])
    world.reject("p", FIT, pending=[CLAIMS])
    world.queue.move_all(NODE_ADD)

    world.queue.move_all(CLAIM_ADD)

    assert world.where() == "backoff"


def test_the_pod_that_comes_first_in_order_is_first_whatever_order_they_were_moved_in():
    world = World()
    world.reject("low", priority=1)
    world.reject("high", priority=9)
    world.clock.advance(2)

    world.queue.move_all(NODE_ADD)

    assert world.pop_names() == ["high", "low"]


def test_pods_equal_in_order_are_moved_in_the_order_in_which_they_were_rejected():
    world = World()
    for name, plugin in (("a", FIT), ("b", CLAIMS), ("c", FIT)):
        world.reject(name, plugin)
    world.clock.advance(2)

    world.queue.move_all(UNSCHEDULABLE_TIMEOUT)

    assert world.pop_names() == ["a", "b", "c"]


def test_events_that_nobody_registered_are_not_kept_for_pods_in_flight():
    world = World()
    world.add()
    world.pop()

    world.queue.move_all(NODE_LABEL)
    world.queue.move_all(NODE_ADD)

    assert world.metrics.in_flight == {"PodPopped": 1, "NodeAdd": 1}


def test_a_pod_of_another_profile_is_judged_by_the_hints_of_its_own():
    queue = SchedulingQueue(
        clock=FakeClock(),
        queue_sort=ByPriorityKey(),
        hints={DEFAULT_SCHEDULER: [(NODE_ADD, FIT, None)], "other": [(CLAIM_ADD, FIT, None)]},
    )
    for name, scheduler in (("p", ""), ("q", "other")):
        queue.add(make_pod(name, scheduler=scheduler))
        queued = queue.pop()
        queued.unschedulable_plugins = {FIT}
        queue.add_unschedulable_if_not_present(queued)

    queue.move_all(CLAIM_ADD)

    assert [queued.pod.name for queued in queue.backoff_pods()] == ["q"]
    assert queue.is_pod_worth_requeuing(queued, NODE_ADD).name == "SKIP"


def test_a_pod_rejected_without_a_plugins_name_is_moved_only_by_events_for_everyone():
    """So fares a pod whose wait for Permit was ended from outside: its rejector is ''."""
    world = World()
    world.reject("p", "")

    for event in (NODE_ADD, ASSIGNED_POD_DELETE, CLAIM_ADD):
        world.queue.move_all(event)
    assert world.where() == "unschedulable"
    world.queue.move_all(UNSCHEDULABLE_TIMEOUT)

    assert world.where() == "backoff"


# Activation


def test_activated_pods_are_active_at_once_whatever_their_backoff():
    world = World()
    world.reject("unschedulable", times=5)
    world.reject("backoff")
    world.queue.move_all(NODE_ADD, pre_check=lambda pod: pod.name == "backoff")
    world.add("failed")
    world.fail(world.queue.pop_specific(make_pod("failed")))

    names = ("unschedulable", "backoff", "failed", "unknown")
    world.queue.activate({name: make_pod(name) for name in names})

    assert [world.where(name) for name in names] == ["active", "active", "active", "nowhere"]


def test_an_active_pod_that_is_activated_stays_where_it_is():
    world = World()
    pod = world.add()

    world.queue.activate({"p": pod})

    assert world.where() == "active"
    assert world.metrics.incoming["active", "ForceActivate"] == 0


def test_a_gated_pod_is_not_activated_before_its_gate_opens():
    gate = Gate("p")
    world = World(pre_enqueue=[(GATES, gate)])
    pod = world.add()

    world.queue.activate({"p": pod})
    assert world.where() == "gated"
    gate.closed_to.clear()
    world.queue.activate({"p": pod})

    assert world.where() == "active"


def test_a_pod_activated_in_flight_is_tried_again_when_it_comes_back_rejected():
    world = World()
    pod = world.add()
    queued = world.pop()

    world.queue.activate({"p": pod})
    assert world.where() == "in flight"
    world.fail(queued, FIT)

    assert world.where() == "backoff"


def test_the_activation_of_one_pod_in_flight_is_not_for_the_others():
    world = World()
    pod = world.add("p", priority=1)
    world.add("q")
    p, q = world.pop(), world.pop()

    world.queue.activate({"p": pod})
    world.fail(q, FIT)
    world.fail(p, FIT)

    assert world.where("p") == "backoff"
    assert world.where("q") == "unschedulable"


def test_the_activation_of_a_waiting_pod_is_not_for_its_double_in_flight():
    """1. p is popped. 2. Its add is told twice, and held back. 3. It is activated, which does for
    the double. 4. That is popped and dropped. 5. The attempt fails, and nothing has happened.
    """
    gate = Gate()
    world = World(pre_enqueue=[(GATES, gate)])
    pod = world.add()
    queued = world.pop()
    gate.closed_to.add("p")
    world.queue.add(pod)
    gate.closed_to.clear()

    world.queue.activate({"p": pod})
    assert world.queue.pop() is None
    world.fail(queued, FIT)

    assert world.where() == "unschedulable"


def test_the_activation_of_a_pod_that_is_held_back_is_for_its_double_in_flight():
    gate = Gate()
    world = World(pre_enqueue=[(GATES, gate)])
    pod = world.add()
    queued = world.pop()
    gate.closed_to.add("p")
    world.queue.add(pod)

    world.queue.activate({"p": pod})
    world.queue.delete(pod)
    gate.closed_to.clear()
    world.fail(queued, FIT)

    assert world.where() == "backoff"


def test_the_activation_of_an_unknown_pod_is_not_kept():
    world = World()
    world.add("p")
    world.pop()

    world.queue.activate({"unknown": make_pod("unknown")})

    assert FORCE_ACTIVATE.label not in world.metrics.in_flight


# Time


@pytest.mark.parametrize(("waited_s", "place"), [(300, "unschedulable"), (300.5, "active")])
def test_a_pod_is_tried_again_when_nothing_happened_for_more_than_five_minutes(waited_s, place):
    world = World()
    queued = world.reject()
    world.clock.advance(waited_s)

    world.queue.flush_unschedulable_leftover()

    assert world.where() == place
    assert queued.was_flushed is (place == "active")


def test_the_longest_wait_can_be_configured():
    world = World(max_in_unschedulable_s=30)
    world.reject()
    world.clock.advance(31)

    world.queue.flush_unschedulable_leftover()

    assert world.where() == "active"


def test_a_flushed_pod_that_still_backs_off_goes_to_backoff():
    world = World(initial_backoff_s=600, max_backoff_s=600)
    queued = world.reject()
    world.clock.advance(301)

    world.queue.flush_unschedulable_leftover()

    assert world.where() == "backoff"
    assert queued.was_flushed


def test_a_gated_pod_is_asked_about_again_by_the_flush_at_most_every_five_minutes():
    gate = Gate("p")
    world = World(pre_enqueue=[(GATES, gate)])
    world.add()
    queued = world.queue.get("default/p")
    gate.asked.clear()

    for _ in range(70):
        world.clock.advance(30)
        world.queue.flush_unschedulable_leftover()

    assert world.where() == "gated"
    assert gate.asked == ["p"] * 6, "2100 s, of which every 330th passes the limit at a flush"
    assert not queued.was_flushed
    assert queued.flush_timestamp == 1000 + 6 * 330


def test_a_gated_pod_whose_gate_has_opened_unnoticed_is_let_out_by_the_flush():
    gate = Gate("p")
    world = World(pre_enqueue=[(GATES, gate)])
    world.add()
    gate.closed_to.clear()
    world.clock.advance(301)

    world.queue.flush_unschedulable_leftover()

    assert world.where() == "active"
    assert world.pop().was_flushed


def test_a_flush_that_moves_something_is_an_event_for_the_pods_in_flight():
    world = World()
    world.reject()
    world.add("q")
    queued = world.pop()
    world.clock.advance(301)

    world.queue.flush_unschedulable_leftover()
    world.fail(queued, FIT)

    assert world.where("q") == "backoff"


def test_a_flush_that_moves_nothing_is_no_event():
    world = World()
    world.add()
    queued = world.pop()

    world.queue.flush_unschedulable_leftover()
    world.fail(queued, FIT)

    assert world.where() == "unschedulable"
