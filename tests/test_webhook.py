"""The transport alone: what arrives, how long it waits, what it refuses, whom it trusts."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from base64 import b64encode
from collections.abc import Callable

import pytest

from mooring.config import Extender, load_config
from mooring.config.extenders import tls_of
from mooring.config.types import ExtenderTLSConfig
from mooring.errors import ConfigError, ExtenderError
from mooring.webhook import HttpTransport
from tests.webhook_server import CERTIFICATES, HANG, Reply, Webhook, server_tls

NO_TLS = ExtenderTLSConfig()
#: Long enough for loopback on a busy machine, and long for a test to wait for.
TIMEOUT_S = 30.0
SHORT_S = 0.2

AUTHORITY = (CERTIFICATES / "authority.pem").read_bytes()
CLIENT = (CERTIFICATES / "client.pem").read_bytes()
CLIENT_KEY = (CERTIFICATES / "client.key").read_bytes()


@pytest.fixture
def transport():
    transport = HttpTransport()
    yield transport
    transport.close()


def post(transport, webhook, verb="ask", *, timeout_s=TIMEOUT_S, tls=NO_TLS, body=b"{}"):
    return transport.post(f"{webhook.url}/{verb}", body, timeout_s=timeout_s, tls=tls)


def test_a_question_is_json_and_its_answer_comes_back(transport):
    with Webhook(ask=lambda question: {"heard": question}) as webhook:
        answer = post(transport, webhook, body=b'{"a":[1]}')

    assert answer.code == 200
    assert json.loads(answer.body) == {"heard": {"a": [1]}}
    assert webhook.headers[0]["Content-Type"] == "application/json"
    assert webhook.headers[0]["Host"] == webhook.url.removeprefix("http://")


def test_one_connection_serves_many_questions(transport):
    with Webhook(ask={}) as webhook:
        for _ in range(5):
            post(transport, webhook)

    assert webhook.connections == 1


def test_a_connection_that_the_server_closed_is_replaced(transport):
    goodbye = Reply(b"{}", headers={"Connection": "close"})
    with Webhook(ask=goodbye, more={}) as webhook:
        assert post(transport, webhook).code == 200
        assert post(transport, webhook, "more").code == 200

    assert webhook.connections == 2


def test_an_idle_connection_that_was_closed_meanwhile_is_not_used(transport):
    """The server closes without having said so: the question must not be sent into the void."""
    with listening(_answer_once_and_close) as server:
        assert server.post(transport) == b"{}"
        server.closed.wait(TIMEOUT_S)
        assert server.post(transport) == b"{}"


def test_another_code_than_200_is_told_and_its_body_is_not_read(transport):
    with Webhook(ask=Reply(b"x" * 10, code=503, length=10**9)) as webhook:
        assert post(transport, webhook) == (503, b"")


def test_chunks_are_put_together(transport):
    chunked = Reply(
        b'3\r\n{"a\r\n5\r\n": 1}\r\n0\r\n\r\n', headers={"Transfer-Encoding": "chunked"}
    )
    with Webhook(ask=chunked) as webhook:
        assert json.loads(post(transport, webhook).body) == {"a": 1}
        assert json.loads(post(transport, webhook).body) == {"a": 1}

    assert webhook.connections == 1


def failing(transport, webhook, **options):
    with pytest.raises(ExtenderError) as failed:
        post(transport, webhook, **options)
    text = str(failed.value)
    start = f'Post "{webhook.url}/ask": '
    assert text.startswith(start)
    return text.removeprefix(start)


TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


def test_one_that_never_answers_is_given_up(transport):
    with Webhook(ask=HANG) as webhook:
        assert failing(transport, webhook, timeout_s=SHORT_S) == TIMED_OUT


def test_the_timeout_is_for_all_of_it_and_not_for_each_read(transport):
    """A byte now and then keeps a read from timing out, but not the exchange."""
    with listening(_drip) as server, pytest.raises(ExtenderError, match="deadline exceeded"):
        server.post(transport, timeout_s=SHORT_S)


def test_one_that_does_not_take_the_question_is_given_up(transport):
    """More than fits between two sockets is sent, and nobody reads."""
    with listening(_wait) as server, pytest.raises(ExtenderError, match="deadline exceeded"):
        server.post(transport, body=b"x" * 32_000_000, timeout_s=SHORT_S)


def test_one_that_is_not_there_is_named():
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/ask"

    with pytest.raises(ExtenderError, match=f'^Post "{url}": .*refused'):
        HttpTransport().post(url, b"", timeout_s=TIMEOUT_S, tls=NO_TLS)


def test_an_answer_may_not_be_longer_than_allowed():
    transport = HttpTransport(most_bytes=1000)
    with Webhook(ask=Reply(b"x" * 1000)) as webhook:
        assert len(post(transport, webhook).body) == 1000
    with Webhook(ask=Reply(b"x" * 1001)) as webhook:
        assert failing(transport, webhook) == "the answer is longer than 1000 bytes"
    transport.close()


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(b"{}", length=5), id="by its length"),
        pytest.param(
            Reply(b"5\r\n{}", headers={"Transfer-Encoding": "chunked", "Connection": "close"}),
            id="in a chunk",
        ),
    ],
)
def test_an_answer_that_is_cut_short_is_none(transport, reply):
    with Webhook(ask=reply) as webhook:
        assert failing(transport, webhook) == "unexpected EOF"


def test_what_is_no_http_is_told(transport):
    def babble(connection, closing):
        connection.recv(65_536)
        connection.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")

    with listening(babble) as server, pytest.raises(ExtenderError, match="SSH-2"):
        server.post(transport)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://extender/ask", 'unsupported protocol scheme "ftp"'),
        ("/ask", 'unsupported protocol scheme ""'),
        ("http:///ask", "no Host in request URL"),
        ("http://extender:port/ask", "Port could not be cast to integer value as 'port'"),
    ],
)
def test_a_url_that_leads_nowhere_is_told(transport, url, problem):
    with pytest.raises(ExtenderError) as failed:
        transport.post(url, b"", timeout_s=TIMEOUT_S, tls=NO_TLS)

    assert str(failed.value) == f'Post "{url}": {problem}'


# TLS


def test_a_known_server_is_trusted(transport):
    by_data = ExtenderTLSConfig(ca_data=AUTHORITY, server_name="extender.test")
    by_file = ExtenderTLSConfig(
        ca_file=str(CERTIFICATES / "authority.pem"), server_name="extender.test"
    )
    with Webhook(tls=server_tls(), ask={}) as webhook:
        assert post(transport, webhook, tls=by_data).code == 200
        assert post(transport, webhook, tls=by_file).code == 200


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        pytest.param(
            ExtenderTLSConfig(ca_data=AUTHORITY), "IP address mismatch", id="another name"
        ),
        pytest.param(
            ExtenderTLSConfig(server_name="extender.test"),
            "unable to get local issuer certificate",
            id="an unknown authority",
        ),
    ],
)
def test_an_unknown_server_is_not_trusted(transport, tls, problem):
    with Webhook(tls=server_tls(), ask={}) as webhook:
        assert problem in failing(transport, webhook, tls=tls)

    assert not webhook.asked


def test_without_an_authority_https_trusts_anybody(transport):
    """As in the reference: `enableHTTPS` without a CA switches verification off."""
    extender = Extender(enable_https=True)
    with Webhook(tls=server_tls(), ask={}) as webhook:
        assert post(transport, webhook, tls=tls_of(extender)).code == 200
        assert post(transport, webhook, tls=ExtenderTLSConfig(insecure=True)).code == 200


def test_https_with_an_authority_is_verified():
    extender = Extender(enable_https=True, tls_config=ExtenderTLSConfig(ca_data=AUTHORITY))

    assert not tls_of(extender).insecure


@pytest.mark.parametrize(
    "tls",
    [
        pytest.param(
            ExtenderTLSConfig(insecure=True, cert_data=CLIENT, key_data=CLIENT_KEY), id="as data"
        ),
        pytest.param(
            ExtenderTLSConfig(
                insecure=True,
                cert_file=str(CERTIFICATES / "client.pem"),
                key_file=str(CERTIFICATES / "client.key"),
            ),
            id="as files",
        ),
        pytest.param(
            ExtenderTLSConfig(
                insecure=True,
                cert_data=CLIENT,
                cert_file="ignored, since there is data",
                key_file=str(CERTIFICATES / "client.key"),
            ),
            id="as both",
        ),
    ],
)
def test_a_client_shows_its_certificate(transport, tls):
    with Webhook(tls=server_tls(client_authority=True), ask={}) as webhook:
        assert post(transport, webhook, tls=tls).code == 200
        with pytest.raises(ExtenderError):
            post(transport, webhook, tls=ExtenderTLSConfig(insecure=True))


def test_a_handshake_that_never_ends_is_given_up(transport):
    tls = ExtenderTLSConfig(insecure=True)
    with listening(_wait) as server, pytest.raises(ExtenderError, match="deadline exceeded"):
        server.post(transport, scheme="https", timeout_s=SHORT_S, tls=tls)


@pytest.mark.parametrize(
    ("tls", "problem"),
    [
        pytest.param(
            {"insecure": True, "caData": b64encode(AUTHORITY).decode()},
            "specifying a root certificates file with the insecure flag is not allowed",
            id="an authority for nothing",
        ),
        pytest.param(
            {"caFile": "/no/such/file"}, "No such file or directory: '/no/such/file'", id="no file"
        ),
        pytest.param({"caData": b64encode(b"no PEM").decode()}, "no start line", id="no authority"),
        pytest.param(
            {
                "certData": b64encode(CLIENT).decode(),
                "keyData": b64encode((CERTIFICATES / "server.key").read_bytes()).decode(),
            },
            "KEY_VALUES_MISMATCH",
            id="another's key",
        ),
    ],
)
def test_certificates_that_cannot_be_used_are_refused_at_once(tls, problem):
    good = {"urlPrefix": "https://good", "enableHTTPS": True}
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [good, {"urlPrefix": "https://bad", "tlsConfig": tls}],
        }
    )

    with pytest.raises(ConfigError) as refused:
        HttpTransport(config.extenders)

    (text,) = refused.value.problems
    assert text.startswith("extenders[1].tlsConfig: ")
    assert problem in text


# Servers that do not even speak HTTP well


class listening:  # noqa: N801
    """A bare server that lets `behave` handle each connection."""

    def __init__(self, behave: Callable[[socket.socket, threading.Event], object]) -> None:
        self._behave = behave
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._closing = threading.Event()
        #: Set when the first connection was closed.
        self.closed = threading.Event()
        self._thread = threading.Thread(target=self._accept)

    def post(self, transport, *, scheme="http", body=b"{}", timeout_s=TIMEOUT_S, tls=NO_TLS):
        url = f"{scheme}://127.0.0.1:{self._socket.getsockname()[1]}/ask"
        return transport.post(url, body, timeout_s=timeout_s, tls=tls).body

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(OSError):
            self._behave(connection, self._closing)
        self.closed.set()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._closing.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


def _answer_once_and_close(connection, closing):
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def _drip(connection, closing):
    connection.recv(65_536)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while not closing.wait(0.01):
        connection.sendall(b" ")


def _wait(connection, closing):
    closing.wait()
