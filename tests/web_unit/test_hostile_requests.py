"""Whatever is sent to the page's server: no traceback, no internal error, and the next one is answered."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from typing import Any
from urllib.parse import quote, urlsplit

from tests.hostile_http import nonsense, send
from tests.web_unit.asking import Asker, asking
from tests.web_unit.clusters import run_spec

_GETS = ["start", "moves", "map", "time", "pod", "config", "object", "changes"]
_NAMES = [
    "at",
    "from",
    "to",
    "pod",
    "node",
    "kind",
    "name",
    "attempt",
    "by",
    "group",
    "limit",
    "text",
]
_VALUES = [
    "",
    "-1",
    "1e309",
    "NaN",
    "9" * 30,
    "\x00",
    "default/p",
    "../../x",
    "ä" * 400,
    "[]",
    "0.5",
]
_POSTS = [
    "/api/runs",
    "/api/export",
    "/api/compare",
    "/api/check",
    "/api/runs/0/counterfactuals",
    "/api/runs/1/capacity",
]
_FIELDS = ["run", "runs", "changes", "config", "pod", "base", "name", "objects", "remove"]
_FIELDS += ["addNodes", "why", "kind", "budgetSeconds", "counterfactual"]


def _value(rng: random.Random, depth: int = 0) -> Any:
    plain = [None, True, -1, 0, 1, 2**70, 1.5, "", "x", "default/p", "\x00", "a" * 5000]
    if depth < 3 and rng.random() < 0.4:
        if rng.random() < 0.5:
            return [_value(rng, depth + 1) for _ in range(rng.randint(0, 4))]
        return {rng.choice(_FIELDS): _value(rng, depth + 1) for _ in range(rng.randint(0, 4))}
    return rng.choice(plain)


async def _ask(asker: Asker, rng: random.Random) -> tuple[int, str, str]:
    if rng.random() < 0.5:
        query = "&".join(
            f"{rng.choice(_NAMES)}={quote(rng.choice(_VALUES), errors='replace')}"
            for _ in range(rng.randint(0, 3))
        )
        run = rng.choice(["0", "1", "7", "999999999"])
        asked = f"GET /api/runs/{run}/{rng.choice(_GETS)}?{query}"
        body = None
    else:
        asked = f"POST {rng.choice(_POSTS)}"
        body = json.dumps({rng.choice(_FIELDS): _value(rng) for _ in range(rng.randint(0, 3))})
        body = rng.choice([body, body[:-1], "", "[" * 50_000, json.dumps(_value(rng))])
    method, _, path = asked.partition(" ")
    headers = {"Content-Type": "application/json"}
    async with asker.http.request(
        method, f"{asker.address}{path}", data=body, headers=headers
    ) as response:
        return response.status, f"{asked} {(body or '')[:300]}", await response.text()


async def test_questions_that_make_no_sense_are_refused(caplog):
    rng = random.Random(18)
    async with asking(run_spec()) as asker:
        with caplog.at_level(logging.WARNING):
            for _ in range(400):
                status, asked, answer = await asyncio.wait_for(_ask(asker, rng), 20.0)
                assert status < 500, (asked, answer[:500])
                assert "Traceback" not in answer, asked
        await asker.get("/api/session")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


async def test_bytes_that_are_no_request_are_refused(caplog):
    rng = random.Random(19)
    async with asking(run_spec()) as asker:
        port = urlsplit(asker.address).port
        assert port is not None
        with caplog.at_level(logging.WARNING):
            for _ in range(200):
                data = nonsense(rng, ["/api/session", "/api/runs", "/static/app.js"])
                answer = await asyncio.to_thread(send, port, data)
                assert b"Traceback" not in answer, data[:200]
                assert not answer.startswith(b"HTTP/1.1 500"), data[:200]
        await asker.get("/api/session")
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
