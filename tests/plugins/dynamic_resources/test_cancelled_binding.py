"""PreBind is cancelled while a claim is written: nothing is undone before it is known what was written."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from mooring.plugins.dynamic_resources.binding import ClaimBinder


@pytest.fixture
def binder():
    cluster = SimpleNamespace(claims=None, listers=None)
    return ClaimBinder(SimpleNamespace(cluster=cluster, clock=None), binding_timeout_s=None)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("fails", [False, True])
async def test_a_write_ends_before_its_pod_lets_go_however_often_the_pod_is_preempted(
    binder, times, fails
):
    """The second of two preemptors ended the wait. The device, whose allocation the API server had stored,
    counted as free and was given to another pod (safety seed 2871).
    """
    answer = asyncio.get_running_loop().create_future()

    async def write() -> None:
        await answer
        if fails:
            raise ValueError

    pre_bind = asyncio.ensure_future(binder._carry_through(write()))
    for _ in range(times):
        await asyncio.sleep(0)
        pre_bind.cancel()
    await asyncio.sleep(0)
    assert not pre_bind.done()

    answer.set_result(None)

    with pytest.raises(asyncio.CancelledError):
        await pre_bind


async def test_a_write_that_fails_says_so(binder):
    async def write() -> None:
        raise ValueError

    with pytest.raises(ValueError):
        await binder._carry_through(write())


async def test_a_scheduler_that_ends_waits_for_no_answer(binder):
    pre_bind = asyncio.ensure_future(binder._carry_through(asyncio.sleep(3600)))
    await asyncio.sleep(0)
    pre_bind.cancel()
    await asyncio.sleep(0)

    binder.close()

    with pytest.raises(asyncio.CancelledError):
        await pre_bind
