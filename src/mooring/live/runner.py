"""`mooring run`: from a kubeconfig to a running scheduler, and an orderly shutdown.

configuration → health endpoints → API server answers → watches synced → lease acquired → scheduling
    (with delayCacheUntilActive the lease comes first, so that only the leader watches)

asked to stop:  no more pods are popped → bindings drain → lease released → Events are written → exit
lease lost:     every write stops at once → exit 1; the next process starts with nothing assumed
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import signal
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from mooring.config import KubeSchedulerConfiguration
from mooring.errors import ApiError, Forbidden, Unauthorized
from mooring.framework.clock import Clock
from mooring.live import pod_resources
from mooring.live.client import ApiClient
from mooring.live.clock import WallClock
from mooring.live.connection import Connection
from mooring.live.driver import Driver, DriverParts, MakeTransport
from mooring.live.dump import log_dump
from mooring.live.endpoint_authorization import Gate
from mooring.live.input_journal import InputJournal, JournalStore, recent_inputs
from mooring.live.leader_election import (
    Election,
    ElectionClock,
    ElectionThread,
    Elector,
    LeaseStore,
    OpenStore,
    new_identity,
)
from mooring.live.lease_store import open_lease
from mooring.live.metrics import LiveMetrics
from mooring.live.operations import (
    HANDLERS_NOT_SYNCED,
    SHUTTING_DOWN,
    Endpoints,
    Listen,
    OperationsServer,
    health_checks,
)
from mooring.live.reflector import PAGE_SIZE
from mooring.live.reload import LOOK_EVERY_S, ConfigSource, Reloader
from mooring.live.resources import kinds_to_watch
from mooring.live.session import Session, open_session
from mooring.plugins.registry import default_registry
from mooring.runtime.registry import Registry
from mooring.scheduler.choosing import SeededSpread
from mooring.scheduler.extenders import RunBeside
from mooring.webhook import HttpTransport

_LOG = logging.getLogger(__name__)

#: How long bindings may take to end once the process is asked to stop.
DRAIN_S = 20.0
#: How long the last Events may take to be written, if bindings have left no more of that time.
_FLUSH_S = 3.0

#: How many objects may be made before the garbage collector looks for cycles among them, and how often it
#: looks at older ones. Python's default of 700 lets it look hundreds of times while a cluster is listed.
_GC_THRESHOLDS = (50_000, 20, 50)

#: Between two attempts to reach an API server that does not answer: the first pause, and the longest.
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 30.0

FAILED = 1


class Outcome(Enum):
    """Why a run ended."""

    STOPPED = "stopped by a signal"
    LEASE_LOST = "leaderelection lost"
    FATAL = "internal error; restart mooring"


@dataclass(frozen=True, slots=True)
class RunOptions:
    source: ConfigSource
    listen: Listen
    drain_s: float = DRAIN_S
    #: Whether the API server is asked who may read metrics and configuration.
    authorize: bool = False
    #: Who decides between equally good nodes: chance, by this seed.
    seed: int | None = None
    #: Where everything that reaches the engine is kept, for `mooring replay`.
    make_journal: Callable[[], JournalStore] = recent_inputs


#: Makes a connection; each thread asks for one of its own.
Connect = Callable[[], Awaitable[Connection]]


def spare_what_stays() -> None:
    """Keep the garbage collector from looking through the cluster again and again.

    What was listed stays for long. With 100,000 pods, a full collection holds up everything for more than
    a second.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True)
class Host:
    """What a run takes from the process that it runs in; tests in virtual time bring their own."""

    clock: Clock = field(default_factory=WallClock)
    election_clock: ElectionClock = field(default_factory=ElectionClock)
    rng: random.Random = field(default_factory=random.Random)
    make_election: Callable[[Callable[[LeaseStore], Elector], OpenStore], Election] = ElectionThread
    identity: Callable[[], str] = new_identity
    make_registry: Callable[[], Registry] = default_registry
    #: How extenders are reached, and what runs a call that blocks.
    make_transport: MakeTransport = HttpTransport
    run_beside: RunBeside = asyncio.to_thread
    #: How many objects are listed at once.
    page_size: int = PAGE_SIZE
    #: Called when everything that there is has been listed.
    on_synced: Callable[[], None] = spare_what_stays


async def run(options: RunOptions, config: KubeSchedulerConfiguration, connect: Connect) -> int:
    """Schedule until told to stop; the exit code. Raises ConfigError, CredentialsError, ListenError."""
    gc.set_threshold(*_GC_THRESHOLDS)
    return await Runner(options, config, connect).run()


class Runner:
    """One process of mooring."""

    def __init__(
        self,
        options: RunOptions,
        config: KubeSchedulerConfiguration,
        connect: Connect,
        host: Host | None = None,
    ) -> None:
        self._host = host or Host()
        self._options = options
        self._config = config
        self._connect = connect
        self._loop = asyncio.get_running_loop()
        self._clock = self._host.clock
        self._metrics = LiveMetrics()
        self._ended: asyncio.Future[Outcome] = self._loop.create_future()
        self._leading = asyncio.Event()
        self._stopping = False
        #: Read by the thread of the health endpoints.
        self._synced = False
        self._election = self._make_election() if config.leader_election.leader_elect else None
        self.driver: Driver | None = None
        self.session: Session | None = None
        self._reloader: Reloader | None = None
        self._inputs: InputJournal | None = None
        #: The file that the log has named.
        self._told_of: Path | None = None

    async def run(self) -> int:
        server = self._make_server()
        if server is not None:
            server.start()
        self._catch_signals()
        async with AsyncExitStack() as stack:
            stack.callback(self._let_signals_go)
            stack.callback(self._close_server, server)
            work = asyncio.ensure_future(self._work(stack))
            await asyncio.wait((work, self._ended), return_when=asyncio.FIRST_COMPLETED)
            if not self._ended.done():
                # The work ends by itself only by failing.
                work.result()
            outcome = await self._ended
            self._stopping = True
            if not work.done():
                work.cancel()
                with suppress(asyncio.CancelledError):
                    await work
            await self._shut_down(outcome)
        return self._exit_code(outcome)

    # On the way up

    async def _work(self, stack: AsyncExitStack) -> None:
        connection = await self._connect()
        await self._reach(connection)
        session = await stack.enter_async_context(
            open_session(
                connection,
                self._config.client_connection,
                self._clock,
                may_write=self.may_write,
                metrics=self._metrics,
                rng=self._host.rng,
                page_size=self._host.page_size,
            )
        )
        self.session = session
        seed = (
            self._options.seed if self._options.seed is not None else self._host.rng.getrandbits(32)
        )
        self._inputs = self._open_journal(seed)
        parts = DriverParts(
            clock=self._clock,
            writer=session.writer,
            metrics=self._metrics,
            may_write=self.may_write,
            has_room=session.traffic.has_room,
            on_fatal=self._fatal,
            on_crash=self._save_journal,
            make_registry=self._host.make_registry,
            make_transport=self._host.make_transport,
            run_beside=self._host.run_beside,
            before_bind_by_extender=session.writer.settle,
            tie_break=SeededSpread(seed),
            seed=seed,
            inputs=self._inputs,
        )
        self.driver = driver = Driver(self._config, parts)
        driver.on_second = self._keep_journal
        stack.callback(driver.close)
        session.traffic.on_room = driver.wake
        self._reloader = Reloader(self._options.source, self._config, self._apply)
        if self._election is not None and self._config.delay_cache_until_active:
            await self._win(session)
            await self._sync(session, driver)
        else:
            await self._sync(session, driver)
            await self._win(session)
        driver.start()
        session.check(driver, self._fatal)
        _LOG.info(
            "scheduling", extra={"profiles": [p.scheduler_name for p in self._config.profiles]}
        )
        await self._look_after()

    def _open_journal(self, seed: int) -> InputJournal | None:
        if self._config.extenders:
            # Their answers would not be in it.
            return None
        journal = InputJournal(self._options.make_journal(), self._clock)
        journal.begin(self._config, seed)
        return journal

    def _keep_journal(self) -> None:
        """Begin again if it is as large as it may be."""
        journal, driver = self._inputs, self.driver
        if journal is None or driver is None:
            return
        journal.store.flush()
        if journal.may_begin and driver.may_save():
            journal.begin(driver.config, driver.parts.seed, driver.scheduler.save())

    def _save_journal(self) -> None:
        """After an internal error: say how to run it again."""
        path = self._inputs.store.save() if self._inputs is not None else None
        if path is not None and path != self._told_of:
            _LOG.error("what led to this error can be run again with: mooring replay %s", path)
            self._told_of = path
        elif path is None:
            _LOG.error("what led to this error cannot be run again: no journal of inputs was kept")

    def close_journal(self) -> None:
        if self._inputs is not None:
            self._inputs.store.close()

    async def _reach(self, connection: Connection) -> None:
        """Return once the API server answers; until then, say so."""
        pause_s = _FIRST_PAUSE_S
        async with ApiClient(connection, clock=self._clock) as client:
            while True:
                try:
                    await client.request("GET", "/version", timeout_s=10.0)
                    return
                except Forbidden:
                    # It answers, and knows who asks.
                    return
                except ApiError as error:
                    refused = isinstance(error, Unauthorized)
                    _LOG.warning(
                        "the API server at %s %s: %s; trying again in %.0f s",
                        connection.server,
                        "rejects the credentials" if refused else "is not ready",
                        error,
                        pause_s,
                    )
                await asyncio.sleep(pause_s)
                pause_s = min(_LONGEST_PAUSE_S, pause_s * 2)

    async def _sync(self, session: Session, driver: Driver) -> None:
        _LOG.info("listing the objects of the cluster")
        session.watch(kinds_to_watch(driver.scheduler), driver, self._fatal)
        await session.synced()
        self._host.on_synced()
        self._synced = True

    async def _win(self, session: Session) -> None:
        if self._election is not None:
            self._election.start()
            await self._leading.wait()
            self._tell_of_election(session, "became leader")

    def _tell_of_election(self, session: Session, what: str) -> None:
        election = self._election
        if election is not None and election.elector is not None and election.elector.leads:
            told = f"{election.elector.identity} {what}"
            lease = election.elector.lease
            session.record_election(lease, told, self._config.profiles[0].scheduler_name)

    async def _look_after(self) -> None:
        """What is looked at every few seconds while pods are scheduled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            election = self._election
            if election is not None and election.failure is not None:
                self._end(Outcome.LEASE_LOST)
            if self._reloader is not None and self._reloader.changed():
                self._reload()

    # On the way down

    async def _shut_down(self, outcome: Outcome) -> None:
        _LOG.info("shutting down: %s", outcome.value)
        driver, session = self.driver, self.session
        # What ends with the process is not for a replay.
        self.close_journal()
        drain_s = self._options.drain_s if outcome is Outcome.STOPPED else 0.0
        until = self._loop.time() + drain_s
        if driver is not None:
            driver.stop()
            left = await driver.drain(drain_s)
            if left.bindings:
                _LOG.warning("gave up %d bindings that were not finished", left.bindings)
            if left.others:
                _LOG.warning("gave up %d preemptions that were not finished", left.others)
        if session is not None:
            if outcome is Outcome.STOPPED:
                self._tell_of_election(session, "stopped leading")
            status_patches = await session.writer.close()
        if self._election is not None:
            deadline_s = self._config.leader_election.renew_deadline.seconds
            await self._election.end(deadline_s + 1.0)
        if session is not None:
            # Whoever leads next need not wait for Events.
            flush_s = max(_FLUSH_S, until - self._loop.time())
            events = await session.stop(flush_s=flush_s if outcome is Outcome.STOPPED else 0.0)
            if status_patches or events:
                _LOG.warning(
                    "%d status patches and %d Events were not written and are dropped",
                    status_patches,
                    events,
                )

    def _exit_code(self, outcome: Outcome) -> int:
        if outcome is not Outcome.STOPPED:
            _LOG.error("%s", outcome.value)
            return FAILED
        if self._election is None:
            # As the reference: without leader election, the caller learns that it has ended.
            _LOG.error("finished without leader elect")
            return FAILED
        return 0

    def _close_server(self, server: OperationsServer | None) -> None:
        if server is not None:
            server.close()

    # Signals

    def _catch_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._asked_to_stop)
        self._loop.add_signal_handler(signal.SIGHUP, self._reload)
        self._loop.add_signal_handler(signal.SIGUSR2, self._dump)

    def _let_signals_go(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR2):
            self._loop.remove_signal_handler(number)

    def _asked_to_stop(self) -> None:
        if self._stopping or self._ended.done():
            _LOG.error("second stop signal: exiting at once")
            logging.shutdown()
            os._exit(FAILED)
        self._end(Outcome.STOPPED)

    def _reload(self) -> None:
        if self._reloader is None or self._stopping:
            _LOG.warning("cannot reload the configuration: the scheduler is not running")
            return
        self._metrics.reloaded("success" if self._reloader.reload() else "refused")

    def _apply(self, config: KubeSchedulerConfiguration) -> None:
        assert self.driver is not None
        self.driver.reload(config)
        self._config = config
        if self.session is not None and self._synced:
            # Other plugins may need kinds that are not watched yet.
            kinds = kinds_to_watch(self.driver.scheduler)
            self.session.watch(kinds, self.driver, self._fatal)

    def _dump(self) -> None:
        if self.driver is None:
            _LOG.warning("cannot dump the cache and queue: the scheduler is not running")
        else:
            log_dump(self.driver.scheduler, self.driver.journal)

    def _fatal(self, problem: str) -> None:
        _LOG.critical("%s", problem)
        self._save_journal()
        self._end(Outcome.FATAL)

    def _end(self, outcome: Outcome) -> None:
        if not self._ended.done():
            self._ended.set_result(outcome)

    # Leading

    @property
    def is_scheduling(self) -> bool:
        return self.driver is not None and self.driver.is_running

    def may_write(self) -> bool:
        return self._election is None or self._election.may_write()

    def _make_election(self) -> Election:
        settings = self._config.leader_election
        identity = self._host.identity()

        def make(store: LeaseStore) -> Elector:
            return Elector(
                settings,
                identity,
                store,
                clock=self._host.election_clock,
                seed=self._host.rng.getrandbits(32),
                on_started=self._started_leading,
                on_lost=self._stopped_leading,
                on_new_leader=lambda who: _LOG.info("new leader elected: %s", who or "nobody"),
            )

        return self._host.make_election(make, lambda: open_lease(self._connect, settings))

    def _started_leading(self) -> None:
        """Called from the election's thread, as the next one is."""
        self._metrics.leading(self._config.leader_election.resource_name, True)
        self._loop.call_soon_threadsafe(self._leading.set)

    def _stopped_leading(self) -> None:
        self._metrics.leading(self._config.leader_election.resource_name, False)
        self._loop.call_soon_threadsafe(self._end, Outcome.LEASE_LOST)

    # Health

    def _make_server(self) -> OperationsServer | None:
        if not self._options.listen.port:
            return None
        checks = health_checks(
            leader_election=self._election_problem if self._election is not None else None,
            shutdown=lambda: SHUTTING_DOWN if self._stopping or self._ended.done() else None,
            handlers_synced=lambda: None if self._synced else HANDLERS_NOT_SYNCED,
        )
        endpoints = Endpoints(
            checks, self._metrics.exposition, self._pod_resources, lambda: self._config
        )
        gate = Gate(self._connect, self._clock) if self._options.authorize else None
        return OperationsServer(endpoints, self._options.listen, gate)

    def _pod_resources(self) -> bytes:
        if self.driver is None or not self.may_write():
            return b""
        return pod_resources.exposition(list(self.driver.scheduler.pods()))

    def _election_problem(self) -> str | None:
        if self._election is None or self._election.healthy():
            return None
        name = self._config.leader_election.resource_name
        return f"failed election to renew leadership on lease {name}"
