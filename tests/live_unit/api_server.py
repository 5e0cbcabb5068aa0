"""A real HTTPS server on loopback that plays the API server, well-behaved or not."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from mooring.live.connection import Connection
from tests.webhook_server import CERTIFICATES, server_tls

#: The name in the certificate that the tests' servers have.
SERVER_NAME = "extender.test"


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any


Handler = Callable[[web.Request, Asked], Awaitable[web.StreamResponse]]


class ApiServer:
    """`async with ApiServer(handler) as server`; without a handler, answers are taken from `answers`."""

    def __init__(self, handler: Handler | None = None, *, client_authority: bool = False) -> None:
        self._handler = handler or self._next_answer
        self._client_authority = client_authority
        self.asked: list[Asked] = []
        #: What to answer, one after another: responses, or handlers that make one.
        self.answers: list[web.StreamResponse | Handler] = []
        self.connections: set[object] = set()
        self._something = asyncio.Condition()

    async def __aenter__(self) -> ApiServer:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        tls = server_tls(client_authority=self._client_authority)
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def connection(self, **more: Any) -> Connection:
        kept = {"ssl_context": client_tls(), "tls_server_name": SERVER_NAME}
        return Connection(f"https://127.0.0.1:{self.port}", **{**kept, **more})

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return when something that was asked made this true."""
        async with asyncio.timeout(10), self._something:
            await self._something.wait_for(condition)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        text = await request.read()
        asked = Asked(
            request.method,
            request.path,
            dict(request.query),
            dict(request.headers),
            json.loads(text) if text else None,
        )
        self.connections.add(request.transport)
        self.asked.append(asked)
        async with self._something:
            self._something.notify_all()
        return await self._handler(request, asked)

    async def _next_answer(self, request: web.Request, asked: Asked) -> web.StreamResponse:
        answer = self.answers.pop(0)
        if isinstance(answer, web.StreamResponse):
            return answer
        return await answer(request, asked)


async def hang_up(request: web.Request, asked: Asked) -> web.StreamResponse:
    """Close the connection instead of answering."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def ok(document: Any = None, *, status: int = 200, **headers: str) -> web.Response:
    return web.json_response({} if document is None else document, status=status, headers=headers)


def refusal(status: int, reason: str = "", message: str = "no", **headers: str) -> web.Response:
    document = {
        "kind": "Status",
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": message,
    }
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response(document, status=status, headers=named)


def namespace_terminating() -> web.Response:
    """The answer to whatever would be new in a namespace that is being deleted."""
    message = "unable to create new content in namespace a because it is being terminated"
    cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace"}
    document = {
        "kind": "Status",
        "status": "Failure",
        "code": 403,
        "reason": "Forbidden",
        "message": f'pods "p" is forbidden: {message}',
        "details": {"name": "p", "kind": "pods", "causes": [cause]},
    }
    return web.json_response(document, status=403)


def client_tls() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=CERTIFICATES / "authority.pem")


class JumpingClock:
    """Time that jumps to whatever is waited for; `delays` tells what was."""

    def __init__(self) -> None:
        self._now = 1_767_225_600.0
        self.delays: list[float] = []

    def now(self) -> float:
        return self._now

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> asyncio.Handle:
        self.delays.append(delay_s)
        self._now += delay_s
        return asyncio.get_running_loop().call_soon(callback)
