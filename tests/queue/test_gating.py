"""PreEnqueue: pods that are not to be tried yet."""

from __future__ import annotations

import pytest

from mooring.framework.events import Hint
from mooring.framework.status import Code, Status, failure
from mooring.objects.pod import DEFAULT_SCHEDULER
from mooring.queue.scheduling_queue import SchedulingQueue
from tests.clock import FakeClock
from tests.makers import make_pod
from tests.queue.world import (
    ASSIGNED_POD_DELETE,
    CLAIM_ADD,
    FIT,
    GATES,
    GATES_GONE,
    NODE_ADD,
    ByPriorityKey,
    Gate,
    HintSpy,
    World,
)


def test_a_pod_that_pre_enqueue_refuses_is_gated():
    world = World(pre_enqueue=[(GATES, Gate("p"))])

    world.add()

    assert world.where() == "gated"
    queued = world.queue.get("default/p")
    assert queued.gating_plugin == GATES
    assert queued.unschedulable_plugins == {GATES}
    assert queued.gating_plugin_events == (GATES_GONE,)
    assert queued.initial_attempt_timestamp is None
    assert world.queue.pop() is None
    assert world.queue.counts() == (0, 0, 0, 1)


@pytest.mark.parametrize(
    "status", [Status(code) for code in Code if code != Code.SUCCESS], ids=lambda s: s.code.name
)
def test_any_answer_but_success_gates(status):
    world = World(pre_enqueue=[(GATES, lambda pod: status)])

    world.add()

    assert world.where() == "gated"


@pytest.mark.parametrize("status", [None, Status()], ids=["None", "Success"])
def test_success_does_not_gate(status):
    world = World(pre_enqueue=[(GATES, lambda pod: status)])

    world.add()

    assert world.where() == "active"


def test_a_pre_enqueue_that_raises_gates_the_pod_and_is_reported():
    def broken(pod):
        raise ValueError("no such claim")

    world = World(pre_enqueue=[(GATES, broken)])

    world.add()

    assert world.where() == "gated"
    assert GATES in world.reports[0]
    assert "no such claim" in world.reports[0]


@pytest.mark.parametrize("answer", [False, True, "no", {}], ids=repr)
def test_a_pre_enqueue_that_returns_no_status_gates_the_pod_and_is_reported(answer):
    """An empty value counted as Success; any other value ended the run."""
    world = World(pre_enqueue=[(GATES, lambda pod: answer)])

    world.add()

    assert world.where() == "gated"
    assert f"a value of type {type(answer).__name__}" in world.reports[0]


def test_a_pre_enqueue_that_answers_with_an_error_is_reported():
    world = World(pre_enqueue=[(GATES, lambda pod: failure(ValueError("unreachable")))])

    world.add()

    assert "unreachable" in world.reports[0]


def test_an_error_without_a_cause_is_reported_by_its_reasons():
    world = World(pre_enqueue=[(GATES, lambda pod: Status(Code.ERROR, ("out of order",)))])

    world.add()

    assert world.where() == "gated"
    assert "out of order" in world.reports[0]


def test_the_first_plugin_that_refuses_ends_the_asking():
    first, second = Gate("p"), Gate()
    world = World(pre_enqueue=[("First", first), ("Second", second)])

    world.add()

    assert second.asked == []


def test_the_plugin_that_gates_a_pod_is_asked_first_the_next_time():
    first, second = Gate(), Gate("p")
    world = World(pre_enqueue=[("First", first), ("Second", second)])
    pod = world.add()
    assert (first.asked, second.asked) == (["p"], ["p"])

    world.queue.activate({"p": pod})

    assert (first.asked, second.asked) == (["p"], ["p", "p"])


def test_a_pod_may_be_gated_by_another_plugin_after_the_first_lets_go():
    first, second = Gate("p"), Gate("p")
    world = World(pre_enqueue=[("First", first), ("Second", second)])
    pod = world.add()
    first.closed_to.clear()

    world.queue.activate({"p": pod})

    queued = world.queue.get("default/p")
    assert world.where() == "gated"
    assert queued.gating_plugin == "Second"
    assert queued.unschedulable_plugins == {"First", "Second"}


def test_a_pod_that_all_let_pass_is_active_and_no_longer_gated():
    gate = Gate("p")
    world = World(pre_enqueue=[(GATES, gate)])
    pod = world.add()
    gate.closed_to.clear()
    world.clock.advance(5)

    world.queue.activate({"p": pod})

    assert world.where() == "active"
    queued = world.pop()
    assert queued.gating_plugin == ""
    assert queued.gating_plugin_events == ()
    assert queued.initial_attempt_timestamp == 1005


def test_only_the_plugins_of_the_pods_profile_are_asked():
    gate = Gate("p")
    world = World(pre_enqueue=[(GATES, gate)])

    world.add("p", scheduler="other")

    assert gate.asked == []
    assert world.where() == "active"


def test_a_pod_is_asked_about_before_backoff_and_not_again_when_that_is_over():
    gate = Gate()
    world = World(pre_enqueue=[(GATES, gate)])
    world.reject()
    gate.asked.clear()

    world.queue.move_all(NODE_ADD)
    assert world.where() == "backoff"
    assert gate.asked == ["p"]
    gate.closed_to.add("p")
    world.clock.advance(2)
    world.queue.flush_backoff_completed()

    assert world.where() == "active"
    assert gate.asked == ["p"]


def test_a_pod_in_backoff_is_activated_without_being_asked_about():
    gate = Gate()
    world = World(pre_enqueue=[(GATES, gate)])
    queued = world.reject()
    world.queue.move_all(NODE_ADD)
    gate.closed_to.add("p")
    gate.asked.clear()

    world.queue.activate({"p": queued.pod})

    assert world.where() == "active"
    assert gate.asked == []


def test_with_the_gate_pop_from_backoff_off_a_pod_is_asked_about_after_backoff():
    gate = Gate()
    world = World(pre_enqueue=[(GATES, gate)], pop_from_backoff=False)
    world.reject()
    gate.closed_to.add("p")
    gate.asked.clear()

    world.queue.move_all(NODE_ADD)
    assert world.where() == "backoff"
    assert gate.asked == []
    world.clock.advance(2)
    world.queue.flush_backoff_completed()

    assert world.where() == "gated"


@pytest.mark.parametrize("plugins", [(FIT,), ()], ids=["rejected", "failed"])
def test_a_failed_pod_that_pre_enqueue_refuses_on_its_way_to_backoff_is_gated(plugins):
    gate = Gate()
    world = World(pre_enqueue=[(GATES, gate)])
    world.add()
    queued = world.pop()
    world.queue.move_all(NODE_ADD)
    gate.closed_to.add("p")

    world.fail(queued, *plugins)

    assert world.where() == "gated"
    assert queued.unschedulable_plugins == {*plugins, GATES}


def test_a_rejected_pod_that_waits_for_events_is_not_asked_about():
    gate = Gate()
    world = World(pre_enqueue=[(GATES, gate)])
    world.add()
    gate.asked.clear()

    world.fail(world.pop(), FIT)

    assert world.where() == "unschedulable"
    assert gate.asked == []


def test_an_event_its_gate_did_not_register_leaves_a_gated_pod_alone():
    """The pod was rejected by FIT too, which the event may help."""
    hint = HintSpy(Hint.QUEUE)
    gate = Gate()
    world = World(
        pre_enqueue=[(GATES, gate)],
        hints=[(NODE_ADD, FIT, hint), (GATES_GONE, GATES, None), (CLAIM_ADD, GATES, None)],
    )
    queued = world.reject()
    gate.closed_to.add("p")
    world.queue.activate({"p": queued.pod})
    assert queued.unschedulable_plugins == {FIT, GATES}
    gate.asked.clear()

    world.queue.move_all(NODE_ADD)
    assert (hint.asked, gate.asked) == ([], [])
    world.queue.move_all(CLAIM_ADD)

    assert gate.asked == ["p"]
    assert world.where() == "gated"


def test_an_event_its_gate_registered_lets_a_gated_pod_out():
    gate = Gate("p")
    world = World(pre_enqueue=[(GATES, gate)], hints=[(CLAIM_ADD, GATES, None)])
    world.add()
    gate.closed_to.clear()

    world.queue.move_all(CLAIM_ADD)

    assert world.where() == "active"


def test_an_update_of_a_gated_pod_is_judged_by_the_hints_of_its_gate():
    gate = Gate("p")
    world = World(pre_enqueue=[(GATES, gate)])
    old = world.add("p", gates=["g"])
    gate.asked.clear()

    world.queue.update(old, relabelled := make_pod("p", gates=["g"], labels={"a": "b"}))
    assert gate.asked == []
    gate.closed_to.clear()
    world.queue.update(relabelled, make_pod("p", labels={"a": "b"}))

    assert world.where() == "active"


def test_an_update_that_does_not_open_the_gate_leaves_a_pod_gated():
    world = World(pre_enqueue=[(GATES, Gate("p"))])
    old = world.add("p", gates=["g"])

    world.queue.update(old, make_pod("p"))

    assert world.where() == "gated"


def test_a_gated_pod_is_not_popped_even_by_name():
    world = World(pre_enqueue=[(GATES, Gate("p"))])
    pod = world.add()

    assert world.queue.pop_specific(pod) is None
    assert world.where() == "gated"


def test_a_gated_pod_is_not_nominated_by_its_arrival():
    world = World(pre_enqueue=[(GATES, Gate("p"))])

    world.add("p", nominated="n1")

    assert not world.queue.nominator.has_any


def test_a_gated_pod_re_created_under_the_name_of_an_active_one_does_not_replace_it():
    """As in the reference, which counts on hearing of the predecessor's end first."""
    gate = Gate()
    world = World(pre_enqueue=[(GATES, gate)])
    world.add("p", uid="1")
    gate.closed_to.add("p")

    world.add("p", uid="2")

    assert world.where() == "active"
    assert world.queue.get("default/p").uid == "1"


def test_a_plugin_that_gates_activates_and_is_asked_again_does_not_confuse_the_queue():
    """A PreEnqueue may call back into the queue: here, it activates every other pod."""
    world = World(
        pre_enqueue=[(GATES, lambda pod: world.queue.activate({"q": make_pod("q")}))],
        hints=[(ASSIGNED_POD_DELETE, FIT, None)],
    )
    world.reject("q")
    world.reject("p")
    world.reject("q2")
    world.queue.activate({})

    world.queue.move_all(ASSIGNED_POD_DELETE)

    world.queue.validate()
    assert sorted(q.pod.name for q in world.queue.active_pods()) == ["q"]
    assert sorted(q.pod.name for q in world.queue.backoff_pods()) == ["p", "q2"]


def test_the_plugins_are_timed_together_and_one_by_one_where_that_is_sampled():
    world = World(pre_enqueue=[("First", Gate()), ("Second", Gate("p"))])

    world.add()

    assert world.metrics.asked == [
        ("First", "Success", 1),
        ("Second", "UnschedulableAndUnresolvable", 1),
    ]
    assert world.metrics.pre_enqueues == [(DEFAULT_SCHEDULER, 5)]


def test_a_queue_that_nobody_measures_gates_all_the_same():
    gate = Gate("p")
    queue = SchedulingQueue(
        clock=FakeClock(),
        queue_sort=ByPriorityKey(),
        pre_enqueue={DEFAULT_SCHEDULER: [("G", gate)]},
    )

    queue.add(make_pod("p"))
    queue.add(make_pod("q"))

    assert queue.counts() == (1, 0, 0, 1)


def test_a_gate_that_stays_closed_costs_no_hints_and_moves_no_pod():
    """Hundreds of preemptors wait for their victims, and each victim that goes concerns all of them."""
    hint = HintSpy(Hint.QUEUE)
    gate = Gate()
    world = World(
        pre_enqueue=[(GATES, gate)],
        hints=[(ASSIGNED_POD_DELETE, FIT, hint), (ASSIGNED_POD_DELETE, GATES, None)],
        gates_first={DEFAULT_SCHEDULER: frozenset({GATES})},
    )
    queued = [world.reject("p"), world.reject("q")]
    gate.closed_to.update("pq")
    world.queue.activate({each.pod.name: each.pod for each in queued})
    assert (world.where("p"), world.where("q")) == ("gated", "gated")
    gate.closed_to.remove("q")

    world.queue.move_all(ASSIGNED_POD_DELETE)

    assert [pod.name for pod, _, _ in hint.asked] == ["q"]
    assert (world.where("p"), world.where("q")) == ("gated", "backoff")
