"""Requests to the API server and their answers, as bytes: what they mean is for others to say.

The types and exceptions of the HTTP library stay in this module: a failure is an ApiError
with the text that the API server gave.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypedDict
from urllib.parse import quote, urlencode, urlsplit

import aiohttp
import msgspec
from yarl import URL

from mooring import __version__, errors
from mooring.framework.clock import Clock, sleep
from mooring.live.clock import WallClock
from mooring.live.connection import Connection
from mooring.live.decoding import NOT_TEXT
from mooring.live.lane import Answer, Lane
from mooring.live.line import Priority
from mooring.live.rate_limit import RateLimiter
from mooring.live.stream import CONNECT_TIMEOUT_S, Endpoint, Pace, Stream, keep_alive
from mooring.live.watching import Lines, OnLine, watch

USER_AGENT = f"mooring/{__version__}"

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

#: An API server gives up on a request after a minute by itself, and says so.
REQUEST_TIMEOUT_S = 65.0

#: How much longer than it asked for a watch may stay open.
_WATCH_GRACE_S = 30.0
#: How long the API server is asked to keep a watch open if the caller does not say.
_WATCH_TIMEOUT_S = 300.0

#: How often a request is made again that the API server asks to make later.
_MOST_RETRIES = 10

_WATCH_BUFFER_BYTES = 1 << 18

_BY_STATUS: dict[int, type[errors.ApiError]] = {
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Expired,
    429: errors.TooManyRequests,
}

#: Why a namespace that is being deleted takes nothing.
_TERMINATING = "NamespaceTerminating"

#: What may stand in a path as it is.
_SAFE_IN_PATH = "/:@!$&'()*+,;=~-._"

Params = Mapping[str, str]


def always() -> bool:
    return True


class Request(msgspec.Struct, frozen=True, gc=False):
    """One request, however often it is sent."""

    method: str
    path: str
    params: Params | None = None
    body: bytes | None = None
    content_type: str = JSON
    #: The form of the answer.
    accept: str = JSON
    priority: Priority = Priority.NORMAL
    timeout_s: float = REQUEST_TIMEOUT_S


class ApiClient:
    """`async with ApiClient(connection, limiter) as client`."""

    def __init__(
        self,
        connection: Connection,
        limiter: RateLimiter | None = None,
        *,
        user_agent: str = USER_AGENT,
        clock: Clock | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        self._connection = connection
        self._limiter = limiter
        self._user_agent = user_agent
        self._clock = clock or WallClock()
        self._timeout_s = timeout_s
        #: Whatever comes before the path of a request, as with an API server behind another.
        self._prefix = urlsplit(connection.server).path
        self._endpoint = Endpoint(
            connection.server,
            connection.ssl_context,
            tls_server_name=connection.tls_server_name,
            open_socket=connection.open_socket,
        )
        self._lane = Lane(self._endpoint, connection.most_connections)
        #: The watches that are read at a pace.
        self._paced: set[Stream] = set()
        #: For what goes through a proxy; None without one.
        self._proxy_session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        if self._connection.proxy is not None:
            self._proxy_session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, socket_factory=_socket),
                read_bufsize=_WATCH_BUFFER_BYTES,
                skip_auto_headers=("Accept-Encoding",),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lane.close()
        if self._proxy_session is not None:
            await self._proxy_session.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        priority: Priority = Priority.NORMAL,
        timeout_s: float | None = None,
        may_send: Callable[[], bool] = always,
    ) -> bytes:
        """The body of the answer. Raises ApiError.

        An answer that asks to come again later (429, or 5xx with Retry-After) is heeded. `may_send` is
        asked when it is this request's turn, which may be long after it was made; it may raise ApiError
        to say why not.
        """
        request = Request(
            method,
            path,
            params=params,
            body=body,
            content_type=content_type,
            accept=accept,
            priority=priority,
            timeout_s=timeout_s or self._timeout_s,
        )
        for attempt in range(_MOST_RETRIES + 1):
            await self.turn(priority)
            try:
                return await self.send(request, may_send)
            except errors.Unanswered as error:
                if method != "GET" or not error.maybe_done or attempt > 0:
                    raise
                # A connection that was kept open may be closed by the other side just then.
            except errors.Unauthorized:
                if attempt > 0:
                    raise
            except errors.ApiError as error:
                if error.retry_after_s is None or attempt == _MOST_RETRIES:
                    raise
                await sleep(self._clock, error.retry_after_s)
        raise AssertionError("the last try returns or raises")

    async def turn(self, priority: Priority = Priority.NORMAL) -> None:
        """Return when a request may be sent: the limit of requests a second allows it."""
        if self._limiter is not None:
            await self._limiter.take(priority)

    def give_turn_back(self) -> None:
        """The request that a turn was taken for is not sent."""
        if self._limiter is not None:
            self._limiter.give_back()

    def hear(self) -> None:
        """Hand on what watches have got that would be read later: what is sent next may depend on it."""
        for stream in tuple(self._paced):
            stream.read_now()

    async def send(self, request: Request, may_send: Callable[[], bool] = always) -> bytes:
        """The body of the answer to one request whose turn it is. Raises ApiError."""
        try:
            if not may_send():
                what = f"{request.method} {request.path}"
                raise errors.NotLeading(f"{what}: not sent: this process is not the leader")
        except errors.ApiError:
            self.give_turn_back()
            raise
        answer = await self._send(request)
        if answer.status < 300:
            return answer.body
        if answer.status == 401:
            await self._connection.renew()
        error = error_of(answer.status, answer.body)
        error.retry_after_s = _retry_after_s(answer)
        raise error

    async def watch(
        self,
        path: str,
        params: Params | None,
        on_line: OnLine,
        *,
        timeout_s: float = _WATCH_TIMEOUT_S,
        on_open: Callable[[], object] = always,
        pace_s: float = 0.0,
    ) -> None:
        """Hand on each line of a watch, without its end, until the API server closes it.

        `on_open` is told that the API server has agreed to it: the first line may be long in coming.
        Lines that follow each other closely are read together, `pace_s` apart. While requests wait for the
        limit, they are read when requests may be sent: before that, nothing can come of them.

        Raises ApiError, also when it breaks off, and whatever `on_line` raises; a line that is cut short
        is never handed on. Cancel it to end the watch.
        """
        asked = {**(params or {}), "watch": "true", "timeoutSeconds": str(int(timeout_s))}
        await self.turn()
        request = Request("GET", path, params=asked, timeout_s=timeout_s + _WATCH_GRACE_S)
        if self._connection.proxy is not None:
            refusal = await self._watch_through_proxy(request, on_line, on_open)
        else:
            try:
                refusal = await watch(
                    self._endpoint,
                    self._text(request, await self._headers()),
                    on_line,
                    on_open=on_open,
                    timeout_s=request.timeout_s,
                    pace=self._pace(pace_s) if pace_s else None,
                    paced=self._paced,
                )
            except errors.Unanswered as error:
                raise _told(f"watching {path}", error) from error
        if refusal is not None:
            if refusal.status == 401:
                await self._connection.renew()
            raise error_of(refusal.status, refusal.body)

    def _pace(self, pace_s: float) -> Pace:
        limiter = self._limiter
        if limiter is None:
            return lambda: pace_s
        return lambda: max(pace_s, limiter.batch_s) if limiter.is_exhausted else pace_s

    async def _send(self, request: Request) -> Answer:
        headers = await self._headers()
        headers["Accept"] = request.accept
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if self._connection.proxy is not None:
            return await self._through_proxy(request, headers)
        headers["Content-Length"] = str(len(request.body or b""))
        try:
            return await self._lane.send(
                self._text(request, headers),
                timeout_s=request.timeout_s,
                priority=request.priority,
            )
        except errors.Unanswered as error:
            raise _told(f"{request.method} {request.path}", error) from error

    def _text(self, request: Request, headers: Mapping[str, str]) -> bytes:
        """The whole request, to be sent in one piece."""
        target = self._target(request.path, request.params)
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        head = f"{request.method} {target} HTTP/1.1\r\n{lines}\r\n"
        return head.encode("latin-1") + (request.body or b"")

    async def _through_proxy(self, request: Request, headers: dict[str, str]) -> Answer:
        try:
            async with self._session().request(
                request.method,
                self._url(request),
                data=request.body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=request.timeout_s),
                **self._way(),
            ) as response:
                body = await response.read()
                retry_after = response.headers.get("Retry-After")
        except (aiohttp.ClientError, OSError) as error:
            raise _unanswered(f"{request.method} {request.path}", error) from error
        said = None if retry_after is None else retry_after.encode()
        return Answer(response.status, body, said)

    async def _watch_through_proxy(
        self, request: Request, on_line: OnLine, on_open: Callable[[], object]
    ) -> Answer | None:
        """As `watching.watch`."""
        timeout = aiohttp.ClientTimeout(total=request.timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        try:
            async with self._session().get(
                self._url(request),
                headers=await self._headers(),
                timeout=timeout,
                **self._way(),
            ) as response:
                if response.status >= 300:
                    return Answer(response.status, await response.read())
                on_open()
                lines = Lines()
                async for chunk in response.content.iter_any():
                    for line in lines.split(chunk):
                        on_line(line)
        except (aiohttp.ClientError, OSError) as error:
            raise _unanswered(f"watching {request.path}", error) from error
        return None

    async def _headers(self) -> dict[str, str]:
        headers = {
            "Host": self._endpoint.authority,
            "Accept": JSON,
            "User-Agent": self._user_agent,
        }
        authorization = await self._connection.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers

    def _target(self, path: str, params: Params | None) -> str:
        target = self._prefix + quote(path, safe=_SAFE_IN_PATH)
        return f"{target}?{urlencode(params)}" if params else target

    def _url(self, request: Request) -> URL:
        parts = urlsplit(self._connection.server)
        target = self._target(request.path, request.params)
        return URL(f"{parts.scheme}://{parts.netloc}{target}", encoded=True)

    def _session(self) -> aiohttp.ClientSession:
        assert self._proxy_session is not None
        return self._proxy_session

    def _way(self) -> _Way:
        return {
            "ssl": self._connection.ssl_context or True,
            "server_hostname": self._connection.tls_server_name,
            "proxy": self._connection.proxy,
            "allow_redirects": False,
        }


class _Way(TypedDict):
    """How aiohttp gets to the server."""

    ssl: ssl.SSLContext | bool
    server_hostname: str | None
    proxy: str | None
    allow_redirects: bool


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: tuple[_Cause, ...] | None = None


class _Status(msgspec.Struct, frozen=True):
    """What the API server says of a failure (`meta/v1 Status`)."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None

    @property
    def causes(self) -> set[str]:
        causes = self.details.causes if self.details is not None else None
        return {cause.reason for cause in causes or ()}


def error_of(status: int, body: bytes) -> errors.ApiError:
    """The failure in an answer, or in the ERROR event of a watch (with a status of 0)."""
    try:
        said = msgspec.json.decode(body, type=_Status)
    except (msgspec.DecodeError, *NOT_TEXT):
        # A proxy on the way, or an API server that is only starting: what it says may be a page.
        said = _Status(message=body[:500].decode(errors="replace").strip())
    status = status or said.code
    kind = _BY_STATUS.get(status)
    if kind is None:
        kind = errors.ServerUnavailable if status >= 500 else errors.ApiError
    elif kind is errors.Forbidden and _TERMINATING in said.causes:
        kind = errors.NamespaceTerminating
    return kind(said.message or f"HTTP status {status}", status=status, reason=said.reason)


def _retry_after_s(answer: Answer) -> float | None:
    """How long to wait before asking again; None if it does not say to ask again."""
    said = answer.retry_after
    if said is None or not said.isdigit() or not (answer.status == 429 or answer.status >= 500):
        return None
    return float(said)


def _told(what: str, error: errors.Unanswered) -> errors.Unanswered:
    """The same, with what was asked."""
    return errors.Unanswered(f"{what}: {error}", maybe_done=error.maybe_done)


def _unanswered(what: str, error: Exception) -> errors.Unanswered:
    refused = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    problem = str(error)
    if isinstance(error, aiohttp.ClientConnectorError):
        # The library's own words have the address of an object in this process in them.
        problem = str(error.os_error)
    elif isinstance(error, TimeoutError):
        problem = "no answer in time"
    elif isinstance(error, aiohttp.ClientPayloadError):
        problem = "the connection was lost"
    return errors.Unanswered(f"{what}: {problem or type(error).__name__}", maybe_done=not refused)


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, proto, _, _ = address
    sock = socket.socket(family, kind, proto)
    sock.setblocking(False)
    keep_alive(sock)
    return sock
