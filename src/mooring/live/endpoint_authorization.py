"""Who may read the metrics and the configuration of a process: the API server decides.

As in the reference, the API server is asked whose token a request has (TokenReview) and whether that user may
`get` the path (SubjectAccessReview). Its answers are cached for ten seconds. So a scraper that may read the
metrics of kube-scheduler may read mooring's, by the same roles. Probes have no token, and need none.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from mooring.errors import ApiError, CredentialsError
from mooring.framework.clock import Clock
from mooring.live.client import ApiClient
from mooring.live.connection import Connection

_LOG = logging.getLogger(__name__)

ALWAYS_ALLOWED = frozenset({"/healthz", "/livez", "/readyz"})

#: How long an answer of the API server is believed.
_BELIEVED_S = 10.0
#: How many answers are cached: there are few scrapers, and many tokens may be guesses.
_MOST_REMEMBERED = 1000

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, list[str]] = {}


class _TokenStatus(msgspec.Struct, frozen=True):
    authenticated: bool = False
    user: User = User()


class _TokenReview(msgspec.Struct, frozen=True):
    status: _TokenStatus = _TokenStatus()


class _AccessStatus(msgspec.Struct, frozen=True):
    allowed: bool = False


class _AccessReview(msgspec.Struct, frozen=True):
    status: _AccessStatus = _AccessStatus()


class Refusal(Exception):
    """Why a page is not shown."""

    def __init__(self, status: int, reason: str, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason

    def document(self) -> dict[str, Any]:
        """As the API server says it."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.status,
        }


class Gate:
    """An `EndpointAuthorization` with a client of its own, made when the first request needs it."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], clock: Clock) -> None:
        self._connect = connect
        self._clock = clock
        self._opening = asyncio.Lock()
        self._client: ApiClient | None = None
        self._authorization: EndpointAuthorization | None = None

    async def check(self, path: str, authorization: str) -> None:
        """Raises Refusal."""
        if path not in ALWAYS_ALLOWED:
            opened = self._authorization or await self._open()
            await opened.check(path, authorization)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.__aexit__(None, None, None)

    async def _open(self) -> EndpointAuthorization:
        async with self._opening:
            if self._authorization is None:
                try:
                    client = ApiClient(await self._connect(), clock=self._clock)
                except CredentialsError as error:
                    _LOG.warning("cannot ask the API server for authorization: %s", error)
                    text = "cannot reach the API server"
                    raise Refusal(500, "InternalError", text) from error
                self._client = await client.__aenter__()
                self._authorization = EndpointAuthorization(self._client, self._clock)
            return self._authorization


class EndpointAuthorization:
    """Asks for each request, and remembers for a while."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        #: By digest, so that no token stays in memory: until when it is believed, and whose it is.
        self._users: dict[bytes, tuple[float, User | None]] = {}
        self._allowed: dict[tuple[bytes, str], tuple[float, bool]] = {}

    async def check(self, path: str, authorization: str) -> None:
        """Raises Refusal unless the sender of this header may read the path."""
        kind, _, token = authorization.partition(" ")
        if kind.lower() != "bearer" or not token:
            raise Refusal(401, "Unauthorized", "Unauthorized")
        digest = hashlib.sha256(token.encode()).digest()
        user = await self._user(digest, token)
        if user is None:
            raise Refusal(401, "Unauthorized", "Unauthorized")
        if not await self._may_get(digest, user, path):
            text = f'forbidden: User "{user.username}" cannot get path "{path}"'
            raise Refusal(403, "Forbidden", text)

    async def _user(self, digest: bytes, token: str) -> User | None:
        known = self._users.get(digest)
        if known is not None and self._clock.now() < known[0]:
            return known[1]
        document = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        }
        try:
            answer = await self._ask(_TOKEN_REVIEWS, document)
        except ApiError as error:
            _LOG.warning("cannot verify the token: %s", error)
            raise Refusal(401, "Unauthorized", "Unauthorized") from error
        status = msgspec.json.decode(answer, type=_TokenReview).status
        user = status.user if status.authenticated else None
        self._remember(self._users, digest, user)
        return user

    async def _may_get(self, digest: bytes, user: User, path: str) -> bool:
        known = self._allowed.get((digest, path))
        if known is not None and self._clock.now() < known[0]:
            return known[1]
        document = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": user.username,
                "uid": user.uid,
                "groups": user.groups,
                "extra": user.extra,
                "nonResourceAttributes": {"path": path, "verb": "get"},
            },
        }
        try:
            answer = await self._ask(_ACCESS_REVIEWS, document)
        except ApiError as error:
            _LOG.warning("cannot check whether %s may get %s: %s", user.username, path, error)
            raise Refusal(500, "InternalError", "cannot reach the API server") from error
        allowed = msgspec.json.decode(answer, type=_AccessReview).status.allowed
        self._remember(self._allowed, (digest, path), allowed)
        return allowed

    async def _ask(self, path: str, document: Mapping[str, Any]) -> bytes:
        body = msgspec.json.encode(document)
        return await self._client.request("POST", path, body=body, timeout_s=_BELIEVED_S)

    def _remember(self, known: dict[Any, tuple[float, Any]], key: Any, answer: Any) -> None:
        if len(known) >= _MOST_REMEMBERED:
            known.clear()
        known[key] = (self._clock.now() + _BELIEVED_S, answer)
