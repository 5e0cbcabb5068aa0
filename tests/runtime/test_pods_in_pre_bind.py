import asyncio
import contextlib

import pytest

from mooring.framework.status import SUCCESS, Code, unschedulable
from mooring.runtime.pods_in_pre_bind import PodsInPreBind


class Gate:
    """A PreBind that goes on when told to."""

    def __init__(self, status=SUCCESS):
        self.status = status
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.interrupted = False

    async def pre_bind(self):
        self.entered.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.interrupted = True
            raise
        return self.status


async def started(pods, gate):
    binding = asyncio.ensure_future(pods.run("uid", gate.pre_bind()))
    await gate.entered.wait()
    return binding


@pytest.mark.parametrize("status", [SUCCESS, unschedulable("no")])
async def test_pre_bind_that_nobody_cancels_says_what_it_says(status):
    pods, gate = PodsInPreBind(), Gate(status)
    binding = await started(pods, gate)

    gate.open.set()

    assert await binding == status
    assert len(pods) == 0


async def test_a_cancelled_pod_is_interrupted_and_fails_with_the_cause():
    pods, gate = PodsInPreBind(), Gate()
    binding = await started(pods, gate)

    assert pods.get("uid").cancel("preempted by DefaultPreemption")

    status = await binding
    assert gate.interrupted
    assert (status.code, status.message) == (Code.ERROR, "preempted by DefaultPreemption")
    assert len(pods) == 0


async def test_the_first_cause_counts():
    pods, gate = PodsInPreBind(), Gate()
    binding = await started(pods, gate)
    pod = pods.get("uid")

    assert pod.cancel("first")
    assert pod.cancel("second"), "it takes effect: the pod is not bound"

    assert (await binding).message == "first"


async def test_a_pod_that_is_past_pre_bind_cannot_be_cancelled():
    pods, gate = PodsInPreBind(), Gate()
    binding = await started(pods, gate)
    pod = pods.get("uid")

    gate.open.set()
    assert (await binding).ok

    assert not pod.cancel("too late")
    assert pods.get("uid") is None


async def test_a_pod_cancelled_at_the_last_moment_is_not_bound():
    """PreBind has succeeded, but nobody has looked at its answer yet."""
    pods, gate = PodsInPreBind(), Gate()
    binding = await started(pods, gate)
    pod = pods.get("uid")

    async def cancel_at_the_last_moment():
        gate.open.set()
        await asyncio.sleep(0)
        return pod.cancel("preempted")

    took_effect = await cancel_at_the_last_moment()

    assert took_effect
    assert (await binding).message == "preempted"


async def test_a_plugin_that_does_not_heed_being_cancelled_changes_nothing():
    pods = PodsInPreBind()
    entered = asyncio.Event()

    async def stubborn():
        entered.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return SUCCESS

    binding = asyncio.ensure_future(pods.run("uid", stubborn()))
    await entered.wait()
    pods.get("uid").cancel("preempted")

    assert (await binding).message == "preempted"


async def test_a_plugin_that_fails_after_being_cancelled_says_why_itself():
    pods = PodsInPreBind()
    entered = asyncio.Event()

    async def orderly():
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return unschedulable("stopped")

    binding = asyncio.ensure_future(pods.run("uid", orderly()))
    await entered.wait()
    pods.get("uid").cancel("preempted")

    assert await binding == unschedulable("stopped")


async def test_a_binding_cycle_that_is_cancelled_as_a_whole_takes_pre_bind_with_it():
    pods, gate = PodsInPreBind(), Gate()
    binding = await started(pods, gate)

    binding.cancel()

    with pytest.raises(asyncio.CancelledError):
        await binding
    assert gate.interrupted
    assert len(pods) == 0


async def test_a_pre_bind_that_raises_is_forgotten():
    pods = PodsInPreBind()

    async def broken():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await pods.run("uid", broken())
    assert len(pods) == 0
