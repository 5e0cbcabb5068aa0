"""Virtual time: nothing waits, and everything happens in its order."""

from __future__ import annotations

import asyncio

import pytest

from mooring.framework.clock import sleep
from mooring.sim.clock import VirtualClock, VirtualLoop


@pytest.fixture
def loop():
    loop = VirtualLoop()
    yield loop
    loop.close()


def test_time_jumps_to_whatever_is_due_next(loop):
    at = []
    for delay_s in (3600.0, 0.5, 86_400.0):
        loop.call_later(delay_s, lambda: at.append(loop.time()))

    loop.run_forever()

    assert at == [0.5, 3600.0, 86_400.0]
    assert loop.time() == 86_400.0


def test_what_is_due_at_one_time_happens_in_the_order_it_was_asked_for(loop):
    order = []
    for name in "abc":
        loop.call_at(5.0, order.append, name)

    loop.run_forever()

    assert order == ["a", "b", "c"]


def test_times_do_not_drift(loop):
    """The clock goes to the timer, not by differences to it, which would add up to something else."""
    at = []
    for i in range(1, 1000):
        loop.call_at(i * 0.1, lambda: at.append(loop.time()))

    loop.run_forever()

    assert at == [i * 0.1 for i in range(1, 1000)]


def test_a_loop_with_nothing_left_to_do_stops(loop):
    loop.run_forever()

    assert loop.time() == 0.0


def test_a_cancelled_timer_does_not_move_the_clock(loop):
    loop.call_later(100, lambda: None).cancel()
    loop.call_later(1, lambda: None)

    loop.run_forever()

    assert loop.time() == 1.0


def test_coroutines_sleep_in_virtual_time(loop):
    clock = VirtualClock(loop, 1_000_000.0)

    async def naps():
        await asyncio.sleep(10)
        await sleep(clock, 5.5)
        return clock.now(), clock.elapsed_s

    assert loop.run_until_complete(naps()) == (1_000_015.5, 15.5)


def test_a_sleeper_that_is_cancelled_leaves_no_timer(loop):
    clock = VirtualClock(loop, 0.0)

    async def give_up():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(2):
                await sleep(clock, 3600)

    loop.run_until_complete(give_up())
    loop.run_forever()

    assert loop.time() == 2.0


def test_a_timer_in_the_past_goes_off_at_once(loop):
    at = []
    VirtualClock(loop, 0.0).call_later(-5, lambda: at.append(loop.time()))

    loop.run_forever()

    assert at == [0.0]
