"""The limit of requests a second, and what conditions leave of it to binds."""

from __future__ import annotations

import asyncio

from mooring.live.line import Priority
from mooring.live.rate_limit import RateLimiter
from tests.clock import FakeClock


class World:
    """Requests that ask for a token at once, and when they got it."""

    def __init__(self, *, qps: float = 50.0, burst: int = 10) -> None:
        self.clock = FakeClock()
        self.limiter = RateLimiter(qps, burst, self.clock, reserved_share=0.5)
        self.got: list[tuple[Priority, float]] = []
        self._asked: list[asyncio.Task[None]] = []

    async def ask(self, priority: Priority, count: int) -> None:
        self._asked += [asyncio.ensure_future(self._take(priority)) for _ in range(count)]
        await self.settle()

    async def pass_s(self, seconds: float) -> None:
        for _ in range(round(seconds * 100)):
            self.clock.advance(0.01)
            await self.settle()

    def count(self, priority: Priority) -> int:
        return sum(got == priority for got, _ in self.got)

    async def _take(self, priority: Priority) -> None:
        await self.limiter.take(priority)
        self.got.append((priority, self.clock.now()))

    async def settle(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    async def end(self) -> None:
        for task in self._asked:
            task.cancel()
        await self.settle()


async def test_conditions_leave_half_of_the_burst_to_binds():
    world = World()

    await world.ask(Priority.CONDITION, 20)
    assert world.count(Priority.CONDITION) == 5
    assert not world.limiter.is_exhausted
    await world.ask(Priority.BIND, 5)

    assert world.count(Priority.BIND) == 5
    await world.end()


async def test_a_bind_without_a_token_does_not_wait_until_conditions_may_go_on():
    """The timer was set for the conditions, who need more tokens, and so later."""
    world = World(qps=10.0)
    await world.ask(Priority.CONDITION, 20)
    await world.ask(Priority.BIND, 6)
    assert world.limiter.is_exhausted
    assert world.count(Priority.BIND) == 5

    await world.pass_s(0.2)

    assert world.count(Priority.BIND) == 6
    await world.end()


async def test_conditions_alone_are_sent_as_fast_as_the_limit_allows():
    world = World()
    await world.ask(Priority.CONDITION, 200)

    await world.pass_s(1.0)

    assert 50 <= world.count(Priority.CONDITION) <= 55
    await world.end()


async def test_binds_as_many_as_there_are_tokens_do_not_wait_and_do_not_starve_conditions():
    world = World()
    await world.ask(Priority.CONDITION, 200)
    for _ in range(200):
        before = world.count(Priority.BIND)
        await world.ask(Priority.BIND, 1)
        assert world.count(Priority.BIND) == before + 1
        await world.pass_s(0.02)

    assert 5 < world.count(Priority.CONDITION) <= 12
    await world.end()


async def test_a_bucket_of_one_token_is_for_all():
    world = World(burst=1)

    await world.ask(Priority.CONDITION, 1)

    assert world.count(Priority.CONDITION) == 1


async def test_the_more_requests_wait_the_more_are_let_through_at_once():
    """To wake up for each of them costs more than to send it."""
    world = World(burst=100)
    await world.ask(Priority.BIND, 100 + 40)

    await world.pass_s(1.0)

    times = [round(at, 2) for _, at in world.got[100:]]
    assert len(times) == 40
    # Tokens for 2.5 come in 50 ms.
    assert len(set(times)) <= 7
    await world.end()


async def test_a_request_that_waits_alone_gets_the_next_token():
    world = World(burst=100)
    await world.ask(Priority.BIND, 100 + 1)

    await world.pass_s(0.06)

    assert world.count(Priority.BIND) == 101
    await world.end()


async def test_requests_that_wait_go_at_the_rate_of_the_limit():
    world = World(burst=100)
    await world.ask(Priority.BIND, 300)

    # A batch is what comes in 200 ms.
    for second in range(1, 4):
        await world.pass_s(1.0)
        assert 0 <= 100 + 50 * second - world.count(Priority.BIND) <= 10
    await world.end()
