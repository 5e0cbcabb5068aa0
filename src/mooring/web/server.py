"""The HTTP server of the page: routes, access checks and headers.

It computes nothing: the session has the answers, mostly compressed already.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from mooring.bad_requests import log_bad_requests_briefly
from mooring.errors import MooringError
from mooring.web.access import Access
from mooring.web.assets import Asset, Assets, Document, served_document
from mooring.web.messages import unpacked
from mooring.web.requested_changes import Named, NodesLike, RequestedChanges
from mooring.web.session import (
    DEFAULT_BUDGET_S,
    MOST_BUDGET_S,
    Missing,
    NotReady,
    Session,
)
from mooring.web.worker_process import Refused

_LOG = logging.getLogger(__name__)

MOST_BYTES = 2 * 1024 * 1024
#: The shortest and the longest time between two events.
_EVENT_EVERY_S, _SIGN_OF_LIFE_S = 0.2, 15.0
#: How long a tab has to take the last event.
_LAST_WORD_S = 1.0

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_NOTHING_BUT_TEXT = "default-src 'none'; frame-ancestors 'none'"
_HOW_TO_GET_IN = "open the address that `mooring ui` printed; it contains the access token"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")


class _Body(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The body of a POST request."""


class CounterfactualsBody(_Body):
    pod: str
    budget_seconds: float = DEFAULT_BUDGET_S


class AnswerBody(_Body):
    job: int
    answer: int


class WhatIfBody(_Body):
    base: int
    name: str = ""
    config: str = ""
    objects: str = ""
    remove: list[Named] = []
    add_nodes: list[NodesLike] = []
    #: One after the other, after the parts above.
    changes: list[RequestedChanges] = []
    counterfactual: AnswerBody | None = None


class CompareBody(_Body):
    runs: tuple[int, int]
    why: bool = False


class ExportBody(_Body):
    run: int
    changes: list[RequestedChanges] = []


class RoomBody(_Body):
    pod: str


class CheckBody(_Body):
    run: int
    config: str = ""
    objects: str = ""


class Page:
    """The routes of one session."""

    def __init__(self, session: Session, access: Access, assets: Assets) -> None:
        self._session = session
        self._access = access
        self._assets = assets
        self._document: Document = served_document(assets)
        self._streams: dict[asyncio.Task[Any], web.StreamResponse] = {}
        self._cookie = f"mooring-{secrets.token_hex(4)}"

    def application(self) -> web.Application:
        log_bad_requests_briefly()
        app = web.Application(middlewares=[self._around, self._guarded], client_max_size=MOST_BYTES)
        app.on_shutdown.append(self._end_streams)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/static/{path:.+}", self._static),
                web.get("/api/session", self._get_session),
                web.get("/api/events", self._events),
                web.get(r"/api/runs/{run:\d{1,9}}/start", self._start),
                web.get(r"/api/runs/{run:\d{1,9}}/moves", self._moves),
                web.get(r"/api/runs/{run:\d{1,9}}/map", self._map),
                web.get(r"/api/runs/{run:\d{1,9}}/time", self._time),
                web.get(r"/api/runs/{run:\d{1,9}}/pod", self._pod),
                web.get(r"/api/runs/{run:\d{1,9}}/config", self._config),
                web.get(r"/api/runs/{run:\d{1,9}}/object", self._object),
                web.post(r"/api/runs/{run:\d{1,9}}/counterfactuals", self._counterfactuals),
                web.delete(r"/api/runs/{run:\d{1,9}}", self._forget),
                web.post("/api/runs", self._what_if),
                web.get(r"/api/runs/{run:\d{1,9}}/changes", self._changes),
                web.post(r"/api/runs/{run:\d{1,9}}/capacity", self._room),
                web.post("/api/export", self._export),
                web.post("/api/compare", self._compare),
                web.post("/api/check", self._check),
                web.get(r"/api/jobs/{job:\d{1,9}}/result", self._result),
                web.delete(r"/api/jobs/{job:\d{1,9}}", self._cancel),
            ]
        )
        return app

    # Every request

    @web.middleware
    async def _around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _told(request, handler)
        if not response.prepared:
            for name, value in _HEADERS.items():
                response.headers.setdefault(name, value)
            response.headers.setdefault("Content-Security-Policy", _NOTHING_BUT_TEXT)
        return response

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        access, host = self._access, request.headers.get("Host", "")
        if access.refuses_host(host):
            raise web.HTTPForbidden(reason="unknown host name; allow it with --name")
        # Any page can have a link with the token; such a link only opens this page.
        if request.path != "/" and access.refuses_origin(request.headers, host):
            raise web.HTTPForbidden(reason="requests from other pages are not allowed")
        if request.method == "GET" and request.path == "/" and "token" in request.query:
            return self._let_in(request)
        if not access.knows(
            cookie=request.cookies.get(self._cookie, ""),
            authorization=request.headers.get("Authorization", ""),
        ):
            if request.path == "/":
                return _closed(request)
            raise web.HTTPUnauthorized(reason=_HOW_TO_GET_IN)
        if request.method == "POST" and request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(reason="send application/json")
        return await handler(request)

    def _let_in(self, request: web.Request) -> web.StreamResponse:
        if not self._access.is_token(request.query["token"]):
            if "text/html" in request.headers.get("Accept", ""):
                return _closed(request, "The token in the address is wrong. ")
            raise web.HTTPUnauthorized(reason=f"wrong token; {_HOW_TO_GET_IN}")
        response = web.Response(status=303, headers={"Location": "./"})
        response.set_cookie(
            self._cookie, self._access.secret, path="/", httponly=True, samesite="Strict"
        )
        return response

    async def _end_streams(self, _: web.Application) -> None:
        """Tabs get to know how it ended."""
        for task, response in list(self._streams.items()):
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_LAST_WORD_S):
                    await response.write(self._session_event())
            task.cancel()

    # The page

    async def _page(self, request: web.Request) -> web.Response:
        return web.Response(
            text=self._document.text,
            content_type="text/html",
            headers={"Content-Security-Policy": self._document.policy},
        )

    async def _static(self, request: web.Request) -> web.Response:
        asset = self._assets.by_path.get(request.match_info["path"])
        if asset is None or asset.path.endswith(".html"):
            raise web.HTTPNotFound(reason="no such file")
        return _file(request, asset)

    # The session

    async def _get_session(self, request: web.Request) -> web.Response:
        return _json(self._session.to_data())

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._streams[task] = response
        try:
            await self._send_events(response)
        except (ConnectionError, asyncio.CancelledError):
            # The tab is closed, or the server stops.
            pass
        finally:
            del self._streams[task]
        return response

    async def _send_events(self, response: web.StreamResponse) -> None:
        while True:
            version = self._session.version
            await response.write(self._session_event())
            await asyncio.sleep(_EVENT_EVERY_S)
            while not await self._changed(version):
                await response.write(b": still here\n\n")

    def _session_event(self) -> bytes:
        return b"event: session\ndata: " + msgspec.json.encode(self._session.to_data()) + b"\n\n"

    async def _changed(self, version: int) -> bool:
        try:
            async with asyncio.timeout(_SIGN_OF_LIFE_S):
                await self._session.change_after(version)
        except TimeoutError:
            return False
        return True

    # A run

    async def _start(self, request: web.Request) -> web.Response:
        return _packed(request, self._session.start(_number(request, "run")))

    async def _moves(self, request: web.Request) -> web.Response:
        after = _whole_number(request, "after") or 0
        return _json(self._session.moves(_number(request, "run"), after))

    async def _map(self, request: web.Request) -> web.Response:
        return _packed(request, await self._session.map(_number(request, "run")))

    async def _time(self, request: web.Request) -> web.Response:
        return _packed(request, await self._session.time(_number(request, "run")))

    async def _pod(self, request: web.Request) -> web.Response:
        key, number = _query(request, "key"), _whole_number(request, "attempt")
        return _packed(request, await self._session.pod(_number(request, "run"), key, number))

    async def _config(self, request: web.Request) -> web.Response:
        return _packed(request, await self._session.config(_number(request, "run")))

    async def _object(self, request: web.Request) -> web.Response:
        named = Named(_query(request, "kind"), _query(request, "key"))
        return _packed(request, await self._session.manifest(_number(request, "run"), named))

    # Work

    async def _counterfactuals(self, request: web.Request) -> web.Response:
        body = await _body(request, CounterfactualsBody)
        if not 0 < body.budget_seconds <= MOST_BUDGET_S:
            raise web.HTTPBadRequest(
                reason=f"budgetSeconds: must be a number up to {MOST_BUDGET_S:g}"
            )
        job = self._session.counterfactuals(_number(request, "run"), body.pod, body.budget_seconds)
        return _json({"job": job.id}, status=202)

    async def _what_if(self, request: web.Request) -> web.Response:
        body = await _body(request, WhatIfBody)
        answer = body.counterfactual
        first = RequestedChanges(body.config, body.objects, body.remove, body.add_nodes)
        changes = [each for each in (first, *body.changes) if each != RequestedChanges()]
        if not changes and answer is None:
            raise web.HTTPBadRequest(
                reason="the request changes nothing, so there is nothing to run"
            )
        run = await self._session.what_if(
            body.base,
            changes,
            name=body.name.strip()[:200],
            counterfactual=None if answer is None else (answer.job, answer.answer),
        )
        return _json({"run": run.id, "job": run.job}, status=202)

    async def _export(self, request: web.Request) -> web.Response:
        body = await _body(request, ExportBody)
        return _json(await self._session.export(body.run, body.changes))

    async def _changes(self, request: web.Request) -> web.Response:
        return _json(await self._session.own_changes(_number(request, "run")))

    async def _room(self, request: web.Request) -> web.Response:
        body = await _body(request, RoomBody)
        return _json({"job": self._session.room(_number(request, "run"), body.pod).id}, status=202)

    async def _compare(self, request: web.Request) -> web.Response:
        body = await _body(request, CompareBody)
        first, second = body.runs
        if first == second:
            raise web.HTTPBadRequest(reason="compare two different runs")
        return _json({"job": self._session.compare(first, second, why=body.why).id}, status=202)

    async def _check(self, request: web.Request) -> web.Response:
        body = await _body(request, CheckBody)
        if bool(body.config) == bool(body.objects):
            raise web.HTTPBadRequest(reason="give either config or objects to check")
        answer = await self._session.check(body.run, config=body.config, objects=body.objects)
        return _packed(request, answer)

    async def _result(self, request: web.Request) -> web.Response:
        return _packed(request, self._session.result(_number(request, "job")))

    async def _cancel(self, request: web.Request) -> web.Response:
        await self._session.cancel(_number(request, "job"))
        return web.Response(status=204)

    async def _forget(self, request: web.Request) -> web.Response:
        await self._session.forget(_number(request, "run"))
        return web.Response(status=204)


# Errors


async def _told(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors as JSON."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _error(error.status, error.reason or "the request failed")
    except Missing as error:
        return _error(404, str(error))
    except NotReady as error:
        return _error(409, str(error), error.problems)
    except Refused as error:
        refusal = error.refusal
        status = 500 if refusal.bug else 404 if refusal.missing else 400
        return _error(status, refusal.message, list(refusal.problems))
    except MooringError as error:
        return _error(500, str(error))
    except (ConnectionError, asyncio.CancelledError):
        raise
    except Exception as error:
        _LOG.exception("a request failed: %s %s", request.method, request.path)
        return _error(500, f"internal error, please report it: {type(error).__name__}")


def _error(status: int, message: str, problems: list[dict[str, Any]] | None = None) -> web.Response:
    return _json({"error": {"message": message, "problems": problems or []}}, status=status)


def _closed(request: web.Request, why: str = "") -> web.Response:
    """A page without access. A link on another site sends no cookie, so the page reloads itself once."""
    again = ""
    if request.headers.get("Sec-Fetch-Site") == "cross-site" and "again" not in request.query:
        again = '<meta http-equiv="refresh" content="0; url=./?again">'
    text = (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"{again}<title>mooring</title><h1>No access</h1><p>{why}Please {_HOW_TO_GET_IN}.</p>"
    )
    return web.Response(status=401, text=text, content_type="text/html")


# Reading and writing


async def _body(request: web.Request, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = _one_line(f"invalid request: {error}")
        raise web.HTTPBadRequest(reason=reason) from error


def _number(request: web.Request, name: str) -> int:
    return int(request.match_info[name])


def _whole_number(request: web.Request, name: str) -> int | None:
    """None if it is not in the address."""
    text = request.query.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise web.HTTPBadRequest(reason=f"{name}: must be a number")
    return int(text) if text else None


def _query(request: web.Request, name: str) -> str:
    value = request.query.get(name, "")
    if not value:
        raise web.HTTPBadRequest(reason=f"{name}: is missing in the address")
    return value


def _json(data: object, *, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(data), status=status, content_type="application/json"
    )


def _packed(request: web.Request, answer: bytes) -> web.Response:
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=unpacked(answer), content_type="application/json")
    return web.Response(
        body=answer,
        content_type="application/json",
        headers={"Content-Encoding": "gzip", "Vary": "Accept-Encoding"},
    )


def _file(request: web.Request, asset: Asset) -> web.Response:
    """A file that the browser caches, and revalidates on every use."""
    headers = {"Cache-Control": "no-cache", "ETag": f'"{asset.tag}"'}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return web.Response(status=304, headers=headers)
    response = web.Response(body=asset.content, headers=headers)
    response.content_type = asset.content_type
    if asset.content_type.startswith("text/"):
        response.charset = "utf-8"
        response.enable_compression()
    return response


def _one_line(text: str) -> str:
    return " ".join(text.split())
