"""Events: counted, patient, and never in the way."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from msgspec.structs import replace

from mooring.framework.api import Event
from mooring.live import event_recorder
from mooring.live.bind_traffic import BUSY_S, BindTraffic
from mooring.live.client import ApiClient
from mooring.live.event_recorder import EventRecorder
from mooring.live.leader_election import Lease
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod
from tests.clock import FakeClock, FakeTimer
from tests.live_unit.api_server import (
    ApiServer,
    Asked,
    hang_up,
    namespace_terminating,
    ok,
    refusal,
)

EPOCH_S = 1_767_225_600.25
FOLDER = "/apis/events.k8s.io/v1/namespaces/ns/events"
POD = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="u", resource_version="7"))


def failed(note: str = "0/1 nodes", *, pod: Pod = POD, **more: Any) -> Event:
    return Event(
        regarding=pod,
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=note,
        reporting_controller="default-scheduler",
        **more,
    )


def named(name: str) -> Pod:
    return replace(POD, metadata=replace(POD.metadata, name=name, uid=f"u-{name}"))


class PauseClock(FakeClock):
    """Tells when somebody waits for a while, but not for minutes."""

    def __init__(self) -> None:
        super().__init__(EPOCH_S)
        self.pausing = asyncio.Event()

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeTimer:
        if 10.0 <= delay_s <= 20.0:
            self.pausing.set()
        return super().call_later(delay_s, callback)


class Office:
    def __init__(self, server: ApiServer, recorder: EventRecorder, traffic: BindTraffic) -> None:
        self.server = server
        self.recorder = recorder
        self.traffic = traffic
        self.clock = PauseClock()

    async def until(self, count: int) -> list[Asked]:
        await self.server.until(lambda: len(self.server.asked) == count)
        await self.settled()
        return self.server.asked

    async def settled(self) -> None:
        """Until everything that was sent has been answered."""
        async with asyncio.timeout(10):
            await self.recorder.idle.wait()


@asynccontextmanager
async def office(*answers: Any, **options: Any) -> AsyncIterator[Office]:
    async with ApiServer() as server:
        server.answers = list(answers) or [ok() for _ in range(100)]
        clock = PauseClock()
        traffic = BindTraffic(clock)
        async with ApiClient(server.connection(), clock=clock) as client:
            recorder = EventRecorder(
                client, traffic, clock=clock, rng=random.Random(1), host="host", **options
            )
            found = Office(server, recorder, traffic)
            found.clock = clock
            running = asyncio.create_task(recorder.run())
            try:
                yield found
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


async def test_an_event_says_who_what_why_and_of_whom():
    async with office() as o:
        o.recorder.record(failed(related=named("other")))
        (asked,) = await o.until(1)

    assert (asked.method, asked.path) == ("POST", FOLDER)
    body = dict(asked.body)
    assert body.pop("metadata") == {
        "namespace": "ns",
        "name": f"p.{int(EPOCH_S * 1e9):x}",
    }
    reference = {
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": "ns",
        "name": "p",
        "uid": "u",
        "resourceVersion": "7",
    }
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-01-01T00:00:00.250000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": reference,
        "related": {**reference, "name": "other", "uid": "u-other"},
        "note": "0/1 nodes",
        "type": "Warning",
    }


async def test_a_second_one_begins_a_series_and_further_ones_are_only_counted():
    async with office() as o:
        o.recorder.record(failed())
        await o.until(1)
        o.clock.advance(10.0)
        o.recorder.record(failed("another note"))
        _, patched = await o.until(2)
        for _ in range(5):
            o.recorder.record(failed())
        await o.settled()

        assert len(o.server.asked) == 2
        assert patched.method == "PATCH"
        assert patched.path == f"{FOLDER}/{o.server.asked[0].body['metadata']['name']}"
        assert patched.body == {
            "series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:10.250000Z"}
        }


async def test_one_that_concerns_another_version_of_the_pod_is_no_repetition():
    changed = replace(POD, metadata=replace(POD.metadata, resource_version="8"))
    async with office() as o:
        o.recorder.record(failed())
        o.recorder.record(failed(pod=changed))
        first, second = await o.until(2)

    assert first.method == second.method == "POST"
    assert first.body["metadata"]["name"] != second.body["metadata"]["name"]


async def test_repetitions_that_come_before_it_was_written_are_written_with_it():
    async with office() as o:
        with o.traffic:
            for _ in range(3):
                o.recorder.record(failed())
        (asked,) = await o.until(1)

    assert asked.body["series"]["count"] == 3


async def test_a_series_that_begins_while_the_first_is_on_its_way_is_told_too():
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request, asked: Asked) -> web.StreamResponse:
        arrived.set()
        await go_on.wait()
        return ok()

    async with office(slow, ok()) as o:
        o.recorder.record(failed())
        await arrived.wait()
        o.recorder.record(failed())
        go_on.set()
        _, patched = await o.until(2)

    assert patched.body["series"]["count"] == 2


async def test_a_series_is_told_now_and_then_and_at_its_end_and_then_forgotten():
    async with office() as o:
        o.recorder.record(failed())
        await o.until(1)
        o.recorder.record(failed())
        await o.until(2)
        for _ in range(29):
            o.clock.advance(60.0)
            await asyncio.sleep(0)
            o.recorder.record(failed())
        o.clock.advance(60.0)
        asked = await o.until(3)
        assert asked[2].body["series"]["count"] == 31

        o.recorder.record(failed())
        for _ in range(12):
            o.clock.advance(60.0)
            await asyncio.sleep(0)
        asked = await o.until(4)
        assert asked[3].body["series"]["count"] == 32

        o.recorder.record(failed())
        asked = await o.until(5)
        assert asked[4].method == "POST"


async def test_an_event_that_is_gone_is_written_anew_with_its_count():
    async with office(ok(), refusal(404), ok()) as o:
        o.recorder.record(failed())
        await o.until(1)
        o.recorder.record(failed())
        asked = await o.until(3)

    assert [a.method for a in asked] == ["POST", "PATCH", "POST"]
    assert asked[2].body["series"]["count"] == 2


async def test_binds_go_first_but_not_for_ever():
    async with office() as o:
        with o.traffic:
            o.recorder.record(failed())
            for _ in range(5):
                await asyncio.sleep(0)
            assert not o.server.asked
            o.clock.advance(event_recorder.PATIENCE_S)
            await o.until(1)
        o.recorder.record(failed(pod=named("q")))
        await o.until(2)


async def test_events_keep_up_with_binds_that_never_end():
    async with office(*[ok() for _ in range(40)]) as o:
        with o.traffic:
            for n in range(40):
                o.recorder.record(failed(pod=named(f"p{n}")))
            await asyncio.sleep(0)
            o.clock.advance(event_recorder.PATIENCE_S)
            # One wait for all that have waited so long, and not one for each of them.
            await o.until(40)


async def test_in_a_storm_of_binds_only_a_few_refusals_are_told_and_every_bind():
    async with office() as o:
        with o.traffic:
            pass
        for n in range(40):
            o.recorder.record(failed(pod=named(f"p{n}")))
        o.recorder.record(replace(failed(), type="Normal", reason="Scheduled"))
        await o.server.until(lambda: any(a.body["type"] == "Normal" for a in o.server.asked))
        assert len(o.server.asked) < 20
        assert not o.recorder.idle.is_set()

        o.clock.advance(2 * BUSY_S)
        asked = await o.until(41)

    # None is lost.
    notes = [a.body["regarding"]["name"] for a in asked if a.body["type"] == "Warning"]
    assert sorted(notes) == sorted(f"p{n}" for n in range(40))


async def test_refusals_that_let_binds_go_first_are_written_at_the_end():
    async with office() as o:
        with o.traffic:
            pass
        for n in range(40):
            o.recorder.record(failed(pod=named(f"p{n}")))
        assert await o.recorder.flush(10.0) == 0

    assert len(o.server.asked) == 40


async def test_the_end_wakes_events_that_let_binds_go_first():
    async with office() as o:
        with o.traffic:
            o.recorder.record(failed())
            for _ in range(5):
                await asyncio.sleep(0)
            assert await o.recorder.flush(10.0) == 0

    assert len(o.server.asked) == 1


async def test_when_the_line_is_full_events_are_dropped_and_counted():
    async with office(most_waiting=10) as o:
        with o.traffic:
            for n in range(25):
                o.recorder.record(failed(pod=named(f"p{n}")))
            assert o.recorder.dropped == 15
        await o.until(10)

    assert o.recorder.dropped == 15


async def test_a_server_that_does_not_answer_is_asked_again_after_a_while():
    async with office(hang_up, ok()) as o:
        o.recorder.record(failed())
        await o.server.until(lambda: len(o.server.asked) == 1)
        async with asyncio.timeout(10):
            await o.clock.pausing.wait()
        o.clock.advance(20.0)
        await o.until(2)

    assert o.recorder.dropped == 0


async def test_an_event_that_is_refused_is_dropped_and_one_that_is_there_already_is_not():
    async with office(refusal(403), refusal(409, "AlreadyExists")) as o:
        o.recorder.record(failed())
        await o.until(1)
        assert o.recorder.dropped == 1
        o.recorder.record(failed(pod=named("q")))
        await o.until(2)
        assert o.recorder.dropped == 1


async def test_events_of_a_namespace_that_is_being_deleted_are_dropped_without_a_warning(caplog):
    """Hundreds of warnings said so of a deleted namespace, one for each of its pods."""
    async with office(namespace_terminating()) as o:
        o.recorder.record(failed())
        await o.until(1)
        assert o.recorder.dropped == 1

    assert not [record for record in caplog.records if record.levelno >= logging.INFO]


async def test_what_waits_is_written_at_the_end_binds_or_not():
    async with office() as o:
        with o.traffic:
            for n in range(3):
                o.recorder.record(failed(pod=named(f"p{n}")))
            assert await o.recorder.flush(10.0) == 0

    assert len(o.server.asked) == 3


async def test_those_that_are_left_at_the_end_are_dropped_and_counted():
    async def never(request: web.Request, asked: Asked) -> web.StreamResponse:
        await asyncio.Event().wait()
        return ok()

    async with office(*[never] * event_recorder.SENDERS) as o:
        for n in range(event_recorder.SENDERS + 6):
            o.recorder.record(failed(pod=named(f"p{n}")))
        await o.server.until(lambda: len(o.server.asked) == event_recorder.SENDERS)

        assert await o.recorder.flush(0.0) == 6

    assert o.recorder.dropped == event_recorder.SENDERS + 6


async def test_who_leads_is_told_of_the_lease():
    lease = Lease(metadata=ObjectMeta(name="l", namespace="ns", uid="u", resource_version="3"))
    async with office() as o:
        o.recorder.record_election(lease, "me became leader", "default-scheduler")
        (asked,) = await o.until(1)

    assert asked.path == FOLDER
    assert asked.body["regarding"] == {
        "kind": "Lease",
        "apiVersion": "coordination.k8s.io/v1",
        "namespace": "ns",
        "name": "l",
        "uid": "u",
        "resourceVersion": "3",
    }
    assert (asked.body["reason"], asked.body["note"]) == ("LeaderElection", "me became leader")


async def test_only_so_many_are_remembered():
    async with office(*(ok() for _ in range(event_recorder.MOST_KNOWN + 10))) as o:
        for n in range(event_recorder.MOST_KNOWN + 5):
            o.recorder.record(failed(pod=named(f"p{n}")))

        assert len(o.recorder._known) == event_recorder.MOST_KNOWN


async def test_an_event_that_happens_once_is_not_remembered():
    """Thousands of pods that were bound took up memory for their Events, to tell repetitions of a bind."""
    async with office() as o:
        for n in range(3):
            bound = failed(pod=named(f"p{n}"))
            o.recorder.record(replace(bound, type="Normal", reason="Scheduled"))
        await o.until(3)

        assert not o.recorder._known
