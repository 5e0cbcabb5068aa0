"""A session ends as it says."""

from __future__ import annotations

import asyncio

from aiohttp import web

from mooring.config import default_config
from mooring.framework.api import Event
from mooring.live.clock import WallClock
from mooring.live.event_recorder import SENDERS
from mooring.live.session import open_session
from tests.live_unit.api_server import ApiServer, Asked, ok
from tests.makers import make_pod


async def test_every_event_that_is_not_written_at_the_end_is_counted():
    """Those that had left the line to be sent were dropped, and the log said that 0 were."""

    async def never(request: web.Request, asked: Asked) -> web.StreamResponse:
        await asyncio.Event().wait()
        return ok()

    connection = default_config().client_connection
    async with (
        ApiServer(never) as server,
        open_session(server.connection(), connection, WallClock()) as session,
    ):
        session.watch((), None, lambda problem: None)
        await asyncio.sleep(0)
        for number in range(SENDERS + 6):
            session.writer.record_event(scheduled(f"p{number}"))
        await server.until(lambda: len(server.asked) == SENDERS)

        assert await session.stop(flush_s=0.01) == SENDERS + 6


def scheduled(name: str) -> Event:
    return Event(
        regarding=make_pod(name),
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note="",
        reporting_controller="default-scheduler",
    )
