"""A real HTTP server on loopback that plays the extender, well-behaved or not."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CERTIFICATES = Path(__file__).parent / "certificates"


@dataclass(frozen=True)
class Reply:
    """An answer as it stands, and not what a well-behaved extender would make of some data."""

    body: bytes = b""
    code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    #: What to claim as the length; None tells the truth.
    length: int | None = None


#: Never answers, until the server is closed.
HANG = object()

Behaviour = Callable[[Any], object]


class Webhook:
    """`with Webhook(filter=...) as extender:`; each verb has an answer, or a function of the question.

    An answer is data to be sent as JSON, a `Reply`, or `HANG`.
    """

    def __init__(self, *, tls: ssl.SSLContext | None = None, **verbs: object) -> None:
        self._verbs = verbs
        #: What was asked: (verb, document).
        self.asked: list[tuple[str, Any]] = []
        #: The headers of each question, and how many connections there were.
        self.headers: list[Mapping[str, str]] = []
        self.connections = 0
        self.closing = threading.Event()
        self._server = _Server(self)
        self._scheme = "http"
        if tls is not None:
            self._scheme = "https"
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def questions(self, verb: str) -> list[Any]:
        return [document for asked, document in self.asked if asked == verb]

    def config(self, **more: Any) -> dict[str, Any]:
        """The entry in `extenders` of a configuration, with every verb that is played."""
        verbs = {f"{verb}Verb": verb for verb in self._verbs}
        weight = {"weight": 1} if "prioritize" in self._verbs else {}
        return {"urlPrefix": self.url, **verbs, **weight, **more}

    def answer(self, verb: str, document: Any) -> object:
        self.asked.append((verb, document))
        answer = self._verbs[verb]
        return answer(document) if callable(answer) else answer

    def __enter__(self) -> Webhook:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # A test does not wait for clients that keep their connection.
    block_on_close = False

    def __init__(self, webhook: Webhook) -> None:
        self.webhook = webhook
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.webhook.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up, or do not like the certificate, are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        webhook = self.server.webhook
        text = self.rfile.read(int(self.headers["Content-Length"]))
        webhook.headers.append(dict(self.headers))
        answer = webhook.answer(self.path.rpartition("/")[2], json.loads(text))
        if answer is HANG:
            webhook.closing.wait()
            self.close_connection = True
            return
        if not isinstance(answer, Reply):
            answer = Reply(json.dumps(answer).encode())
        self.send_response(answer.code)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        length = len(answer.body) if answer.length is None else answer.length
        if "Transfer-Encoding" not in answer.headers:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(answer.body)
        if length > len(answer.body):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


def server_tls(*, client_authority: bool = False) -> ssl.SSLContext:
    """TLS for the name `extender.test`; with an authority, clients must be known to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    if client_authority:
        context.load_verify_locations(CERTIFICATES / "authority.pem")
        context.verify_mode = ssl.CERT_REQUIRED
    return context
