"""Binds under way, and room for more."""

from __future__ import annotations

import asyncio

from mooring.live.bind_traffic import (
    BINDS_FOR_A_REFUSAL,
    BUSY_S,
    READY,
    REFUSAL_PATIENCE_S,
    BindTraffic,
    Refusals,
)
from mooring.live.rate_limit import RateLimiter
from tests.clock import FakeClock


async def test_pods_are_placed_when_their_binds_can_be_made_and_whoever_asked_is_told():
    clock = FakeClock()
    limiter = RateLimiter(50.0, 1, clock)
    traffic = BindTraffic(clock, limiter)
    told: list[bool] = []
    traffic.on_room = lambda: told.append(traffic.has_room())
    await limiter.take()
    waiting = asyncio.ensure_future(limiter.take())
    await asyncio.sleep(0)
    for _ in range(READY - 1):
        traffic.__enter__()
    assert traffic.has_room()

    traffic.__enter__()
    assert not traffic.has_room()
    assert not told
    traffic.__exit__()
    assert told == [True]
    # Nobody has asked since.
    traffic.__exit__()
    assert told == [True]
    waiting.cancel()


async def test_slow_answers_alone_hold_nothing_up():
    clock = FakeClock()
    traffic = BindTraffic(clock, RateLimiter(50.0, 100, clock))
    unlimited = BindTraffic(clock)

    for _ in range(10 * READY):
        traffic.__enter__()
        unlimited.__enter__()

    assert traffic.has_room()
    assert unlimited.has_room()


def told(refusals: Refusals, since_s: float, most: int = 100) -> int:
    """How many of those that wait may be told at this moment."""
    return next(n for n in range(most + 1) if n == most or not refusals.may_tell(since_s))


async def test_refusals_are_told_at_once_while_no_binds_are_being_made():
    clock = FakeClock()
    traffic = BindTraffic(clock)
    refusals = Refusals(traffic, clock)

    assert told(refusals, clock.now()) == 100
    with traffic:
        # A bind that is slow, or hangs, holds nothing up.
        assert told(refusals, clock.now()) == 100
    clock.advance(BUSY_S)
    assert told(refusals, clock.now()) == 100


async def test_while_binds_are_being_made_a_few_refusals_are_told_beside_them():
    clock = FakeClock()
    traffic = BindTraffic(clock)
    refusals = Refusals(traffic, clock)

    def bind(count: int) -> None:
        for _ in range(count):
            with traffic:
                pass

    bind(1)
    # A pod that is refused now and then is told so.
    assert 0 < told(refusals, clock.now()) < 100
    assert told(refusals, clock.now()) == 0
    bind(3 * BINDS_FOR_A_REFUSAL)
    assert told(refusals, clock.now()) == 3


async def test_no_refusal_waits_for_binds_for_ever():
    clock = FakeClock()
    traffic = BindTraffic(clock)
    refusals = Refusals(traffic, clock)
    since_s = clock.now()
    ends_s = since_s + REFUSAL_PATIENCE_S
    while clock.now() < ends_s:
        with traffic:
            told(refusals, clock.now())
        clock.advance(BUSY_S / 2)

    assert traffic.is_busy
    assert told(refusals, since_s) == 100


async def test_who_waits_for_a_moment_without_binds_loses_patience():
    clock = FakeClock()
    traffic = BindTraffic(clock)
    with traffic:
        patient = asyncio.ensure_future(traffic.quiet(1.0))
        await asyncio.sleep(0)
        impatient = asyncio.ensure_future(traffic.quiet(0.5))
        await asyncio.sleep(0)
        clock.advance(0.4)
        await asyncio.sleep(0)
        assert not impatient.done()

        clock.advance(0.1)
        await asyncio.sleep(0)
        assert impatient.done()
        # Whoever is woken early asks again.
        again = asyncio.ensure_future(traffic.quiet(0.5))
        await asyncio.sleep(0)
        assert not again.done()
    await asyncio.sleep(0)
    assert again.done()
    assert patient.done()
