"""Binds under way, and room for more."""

from __future__ import annotations

import asyncio

from mooring.live.bind_traffic import READY, BindTraffic
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
