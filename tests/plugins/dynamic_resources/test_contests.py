"""Two schedulers write at the same time, each before it has seen the other's write."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.framework.cycle_state import CycleState
from mooring.objects.devices import ResourceClaim
from mooring.plugins.dynamic_resources.contests import ClaimBindingFailed
from mooring.sim.claim_api import StoredClaims
from mooring.sim.clock import VirtualClock, VirtualLoop
from tests.device_world import START_S, World, claim, gpu_class, pod_with
from tests.devices.device_makers import make_capacity, make_device, make_request, make_slice
from tests.makers import make_node


class ApiServer:
    """Stores claims, and remembers each version of them in the order of the writes."""

    def __init__(self) -> None:
        self.log: list[ResourceClaim] = []
        self._stored: dict[str, Any] = {}

    def get(self, kind: type, key: str) -> Any:
        return self._stored.get(key)

    def update(self, obj: ResourceClaim) -> ResourceClaim:
        version = str(len(self.log) + 1)
        stored = replace(obj, metadata=replace(obj.metadata, resource_version=version))
        self._stored[obj.key] = stored
        self.log.append(stored)
        return stored

    def holders(self) -> list[str]:
        """The claims that are allocated."""
        return sorted(
            each.name for each in self._stored.values() if each.status.allocation is not None
        )


class ClaimsOfMany(StoredClaims):
    others_allocate = True


class Scheduler(World):
    """Sees the writes of an API server when it is told to."""

    def __init__(self, server: ApiServer, loop: Any, *objects: Any) -> None:
        super().__init__(*objects)
        self.loop.close()
        self.loop = loop
        self.clock = VirtualClock(loop, START_S)
        self.claims = ClaimsOfMany(server)
        self._server = server
        self._seen = 0

    def see(self, writes: int | None = None) -> None:
        end = len(self._server.log) if writes is None else self._seen + writes
        for each in self._server.log[self._seen : end]:
            self.put(each)
            self._seen += 1


def race(objects: list, requests: tuple, steps: list[int]) -> tuple[ApiServer, list[Any]]:
    """Two schedulers decide, then go on as the steps say: 0 and 1 see a write, 2 lets both work.

    In the end both see everything. The results are None, or why the binding failed.
    """
    loop, server = VirtualLoop(), ApiServer()
    for name, request in zip(("x", "y"), requests, strict=True):
        server.update(claim(name, request))
    schedulers = [Scheduler(server, loop, *objects) for _ in range(2)]
    work = []
    for scheduler, name in zip(schedulers, ("x", "y"), strict=True):
        scheduler.see()
        pod = pod_with(name, name=f"pod-{name}")
        state: CycleState = scheduler.reserve(pod)
        work.append(scheduler.plugin.pre_bind(state, pod, "n1"))

    async def play() -> list[Any]:
        tasks = [asyncio.ensure_future(each) for each in work]
        for step in [*steps, 2]:
            if step == 2:
                await asyncio.sleep(0.001)
            else:
                schedulers[step].see(1)
        while not all(task.done() for task in tasks):
            await asyncio.sleep(1)
            for scheduler in schedulers:
                scheduler.see()
        return await asyncio.gather(*tasks, return_exceptions=True)

    try:
        return server, loop.run_until_complete(play())
    finally:
        loop.close()


ONE = [make_node("n1"), gpu_class(), make_slice("a")]
SHARED = [
    *(make_node("n1"), gpu_class()),
    make_slice(
        make_device("a", capacity={"bw": make_capacity("100G", default="1G")}, multiple=True)
    ),
]
HALVES = [
    *(make_node("n1"), gpu_class(), gpu_class("whole")),
    make_slice(name="counters", slices=2, counters={"memory": "80Gi"}),
    make_slice(
        make_device("half", counters={"memory": "40Gi"}, attributes={"part": True}),
        make_device("whole", counters={"memory": "80Gi"}, attributes={"part": False}),
        slices=2,
    ),
]
PART, WHOLE = (f'device.attributes["d"].part == {each}' for each in ("true", "false"))

CONTESTS = {
    "one device": (ONE, (make_request(), make_request())),
    "a capacity": (SHARED, (make_request(capacity={"bw": "60G"}),) * 2),
    "a counter": (HALVES, (make_request("r", PART), make_request("r", WHOLE))),
}


@pytest.mark.parametrize(("objects", "requests"), CONTESTS.values(), ids=CONTESTS)
@settings(max_examples=40, deadline=None)
@given(steps=st.lists(st.sampled_from([0, 1, 2, 2]), max_size=12))
def test_of_two_schedulers_exactly_one_gets_the_device(objects, requests, steps):
    server, results = race(objects, requests, steps)

    assert len(server.holders()) == 1
    [kept] = server.holders()
    failed = [isinstance(each, ClaimBindingFailed) for each in results]
    assert failed == [kept == "y", kept == "x"]
    assert "was given to another claim in the meantime" in str(results[failed.index(True)])


def test_the_first_writer_keeps_the_device():
    server, results = race(ONE, (make_request(), make_request()), [])

    first = next(each.name for each in server.log if each.status.allocation is not None)
    assert server.holders() == [first]
    assert sum(each is None for each in results) == 1


def test_devices_that_do_not_collide_are_both_kept():
    two = [
        make_node("n1"),
        gpu_class(),
        make_slice(
            make_device("a", attributes={"part": True}),
            make_device("b", attributes={"part": False}),
        ),
    ]

    server, results = race(two, (make_request("r", PART), make_request("r", WHOLE)), [0, 1, 2])

    assert server.holders() == ["x", "y"]
    assert results == [None, None]


def test_a_share_beside_another_is_no_contest():
    server, results = race(SHARED, (make_request(capacity={"bw": "50G"}),) * 2, [])

    assert server.holders() == ["x", "y"]
    assert results == [None, None]


def test_without_the_watch_the_device_is_given_back_after_a_while():
    loop, server = VirtualLoop(), ApiServer()
    server.update(claim("x"))
    scheduler = Scheduler(server, loop, *ONE)
    scheduler.see()
    pod = pod_with("x")
    state = scheduler.reserve(pod)

    with pytest.raises(ClaimBindingFailed, match="the watch does not show its allocation"):
        scheduler.pre_bind(state, pod)

    assert server.holders() == []
    scheduler.unreserve(state, pod)
    assert scheduler.cluster.claims.in_flight(claim("x").uid) is None
    loop.close()
