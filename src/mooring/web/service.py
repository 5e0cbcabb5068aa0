"""The page at work: a session, a server in front of it, and what is needed to end both."""

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
from mooring.web.origin import Origin
from mooring.web.server import Page
from mooring.web.session import Job, Session

_SHUTDOWN_S = 1.0


@dataclass(frozen=True, slots=True)
class Service:
    """A page that answers."""

    session: Session
    #: With the token: whoever has it is let in.
    address: str

    @property
    def first_job(self) -> Job:
        return self.session.job(1)

    async def first_run(self, patience_s: float) -> bool:
        """Whether the first run is over, after waiting for it no longer than this."""
        waiting = asyncio.ensure_future(self.session.settled(self.first_job))
        done, _ = await asyncio.wait([waiting], timeout=patience_s)
        return bool(done)


@asynccontextmanager
async def serving(
    origin: Origin, folder: Path, access: Access, *, listen: str, port: int
) -> AsyncIterator[Service]:
    """The folder is one of `put_down`. Raises InputError if the port cannot be had."""
    session = await Session.open(origin, folder)
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
            raise InputError([f"{listen}, port {port}: cannot be listened on: {why}"]) from error
        name = f"[{listen}]" if ":" in listen else listen
        taken = runner.addresses[0][1]
        yield Service(session, f"http://{name}:{taken}/?token={access.token}")
    finally:
        await runner.cleanup()
        await session.close()
