"""One connection to a cluster at work: its reflectors, its writer, its Events."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from mooring.config.types import ClientConnectionConfiguration
from mooring.framework.clock import Clock
from mooring.live.bind_traffic import BindTraffic
from mooring.live.client import ApiClient, always
from mooring.live.connection import Connection
from mooring.live.driver import Driver
from mooring.live.event_recorder import EventRecorder
from mooring.live.leader_election import Lease
from mooring.live.outage import Outage
from mooring.live.rate_limit import limiter_of
from mooring.live.reflector import PAGE_SIZE, Reflector, Watcher
from mooring.live.self_check import SelfCheck
from mooring.live.write_metrics import WriteMetrics
from mooring.live.writer import LiveWriter
from mooring.objects.kinds import Kind
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

_LOG = logging.getLogger(__name__)

#: What conditions leave of the burst of requests to binds, evictions and nominations.
_RESERVED_SHARE = 0.5


def connector(kubeconfig: Path | None, context: str | None) -> Callable[[], Awaitable[Connection]]:
    """Makes connections, one for each thread that asks: they renew their credentials themselves."""

    async def make() -> Connection:
        # Loading the library that knows all kinds of credentials takes a second.
        from mooring.live.credentials import connect

        return await connect(kubeconfig, context)

    return make


class Session:
    """What a runner works with; made by `open_session`."""

    def __init__(
        self,
        client: ApiClient,
        writer: LiveWriter,
        recorder: EventRecorder,
        traffic: BindTraffic,
        clock: Clock,
        rng: random.Random,
        outage: Outage,
        page_size: int,
    ) -> None:
        self.writer = writer
        #: The binds under way.
        self.traffic = traffic
        self._outage = outage
        self._recorder = recorder
        self._client = client
        self._clock = clock
        self._random = rng
        self._page_size = page_size
        self._reflectors: dict[Kind, Reflector] = {}
        self._watches: dict[Reflector, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def watch(
        self,
        kinds: Iterable[Kind],
        watcher: Watcher,
        on_failure: Callable[[str], None],
    ) -> None:
        """Watch these kinds too; those that are watched already go on as they are."""
        if not self._tasks:
            self._run(self._recorder.run(), "writing Events", on_failure)
        for kind in kinds:
            if kind in self._reflectors:
                continue
            reflector = self._reflectors[kind] = Reflector(
                self._client,
                kind,
                _WithWriter(watcher, self.writer),
                clock=self._clock,
                rng=self._random,
                outage=self._outage,
                page_size=self._page_size,
            )
            self._start(reflector, on_failure)

    def check(self, driver: Driver, on_failure: Callable[[str], None]) -> None:
        """Compare what is known with what there is, a little at a time, and repair it."""

        def list_again(reflector: Reflector) -> None:
            self._watches[reflector].cancel()
            reflector.list_first()
            self._start(reflector, on_failure)

        check = SelfCheck(driver, self._client, self._all_reflectors, list_again, self._clock)
        self._run(check.run(), "self-check", on_failure)

    def _all_reflectors(self) -> list[Reflector]:
        return list(self._reflectors.values())

    def _start(self, reflector: Reflector, on_failure: Callable[[str], None]) -> None:
        name = f"watch {reflector.kind.plural}"
        self._watches[reflector] = self._run(reflector.run(), name, on_failure)

    def record_election(self, lease: Lease, what: str, controller: str) -> None:
        self._recorder.record_election(lease, what, controller)

    async def synced(self) -> None:
        """Return once everything that there was has been told."""
        for reflector in list(self._reflectors.values()):
            await reflector.synced.wait()

    async def stop(self, *, flush_s: float = 0.0) -> int:
        """End everything, after writing the Events that wait for so long at most; how many were dropped."""
        await self.writer.close()
        dropped = self._recorder.dropped
        if self._tasks:
            await self._recorder.flush(flush_s)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # With those that were under way, or had left the line to wait for the limit of requests.
        return self._recorder.dropped - dropped

    def _run(
        self, work: Awaitable[None], name: str, on_failure: Callable[[str], None]
    ) -> asyncio.Task[None]:
        """A watch should never end. If one does, the data of its kind becomes stale."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)

        def ended(done: asyncio.Future[None]) -> None:
            self._tasks.discard(task)
            error = None if done.cancelled() else done.exception()
            if error is not None:
                _LOG.error("%s failed", name, exc_info=error)
                on_failure(f"{name} failed: {error!r}")

        task.add_done_callback(ended)
        return task


class _WithWriter:
    """Passes on what happens, and tells the writer of pods that are gone."""

    def __init__(self, watcher: Watcher, writer: LiveWriter) -> None:
        self._writer = writer
        self.added = watcher.added
        self.updated = watcher.updated
        self._deleted = watcher.deleted

    def deleted(self, obj: KubeObject) -> None:
        if isinstance(obj, Pod):
            self._writer.pod_gone(obj.uid)
        self._deleted(obj)


@asynccontextmanager
async def open_session(
    connection: Connection,
    settings: ClientConnectionConfiguration,
    clock: Clock,
    *,
    may_write: Callable[[], bool] = always,
    metrics: WriteMetrics | None = None,
    rng: random.Random | None = None,
    page_size: int = PAGE_SIZE,
) -> AsyncIterator[Session]:
    """Two clients, each with the limits of the configuration: one for Events, one for all else."""
    rng = rng or random.Random()
    limiter = limiter_of(settings, clock, reserved_share=_RESERVED_SHARE)
    async with (
        ApiClient(connection, limiter, clock=clock) as client,
        ApiClient(connection, limiter_of(settings, clock), clock=clock) as event_client,
    ):
        traffic = BindTraffic(clock, limiter)
        recorder = EventRecorder(event_client, traffic, clock=clock, rng=rng, metrics=metrics)
        writer = LiveWriter(
            client, recorder, traffic, clock=clock, rng=rng, may_write=may_write, metrics=metrics
        )
        outage = Outage(connection.server, clock)
        session = Session(client, writer, recorder, traffic, clock, rng, outage, page_size)
        try:
            yield session
        finally:
            await session.stop()
