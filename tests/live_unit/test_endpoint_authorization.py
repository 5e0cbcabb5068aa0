"""Who may read metrics is for the API server to say, and it is not asked more often than need be."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from mooring.config import default_config
from mooring.errors import CredentialsError
from mooring.live.client import ApiClient
from mooring.live.connection import Connection
from mooring.live.endpoint_authorization import EndpointAuthorization, Gate, Refusal
from mooring.live.operations import Endpoints, Listen, OperationsServer
from tests.clock import FakeClock
from tests.live_unit.api_server import ApiServer, ok, refusal

KNOWN = {"status": {"authenticated": True, "user": {"username": "scraper", "groups": ["g"]}}}
UNKNOWN = {"status": {"authenticated": False, "error": "no such token"}}


def access(allowed: bool) -> web.Response:
    return ok({"status": {"allowed": allowed}}, status=201)


@asynccontextmanager
async def asking(
    *answers: Any,
) -> AsyncIterator[tuple[EndpointAuthorization, ApiServer, FakeClock]]:
    async with ApiServer() as server:
        server.answers = list(answers)
        clock = FakeClock()
        async with ApiClient(server.connection()) as client:
            yield EndpointAuthorization(client, clock), server, clock
            assert not server.answers


async def test_the_api_server_is_asked_whose_token_it_is_and_what_they_may_get():
    async with asking(ok(KNOWN, status=201), access(True)) as (authorization, server, _):
        await authorization.check("/metrics", "Bearer t0ken")

    token, reviewed = server.asked
    assert token.body["spec"] == {"token": "t0ken"}
    assert reviewed.body["spec"]["user"] == "scraper"
    assert reviewed.body["spec"]["groups"] == ["g"]
    assert reviewed.body["spec"]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


@pytest.mark.parametrize(
    ("answers", "header", "status"),
    [
        pytest.param([], "", 401, id="no token"),
        pytest.param([], "Basic dTpw", 401, id="a password"),
        pytest.param([ok(UNKNOWN, status=201)], "Bearer x", 401, id="a token of nobody"),
        pytest.param([refusal(403)], "Bearer x", 401, id="mooring may not ask"),
        pytest.param([ok(KNOWN, status=201), access(False)], "Bearer x", 403, id="no right"),
        pytest.param([ok(KNOWN, status=201), refusal(403)], "Bearer x", 500, id="no answer"),
    ],
)
async def test_whoever_may_not_is_told_so_as_by_the_api_server(answers, header, status):
    async with asking(*answers) as (authorization, _, _):
        with pytest.raises(Refusal) as raised:
            await authorization.check("/configz", header)

    assert raised.value.document()["code"] == raised.value.status == status


async def test_answers_are_believed_for_a_while():
    answers = [ok(KNOWN, status=201), access(True), ok(KNOWN, status=201), access(True)]
    async with asking(*answers) as (authorization, server, clock):
        for _ in range(3):
            await authorization.check("/metrics", "Bearer t")
        assert len(server.asked) == 2

        clock.advance(11.0)
        await authorization.check("/metrics", "Bearer t")
        assert len(server.asked) == 4


def test_probes_need_no_token_and_nothing_else_is_shown_without_one():
    async def connect() -> Connection:
        raise CredentialsError("there is no way to the API server")

    endpoints = Endpoints({"livez": {}}, lambda: b"up 1\n", bytes, default_config)
    server = OperationsServer(endpoints, Listen(port=0), Gate(connect, FakeClock()))
    server.start()
    try:
        codes = {}
        for path in ("/livez", "/metrics", "/metrics/resources", "/configz", "/livez/ping"):
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}") as answer:
                    codes[path] = answer.status
            except urllib.error.HTTPError as error:
                with error:
                    codes[path] = error.code
    finally:
        server.close()

    assert codes == {
        "/livez": 200,
        "/metrics": 500,
        "/metrics/resources": 500,
        "/configz": 500,
        "/livez/ping": 500,
    }
