"""Requests to the API server and their answers, as bytes: what they mean is for others to say.

Of the HTTP library nothing gets out of here, neither its types nor its exceptions: a failure is an ApiError
with the text that the API server gave.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self
from urllib.parse import urlencode

import aiohttp
import msgspec
from yarl import URL

from mooring import __version__, errors
from mooring.framework.clock import Clock, sleep
from mooring.live.clock import WallClock
from mooring.live.connection import Connection
from mooring.live.rate_limit import Priority, RateLimiter

USER_AGENT = f"mooring/{__version__}"

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

#: An API server gives up on a request after a minute by itself, and says so.
REQUEST_TIMEOUT_S = 65.0
CONNECT_TIMEOUT_S = 10.0

#: How much longer than it asked for a watch may stay open.
_WATCH_GRACE_S = 30.0
#: How long the API server is asked to keep a watch open if the caller does not say.
_WATCH_TIMEOUT_S = 300.0

#: How often a request is made again that the API server asks to make later.
_MOST_RETRIES = 10

#: Connections that requests share, watches apart.
_MOST_CONNECTIONS = 32
_WATCH_BUFFER_BYTES = 1 << 18

_BY_STATUS: dict[int, type[errors.ApiError]] = {
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Expired,
    429: errors.TooManyRequests,
}

Params = Mapping[str, str]


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
        self._sessions = AsyncExitStack()
        self._requests: aiohttp.ClientSession
        self._watches: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        self._requests = await self._sessions.enter_async_context(self._session(_MOST_CONNECTIONS))
        self._watches = await self._sessions.enter_async_context(self._session(0))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._sessions.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        priority: Priority = Priority.NORMAL,
        timeout_s: float | None = None,
    ) -> bytes:
        """The body of the answer. Raises ApiError.

        An answer that asks to come again later (429, or 5xx with Retry-After) is heeded.
        """
        url = self._url(path, params)
        for retries in range(_MOST_RETRIES + 1):
            if self._limiter is not None:
                await self._limiter.take(priority)
            answer = await self._exchange(
                method, url, body, content_type, timeout_s or self._timeout_s
            )
            if answer.status < 400:
                return answer.body
            if answer.status == 401 and retries == 0:
                await self._connection.renew()
            elif answer.retry_after_s is not None:
                await sleep(self._clock, answer.retry_after_s)
            else:
                break
        raise error_of(answer.status, answer.body)

    async def watch(
        self, path: str, params: Params | None = None, *, timeout_s: float = _WATCH_TIMEOUT_S
    ) -> AsyncIterator[bytes]:
        """Each line of a watch, without its end, until the API server closes it.

        Raises ApiError, also when it breaks off; a line that is cut short is never given out. Close
        the iterator (`contextlib.aclosing`) to end the watch.
        """
        asked = {**(params or {}), "watch": "true", "timeoutSeconds": str(int(timeout_s))}
        if self._limiter is not None:
            await self._limiter.take()
        url = self._url(path, asked)
        timeout = aiohttp.ClientTimeout(
            total=timeout_s + _WATCH_GRACE_S, sock_connect=CONNECT_TIMEOUT_S
        )
        try:
            async with self._watches.get(
                url,
                headers=await self._headers(),
                timeout=timeout,
                ssl=self._connection.ssl_context or True,
                server_hostname=self._connection.tls_server_name,
                proxy=self._connection.proxy,
                allow_redirects=False,
            ) as response:
                if response.status >= 400:
                    if response.status == 401:
                        await self._connection.renew()
                    raise error_of(response.status, await response.read())
                pieces: list[bytes] = []
                async for chunk in response.content.iter_any():
                    first, *others = chunk.split(b"\n")
                    pieces.append(first)
                    if not others:
                        continue
                    yield b"".join(pieces)
                    for line in others[:-1]:
                        yield line
                    pieces = [others[-1]]
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unanswered("GET", url, error) from error

    async def _exchange(
        self, method: str, url: URL, body: bytes | None, content_type: str, timeout_s: float
    ) -> _Answer:
        headers = await self._headers()
        if body is not None:
            headers["Content-Type"] = content_type
        try:
            async with self._requests.request(
                method,
                url,
                data=body,
                headers=headers,
                timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=CONNECT_TIMEOUT_S),
                ssl=self._connection.ssl_context or True,
                server_hostname=self._connection.tls_server_name,
                proxy=self._connection.proxy,
                allow_redirects=False,
            ) as response:
                content = await response.read()
                if response.status == 401:
                    # The certificate of this connection may be what was not accepted.
                    response.close()
                return _Answer(response.status, content, _retry_after_s(response))
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise _unanswered(method, url, error) from error

    async def _headers(self) -> dict[str, str]:
        headers = {"Accept": JSON, "User-Agent": self._user_agent}
        authorization = await self._connection.authorization()
        if authorization is not None:
            headers["Authorization"] = authorization
        return headers

    def _url(self, path: str, params: Params | None) -> URL:
        query = f"?{urlencode(params)}" if params else ""
        return URL(f"{self._connection.server}{path}{query}", encoded=True)

    def _session(self, most_connections: int) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=most_connections, socket_factory=_socket, keepalive_timeout=90.0
            ),
            read_bufsize=_WATCH_BUFFER_BYTES,
            skip_auto_headers=("Accept-Encoding",),
            cookie_jar=aiohttp.DummyCookieJar(),
        )


class _Answer(msgspec.Struct, frozen=True, gc=False):
    status: int
    body: bytes
    #: How long to wait before asking again; None if it does not say to ask again.
    retry_after_s: float | None


class _Status(msgspec.Struct, frozen=True):
    """What the API server says of a failure (`meta/v1 Status`)."""

    message: str = ""
    reason: str = ""
    code: int = 0


def error_of(status: int, body: bytes) -> errors.ApiError:
    """The failure in an answer, or in the ERROR event of a watch (with a status of 0)."""
    try:
        said = msgspec.json.decode(body, type=_Status)
    except msgspec.DecodeError:
        # A proxy on the way, or an API server that is only starting: what it says may be a page.
        said = _Status(message=body[:500].decode(errors="replace").strip())
    status = status or said.code
    kind = _BY_STATUS.get(status)
    if kind is None:
        kind = errors.ServerUnavailable if status >= 500 else errors.ApiError
    return kind(said.message or f"HTTP status {status}", status=status, reason=said.reason)


def _retry_after_s(response: aiohttp.ClientResponse) -> float | None:
    if response.status != 429 and response.status < 500:
        return None
    said = response.headers.get("Retry-After")
    return float(said) if said is not None and said.isdecimal() else None


def _unanswered(method: str, url: URL, error: BaseException) -> errors.Unanswered:
    refused = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    problem = str(error) or type(error).__name__
    if isinstance(error, TimeoutError):
        problem = "no answer in time"
    return errors.Unanswered(f"{method} {url.with_query(None)}: {problem}", maybe_done=not refused)


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that notices within a minute that the other side is gone: watches may be silent."""
    family, kind, proto, _, _ = address
    sock = socket.socket(family, kind, proto)
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 20)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5)
    return sock
