"""The awaits at which processes are killed, and those at which none can wait."""

from __future__ import annotations

from tools.fuzz import awaits
from tools.fuzz.world import run_seed


def test_every_reason_is_about_an_await_that_there_is():
    assert awaits.stale_reasons() == []
    assert not set(awaits.NEVER) & set(awaits.POINTS)


def test_nobody_waits_where_nobody_can():
    """And the others are found: the look at tasks goes through the journal of inputs."""
    seen = set()
    for seed in (4, 9):
        result = run_seed(seed, "safety", aim=True)
        seen |= {*result.waited_at, *result.killed_at}

    assert awaits.waited_wrongly(seen) == set()
    assert len(awaits.reached_by(seen)) > 40
    assert any(place.startswith("scheduler.binding_cycle:") for place in seen)
