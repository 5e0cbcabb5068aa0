"""Asking a webhook over HTTP: the only place where mooring itself reaches out to an extender.

It stands above `scheduler`, which therefore cannot import it: a driver makes one and hands it in.

The standard library's clients start a timeout again with every read, so a server that sends a byte now and
then can hold them for ever. Here the whole exchange has one deadline, which needs a socket.
Of `http.client` only the parser is used. (Looking up a name is the one step that nothing bounds.) Redirects,
proxies and HTTP/2 are not followed, used or spoken: see docs/decisions/0007.
"""

from __future__ import annotations

import io
import selectors
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse, IncompleteRead
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from mooring.config.extenders import tls_of
from mooring.config.types import Extender, ExtenderTLSConfig
from mooring.errors import ConfigError, ExtenderError
from mooring.scheduler.extenders.extender import Answer

#: The longest answer that is read: some thousand nodes with all that kubelets tell of them.
MOST_BYTES = 256 * 1024 * 1024

#: Connections that are kept open for one extender, as many as the reference keeps.
_MOST_IDLE = 2
_PIECE = 1024 * 1024
_PORTS = {"http": 80, "https": 443}

#: The texts are the reference's, since users search for them.
_FAILED = 'Post "{}": {}'
_TIMED_OUT = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_CUT_SHORT = "unexpected EOF"
_NO_SCHEME = 'unsupported protocol scheme "{}"'
_INSECURE_WITH_CA = "specifying a root certificates file with the insecure flag is not allowed"


class HttpTransport:
    """A `scheduler.extenders.Transport`; connections are kept alive, and threads may share it."""

    def __init__(self, extenders: Iterable[Extender] = (), *, most_bytes: int = MOST_BYTES) -> None:
        """Raises ConfigError if the certificates of an extender cannot be used."""
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._idle: dict[_Peer, list[socket.socket]] = {}
        self._contexts: dict[ExtenderTLSConfig, ssl.SSLContext] = {}
        problems = []
        for number, extender in enumerate(extenders):
            try:
                self._context(tls_of(extender))
            except (OSError, ValueError) as error:
                problems.append(f"extenders[{number}].tlsConfig: {error}")
        if problems:
            raise ConfigError(problems)

    def post(self, url: str, body: bytes, *, timeout_s: float, tls: ExtenderTLSConfig) -> Answer:
        """Raises ExtenderError."""
        try:
            peer, target = _split(url, tls)
            return self._exchange(peer, _request(peer, target, body), _Deadline(timeout_s))
        except TimeoutError as error:
            raise ExtenderError(_FAILED.format(url, _TIMED_OUT)) from error
        except (OSError, ValueError, HTTPException) as error:
            problem = str(error) or type(error).__name__
            raise ExtenderError(_FAILED.format(url, problem)) from error

    def close(self) -> None:
        with self._lock:
            idle = [sock for socks in self._idle.values() for sock in socks]
            self._idle.clear()
        for sock in idle:
            sock.close()

    def _exchange(self, peer: _Peer, request: bytes, deadline: _Deadline) -> Answer:
        sock = self._take_idle(peer) or self._connect(peer, deadline)
        keep = False
        try:
            sock.settimeout(deadline.left_s())
            sock.sendall(request)
            response = HTTPResponse(_Wire(sock, deadline), method="POST")  # type: ignore[arg-type]
            response.begin()
            # The body of an answer with any other code does not matter; do not wait for it.
            body = self._read(response) if response.status == 200 else b""
            keep = response.status == 200 and not response.will_close
            return Answer(response.status, body)
        finally:
            if keep:
                self._put_idle(peer, sock)
            else:
                sock.close()

    def _read(self, response: HTTPResponse) -> bytes:
        pieces: list[bytes] = []
        size = 0
        try:
            while piece := response.read(_PIECE):
                pieces.append(piece)
                size += len(piece)
                if size > self._most_bytes:
                    raise ValueError(f"the answer is longer than {self._most_bytes} bytes")
        except IncompleteRead as error:
            raise ValueError(_CUT_SHORT) from error
        if response.length:
            raise ValueError(_CUT_SHORT)
        return b"".join(pieces)

    # Connections

    def _connect(self, peer: _Peer, deadline: _Deadline) -> socket.socket:
        sock = _connect(peer.host, peer.port, deadline)
        if peer.scheme == "http":
            return sock
        try:
            sock.settimeout(deadline.left_s())
            return self._context(peer.tls).wrap_socket(
                sock, server_hostname=peer.tls.server_name or peer.host
            )
        except BaseException:
            sock.close()
            raise

    def _context(self, tls: ExtenderTLSConfig) -> ssl.SSLContext:
        with self._lock:
            context = self._contexts.get(tls)
            if context is None:
                context = self._contexts[tls] = _tls_context(tls)
            return context

    def _take_idle(self, peer: _Peer) -> socket.socket | None:
        while True:
            with self._lock:
                socks = self._idle.get(peer)
                if not socks:
                    return None
                sock = socks.pop()
            if not _readable(sock):
                return sock
            # The server has closed it, or says what nobody asked.
            sock.close()

    def _put_idle(self, peer: _Peer, sock: socket.socket) -> None:
        with self._lock:
            socks = self._idle.setdefault(peer, [])
            if len(socks) < _MOST_IDLE:
                socks.append(sock)
                return
        sock.close()


@dataclass(frozen=True, slots=True)
class _Peer:
    """The server of a connection."""

    scheme: str
    host: str
    port: int
    tls: ExtenderTLSConfig

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def _split(url: str, tls: ExtenderTLSConfig) -> tuple[_Peer, str]:
    """Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        raise ValueError(_NO_SCHEME.format(parts.scheme))
    if not parts.hostname:
        raise ValueError("no Host in request URL")
    peer = _Peer(parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme], tls)
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    return peer, f"{path}?{parts.query}" if parts.query else path


def _request(peer: _Peer, target: str, body: bytes) -> bytes:
    head = (
        f"POST {target} HTTP/1.1\r\n"
        f"Host: {peer.authority}\r\n"
        "User-Agent: mooring\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "\r\n"
    )
    return head.encode("ascii") + body


class _Deadline:
    def __init__(self, timeout_s: float) -> None:
        self._at_s = time.monotonic() + timeout_s

    def left_s(self) -> float:
        """Raises TimeoutError if nothing is left."""
        left_s = self._at_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


def _connect(host: str, port: int, deadline: _Deadline) -> socket.socket:
    """To the first address that takes the call."""
    failed: OSError | None = None
    for family, kind, proto, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        sock = socket.socket(family, kind, proto)
        try:
            sock.settimeout(deadline.left_s())
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            sock.close()
            failed = error
        else:
            return sock
    raise failed or OSError(f"{host} has no address")


class _Wire:
    """A socket as HTTPResponse wants it, with a deadline over all reads together."""

    def __init__(self, sock: socket.socket, deadline: _Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reads(self._sock, self._deadline))


class _Reads(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline: _Deadline) -> None:
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(self._deadline.left_s())
        return self._sock.recv_into(buffer)


def _readable(sock: socket.socket) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(0))


# TLS


def _tls_context(tls: ExtenderTLSConfig) -> ssl.SSLContext:
    """Raises OSError (ssl.SSLError is one) or ValueError."""
    authority = tls.ca_data or _file(tls.ca_file)
    if tls.insecure and (tls.ca_data or tls.ca_file):
        raise ValueError(_INSECURE_WITH_CA)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        context.load_verify_locations(cadata=authority.decode("ascii"))
    else:
        context.load_default_certs()
    certificate, key = tls.cert_data or _file(tls.cert_file), tls.key_data or _file(tls.key_file)
    if certificate and key:
        _load_certificate(context, certificate, key)
    return context


def _file(path: str) -> bytes:
    return Path(path).read_bytes() if path else b""


def _load_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """The library takes files only, so both are written to a folder that nobody else can read."""
    with tempfile.TemporaryDirectory(prefix="mooring-") as folder:
        chain, secret = Path(folder, "certificate"), Path(folder, "key")
        chain.write_bytes(certificate)
        secret.write_bytes(key)
        # A password is never asked for at the terminal: a key that needs one cannot be used.
        context.load_cert_chain(chain, secret, password="")
