"""What is remembered of pods that are gone."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

from mooring.queue.in_flight import InFlight
from mooring.queue.metrics import QueueMetrics
from mooring.scheduler.journal import Fact, FactKind, RecentFacts
from tests.makers import make_pod
from tools.fuzz import memory


def test_a_uid_that_is_kept_is_found_and_one_that_was_let_go_is_not():
    in_flight = InFlight(QueueMetrics())
    in_flight.add(make_pod("gone", uid="u-1"))
    in_flight.add(make_pod("stays", uid="u-2"))

    assert memory.remembered(in_flight, {"u-1"}) == ["._pods[key]", "._pods[][]"]

    in_flight.done("u-1")
    assert memory.remembered(in_flight, {"u-1"}) == []


def test_what_callbacks_reach_is_found():
    in_flight = InFlight(QueueMetrics())
    in_flight.add(make_pod("gone", uid="u-1"))

    found = memory.remembered([lambda: in_flight, in_flight.done], {"u-1"})

    assert found != []


def test_what_is_bounded_may_be_remembered():
    facts = RecentFacts()
    facts.add(Fact(0.0, FactKind.QUEUED, "default/gone", "u-1"))

    assert memory.remembered(facts, {"u-1"}) == []


@pytest.mark.parametrize("exempt", memory.BOUNDED)
def test_every_exemption_is_of_an_attribute_that_there_is(exempt):
    module, _, path = exempt.partition(":")
    kind, _, attribute = path.partition(".")

    text = inspect.getsource(getattr(import_module(f"mooring.{module}"), kind))

    assert re.search(rf"\b{attribute}\b", text)
