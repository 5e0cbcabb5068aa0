"""A pod that Permit holds back: whoever decides first decides."""

from __future__ import annotations

import asyncio

import pytest

from mooring.framework.status import SUCCESS, Code, Status
from mooring.runtime.waiting_pods import WaitingPods
from tests.clock import FakeClock
from tests.makers import make_pod

POD = make_pod("p", uid="uid")


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def pods(clock):
    return WaitingPods(clock)


@pytest.fixture
def waiting(pods):
    """Held by A for 10 seconds and by B for 20."""
    return pods.add(POD, "n", {"A": 10.0, "B": 20.0})


def timed_out(plugin: str, after: str) -> Status:
    reason = f"rejected due to timeout after waiting {after} at plugin {plugin}"
    return Status(Code.UNSCHEDULABLE, (reason,), plugin)


async def test_a_pod_goes_when_the_last_plugin_lets_it_go(waiting):
    waiting.allow("A")
    assert not waiting.decided
    assert waiting.pending_plugins() == ["B"]

    waiting.allow("B")

    assert await waiting.wait() == SUCCESS
    assert waiting.pending_plugins() == []


async def test_one_plugin_rejects_for_all(waiting):
    assert waiting.reject("B", "no")

    assert await waiting.wait() == Status(Code.UNSCHEDULABLE, ("no",), "B")


async def test_a_preempted_pod_fails_so_that_it_is_tried_again_soon(waiting):
    assert waiting.preempt("B", "preempted")

    status = await waiting.wait()
    assert (status.code, status.message, status.plugin) == (Code.ERROR, "preempted", "B")


async def test_the_shortest_wait_ends_first_and_rejects(waiting, clock):
    clock.advance(9.999)
    assert not waiting.decided

    clock.advance(0.001)

    assert await waiting.wait() == timed_out("A", "10s")


async def test_a_plugin_that_let_go_does_not_time_out(waiting, clock):
    waiting.allow("A")

    clock.advance(20)

    assert await waiting.wait() == timed_out("B", "20s")


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(lambda pod: (pod.allow("A"), pod.allow("B")), id="let go"),
        pytest.param(lambda pod: pod.reject("A", "first"), id="rejected"),
        pytest.param(lambda pod: pod.preempt("A", "first"), id="preempted"),
    ],
)
async def test_what_comes_after_the_decision_changes_nothing(waiting, clock, first):
    first(waiting)
    decision = await waiting.wait()

    assert not waiting.reject("B", "second")
    assert not waiting.preempt("B", "second")
    waiting.allow("B")
    clock.advance(60)

    assert await waiting.wait() == decision


async def test_a_plugin_that_does_not_hold_the_pod_cannot_let_it_go(waiting):
    waiting.allow("C")

    assert not waiting.decided
    assert waiting.pending_plugins() == ["A", "B"]


async def test_whoever_waits_is_woken_by_the_decision(waiting):
    task = asyncio.ensure_future(waiting.wait())
    await asyncio.sleep(0)
    assert not task.done()

    waiting.reject("A", "no")

    assert (await task).message == "no"


async def test_a_pod_that_goes_away_is_rejected_by_nobody(pods, waiting):
    assert pods.reject("uid")

    assert await waiting.wait() == Status(Code.UNSCHEDULABLE, ("removed",), "")
    assert not pods.reject("uid"), "it was decided already"
    assert not pods.reject("another"), "nobody waits under this UID"


def test_waiting_pods_are_known_by_uid_until_they_are_removed(pods, waiting):
    assert pods.get("uid") is waiting
    assert list(pods) == [waiting]
    assert (len(pods), waiting.since) == (1, 1000.0)

    pods.remove("uid")
    pods.remove("uid")

    assert (pods.get("uid"), len(pods)) == (None, 0)


def test_all_that_wait_can_be_let_go_while_they_are_gone_through(pods):
    for name in ("p", "q"):
        pods.add(make_pod(name), "n", {"A": 1.0})

    for waiting in pods:
        waiting.allow("A")
        pods.remove(waiting.pod.uid)

    assert len(pods) == 0
