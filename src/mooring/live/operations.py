"""The port for operators: `/healthz`, `/livez`, `/readyz`, `/metrics…` and `/configz`.

Served from a thread of its own, so that a probe is answered however busy the scheduling thread is. By default
only this machine can reach the port, and there is no authentication. Behind a `Gate`, all paths except the
health endpoints require a token, and the API server decides who may read them.

    /healthz, /livez, /readyz    `ok`, or 500 and the list of checks; `?verbose` always lists them,
                                 `?exclude=name` leaves one out
    /readyz/<check>              one check alone
    /metrics/resources           what each pod asks for
    /metrics/slis                what the checks of the health endpoints have said so far
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, generate_latest

from mooring.bad_requests import log_bad_requests_briefly
from mooring.config import KubeSchedulerConfiguration, write_config
from mooring.errors import MooringError
from mooring.live.accumulators import Counter, Gauge
from mooring.live.endpoint_authorization import Gate, Refusal
from mooring.live.metrics import CONTENT_TYPE

_LOG = logging.getLogger(__name__)

DEFAULT_ADDRESS = "127.0.0.1"
DEFAULT_PORT = 10259

HANDLERS_NOT_SYNCED = "handlers are not fully synchronized"
SHUTTING_DOWN = "process is shutting down"

#: What is wrong, in words; None if nothing is.
Check = Callable[[], str | None]

#: Values of these keys are secrets that a configuration may hold.
_SECRET_KEYS = frozenset({"keyData"})


class ListenError(MooringError):
    """The port of the health endpoints cannot be had."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """What there is to be asked. Everything here is called from the serving thread."""

    #: `healthz`, `livez`, `readyz` → the checks of each, by name.
    checks: Mapping[str, Mapping[str, Check]]
    metrics: Callable[[], bytes]
    #: What each pod asks for; nothing from a process that does not lead.
    resources: Callable[[], bytes]
    config: Callable[[], KubeSchedulerConfiguration]


@dataclass(frozen=True, slots=True)
class Listen:
    address: str = DEFAULT_ADDRESS
    #: 0 serves nothing, as in the reference.
    port: int = DEFAULT_PORT
    #: A certificate and its key; with neither, plain HTTP.
    cert_file: str = ""
    key_file: str = ""


def nothing_wrong() -> str | None:
    return None


def health_checks(
    *, leader_election: Check | None, shutdown: Check, handlers_synced: Check
) -> dict[str, dict[str, Check]]:
    """Which checks make up which endpoint, as in the reference."""
    election = {"leaderElection": leader_election} if leader_election is not None else {}
    return {
        "healthz": election or {"ping": nothing_wrong},
        "livez": {"ping": nothing_wrong},
        "readyz": {**election, "shutdown": shutdown, "sched-handler-sync": handlers_synced},
    }


class HealthHistory:
    """How often each check passed and failed, for `/metrics/slis`."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._last = Gauge(
            "kubernetes_healthcheck", "The result of a single healthcheck.", "name", "type"
        )
        self._total = Counter(
            "kubernetes_healthchecks_total",
            "The results of all healthchecks.",
            *("name", "type", "status"),
        )
        self._registry.register(self._last)
        self._registry.register(self._total)

    def add(self, kind: str, name: str, problem: str | None) -> None:
        self._last.set(int(problem is None), name, kind)
        self._total.add(1, name, kind, "success" if problem is None else "error")

    def exposition(self) -> bytes:
        return generate_latest(self._registry)


def health_text(
    kind: str,
    checks: Mapping[str, Check],
    history: HealthHistory,
    *,
    verbose: bool,
    excluded: frozenset[str],
) -> tuple[int, str]:
    """Status and body of one of the health endpoints."""
    lines, failed = [], False
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
            continue
        problem = _asked(check)
        history.add(kind, name, problem)
        if problem is None:
            lines.append(f"[+]{name} ok")
        else:
            failed = True
            lines.append(f"[-]{name} failed: reason withheld")
            _LOG.warning("%s check failed: %s: %s", kind, name, problem)
    unknown = sorted(excluded - checks.keys())
    if unknown:
        names = ", ".join(f'"{name}"' for name in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    if failed:
        return 500, "\n".join([*lines, f"{kind} check failed", ""])
    if not verbose:
        return 200, "ok"
    return 200, "\n".join([*lines, f"{kind} check passed", ""])


def configz(config: KubeSchedulerConfiguration) -> bytes:
    return msgspec.json.encode({"componentconfig": _without_secrets(write_config(config))})


class OperationsServer:
    """Serves the endpoints from its own thread until it is closed."""

    def __init__(self, endpoints: Endpoints, listen: Listen, gate: Gate | None = None) -> None:
        self._endpoints = endpoints
        self._listen = listen
        self._gate = gate
        self._history = HealthHistory()
        self._thread = threading.Thread(target=self._main, name="operations", daemon=True)
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._problem: Exception | None = None
        #: The port that is listened on, once started: of use where any would do.
        self.port = 0

    def start(self, timeout_s: float = 10.0) -> None:
        """Raises ListenError if the address cannot be had."""
        self._thread.start()
        self._started.wait(timeout_s)
        if self._problem is not None:
            where = f"{self._listen.address}:{self._listen.port}"
            raise ListenError(
                f"cannot serve /healthz and /metrics on {where}: {self._problem};"
                " choose another with --port, or none with --port 0"
            ) from self._problem

    def close(self, timeout_s: float = 5.0) -> None:
        if self._loop is not None and self._closing is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._closing.set)
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception as error:
            if not self._started.is_set():
                self._problem = error
            else:
                _LOG.exception("the health endpoints stopped")
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            listen = self._listen
            # Port 0 here means any free one; that nothing is to be served is decided by the caller.
            site = web.TCPSite(runner, listen.address, listen.port, ssl_context=_tls(listen))
            await site.start()
            self.port = runner.addresses[0][1]
            self._started.set()
            await self._closing.wait()
        finally:
            await runner.cleanup()
            if self._gate is not None:
                await self._gate.close()

    def _application(self) -> web.Application:
        log_bad_requests_briefly()
        application = web.Application(
            middlewares=[] if self._gate is None else [_guard(self._gate)]
        )
        for kind in self._endpoints.checks:
            application.router.add_get(f"/{kind}", self._health(kind))
            application.router.add_get(f"/{kind}/{{check}}", self._single(kind))
        for path, page in (
            ("/metrics", self._endpoints.metrics),
            ("/metrics/resources", self._endpoints.resources),
            ("/metrics/slis", self._history.exposition),
        ):
            application.router.add_get(path, self._metrics(page))
        application.router.add_get("/configz", self._configz)
        return application

    def _health(self, kind: str) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            status, body = health_text(
                kind,
                self._endpoints.checks[kind],
                self._history,
                verbose="verbose" in request.query,
                excluded=frozenset(request.query.getall("exclude", [])),
            )
            return _text(status, body)

        return answer

    def _single(self, kind: str) -> Callable[[web.Request], Any]:
        async def answer(request: web.Request) -> web.Response:
            check = self._endpoints.checks[kind].get(request.match_info["check"])
            if check is None:
                return _text(404, "404 page not found\n")
            problem = _asked(check)
            if problem is not None:
                return _text(500, f"internal server error: {problem}\n")
            return _text(200, "ok")

        return answer

    def _metrics(self, page: Callable[[], bytes]) -> Callable[[web.Request], Any]:
        async def answer(_request: web.Request) -> web.Response:
            return web.Response(body=page(), headers={"Content-Type": CONTENT_TYPE})

        return answer

    async def _configz(self, _request: web.Request) -> web.Response:
        body = configz(self._endpoints.config())
        return web.Response(body=body, content_type="application/json")


def _guard(gate: Gate) -> Middleware:
    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            await gate.check(request.path, request.headers.get("Authorization", ""))
        except Refusal as refusal:
            return web.json_response(refusal.document(), status=refusal.status)
        return await handler(request)

    return guarded


def _asked(check: Check) -> str | None:
    """A check that fails to answer has failed."""
    try:
        return check()
    except Exception as error:
        return repr(error)


def _text(status: int, body: str) -> web.Response:
    return web.Response(status=status, text=body, headers={"X-Content-Type-Options": "nosniff"})


def _tls(listen: Listen) -> ssl.SSLContext | None:
    if not listen.cert_file:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(listen.cert_file, listen.key_file or None)
    return context


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "REDACTED" if key in _SECRET_KEYS and item else _without_secrets(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value
