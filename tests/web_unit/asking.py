"""A server with its page, and someone who asks it: over a real socket, with real workers behind it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.test_utils import TestServer

from mooring.web.access import Access
from mooring.web.assets import Assets
from mooring.web.origin import Origin
from mooring.web.run_spec import RunSpec
from mooring.web.server import Page
from mooring.web.session import Session

TOKEN = "a-token-of-the-tests"


@dataclass(frozen=True, slots=True)
class Asker:
    """Someone with the token."""

    session: Session
    http: aiohttp.ClientSession
    address: str

    async def get(self, path: str, status: int = 200) -> Any:
        return await self.send("GET", path, status=status)

    async def post(self, path: str, body: object, status: int = 202) -> Any:
        return await self.send("POST", path, body=body, status=status)

    async def send(self, method: str, path: str, *, body: object = None, status: int) -> Any:
        async with self.http.request(method, f"{self.address}{path}", json=body) as response:
            text = await response.text()
            assert response.status == status, text
            return json.loads(text) if text else None

    async def events(self) -> AsyncGenerator[dict[str, Any], None]:
        """The session, now and whenever it changes."""
        async with self.http.get(f"{self.address}/api/events") as response:
            assert response.content_type == "text/event-stream"
            async for line in response.content:
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

    async def over(self, job: int) -> dict[str, Any]:
        """The job, once it is over, as the stream of events tells it."""
        async for session in self.events():
            found: dict[str, Any] = next(each for each in session["jobs"] if each["id"] == job)
            if found["state"] != "running":
                return found
        raise AssertionError("the stream ended before the job was over")

    async def run(self, number: int) -> dict[str, Any]:
        session = await self.get("/api/session")
        found: dict[str, Any] = next(each for each in session["runs"] if each["id"] == number)
        return found


@dataclass(frozen=True, slots=True)
class Given:
    """A source that has nothing to read."""

    run_spec: RunSpec

    def origin(self) -> Origin:
        return Origin("a test")

    def read(self, on_progress: Callable[[int, int], None] | None = None) -> tuple[Origin, RunSpec]:
        return self.origin(), self.run_spec


@asynccontextmanager
async def asking(run_spec: RunSpec) -> AsyncIterator[Asker]:
    """Once the first run has begun."""
    with tempfile.TemporaryDirectory() as folder:
        session = await Session.open(Given(run_spec), Path(folder))
        while not session.to_data()["runs"][0]["read"]:
            await session.change_after(session.version)
        async with _served(session) as asker:
            yield asker


@asynccontextmanager
async def _served(session: Session) -> AsyncIterator[Asker]:
    server = TestServer(Page(session, Access(TOKEN), Assets.read()).application())
    try:
        await server.start_server(shutdown_timeout=1)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        # Chunks of the stream are lines of any length.
        async with aiohttp.ClientSession(headers=headers, read_bufsize=1 << 22) as http:
            yield Asker(session, http, str(server.make_url("")).rstrip("/"))
    finally:
        await server.close()
        await session.close()
