"""List and watch, against a server that pages, expires, breaks off and repeats itself."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from mooring.live.client import ApiClient
from mooring.live.decoding import decode_event, decode_object
from mooring.live.outage import Outage
from mooring.live.reflector import Reflector
from mooring.live.resources import PODS, kinds_to_watch
from mooring.objects.kinds import UNFINISHED, Namespace, custom_kind
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from tests.clock import FakeClock
from tests.engine import Engine
from tests.live_unit.api_server import ApiServer, Asked, JumpingClock, ok, refusal

#: What a test can have the watch do instead of sending an event.
CLOSE = object()
BREAK_OFF = object()
CUT_SHORT = object()


def pod(name: str, version: int, *, uid: str = "", node: str = "", **more: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}],
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}], **more},
    }


class PlayedPods:
    """Pods as an API server serves them; the test says what happens to them."""

    def __init__(self, *pods: dict[str, Any], version: int = 100) -> None:
        self.pods = list(pods)
        self.version = version
        #: What the watch says next: events, or one of the above.
        self.watch: asyncio.Queue[Any] = asyncio.Queue()
        #: Answers that come before anything else, to lists and to watches.
        self.list_answers: list[web.Response] = []
        self.watch_answers: list[web.Response] = []

    async def handle(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        assert asked.path == "/api/v1/pods"
        assert asked.query["fieldSelector"] == UNFINISHED
        if "watch" not in asked.query:
            return self.list_answers.pop(0) if self.list_answers else self._page(asked)
        if self.watch_answers:
            return self.watch_answers.pop(0)
        return await self._stream(request)

    def happens(self, kind: str, obj: dict[str, Any]) -> None:
        self.watch.put_nowait({"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", **obj}})

    def bookmark(self, version: int) -> None:
        self.happens("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})

    def _page(self, asked: Asked) -> web.Response:
        begin = int(asked.query.get("continue", "0"))
        size = int(asked.query.get("limit", "0")) or len(self.pods) or 1
        more = begin + size < len(self.pods)
        return ok(
            {
                "kind": "PodList",
                "apiVersion": "v1",
                "metadata": {
                    "resourceVersion": str(self.version),
                    **({"continue": str(begin + size)} if more else {}),
                },
                "items": self.pods[begin : begin + size],
            }
        )

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            event = await self.watch.get()
            if event is CLOSE:
                return response
            if event is CUT_SHORT:
                await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"ha')
            if event in (BREAK_OFF, CUT_SHORT):
                assert request.transport is not None
                request.transport.abort()
                return response
            await response.write(json.dumps(event).encode() + b"\n")


class Heard:
    """A watcher that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []
        self._more = asyncio.Event()
        self.fails_once = False

    def added(self, obj: KubeObject) -> None:
        self._note("added", obj.name)

    def updated(self, old: KubeObject, new: KubeObject) -> None:
        versions = old.metadata.resource_version, new.metadata.resource_version
        self._note("updated", new.name, *versions)

    def deleted(self, obj: KubeObject) -> None:
        self._note("deleted", obj.name, obj.metadata.resource_version)

    def _note(self, *what: str) -> None:
        self.told.append(what)
        self._more.set()
        if self.fails_once:
            self.fails_once = False
            raise RuntimeError("the listener's own trouble")

    async def until(self, *last: str) -> None:
        """Return when this has been told."""
        async with asyncio.timeout(10):
            while not self.told or self.told[-1] != last:
                self._more.clear()
                await self._more.wait()


class Scene:
    def __init__(self, played: PlayedPods, server: ApiServer, reflector: Reflector) -> None:
        self.played = played
        self.server = server
        self.reflector = reflector
        self.heard = Heard()
        self.clock = JumpingClock()

    def watches(self) -> list[str]:
        """The versions that watches began from."""
        return [
            asked.query["resourceVersion"] for asked in self.server.asked if "watch" in asked.query
        ]

    async def until_watches(self, count: int) -> None:
        await self.server.until(lambda: len(self.watches()) == count)


@asynccontextmanager
async def scene(played: PlayedPods, **options: Any) -> AsyncIterator[Scene]:
    async with ApiServer(played.handle) as server, ApiClient(server.connection()) as client:
        heard, clock = Heard(), JumpingClock()
        outage = Outage("https://server", clock)
        reflector = Reflector(
            client, PODS, heard, clock=clock, rng=random.Random(1), outage=outage, **options
        )
        found = Scene(played, server, reflector)
        found.heard, found.clock = heard, clock
        running = asyncio.create_task(reflector.run())
        try:
            yield found
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def test_what_is_there_is_listed_page_by_page_and_then_it_is_in_sync():
    played = PlayedPods(*(pod(f"p{n}", n) for n in range(7)))
    async with scene(played, page_size=3) as s:
        async with asyncio.timeout(10):
            await s.reflector.synced.wait()

        assert s.heard.told == [("added", f"p{n}") for n in range(7)]
        await s.until_watches(1)
        assert s.watches() == ["100"]
        lists = [asked for asked in s.server.asked if "watch" not in asked.query]
        assert [asked.query.get("continue") for asked in lists] == [None, "3", "6"]
        assert {asked.query["limit"] for asked in lists} == {"3"}


async def test_changes_are_told_with_what_was_before():
    played = PlayedPods(pod("a", 1))
    async with scene(played) as s:
        played.happens("MODIFIED", pod("a", 101, node="n"))
        played.happens("ADDED", pod("b", 102))
        played.happens("DELETED", pod("a", 103))

        await s.heard.until("deleted", "a", "103")
        assert s.heard.told[1:] == [
            ("updated", "a", "1", "101"),
            ("added", "b"),
            ("deleted", "a", "103"),
        ]
        assert list(s.reflector.objects) == ["default/b"]


async def test_a_watch_that_ends_goes_on_from_the_last_change_without_listing():
    played = PlayedPods(pod("a", 1))
    async with scene(played) as s:
        played.happens("MODIFIED", pod("a", 101))
        played.watch.put_nowait(CLOSE)
        await s.until_watches(2)
        played.bookmark(150)
        played.watch.put_nowait(BREAK_OFF)
        await s.until_watches(3)
        played.happens("ADDED", pod("b", 151))
        await s.heard.until("added", "b")

        assert s.watches() == ["100", "101", "150"]
        assert s.reflector.lists == 1


async def test_a_line_that_is_cut_short_is_told_once_the_watch_is_back():
    played = PlayedPods()
    async with scene(played) as s:
        played.happens("ADDED", pod("a", 101))
        played.watch.put_nowait(CUT_SHORT)
        await s.until_watches(2)
        played.happens("ADDED", pod("half", 102))
        await s.heard.until("added", "half")

        assert s.heard.told == [("added", "a"), ("added", "half")]
        assert s.watches() == ["100", "101"]


@pytest.mark.parametrize("way", ["an error event", "a refusal"])
async def test_an_expired_watch_lists_again_and_tells_what_was_missed(way):
    played = PlayedPods(
        pod("stays", 1), pod("changes", 2), pod("goes", 3), pod("again", 4, uid="first")
    )
    async with scene(played) as s:
        await s.until_watches(1)
        played.pods = [
            pod("stays", 1),
            pod("changes", 190, node="n"),
            pod("again", 191, uid="second"),
            pod("comes", 192),
        ]
        played.version = 200
        if way == "a refusal":
            played.watch_answers.append(refusal(410, "Expired", "too old resource version"))
            played.watch.put_nowait(CLOSE)
        else:
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            played.watch.put_nowait({"type": "ERROR", "object": status})
        await s.heard.until("deleted", "goes", "3")

        assert s.heard.told[4:] == [
            ("updated", "changes", "2", "190"),
            ("deleted", "again", "4"),
            ("added", "again"),
            ("added", "comes"),
            ("deleted", "goes", "3"),
        ]
        await s.server.until(lambda: s.watches()[-1] == "200")
        assert s.reflector.lists == 2


async def test_a_list_whose_pages_expire_is_made_in_one():
    played = PlayedPods(*(pod(f"p{n}", n) for n in range(4)))
    played.list_answers = [
        ok({"metadata": {"resourceVersion": "9", "continue": "x"}, "items": [pod("p0", 0)]}),
        refusal(410, "Expired"),
    ]
    async with scene(played, page_size=2) as s:
        async with asyncio.timeout(10):
            await s.reflector.synced.wait()

        assert [name for _, name in s.heard.told] == ["p0", "p1", "p2", "p3"]
        assert "limit" not in s.server.asked[2].query


async def test_pauses_grow_with_failures_and_are_short_again_after_success():
    played = PlayedPods()
    played.list_answers = [refusal(503) for _ in range(8)]
    async with scene(played) as s:
        await s.until_watches(1)
        first, *_, last = s.clock.delays
        assert len(s.clock.delays) == 8
        assert 0.2 <= first <= 0.4
        assert 5.0 <= last <= 10.0

        played.happens("ADDED", pod("a", 101))
        played.watch.put_nowait(BREAK_OFF)
        await s.until_watches(2)
        assert 0.2 <= s.clock.delays[-1] <= 0.4


async def test_a_watch_that_is_throttled_goes_on_where_it_was():
    played = PlayedPods(pod("a", 1))
    played.watch_answers = [refusal(429), refusal(500), refusal(401), refusal(403)]
    async with scene(played) as s:
        await s.until_watches(5)

        assert s.watches() == ["100"] * 5
        assert s.reflector.lists == 1


async def test_a_kind_that_is_not_served_has_no_objects_and_holds_nobody_up():
    played = PlayedPods()
    played.list_answers = [refusal(404, "NotFound")]
    async with scene(played) as s:
        async with asyncio.timeout(10):
            await s.reflector.synced.wait()
        await s.until_watches(1)

        assert s.heard.told == []


async def test_an_object_that_makes_no_sense_spoils_no_other():
    broken = pod("broken", 2, priority="high")
    played = PlayedPods(pod("a", 1), broken, pod("b", 3))
    async with scene(played) as s:
        played.happens("ADDED", {**broken, "metadata": {**broken["metadata"], "name": "worse"}})
        played.happens("ADDED", pod("c", 105))
        await s.heard.until("added", "c")

        assert s.heard.told == [("added", "a"), ("added", "b"), ("added", "c")]


@pytest.mark.parametrize("missing", ["name", "uid"])
async def test_a_pod_that_cannot_be_told_from_others_is_left_out(missing):
    """A status patch went to `pods//status`: what is written about such a pod could hit another one."""
    odd = pod("odd", 2)
    del odd["metadata"][missing]
    played = PlayedPods(pod("a", 1), odd)
    async with scene(played) as s:
        played.happens("ADDED", pod("c", 105))
        await s.heard.until("added", "c")

        assert s.heard.told == [("added", "a"), ("added", "c")]


async def test_one_that_stops_making_sense_is_not_taken_for_deleted():
    played = PlayedPods(pod("a", 1))
    async with scene(played) as s:
        await s.until_watches(1)
        played.pods = [pod("a", 150, priority="high"), pod("b", 151)]
        played.watch_answers.append(refusal(410, "Expired"))
        played.watch.put_nowait(CLOSE)
        await s.heard.until("added", "b")
        await s.server.until(lambda: s.reflector.lists == 2)

        assert s.heard.told == [("added", "a"), ("added", "b")]


async def test_a_null_where_others_leave_a_field_out_is_no_trouble():
    played = PlayedPods({**pod("a", 1, tolerations=None, nodeSelector=None), "status": None})
    async with scene(played) as s:
        await s.heard.until("added", "a")


async def test_a_listener_that_fails_is_told_of_the_next_change_all_the_same():
    played = PlayedPods(pod("a", 1))
    async with scene(played) as s:
        s.heard.fails_once = True
        played.happens("ADDED", pod("b", 101))

        await s.heard.until("added", "b")


async def test_repeated_events_are_told_once():
    played = PlayedPods(pod("a", 1))
    async with scene(played) as s:
        played.happens("ADDED", pod("a", 1))
        played.happens("MODIFIED", pod("a", 101))
        played.happens("MODIFIED", pod("a", 101))
        played.happens("DELETED", pod("never-seen", 102))
        played.happens("ADDED", pod("b", 103))
        await s.heard.until("added", "b")

        assert s.heard.told == [("added", "a"), ("updated", "a", "1", "101"), ("added", "b")]


# Which kinds


def test_everything_that_the_default_plugins_registered_for_is_watched():
    found = {resource.plural for resource in kinds_to_watch(Engine().scheduler)}

    assert found >= {
        "pods", "nodes", "namespaces", "services", "replicationcontrollers", "replicasets",
        "statefulsets", "poddisruptionbudgets", "persistentvolumes", "persistentvolumeclaims",
        "storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments",
    }  # fmt: skip
    assert "priorityclasses" not in found


def test_nothing_is_watched_twice_and_paths_name_group_and_version():
    paths = [resource.path for resource in kinds_to_watch(Engine().scheduler)]

    assert len(paths) == len(set(paths))
    assert "/api/v1/pods" in paths
    assert "/apis/storage.k8s.io/v1/csinodes" in paths
    assert PODS.path_of("ns", "p") == "/api/v1/namespaces/ns/pods/p"


# From the line to the books


def test_a_thousand_pod_events_are_decoded_and_reach_the_books():
    engine = Engine(Namespace())
    handlers = engine.scheduler
    lines = [
        json.dumps(
            {
                "type": kind,
                "object": {"kind": "Pod", "apiVersion": "v1", **pod(f"p{n}", version, node=node)},
            }
        ).encode()
        for kind, version, node in (("ADDED", 1, ""), ("MODIFIED", 2, "n"))
        for n in range(500)
    ]
    known: dict[str, KubeObject] = {}
    for line in lines:
        obj = decode_object(decode_event(line).object, PODS)
        old = known.get(obj.key)
        known[obj.key] = obj
        if old is None:
            handlers.added(obj)
        else:
            handlers.updated(old, obj)

    assert all(isinstance(obj, Pod) and obj.node_name == "n" for obj in known.values())
    assert len(engine.scheduler.cluster.pods) == 500


def test_an_outage_is_told_when_it_begins_and_when_it_is_over(caplog):
    caplog.set_level("DEBUG")
    clock = FakeClock()
    outage = Outage("https://server", clock)

    outage.answered()
    outage.noticed("connection refused")
    clock.advance(12.0)
    outage.noticed("connection refused")
    outage.answered()
    outage.answered()

    assert [record.getMessage() for record in caplog.records] == [
        "the API server at https://server does not answer: connection refused;"
        " trying again until it does",
        "the API server at https://server answers again, after 12.0 s",
    ]


async def test_a_list_that_is_older_than_what_was_told_is_not_believed():
    """Time travel: an API server that lags behind answers after one that was ahead."""
    played = PlayedPods(pod("a", 1), version=100)
    async with scene(played) as s:
        await s.heard.until("added", "a")
        played.happens("MODIFIED", pod("a", 120, node="n"))
        await s.heard.until("updated", "a", "1", "120")
        expired = {"kind": "Status", "code": 410, "message": "too old resource version"}
        played.version = 110
        played.watch.put_nowait({"type": "ERROR", "object": expired})
        await s.server.until(lambda: s.reflector.lists >= 3)
        assert s.heard.told[-1] == ("updated", "a", "1", "120")

        played.pods, played.version = [pod("a", 120, node="n"), pod("b", 130)], 130

        await s.heard.until("added", "b")
        assert s.heard.told[-2] == ("updated", "a", "1", "120")


async def test_lists_that_stay_old_are_believed_in_the_end():
    """As after a restore from a backup: the versions begin again."""
    played = PlayedPods(pod("a", 5000), version=5000)
    async with scene(played) as s:
        await s.heard.until("added", "a")
        played.pods, played.version = [pod("b", 7)], 7
        played.watch.put_nowait({"type": "ERROR", "object": {"code": 410, "message": "too old"}})

        await s.heard.until("deleted", "a", "5000")
        assert 3 < s.reflector.lists <= 12


async def test_a_pod_that_is_gone_and_was_bound_unheard_is_told_to_be_bound_first():
    """Seed 10073 of the random worlds: an event was lost, and the pod stayed in the queue for ever."""
    played = PlayedPods(pod("a", 1))
    async with scene(played) as s:
        await s.heard.until("added", "a")

        played.happens("DELETED", pod("a", 120, node="n"))

        await s.heard.until("deleted", "a", "120")
        assert s.heard.told[-2] == ("updated", "a", "1", "120")


class Reading(KubeObject, frozen=True):
    value: int = 0


READINGS = custom_kind(
    Reading, "meters.example.com", "readings", version="v1", namespaced=False, poll_s=30.0
)


async def test_a_kind_without_watches_is_listed_again_and_again():
    """Measurements have no resource versions; a list that fails leaves what is known."""
    values = [1, None, 1, 2]

    async def handle(request: web.Request, asked: Asked) -> web.StreamResponse:
        assert (asked.path, "watch" in asked.query) == (
            "/apis/meters.example.com/v1/readings",
            False,
        )
        value = values.pop(0) if values else 2
        if value is None:
            return refusal(503, "ServiceUnavailable", "the meter is away")
        items = [{"metadata": {"name": "m"}, "value": value}]
        return ok({"kind": "ReadingList", "metadata": {}, "items": items})

    async with ApiServer(handle) as server, ApiClient(server.connection()) as client:
        heard, clock = Heard(), JumpingClock()
        outage = Outage("https://server", clock)
        reflector = Reflector(
            client, READINGS, heard, clock=clock, rng=random.Random(1), outage=outage
        )
        running = asyncio.create_task(reflector.run())
        await heard.until("updated", "m", "", "")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert heard.told == [("added", "m"), ("updated", "m", "", "")]
    assert set(clock.delays) == {30.0}


async def test_nothing_waits_for_a_kind_without_watches_that_nobody_serves():
    async def handle(request: web.Request, asked: Asked) -> web.StreamResponse:
        return refusal(503, "ServiceUnavailable", "the meter is away")

    async with ApiServer(handle) as server, ApiClient(server.connection()) as client:
        clock = JumpingClock()
        reflector = Reflector(
            client,
            READINGS,
            Heard(),
            clock=clock,
            rng=random.Random(1),
            outage=Outage("https://server", clock),
        )
        running = asyncio.create_task(reflector.run())
        async with asyncio.timeout(10):
            await reflector.synced.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
