"""Run the page: a session and its HTTP server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from mooring.errors import InputError
from mooring.web.access import Access
from mooring.web.assets import Assets
from mooring.web.run_spec import PageSource
from mooring.web.server import Page
from mooring.web.session import Job, Session

_SHUTDOWN_S = 1.0


@dataclass(frozen=True, slots=True)
class Service:
    """A running page."""

    session: Session
    #: With the access token.
    address: str

    @property
    def first_job(self) -> Job:
        return self.session.job(1)

    async def first_run(self, patience_s: float) -> None:
        """Wait for the first run, at most this long."""
        waiting = asyncio.ensure_future(self.session.settled(self.first_job))
        await asyncio.wait([waiting], timeout=patience_s)


@asynccontextmanager
async def serving(
    source: PageSource, folder: Path, access: Access, *, listen: str, port: int
) -> AsyncIterator[Service]:
    """Serve the page; the caller removes the folder. Raises InputError if the port is taken."""
    session = await Session.open(source, folder)
    runner = web.AppRunner(
        Page(session, access, Assets.read()).application(),
        access_log=None,
        shutdown_timeout=_SHUTDOWN_S,
    )
    try:
        await runner.setup()
        site = web.TCPSite(runner, listen, port)
        try:
            await site.start()
        except OSError as error:
            why = error.strerror or error
            raise InputError([f"cannot listen on {listen}, port {port}: {why}"]) from error
        name = f"[{listen}]" if ":" in listen else listen
        taken = runner.addresses[0][1]
        yield Service(session, f"http://{name}:{taken}/?token={access.token}")
    finally:
        await runner.cleanup()
        await session.close()
