"""Requests that make no sense, as bytes: some are HTTP, with one thing wrong."""

from __future__ import annotations

import random
import socket

_TARGETS = [
    "/",
    "/healthz",
    "*",
    "//",
    "/%00",
    "/%ff%fe",
    "/..%2f..%2fetc/passwd",
    "/" + "a" * 9000,
]
_QUERIES = [
    "",
    "?",
    "?exclude=%00",
    "?verbose=" + "x" * 5000,
    "?" + "exclude=a&" * 500,
    "?%%%",
    "?a[]=\xff",
]
_METHODS = ["GET", "POST", "PUT", "DELETE", "TRACE", "CONNECT", "\x00", "G" * 300, "get"]
_VERSIONS = ["HTTP/1.1", "HTTP/1.0", "HTTP/9.9", "HTTP", "", "\x7f"]
_HEADERS = [
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Content-Length: 5",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nContent-Length: 3",
    "Host: \x00",
    "Authorization: Bearer " + "x" * 20_000,
    "Cookie: " + "=;" * 3000,
    "Expect: 100-continue",
    "Upgrade: websocket\r\nConnection: upgrade",
    "X: " + "y" * 100_000,
    ": no name",
    "no colon",
    "Range: bytes=-9-",
    "Accept-Encoding: \xff",
]
_BODIES = ["", "hello", "ZZ\r\nnot a size\r\n", "5\r\nhello", "\x00" * 70_000, "0\r\n\r\n" * 50]


def nonsense(rng: random.Random, targets: list[str]) -> bytes:
    """One request, or what looks like one, or nothing of the kind."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.choice([1, 10, 1000, 70_000]))
    target = rng.choice([*targets, *_TARGETS]) + rng.choice(_QUERIES)
    lines = [f"{rng.choice(_METHODS)} {target} {rng.choice(_VERSIONS)}"]
    if rng.random() < 0.8:
        lines.append("Host: 127.0.0.1")
    lines += rng.sample(_HEADERS, rng.randint(0, 3))
    text = ("\r\n".join(lines) + "\r\n\r\n" + rng.choice(_BODIES)).encode("latin-1")
    # Cut anywhere, as whoever sends it goes away.
    return text[: rng.randrange(len(text))] if rng.random() < 0.2 else text


def send(port: int, data: bytes, *, within_s: float = 0.02) -> bytes:
    """The beginning of what comes back in time: to half a request, nothing does."""
    with socket.create_connection(("127.0.0.1", port), timeout=5.0) as sock:
        try:
            sock.sendall(data)
            sock.settimeout(within_s)
            return sock.recv(65536)
        except (ConnectionError, TimeoutError):
            return b""
