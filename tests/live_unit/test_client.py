"""Requests and watches over real TLS connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from mooring import errors
from mooring.live import lane
from mooring.live.client import ApiClient
from mooring.live.connection import MOST_CONNECTIONS, Connection
from mooring.live.line import Priority
from mooring.live.rate_limit import RateLimiter
from tests.clock import FakeClock
from tests.live_unit.api_server import (
    ApiServer,
    Asked,
    JumpingClock,
    client_tls,
    hang_up,
    namespace_terminating,
    ok,
    refusal,
)
from tests.webhook_server import CERTIFICATES


async def test_a_request_arrives_as_it_was_made():
    async with ApiServer() as server:

        async def token() -> str:
            return "Bearer t"

        server.answers = [ok({"a": 1})]
        async with ApiClient(server.connection(authorization=token)) as client:
            answer = await client.request(
                "POST", "/api/v1/x y", params={"limit": "1", "continue": "a/b="}, body=b'{"b":2}'
            )

    assert answer == b'{"a": 1}'
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/api/v1/x y", {"b": 2})
    assert asked.query == {"limit": "1", "continue": "a/b="}
    assert asked.headers["Authorization"] == "Bearer t"
    assert asked.headers["Content-Type"] == asked.headers["Accept"] == "application/json"
    assert asked.headers["User-Agent"].startswith("mooring/")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.ApiError),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Expired),
        (429, errors.TooManyRequests),
        (500, errors.ServerUnavailable),
        (503, errors.ServerUnavailable),
    ],
)
async def test_a_refusal_is_an_error_of_its_own_with_the_servers_words(status, kind):
    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [refusal(status, "Reason", "in words")]

        with pytest.raises(errors.ApiError) as raised:
            await client.request("GET", "/api")

    assert type(raised.value) is kind
    assert (raised.value.status, raised.value.reason) == (status, "Reason")
    assert str(raised.value) == "in words"


async def test_a_namespace_that_is_being_deleted_is_an_error_of_its_own():
    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [namespace_terminating()]

        with pytest.raises(errors.NamespaceTerminating, match="because it is being terminated"):
            await client.request("POST", "/api", body=b"{}")


async def test_an_answer_that_is_no_status_is_still_told():
    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [web.Response(status=502, text="<h1>Bad Gateway</h1>")]

        with pytest.raises(errors.ServerUnavailable, match="Bad Gateway"):
            await client.request("GET", "/api")


async def test_retry_after_is_heeded_before_asking_again():
    clock = JumpingClock()
    async with ApiServer() as server, ApiClient(server.connection(), clock=clock) as client:
        server.answers = [refusal(429, Retry_After="3"), refusal(503, Retry_After="1"), ok()]

        await client.request("POST", "/api", body=b"{}")

    assert clock.delays == [3.0, 1.0]
    assert len(server.asked) == 3


async def test_it_does_not_come_back_for_ever():
    async with (
        ApiServer() as server,
        ApiClient(server.connection(), clock=JumpingClock()) as client,
    ):
        server.answers = [refusal(429, Retry_After="1") for _ in range(20)]

        with pytest.raises(errors.TooManyRequests):
            await client.request("GET", "/api")

    assert len(server.asked) == 11


async def test_credentials_that_are_refused_are_renewed_once():
    tokens = ["Bearer old"]

    async def token() -> str:
        return tokens[-1]

    async def renew() -> None:
        tokens.append("Bearer new")

    async with ApiServer() as server:
        connection = server.connection(authorization=token, renew=renew)
        async with ApiClient(connection) as client:
            server.answers = [refusal(401), ok(), refusal(401), refusal(401)]
            await client.request("GET", "/api")
            with pytest.raises(errors.Unauthorized):
                await client.request("GET", "/api")

    assert [asked.headers["Authorization"] for asked in server.asked[:2]] == tokens[:2]


async def test_connections_are_kept():
    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [ok() for _ in range(5)]
        for _ in range(5):
            await client.request("GET", "/api")

    assert len(server.connections) == 1


async def test_there_are_never_more_connections_than_allowed_and_everyone_gets_an_answer(
    monkeypatch,
):
    # However busy the machine is.
    monkeypatch.setattr(lane, "SLOW_S", float("inf"))

    async def slow(request: web.Request, asked: Asked) -> web.StreamResponse:
        await asyncio.sleep(0)
        return ok()

    async with ApiServer(slow) as server, ApiClient(server.connection()) as client:
        await asyncio.gather(*(client.request("GET", "/api") for _ in range(200)))

    assert len(server.asked) == 200
    assert len(server.connections) <= MOST_CONNECTIONS


async def test_a_server_that_answers_slowly_has_more_requests_at_once(monkeypatch):
    """With 200 ms an answer, 32 connections make 160 binds a second, however many may be made."""
    monkeypatch.setattr(lane, "SLOW_S", 0.02)
    at_once: list[int] = []
    waiting = 0

    async def slowly(request: web.Request, asked: Asked) -> web.StreamResponse:
        nonlocal waiting
        waiting += 1
        at_once.append(waiting)
        await asyncio.sleep(0.03)
        waiting -= 1
        return ok()

    async with (
        ApiServer(slowly) as server,
        ApiClient(server.connection(most_connections=2)) as client,
    ):
        await asyncio.gather(*(client.request("GET", f"/{n}") for n in range(100)))

    assert len(server.asked) == 100
    assert max(at_once[:2]) == 2
    assert 2 < max(at_once) <= len(server.connections) <= 2 * lane.MOST_WHEN_SLOW


async def test_a_cancelled_request_does_not_give_its_answer_to_the_next():
    released = asyncio.Event()

    async def first_late(request: web.Request, asked: Asked) -> web.StreamResponse:
        if asked.path == "/first":
            await released.wait()
        return ok(asked.path)

    async with ApiServer(first_late) as server, ApiClient(server.connection()) as client:
        first = asyncio.create_task(client.request("GET", "/first"))
        await server.until(lambda: bool(server.asked))
        first.cancel()
        released.set()

        assert await client.request("GET", "/second") == b'"/second"'


async def test_no_answer_in_time_may_have_been_carried_out():
    async def never(request: web.Request, asked: Asked) -> web.StreamResponse:
        await asyncio.Event().wait()
        return ok()

    async with (
        ApiServer(never) as server,
        ApiClient(server.connection(), timeout_s=0.05) as client,
    ):
        with pytest.raises(errors.Unanswered, match="no answer within") as raised:
            await client.request("POST", "/api")

    assert raised.value.maybe_done


async def test_a_connection_that_breaks_off_may_have_carried_it_out_and_a_read_is_made_again():
    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [hang_up, hang_up, ok("read")]
        with pytest.raises(errors.Unanswered) as raised:
            await client.request("POST", "/api")

        assert raised.value.maybe_done
        assert await client.request("GET", "/api") == b'"read"'


async def test_a_refused_connection_has_carried_out_nothing():
    async with ApiServer() as server:
        connection = server.connection()
    async with ApiClient(connection) as client:
        with pytest.raises(errors.Unanswered) as raised:
            await client.request("POST", "/api")

    assert not raised.value.maybe_done


@pytest.mark.parametrize(
    "connection",
    [
        pytest.param({"ssl_context": None}, id="an authority nobody knows"),
        pytest.param({"tls_server_name": "other.test"}, id="another name"),
    ],
)
async def test_a_server_that_cannot_be_trusted_is_not_talked_to(connection):
    async with ApiServer() as server, ApiClient(server.connection(**connection)) as client:
        with pytest.raises(errors.Unanswered, match=r"CERTIFICATE_VERIFY_FAILED|certificate"):
            await client.request("GET", "/api")
        with pytest.raises(errors.Unanswered, match=r"CERTIFICATE_VERIFY_FAILED|certificate"):
            await client.watch("/api", None, print)

    assert not server.asked


async def test_a_client_certificate_is_shown():
    tls = client_tls()
    tls.load_cert_chain(CERTIFICATES / "client.pem", CERTIFICATES / "client.key")
    async with ApiServer(client_authority=True) as server:
        server.answers = [ok()]
        async with ApiClient(server.connection(ssl_context=tls)) as client:
            assert await client.request("GET", "/api") == b"{}"


async def test_a_server_below_a_path_is_reached():
    async with ApiServer() as server:
        server.answers = [ok()]
        connection = server.connection()
        below = Connection(
            f"{connection.server}/k8s/c1",
            connection.ssl_context,
            tls_server_name=connection.tls_server_name,
        )
        async with ApiClient(below) as client:
            await client.request("GET", "/api/v1/pods")

    assert server.asked[0].path == "/k8s/c1/api/v1/pods"


@asynccontextmanager
async def tunnel() -> AsyncIterator[tuple[str, list[str]]]:
    """An HTTP proxy that lets everything through; its address, and whom it was asked for."""
    asked: list[str] = []
    pumps: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while piece := await reader.read(65536):
                writer.write(piece)
                await writer.drain()
        finally:
            writer.transport.abort()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        _, target, _ = head.split(" ", 2)
        asked.append(target)
        host, _, port = target.rpartition(":")
        there = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        pumps.add(asyncio.create_task(pump(reader, there[1])))
        pumps.add(asyncio.create_task(pump(there[0], writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def test_a_proxy_is_gone_through_for_requests_and_watches():
    async with ApiServer() as server, tunnel() as (proxy, through):
        server.answers = [refusal(429, Retry_After="1"), ok("a"), stream(b"one\n"), refusal(404)]
        connection = server.connection(proxy=proxy)
        async with ApiClient(connection, clock=JumpingClock()) as client:
            assert await client.request("POST", "/api", body=b"{}") == b'"a"'
            assert await lines_of(client) == [b"one"]
            with pytest.raises(errors.NotFound):
                await client.request("GET", "/api")

        assert set(through) == {f"127.0.0.1:{server.port}"}
        assert server.asked[0].headers["Host"] == f"127.0.0.1:{server.port}"


async def test_a_request_whose_turn_comes_too_late_is_not_sent():
    clock = FakeClock()
    leading = [True]
    limiter = RateLimiter(1.0, 1, clock)
    async with ApiServer() as server:
        server.answers = [ok(), ok()]
        async with ApiClient(server.connection(), limiter, clock=clock) as client:
            await client.request("POST", "/1")
            late = asyncio.create_task(client.request("POST", "/2", may_send=lambda: leading[0]))
            await asyncio.sleep(0)
            leading[0] = False
            clock.advance(1.0)
            with pytest.raises(errors.NotLeading):
                await late

    assert [asked.path for asked in server.asked] == ["/1"]


# Watches


async def lines_of(client: ApiClient, **more: float) -> list[bytes]:
    found: list[bytes] = []
    await client.watch("/w", {"resourceVersion": "5"}, found.append, **more)
    return found


def stream(*pieces: bytes, then_hang_up: bool = False):
    async def handler(request: web.Request, asked: Asked) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        if then_hang_up:
            assert request.transport is not None
            request.transport.abort()
        return response

    return handler


@pytest.mark.parametrize("pace_s", [0.0, 0.001])
async def test_a_watch_gives_whole_lines_however_they_are_cut(pace_s):
    long = b"x" * 3_000_000
    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [stream(b"on", b"e\ntwo\nth", b"ree\n" + long[:100], long[100:] + b"\n")]

        assert await lines_of(client, timeout_s=7, pace_s=pace_s) == [
            b"one",
            b"two",
            b"three",
            long,
        ]
    assert server.asked[0].query == {
        "watch": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "7",
    }


async def test_what_a_watch_has_is_heard_before_its_time():
    found: asyncio.Queue[bytes] = asyncio.Queue()
    may_go_on = asyncio.Event()

    async def handler(request: web.Request, asked: Asked) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for number in range(5):
            await response.write(b"%d\n" % number)
            await may_go_on.wait()
            may_go_on.clear()
        return response

    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [handler]
        # Read an hour apart.
        watch = asyncio.ensure_future(client.watch("/w", None, found.put_nowait, pace_s=3600.0))
        async with asyncio.timeout(10):
            for number in range(5):
                while found.empty():
                    client.hear()
                    await asyncio.sleep(0)
                assert await found.get() == b"%d" % number
                may_go_on.set()
        watch.cancel()


async def test_a_line_that_is_cut_short_is_not_given_out():
    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [stream(b"one\ntw", then_hang_up=True)]
        found: list[bytes] = []

        with pytest.raises(errors.Unanswered):
            await client.watch("/w", None, found.append)

    assert found == [b"one"]


async def test_a_watch_that_is_refused_says_why():
    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [refusal(410, "Expired", "too old resource version")]

        with pytest.raises(errors.Expired, match="too old"):
            await lines_of(client)


async def test_what_a_listener_raises_ends_the_watch():
    def refuse(line: bytes) -> None:
        raise errors.Expired(line.decode())

    async with ApiServer() as server, ApiClient(server.connection()) as client:
        server.answers = [stream(b"one\ntwo\n")]

        with pytest.raises(errors.Expired, match="one"):
            await client.watch("/w", None, refuse)


async def test_a_watch_can_be_left_at_any_time():
    async def endless(request: web.Request, asked: Asked) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"one\n")
        await asyncio.Event().wait()
        return response

    async with ApiServer(endless) as server, ApiClient(server.connection()) as client:
        heard = asyncio.Event()
        task = asyncio.create_task(client.watch("/w", None, lambda line: heard.set()))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # Before the first line as well.
        task = asyncio.create_task(client.watch("/w", None, lambda line: None))
        await server.until(lambda: len(server.asked) == 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


# The rate limit


async def test_a_burst_passes_and_then_so_many_a_second():
    clock = FakeClock()
    limiter = RateLimiter(10.0, 3, clock)
    passed: list[int] = []

    async def one(number: int) -> None:
        await limiter.take()
        passed.append(number)

    tasks = [asyncio.create_task(one(number)) for number in range(6)]
    await asyncio.sleep(0)
    assert passed == [0, 1, 2]
    clock.advance(0.1)
    await asyncio.sleep(0)
    assert passed == [0, 1, 2, 3]
    clock.advance(0.2)
    await asyncio.sleep(0)
    assert passed == [0, 1, 2, 3, 4, 5]
    await asyncio.gather(*tasks)


async def test_many_a_second_are_let_through_a_few_at_a_time_and_none_are_lost():
    """The clock starts at a whole second, and the times are whole multiples of 50 ms."""
    clock = FakeClock()
    limiter = RateLimiter(50.0, 1, clock)
    batched = RateLimiter(50.0, 100, clock)
    for _ in range(100):
        await batched.take()
    await limiter.take()
    passed: dict[RateLimiter, int] = {limiter: 0, batched: 0}

    async def one(which: RateLimiter) -> None:
        await which.take()
        passed[which] += 1

    tasks = [asyncio.create_task(one(which)) for which in passed for _ in range(60)]
    await asyncio.sleep(0)
    clock.advance(0.04)
    await asyncio.sleep(0)
    # A bucket for one request cannot wait for more of them.
    assert passed == {limiter: 2, batched: 0}
    clock.advance(0.011)
    await asyncio.sleep(0)
    assert passed[batched] == 2
    clock.advance(0.95)
    await asyncio.sleep(0)
    assert passed == {limiter: 50, batched: 50}
    for task in tasks:
        task.cancel()


async def test_binds_go_first_and_events_last():
    clock = FakeClock()
    limiter = RateLimiter(1.0, 1, clock)
    await limiter.take()
    passed: list[Priority] = []

    async def one(priority: Priority) -> None:
        await limiter.take(priority)
        passed.append(priority)

    order = [Priority.EVENT, Priority.NORMAL, Priority.BIND]
    tasks = [asyncio.create_task(one(priority)) for priority in order]
    await asyncio.sleep(0)
    for _ in order:
        clock.advance(1.0)
        await asyncio.sleep(0)

    assert passed == [Priority.BIND, Priority.NORMAL, Priority.EVENT]
    await asyncio.gather(*tasks)


async def test_who_gives_up_waiting_does_not_take_a_token_along():
    clock = FakeClock()
    limiter = RateLimiter(1.0, 1, clock)
    await limiter.take()
    first, second = asyncio.create_task(limiter.take()), asyncio.create_task(limiter.take())
    await asyncio.sleep(0)
    clock.advance(1.0)
    # Called up by the clock, but not yet run.
    first.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    assert first.cancelled()
    assert second.done()
