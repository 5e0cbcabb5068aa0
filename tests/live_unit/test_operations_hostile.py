"""Whatever is sent to the endpoints of `mooring run`: no traceback, no hang, and the next one is answered."""

from __future__ import annotations

import logging
import random
import resource
import socket

from mooring.config import default_config
from mooring.live.operations import Endpoints, Listen, OperationsServer, health_checks
from tests.hostile_http import nonsense, send

_TARGETS = ["/livez", "/readyz", "/readyz/ping", "/metrics", "/metrics/slis", "/configz", "/none"]


def _server() -> OperationsServer:
    checks = health_checks(
        leader_election=None, shutdown=lambda: None, handlers_synced=lambda: None
    )
    endpoints = Endpoints(checks, lambda: b"up 1\n", lambda: b"pods 1\n", default_config)
    return OperationsServer(endpoints, Listen(port=0))


def _is_alive(server: OperationsServer) -> bool:
    asked = b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    return send(server.port, asked, within_s=10.0).startswith(b"HTTP/1.1 200")


def test_requests_that_make_no_sense_are_refused_and_forgotten(caplog):
    rng = random.Random(18)
    server = _server()
    server.start()
    try:
        with caplog.at_level(logging.WARNING):
            before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for number in range(400):
                data = nonsense(rng, _TARGETS)
                answer = send(server.port, data)
                assert b"Traceback" not in answer, data[:200]
                assert not answer.startswith(b"HTTP/1.1 500"), data[:200]
                if number % 50 == 0:
                    assert _is_alive(server), data[:200]
        assert _is_alive(server)
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    finally:
        server.close()
    told = [record for record in caplog.records if record.exc_info]
    assert told == [], [record.getMessage() for record in told]
    assert grown_kb < 100_000


def test_connections_that_say_nothing_hold_up_nobody():
    server = _server()
    server.start()
    idle = []
    try:
        for number in range(60):
            sock = socket.create_connection(("127.0.0.1", server.port))
            sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n"[: number % 33])
            idle.append(sock)

        assert _is_alive(server)
    finally:
        for sock in idle:
            sock.close()
        server.close()
