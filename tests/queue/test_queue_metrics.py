"""What the queue counts."""

from __future__ import annotations

import pytest

from mooring.objects.pod import DEFAULT_SCHEDULER
from tests.makers import make_pod
from tests.queue.world import (
    CLAIM_ADD,
    CLAIMS,
    FIT,
    GATES,
    NODE_ADD,
    POD_LABEL,
    Gate,
    World,
)


def waiting_for(world: World) -> dict[str, int]:
    """How many pods wait because of each plugin."""
    assert {profile for _, profile in world.metrics.unschedulable} <= {DEFAULT_SCHEDULER}
    return {plugin: count for (plugin, _), count in world.metrics.unschedulable.items() if count}


def test_a_pod_is_counted_into_each_queue_under_what_brought_it_there():
    world = World()
    world.reject()
    world.queue.move_all(NODE_ADD)
    world.clock.advance(2)
    world.queue.flush_backoff_completed()

    assert world.metrics.incoming == {
        ("active", "UnschedulablePodAdd"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 1,
        ("backoff", "NodeAdd"): 1,
        ("active", "BackoffComplete"): 1,
    }


def test_a_pod_popped_from_backoff_is_counted_as_active_first():
    world = World()
    world.reject()
    world.queue.move_all(NODE_ADD)

    world.pop()

    assert world.metrics.incoming["active", "PopFromBackoffQ"] == 1


@pytest.mark.parametrize(
    ("move", "label"),
    [
        (lambda queue: queue.activate({"p": make_pod()}), "ForceActivate"),
        (lambda queue: queue.move_all(CLAIM_ADD), "resource.k8s.io/ResourceClaimAdd"),
        (lambda queue: queue.flush_unschedulable_leftover(), "UnschedulableTimeout"),
        (
            lambda queue: queue.update(make_pod(), make_pod(labels={"a": "b"})),
            "UnschedulablePodUpdatePodLabel",
        ),
    ],
    ids=["activate", "an event", "five minutes", "an update"],
)
def test_a_pod_that_leaves_the_unschedulable_ones_is_counted_under_its_reason(move, label):
    world = World(hints=[(CLAIM_ADD, CLAIMS, None), (POD_LABEL, CLAIMS, None)])
    world.reject("p", CLAIMS)
    world.clock.advance(301)

    move(world.queue)

    assert world.metrics.incoming["active", label] == 1


def test_a_pod_that_stays_unschedulable_is_not_counted_again():
    world = World(pre_enqueue=[(GATES, Gate("gated"))])
    queued = world.reject()
    gated = world.add("gated")

    world.queue.update(queued.pod, make_pod("p", labels={"a": "b"}))
    world.queue.activate({"gated": gated})

    assert world.metrics.incoming["unschedulable", "ScheduleAttemptFailure"] == 1
    assert world.metrics.incoming["unschedulable", "UnschedulablePodAdd"] == 1
    assert sum(n for (queue, _), n in world.metrics.incoming.items() if queue[0] == "u") == 2


def test_a_pod_that_an_event_took_out_and_its_gate_put_back_is_counted_again():
    world = World(pre_enqueue=[(GATES, Gate("p"))], hints=[(CLAIM_ADD, GATES, None)])
    world.add()

    world.queue.move_all(CLAIM_ADD)

    assert world.metrics.incoming == {
        ("unschedulable", "UnschedulablePodAdd"): 1,
        ("unschedulable", "resource.k8s.io/ResourceClaimAdd"): 1,
    }


def test_a_pod_counts_for_each_plugin_that_rejected_it_until_it_is_popped():
    world = World()
    world.reject("p", FIT, pending=[CLAIMS])
    assert waiting_for(world) == {FIT: 1, CLAIMS: 1}
    world.queue.move_all(NODE_ADD)
    assert waiting_for(world) == {FIT: 1, CLAIMS: 1}

    world.pop()

    assert waiting_for(world) == {}


def test_a_gated_pod_counts_once_for_each_plugin_that_gated_it():
    first, second = Gate("p"), Gate("p")
    world = World(pre_enqueue=[("First", first), ("Second", second)])
    pod = world.add()
    world.queue.activate({"p": pod})
    assert waiting_for(world) == {"First": 1}
    first.closed_to.clear()
    world.queue.activate({"p": pod})
    assert waiting_for(world) == {"First": 1, "Second": 1}
    second.closed_to.clear()
    world.queue.activate({"p": pod})

    world.pop()

    assert waiting_for(world) == {}


def test_a_deleted_pod_no_longer_counts_if_it_was_unschedulable():
    world = World()
    queued = world.reject()

    world.queue.delete(queued.pod)

    assert waiting_for(world) == {}


def test_a_pod_deleted_in_backoff_goes_on_counting_as_in_the_reference():
    world = World()
    queued = world.reject()
    world.queue.move_all(NODE_ADD)

    world.queue.delete(queued.pod)

    assert waiting_for(world) == {FIT: 1}


def test_pods_and_events_in_flight_are_counted_up_and_down():
    world = World()
    world.add()
    queued = world.pop()
    world.queue.move_all(NODE_ADD)
    world.queue.update(queued.pod, make_pod(labels={"a": "b"}))
    assert world.metrics.in_flight == {
        "PodPopped": 1,
        "NodeAdd": 1,
        "UnschedulablePodUpdatePodLabel": 1,
    }

    world.queue.done(queued.uid)

    assert set(world.metrics.in_flight.values()) == {0}
