"""Writes to claims go wrong: no device is given twice, none is lost, and every claim ends as it must.

Each write of PreBind is lost (carried out, but the answer never comes), refused, in conflict with another
one, or the last thing that a scheduler does before it is killed. In the end each claim is allocated and
reserved for a pod that runs, or free.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from mooring.errors import ApiError, Conflict, ServerUnavailable, Unanswered
from mooring.framework.api import Event, PodStatusPatch
from mooring.objects.devices import ResourceClaim
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.sim.api import SimApi
from mooring.sim.simulation import SimOptions, Simulation
from tests.device_world import GPU, NS, gpu_class, pod_with, template
from tests.devices.device_makers import make_slice
from tests.makers import make_node, make_pod
from tests.sim.books import assert_at_rest, validate

WRITES = (
    "create",
    "set_finalizers",
    "set_status",
    "remove_reservation",
    "delete",
    "set_extended_resource_claim",
)


class FaultyClaims:
    """Passes writes on, except the first ones of a name."""

    def __init__(self, api: SimApi, write: str, fault: str) -> None:
        self._api = api
        self._write = write
        self._fault = fault
        self.left = 1

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._api.claims, name)
        return partial(self._faulty, real) if name == self._write and self.left else real

    async def _faulty(self, real: Any, *args: Any) -> Any:
        self.left -= 1
        if self._fault == "refused":
            raise ApiError("no")
        if self._fault == "unavailable":
            raise ServerUnavailable("not now", status=503)
        if self._fault == "conflict":
            raise Conflict("someone wrote first")
        if self._fault == "never sent":
            raise Unanswered("connection refused", maybe_done=False)
        if self._fault == "late":
            # The answer is given up on, and the write arrives after all.
            asyncio.get_running_loop().call_later(
                0.05, lambda: asyncio.ensure_future(_ignored(real(*args)))
            )
        else:
            await real(*args)
        if self._fault == "carried out twice":
            raise Conflict("the second time, the version is another one")
        raise Unanswered("no answer", maybe_done=True)


async def _ignored(write: Any) -> None:
    with suppress(ApiError):
        await write


class FaultyWriter:
    def __init__(self, api: SimApi, write: str, fault: str) -> None:
        self._api = api
        self.claims = FaultyClaims(api, write, fault)
        self.binds_to_refuse = 1 if write in ("remove_reservation", "delete") else 0

    async def bind(self, pod: Pod, node_name: str) -> None:
        if self.binds_to_refuse:
            self.binds_to_refuse -= 1
            raise ApiError("binding is refused")
        await self._api.bind(pod, node_name)

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        await self._api.patch_pod_status(pod, patch)

    async def delete_pod(self, pod: Pod) -> None:
        await self._api.delete_pod(pod)

    async def update_object(self, obj: KubeObject) -> Any:
        return await self._api.update_object(obj)

    def record_event(self, event: Event) -> None:
        self._api.record_event(event)


def cluster() -> list[KubeObject]:
    return [
        make_node("n1"),
        make_node("n2"),
        gpu_class(resource=GPU, uid="u-class"),
        make_slice("x1", "x2", name="s1"),
        make_slice("y1", "y2", name="s2", pool="q", node="n2"),
        template(),
    ]


def by_template(count: int) -> list[Pod]:
    return [pod_with(templates={"gpu": ""}, name=f"p{i}") for i in range(count)]


def by_resource(count: int) -> list[Pod]:
    return [make_pod(f"p{i}", namespace=NS, requests={GPU: 1}) for i in range(count)]


def held_devices(api: SimApi) -> Counter[str]:
    return Counter(
        f"{result.pool}/{result.device}"
        for claim in api.all(ResourceClaim)
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )


def assert_all_is_well(sim: Simulation, *, pending: int) -> None:
    """No device is held twice, and each claim is in use by a running pod, or free."""
    pods = {pod.uid: pod for pod in sim.api.all(Pod)}
    held = held_devices(sim.api)
    assert all(count == 1 for count in held.values()), held
    for claim in sim.api.all(ResourceClaim):
        users = [user.uid for user in claim.status.reserved_for]
        if claim.status.allocation is None:
            assert users == []
        else:
            assert users, claim
            assert all(pods[uid].node_name for uid in users), claim
    assert sum(not pod.node_name for pod in pods.values()) == pending
    assert len(held) == len(pods) - pending
    for uid in pods:
        assert sim.scheduler.cluster.claims.in_flight(uid) is None
    assert sim.scheduler.cluster.claims._in_flight == {}
    assert_at_rest(sim)


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", ["lost", "late", "refused", "unavailable", "conflict", "never sent"]
)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("pods", [by_template, by_resource])
def test_whatever_happens_to_a_write_no_device_is_given_twice_and_none_is_lost(pods, write, fault):
    sim = Simulation(SimOptions(writer=partial(FaultyWriter, write=write, fault=fault)))

    with sim:
        sim.load([*cluster(), *pods(6)])
        sim.run(stops_when=partial(validate, sim), until_s=2000)

        assert_all_is_well(sim, pending=2)
        for pod in list(sim.api.all(Pod)):
            sim.api.terminate(pod)
        sim.run(stops_when=partial(validate, sim))
        assert list(sim.api.all(ResourceClaim)) == []
        assert held_devices(sim.api) == Counter()


@pytest.mark.parametrize("write", ["set_finalizers", "set_status"])
@pytest.mark.parametrize("pods", [by_template, by_resource])
def test_a_write_that_is_carried_out_twice_conflicts_with_itself_and_counts_as_done(pods, write):
    """Once, the pod was reserved for again, which is refused, and the devices were given to another pod."""
    writer = partial(FaultyWriter, write=write, fault="carried out twice")
    sim = Simulation(SimOptions(writer=writer))

    with sim:
        sim.load([*cluster(), *pods(6)])
        sim.run(stops_when=partial(validate, sim), until_s=2000)

        assert_all_is_well(sim, pending=2)
        notes = [event.note for _, event in sim.api.events if event.reason == "FailedScheduling"]
        assert not any("PreBind" in note for note in notes)


class KillingClaims:
    """After a number of writes, nothing more is written, and the process ends."""

    others_allocate = True

    def __init__(self, api: SimApi, most: int) -> None:
        self._api = api
        self._left = most

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._api.claims, name)
        return real if name == "get" else partial(self._counted, real)

    async def _counted(self, real: Any, *args: Any) -> Any:
        if self._left <= 0:
            await asyncio.get_running_loop().create_future()
        self._left -= 1
        answer = await real(*args)
        if self._left <= 0:
            await asyncio.get_running_loop().create_future()
        return answer


class KillingWriter(FaultyWriter):
    def __init__(self, api: SimApi, most: int) -> None:
        super().__init__(api, "", "")
        self.claims = KillingClaims(api, most)


@pytest.mark.parametrize("writes", range(6))
@pytest.mark.parametrize("pods", [by_template, by_resource])
def test_a_scheduler_that_is_killed_after_any_write_leaves_nothing_that_its_successor_cannot_mend(
    pods, writes
):
    first = Simulation(SimOptions(writer=partial(KillingWriter, most=writes)))
    with first:
        first.load([*cluster(), *pods(3)])
        first.run(until_s=5)
        left = [obj for kind in (ResourceClaim, Pod) for obj in first.api.all(kind)]

    with Simulation() as second:
        nominated_no_more = [
            obj.with_status(nominated_node_name="") if isinstance(obj, Pod) else obj for obj in left
        ]
        second.load([*cluster(), *nominated_no_more])
        second.run(stops_when=partial(validate, second), until_s=2000)

        assert_all_is_well(second, pending=0)


def test_a_pod_that_is_deleted_while_its_claim_is_written_leaves_nothing_behind():
    with Simulation() as sim:
        sim.load([*cluster(), *by_template(2)])
        sim.api.later(0.0, lambda: sim.api.terminate(next(sim.api.all(Pod))))
        sim.run(stops_when=partial(validate, sim))

        assert len(held_devices(sim.api)) == 1
        assert len(list(sim.api.all(ResourceClaim))) == 1
        assert_at_rest(sim)


def test_a_pod_that_finishes_gives_its_device_to_the_next_one():
    pods = [
        replace(pod, metadata=replace(pod.metadata, annotations={"mooring.dev/run-seconds": "10"}))
        for pod in by_template(6)
    ]
    with Simulation() as sim:
        sim.load([*cluster(), *pods])
        sim.run(stops_when=partial(validate, sim))

        assert len(sim.api.finished) == 6
        assert list(sim.api.all(ResourceClaim)) == []
