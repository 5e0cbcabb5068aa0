"""What is kept for pods in flight, and for how long."""

from __future__ import annotations

import pytest

from mooring.errors import InvariantError
from mooring.queue.in_flight import InFlight
from tests.makers import make_node, make_pod
from tests.queue.world import ASSIGNED_POD_DELETE, NODE_ADD, NODE_LABEL, Recorder

A, B, C = (make_pod(name, uid=name) for name in "abc")


def labels(events) -> list[str]:
    return [recorded.event.label for recorded in events]


def test_nothing_is_kept_while_no_pod_is_in_flight():
    in_flight = InFlight(Recorder())

    in_flight.record([NODE_ADD], None, None)

    assert in_flight.events() == []


def test_a_pod_hears_of_what_happened_after_it_left_and_of_nothing_before():
    in_flight = InFlight(Recorder())
    in_flight.add(A)
    in_flight.record([NODE_ADD], None, None)
    in_flight.add(B)
    in_flight.record([NODE_LABEL, ASSIGNED_POD_DELETE], None, None)
    in_flight.add(C)

    assert labels(in_flight.since("a")) == ["NodeAdd", "NodeUpdateNodeLabel", "AssignedPodDelete"]
    assert labels(in_flight.since("b")) == ["NodeUpdateNodeLabel", "AssignedPodDelete"]
    assert in_flight.since("c") == []
    assert in_flight.since("unknown") is None


def test_an_event_is_kept_with_its_objects():
    in_flight, old, new = InFlight(Recorder()), make_node("old"), make_node("new")
    in_flight.add(A)

    in_flight.record([NODE_LABEL], old, new)

    (recorded,) = in_flight.since("a")
    assert (recorded.old, recorded.new) == (old, new)


def test_events_go_when_every_pod_is_done_that_left_before_them():
    in_flight = InFlight(Recorder())
    in_flight.add(A)
    in_flight.record([NODE_ADD], None, None)
    in_flight.add(B)
    in_flight.record([NODE_LABEL], None, None)

    in_flight.done("a")

    in_flight.validate()
    assert labels(in_flight.events()) == ["NodeUpdateNodeLabel"]
    in_flight.done("b")
    assert in_flight.events() == []


def test_a_pod_that_is_done_out_of_turn_takes_no_events_from_an_older_one():
    in_flight = InFlight(Recorder())
    in_flight.add(A)
    in_flight.record([NODE_ADD], None, None)
    in_flight.add(B)
    in_flight.record([NODE_LABEL], None, None)

    in_flight.done("b")

    in_flight.validate()
    assert labels(in_flight.since("a")) == ["NodeAdd", "NodeUpdateNodeLabel"]


def test_numbers_hold_after_earlier_events_are_gone():
    in_flight = InFlight(Recorder())
    in_flight.add(A)
    in_flight.record([NODE_ADD], None, None)
    in_flight.add(B)
    in_flight.done("a")
    in_flight.record([NODE_LABEL], None, None)
    in_flight.add(C)
    in_flight.record([ASSIGNED_POD_DELETE], None, None)

    assert labels(in_flight.since("b")) == ["NodeUpdateNodeLabel", "AssignedPodDelete"]
    assert labels(in_flight.since("c")) == ["AssignedPodDelete"]


def test_done_for_an_unknown_pod_changes_nothing():
    metrics = Recorder()
    in_flight = InFlight(metrics)
    in_flight.add(A)
    in_flight.record([NODE_ADD], None, None)

    in_flight.done("unknown")

    assert "a" in in_flight
    assert in_flight.pods() == [A]
    assert metrics.in_flight == {"PodPopped": 1, "NodeAdd": 1}
    assert labels(in_flight.events()) == ["NodeAdd"]


def test_what_is_kept_is_counted_up_and_down():
    metrics = Recorder()
    in_flight = InFlight(metrics)
    in_flight.add(A)
    in_flight.record([NODE_ADD, NODE_ADD], None, None)
    assert metrics.in_flight == {"PodPopped": 1, "NodeAdd": 2}

    in_flight.clear()

    assert set(metrics.in_flight.values()) == {0}
    assert len(in_flight) == 0


def test_events_that_nobody_is_to_hear_of_are_found_out():
    in_flight = InFlight(Recorder())
    in_flight.add(A)
    in_flight.record([NODE_ADD], None, None)

    del in_flight._pods["a"]

    with pytest.raises(InvariantError, match="no pod in flight"):
        in_flight.validate()
