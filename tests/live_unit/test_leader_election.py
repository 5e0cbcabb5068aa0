"""The election, played against a lease in memory by a clock that only moves when told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from mooring.config.types import LeaderElectionConfiguration
from mooring.errors import ApiError, Conflict
from mooring.live.leader_election import (
    ElectionClock,
    ElectionThread,
    Elector,
    Lease,
    new_identity,
)

SETTINGS = LeaderElectionConfiguration()


class FakeTime:
    """Sleeping takes no time but moves the clock."""

    def __init__(self, *, ahead_s: float = 0.0) -> None:
        self.now = 100.0
        self.ahead_s = ahead_s

    def clock(self) -> ElectionClock:
        return ElectionClock(
            monotonic=lambda: self.now,
            wall=lambda: 1_767_225_600.0 + self.now + self.ahead_s,
            sleep=self._sleep,
        )

    async def _sleep(self, delay_s: float) -> None:
        self.now += delay_s
        await asyncio.sleep(0)


class MemoryStore:
    """A lease as the API server keeps it: writes with an outdated version are refused."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.broken = False
        self.writes = 0

    async def get(self) -> Lease | None:
        self._check()
        return self.lease

    async def create(self, lease: Lease) -> Lease:
        self._check()
        if self.lease is not None:
            raise Conflict("leases already exists")
        return self._stored(lease)

    async def update(self, lease: Lease) -> Lease:
        self._check()
        assert self.lease is not None
        if lease.metadata.resource_version != self.lease.metadata.resource_version:
            raise Conflict("the object has been modified")
        return self._stored(lease)

    def _stored(self, lease: Lease) -> Lease:
        self.writes += 1
        self.lease = lease.stored_as(str(self.writes))
        return self.lease

    def _check(self) -> None:
        if self.broken:
            raise ApiError("the API server cannot be reached")


def make_elector(store: MemoryStore, who: str, time: FakeTime, **told) -> Elector:
    return Elector(SETTINGS, who, store, clock=time.clock(), seed=1, **told)


async def test_the_first_to_come_makes_the_lease_and_leads():
    store, time = MemoryStore(), FakeTime()
    elector = make_elector(store, "a", time)

    assert await elector.try_acquire_or_renew()

    assert elector.may_write()
    assert store.lease is not None
    assert store.lease.spec.holder_identity == "a"
    assert store.lease.spec.lease_duration_seconds == 15
    assert store.lease.spec.renew_time == "2026-01-01T00:01:40.000000Z"


async def test_a_lease_that_is_held_is_not_taken_until_it_was_seen_unchanged_for_its_duration():
    store, time = MemoryStore(), FakeTime()
    holder, other = make_elector(store, "a", time), make_elector(store, "b", time)
    await holder.try_acquire_or_renew()

    assert not await other.try_acquire_or_renew()
    time.now += 14.9
    assert not await other.try_acquire_or_renew()
    time.now += 0.2
    assert await other.try_acquire_or_renew()

    assert store.lease is not None
    assert store.lease.spec.lease_transitions == 1
    assert not holder.may_write()


async def test_times_written_by_a_machine_whose_clock_is_wrong_do_not_matter():
    store = MemoryStore()
    late, time = FakeTime(ahead_s=-100_000.0), FakeTime()
    await make_elector(store, "late", late).try_acquire_or_renew()

    assert not await make_elector(store, "b", time).try_acquire_or_renew()


async def test_renewing_keeps_when_it_was_acquired_and_how_often_it_changed_hands():
    store, time = MemoryStore(), FakeTime()
    elector = make_elector(store, "a", time)
    await elector.try_acquire_or_renew()
    acquired = store.lease
    time.now += 2.0

    assert await elector.try_acquire_or_renew()

    assert acquired is not None
    assert store.lease is not None
    assert store.lease.spec == replace(acquired.spec, renew_time="2026-01-01T00:01:42.000000Z")


async def test_a_leader_that_cannot_renew_loses_at_the_deadline_and_before_the_lease_runs_out():
    store, time = MemoryStore(), FakeTime()
    lost_at: list[float] = []

    def start() -> None:
        store.broken = True

    elector = make_elector(
        store, "a", time, on_started=start, on_lost=lambda: lost_at.append(time.now)
    )
    await elector.run(asyncio.Event())

    assert lost_at == [pytest.approx(110.0, abs=2.1)]
    assert lost_at[0] < 100.0 + SETTINGS.lease_duration.seconds
    assert not elector.may_write()


async def test_a_leader_whose_lease_another_took_stops_at_once():
    store, time = MemoryStore(), FakeTime()
    lost: list[str] = []

    def taken_over() -> None:
        assert store.lease is not None
        stolen = replace(store.lease.spec, holder_identity="thief")
        store._stored(replace(store.lease, spec=stolen))

    elector = make_elector(
        store, "a", time, on_started=taken_over, on_lost=lambda: lost.append("lost")
    )
    await elector.run(asyncio.Event())

    assert lost == ["lost"]
    assert not elector.may_write()
    assert elector.leader == "thief"


async def test_whoever_is_asked_to_stop_releases_the_lease_and_the_next_takes_it_at_once():
    store, time = MemoryStore(), FakeTime()
    stopping = asyncio.Event()
    elector = make_elector(store, "a", time, on_started=stopping.set)
    await elector.run(stopping)

    assert store.lease is not None
    assert store.lease.spec.holder_identity == ""
    assert store.lease.spec.lease_duration_seconds == 1
    assert not elector.may_write()
    assert await make_elector(store, "b", time).try_acquire_or_renew()


async def test_who_stands_by_leaves_the_lease_alone_when_asked_to_stop():
    store, time = MemoryStore(), FakeTime()
    await make_elector(store, "a", time).try_acquire_or_renew()
    stopping = asyncio.Event()
    stopping.set()

    await make_elector(store, "b", time).run(stopping)

    assert store.lease is not None
    assert store.lease.spec.holder_identity == "a"


async def test_a_leader_that_was_frozen_past_its_lease_may_not_write_even_before_it_notices():
    store, time = MemoryStore(), FakeTime()
    elector = make_elector(store, "a", time)
    await elector.try_acquire_or_renew()

    time.now += SETTINGS.lease_duration.seconds

    assert not elector.may_write()
    assert elector.healthy()
    time.now += 20.1
    assert not elector.healthy()


def test_the_thread_leads_until_it_is_stopped_and_then_releases():
    store, time = MemoryStore(), FakeTime()
    import threading

    started = threading.Event()

    @asynccontextmanager
    async def open_store() -> AsyncIterator[MemoryStore]:
        yield store

    settings = SETTINGS
    thread = ElectionThread(
        lambda lease: Elector(settings, "a", lease, on_started=started.set, clock=ElectionClock()),
        open_store,
    )
    thread.start()
    assert started.wait(10)
    assert thread.may_write()

    assert thread.stop(10)
    assert not thread.may_write()
    assert store.lease is not None
    assert store.lease.spec.holder_identity == ""
    assert time.now == 100.0


def test_every_process_has_an_identity_of_its_own():
    assert new_identity() != new_identity()
    assert new_identity().count("_") >= 1
