"""The queue: pods come, are tried, fail, change and go."""

from __future__ import annotations

import pytest

from mooring.errors import InvariantError
from mooring.framework.events import Action, ClusterEvent, Hint, Resource
from mooring.framework.interface import Nomination
from mooring.framework.nominator import Nominator
from mooring.objects.taints import Toleration
from tests.makers import make_node, make_pod
from tests.queue.world import (
    ASSIGNED_POD_DELETE,
    CLAIM_ADD,
    CLAIMS,
    FIT,
    NODE_ADD,
    NODE_LABEL,
    POD_LABEL,
    ByPriority,
    ByPriorityKey,
    Gate,
    HintSpy,
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
    assert world.queue.scheduling_cycle == 0


def test_every_pop_is_an_attempt_and_a_scheduling_cycle():
    world = World()
    queued = world.reject("p", times=2)
    world.add("other")
    world.pop()

    assert queued.attempts == 2
    assert world.queue.scheduling_cycle == 3


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
    assert world.queue.scheduling_cycle == 2
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
    assert world.queue.scheduling_cycle == 5
    assert world.queue.pop_specific(make_pod("unknown")) is None


def test_pop_specific_drops_a_pod_that_is_in_flight_already():
    world = World()
    pod = world.add()
    world.pop()
    world.queue.add(pod)

    assert world.queue.pop_specific(pod) is None
    assert world.reports
    assert world.where() == "in flight"


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
    assert world.queue.backoff_completes_at() == 1003


def test_backoff_follows_the_configured_bounds():
    world = World(initial_backoff_s=3, max_backoff_s=5)

    queued = world.reject("p", times=2)
    world.queue.move_all(NODE_ADD)

    assert queued.backoff_expiration == 1005


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
    toleration = ClusterEvent(Resource.POD, Action.UPDATE_POD_TOLERATION)
    gates_gone = ClusterEvent(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
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
    any_update = ClusterEvent(Resource.POD, Action.UPDATE)
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


# Signatures


def test_a_pod_is_signed_when_it_comes_and_when_it_changes():
    world = World(sign=lambda pod: tuple(pod.labels.items()))
    pod = world.add("p", labels={"a": "1"})
    assert world.queue.get("default/p").signature == (("a", "1"),)

    world.queue.update(pod, make_pod("p", labels={"a": "2"}))

    assert world.queue.get("default/p").signature == (("a", "2"),)


def test_a_pod_that_cannot_be_signed_has_no_signature_and_that_is_reported():
    def sign(pod):
        raise ValueError("no")

    world = World(sign=sign)
    world.add()

    assert world.where() == "active"
    assert world.queue.get("default/p").signature is None
    assert "could not be signed" in world.reports[0]


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


# The books


def test_a_pod_that_waits_in_two_places_is_found_out():
    world = World()
    world.add()
    queued = world.queue.active_pods()[0]

    world.queue._places.unschedulable.put(queued)

    with pytest.raises(InvariantError, match="two places"):
        world.queue.validate()
