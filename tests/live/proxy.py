"""A bad network: a proxy before the API server that delays, holds, refuses or loses what a test names.

It speaks HTTP/1.1 over TLS on both sides, with the API server's own certificate, so a client that verifies
the API server verifies the proxy. It runs in a thread of its own; a test calls its methods from any other.

    client ──► [refuse] ──► [delay] ──► [hold] ──► [lose request] ──► API server
           ◄── [lag] ◄──────────────────────────── [lose answer] ◄──┘
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from types import TracebackType

from control_plane import HOST, ControlPlane

#: More than the head of any request or answer.
MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Request:
    """A request as far as a test tells one from another."""

    method: str
    path: str
    body: bytes

    @property
    def is_bind(self) -> bool:
        return self.method == "POST" and self.path.endswith("/binding")

    @property
    def is_watch(self) -> bool:
        return self.method == "GET" and "watch=" in self.path

    @property
    def subject(self) -> str:
        """The pod that it binds."""
        return self.path.split("/")[-2]


Choice = Callable[[Request], bool]


def binds(request: Request) -> bool:
    return request.is_bind


def everything(request: Request) -> bool:
    return True


class Fate(Enum):
    """What becomes of a request."""

    REFUSED = auto()
    DELAYED = auto()
    HELD = auto()
    LOST = auto()
    ANSWER_LOST = auto()


@dataclass
class Fault:
    """What becomes of the requests that a test chose; `times` bounds to how many it happens."""

    fate: Fate
    of: Choice
    times: float
    status: int = 0
    #: What the header `Retry-After` of a refusal says; None sends none. A kube-apiserver sends 1 with a 429,
    #: and client-go sends a request again by itself only where there is one.
    retry_after_s: int | None = None
    seconds: float = 0.0
    #: Those it happened to, in order.
    met: list[Request] = field(default_factory=list)
    #: Set when what is held may go on.
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    #: What is held goes on to the API server, and not nowhere.
    forwards: bool = True

    def claims(self, request: Request) -> bool:
        if len(self.met) >= self.times or not self.of(request):
            return False
        self.met.append(request)
        return True


class Cut(Exception):
    """The connection to the client ends here."""


class Proxy:
    def __init__(self, control_plane: ControlPlane) -> None:
        self._upstream_port = int(control_plane.url.rpartition(":")[2])
        certificate = control_plane.ca_file
        self._towards_server = ssl.create_default_context(cafile=certificate)
        self._towards_clients = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._towards_clients.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._connections: set[asyncio.Task[None]] = set()
        self._faults: list[Fault] = []
        self._server: asyncio.Server | None = None
        self._port = 0
        #: How long an answer lags behind, piece by piece: events of a watch, for example.
        self.lag_s = 0.0

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self._port}"

    def __enter__(self) -> Proxy:
        self._thread.start()
        self.mend()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cut()
        asyncio.run_coroutine_threadsafe(_end_all_tasks(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def refuse(
        self, of: Choice, *, status: int, times: float = 1, retry_after_s: int | None = None
    ) -> Fault:
        """Answer in the API server's place."""
        fault = Fault(Fate.REFUSED, of, times, status=status, retry_after_s=retry_after_s)
        return self._add(fault)

    def delay(self, of: Choice, seconds: float, *, times: float = float("inf")) -> Fault:
        return self._add(Fault(Fate.DELAYED, of, times, seconds=seconds))

    def hold(self, of: Choice, *, times: float = float("inf")) -> Fault:
        """Keep requests back until `release`."""
        return self._add(Fault(Fate.HELD, of, times))

    def lose_requests(self, of: Choice, *, times: float = 1) -> Fault:
        """End the connection instead of handing the request on."""
        return self._add(Fault(Fate.LOST, of, times))

    def lose_answers(self, of: Choice, *, times: float = 1) -> Fault:
        """Let the API server do what is asked, and end the connection instead of telling."""
        return self._add(Fault(Fate.ANSWER_LOST, of, times))

    def release(self, fault: Fault, *, forwards: bool = True) -> None:
        """End a fault, and let what it holds go on: to the API server, or nowhere."""

        def open_gate() -> None:
            fault.times = 0
            fault.forwards = forwards
            fault.gate.set()

        self._loop.call_soon_threadsafe(open_gate)

    def heal(self) -> None:
        """End every fault."""
        for fault in self._faults:
            self.release(fault)
        self.lag_s = 0.0

    def cut(self) -> None:
        """End all connections, and take no others until `mend`."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()

    def mend(self) -> None:
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def _add(self, fault: Fault) -> Fault:
        self._faults.append(fault)
        return fault

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, HOST, self._port, ssl=self._towards_clients, limit=MOST_BYTES
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            # What was accepted a moment ago must have become a connection of the server before that closes:
            # asyncio would forget it, open, without a word.
            for sock in self._server.sockets:
                self._loop.remove_reader(sock)
            await asyncio.sleep(0)
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        upstream: asyncio.StreamWriter | None = None
        try:
            if self._server is None:
                raise Cut  # It came in just before.
            server, upstream = await asyncio.open_connection(
                HOST, self._upstream_port, ssl=self._towards_server, limit=MOST_BYTES
            )
            while True:
                await self._pass_on_one(reader, writer, server, upstream)
        except (OSError, EOFError, ssl.SSLError, Cut, asyncio.CancelledError):
            pass  # Either side left, or was made to.
        finally:
            self._connections.discard(task)
            # Cut off, not said good-bye to: nothing here waits for the other side.
            for end in filter(None, (writer, upstream)):
                with contextlib.suppress(OSError, RuntimeError):
                    end.transport.abort()

    async def _pass_on_one(
        self,
        client: asyncio.StreamReader,
        to_client: asyncio.StreamWriter,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        head, body = await _read_message(client)
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        request = Request(method, path, body)
        fates = [fault for fault in self._faults if fault.claims(request)]
        for fault in fates:
            if fault.fate is Fate.REFUSED:
                to_client.write(refusal(fault))
                return
            if fault.fate is Fate.DELAYED:
                await asyncio.sleep(fault.seconds)
            if fault.fate is Fate.HELD:
                await fault.gate.wait()
                if not fault.forwards:
                    raise Cut
            if fault.fate is Fate.LOST:
                raise Cut
        to_server.write(head + body)
        if any(fault.fate is Fate.ANSWER_LOST for fault in fates):
            await _read_message(server)
            raise Cut
        await self._hand_back(server, to_client)

    async def _hand_back(
        self, server: asyncio.StreamReader, to_client: asyncio.StreamWriter
    ) -> None:
        head = await server.readuntil(b"\r\n\r\n")
        to_client.write(head)
        length, is_chunked = _length(head)
        if not is_chunked:
            to_client.write(await server.readexactly(length))
            await to_client.drain()
            return
        while True:
            chunk = await _read_chunk(server)
            if self.lag_s:
                await asyncio.sleep(self.lag_s)
            to_client.write(chunk)
            await to_client.drain()
            if chunk.startswith(b"0\r\n"):
                return


async def _end_all_tasks() -> None:
    """Those, too, that were about to begin when the connections were ended."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in others:
            task.cancel()
        await asyncio.wait(others)
    # Transports that were aborted are closed in the next turn of the loop.
    await asyncio.sleep(0.01)


async def _read_message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """A head, and a body as it was sent (in chunks, perhaps)."""
    head = await reader.readuntil(b"\r\n\r\n")
    length, is_chunked = _length(head)
    if not is_chunked:
        return head, await reader.readexactly(length)
    chunks = [await _read_chunk(reader)]
    while not chunks[-1].startswith(b"0\r\n"):
        chunks.append(await _read_chunk(reader))
    return head, b"".join(chunks)


def _length(head: bytes) -> tuple[int, bool]:
    """How long the body is, or that it comes in chunks."""
    headers = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    if b"chunked" in headers.get(b"transfer-encoding", b""):
        return 0, True
    return int(headers.get(b"content-length", b"0")), False


async def _read_chunk(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readuntil(b"\r\n")
    return size + await reader.readexactly(int(size.split(b";")[0], 16) + 2)


def refusal(fault: Fault) -> bytes:
    """The answer to a request that is refused."""
    reason = {404: "NotFound", 409: "Conflict", 429: "TooManyRequests", 500: "InternalError"}
    document = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": "refused by a test",
        "reason": reason.get(fault.status, "ServiceUnavailable"),
        "code": fault.status,
    }
    body = json.dumps(document).encode()
    after = "" if fault.retry_after_s is None else f"Retry-After: {fault.retry_after_s}\r\n"
    return (
        f"HTTP/1.1 {fault.status} Refused\r\n{after}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body
