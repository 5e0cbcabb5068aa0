"""Leader election by Lease: of several mooring processes one schedules, the others stand by.

    standing by ──acquired──▶ leading ──renewed within the deadline──▶ leading
         ▲                       │ not renewed for `renewDeadline`, or taken by another
         │ (a new process)       ▼
         └───────────────────── lost           asked to stop: released, so that the next need not wait

Whether the lease of another process has expired is measured with the local clock, from the moment when its
record was last seen to change. The times in the record do not count: clocks of two machines may differ.

The election has a thread, a loop and a client of its own. A plugin that computes for a minute delays
scheduling, but the lease is still renewed. If the lease is lost meanwhile, `may_write` says so at once,
whatever the scheduling thread is doing.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import threading
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import msgspec
from msgspec.structs import replace

from mooring.config.types import LeaderElectionConfiguration
from mooring.errors import ApiError
from mooring.objects.meta import KubeObject, ObjectMeta, Part

_LOG = logging.getLogger(__name__)

LEASE_API = "coordination.k8s.io/v1"

#: Those who stand by ask at random times between one and this many more retry periods.
_JITTER = 1.2

#: What a released lease is still valid for.
_RELEASED_S = 1

#: How long a leader that cannot renew is taken to be healthy beyond its lease: it ought to be gone by then.
HEALTH_TOLERANCE_S = 20.0


class LeaseSpec(Part, frozen=True):
    """Times are texts, as a Lease wants six digits after the second even if they are zeros."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(KubeObject, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class LeaseStore(Protocol):
    """Where the lease is kept. A failure is raised as ApiError."""

    async def get(self) -> Lease | None:
        """None if there is none."""
        ...

    async def create(self, lease: Lease) -> Lease: ...
    async def update(self, lease: Lease) -> Lease:
        """Fails if the lease has been changed since."""
        ...


@dataclass(frozen=True, slots=True)
class ElectionClock:
    """Time as the election sees it; a test brings its own."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


def new_identity() -> str:
    """`<hostname>_<uuid>`: another one for every process."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Elector:
    """The rules of the election; `run` plays them against a store."""

    def __init__(
        self,
        settings: LeaderElectionConfiguration,
        identity: str,
        store: LeaseStore,
        *,
        clock: ElectionClock | None = None,
        seed: int | None = None,
        on_started: Callable[[], None] = lambda: None,
        on_lost: Callable[[], None] = lambda: None,
        on_new_leader: Callable[[str], None] = lambda _identity: None,
    ) -> None:
        self.settings = settings
        self.identity = identity
        self.lock_name = f"{settings.resource_namespace}/{settings.resource_name}"
        self._store = store
        self._clock = clock or ElectionClock()
        self._random = random.Random(seed)
        self._on_started = on_started
        self._on_lost = on_lost
        self._on_new_leader = on_new_leader
        #: The lease as last seen, and when its record was last seen to change.
        self._observed: Lease | None = None
        self._observed_at = 0.0
        self._reported_leader = ""
        #: Until when this process may write; 0 if it does not lead. Read by other threads.
        self._valid_until = 0.0
        self._led = False

    # Asked by other threads

    @property
    def leader(self) -> str:
        """The identity of the holder of the lease, as last seen."""
        return self._observed.spec.holder_identity if self._observed is not None else ""

    @property
    def lease(self) -> Lease:
        """As last seen; without a name as long as none was."""
        return self._observed or Lease()

    @property
    def leads(self) -> bool:
        return self._valid_until > 0.0

    def may_write(self) -> bool:
        """Whether no other process can hold the lease now."""
        return self._clock.monotonic() < self._valid_until

    def healthy(self) -> bool:
        """False only for a leader that is still running although it has not renewed for long."""
        until = self._valid_until
        return until == 0.0 or self._clock.monotonic() <= until + HEALTH_TOLERANCE_S

    # Run in the election's own thread

    async def run(self, stopping: asyncio.Event) -> None:
        """Until the lease is lost, or until asked to stop; then it is released."""
        if await self._acquire(stopping):
            self._led = True
            _LOG.info("successfully acquired lease %s as %s", self.lock_name, self.identity)
            self._on_started()
            await self._renew(stopping)
        if stopping.is_set():
            await self.release()
        elif self._led:
            self._valid_until = 0.0
            _LOG.error("lost lease %s", self.lock_name)
            self._on_lost()

    async def _acquire(self, stopping: asyncio.Event) -> bool:
        _LOG.info("attempting to acquire leader lease %s", self.lock_name)
        while not stopping.is_set():
            if await self.try_acquire_or_renew():
                return True
            pause_s = self._retry_s * (1 + self._random.random() * _JITTER)
            await self._pause(pause_s, stopping)
        return False

    async def _renew(self, stopping: asyncio.Event) -> None:
        """Until it fails for as long as the deadline allows."""
        deadline_s = self.settings.renew_deadline.seconds
        renewed_at = self._clock.monotonic()
        while not stopping.is_set():
            left_s = renewed_at + deadline_s - self._clock.monotonic()
            try:
                async with asyncio.timeout(max(0.0, left_s)):
                    renewed = await self.try_acquire_or_renew()
            except TimeoutError:
                return
            if renewed:
                renewed_at = self._clock.monotonic()
            elif self.leader != self.identity:
                # Taken by another: there is nothing to hope for until the deadline.
                return
            elif self._clock.monotonic() >= renewed_at + deadline_s:
                return
            await self._pause(self._retry_s, stopping)

    async def try_acquire_or_renew(self) -> bool:
        """One attempt; whether this process now leads. Failures are logged and mean no."""
        try:
            return await self._try()
        except ApiError as error:
            _LOG.error("error with lease %s: %s", self.lock_name, error)
            return False

    async def _try(self) -> bool:
        now = self._clock.monotonic()
        if self._is_mine() and self._is_valid(now) and self._observed is not None:
            try:
                await self._write(self._observed, now)
                return True
            except ApiError as error:
                _LOG.warning("failed to update lease %s optimistically: %s", self.lock_name, error)
        found = await self._store.get()
        if found is None:
            await self._create(now)
            return True
        self._observe(found)
        now = self._clock.monotonic()
        if found.spec.holder_identity and not self._is_mine() and self._is_valid(now):
            _LOG.debug("lease %s is held by %s", self.lock_name, found.spec.holder_identity)
            return False
        await self._write(found, now)
        return True

    async def _create(self, now: float) -> None:
        text = self._timestamp()
        spec = LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=self._duration_s,
            acquire_time=text,
            renew_time=text,
        )
        settings = self.settings
        metadata = ObjectMeta(name=settings.resource_name, namespace=settings.resource_namespace)
        self._took(await self._store.create(Lease(metadata=metadata, spec=spec)), now)

    async def _write(self, known: Lease, asked_at: float) -> None:
        spec, text = known.spec, self._timestamp()
        mine = spec.holder_identity == self.identity
        written = replace(
            spec,
            holder_identity=self.identity,
            lease_duration_seconds=self._duration_s,
            acquire_time=spec.acquire_time if mine else text,
            renew_time=text,
            lease_transitions=spec.lease_transitions + (0 if mine else 1),
        )
        self._took(await self._store.update(replace(known, spec=written)), asked_at)

    def _took(self, lease: Lease, asked_at: float) -> None:
        """The lease runs from when it was asked for: others cannot have seen it any earlier."""
        self._observe(lease)
        self._valid_until = asked_at + self.settings.lease_duration.seconds

    def _observe(self, lease: Lease) -> None:
        if self._observed is None or self._observed.spec != lease.spec:
            self._observed_at = self._clock.monotonic()
        self._observed = lease
        if lease.spec.holder_identity != self.identity:
            self._valid_until = 0.0
        if lease.spec.holder_identity != self._reported_leader:
            self._reported_leader = lease.spec.holder_identity
            self._on_new_leader(self._reported_leader)

    async def release(self) -> None:
        """Release the lease, so that a process that stands by can acquire it at once."""
        self._valid_until = 0.0
        try:
            async with asyncio.timeout(self.settings.renew_deadline.seconds):
                lease = await self._store.get()
                if lease is None or lease.spec.holder_identity != self.identity:
                    return
                text = self._timestamp()
                spec = replace(
                    lease.spec,
                    holder_identity="",
                    lease_duration_seconds=_RELEASED_S,
                    acquire_time=text,
                    renew_time=text,
                )
                self._observe(await self._store.update(replace(lease, spec=spec)))
        except (ApiError, TimeoutError) as error:
            _LOG.error("failed to release lease %s: %s", self.lock_name, error)
        else:
            _LOG.info("released lease %s", self.lock_name)

    def _is_mine(self) -> bool:
        return self.leader == self.identity

    def _is_valid(self, now: float) -> bool:
        if self._observed is None:
            return False
        return self._observed_at + self._observed.spec.lease_duration_seconds > now

    async def _pause(self, delay_s: float, stopping: asyncio.Event) -> None:
        stop = asyncio.ensure_future(stopping.wait())
        pause = asyncio.ensure_future(self._clock.sleep(delay_s))
        try:
            await asyncio.wait((stop, pause), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            pause.cancel()

    @property
    def _retry_s(self) -> float:
        return self.settings.retry_period.seconds

    @property
    def _duration_s(self) -> int:
        return int(self.settings.lease_duration.seconds)

    def _timestamp(self) -> str:
        now = datetime.fromtimestamp(self._clock.wall(), UTC)
        return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


#: Opens a store within the loop that is to use it.
OpenStore = Callable[[], AbstractAsyncContextManager[LeaseStore]]


class Election(Protocol):
    """An elector at work, as a run sees it."""

    elector: Elector | None
    #: What ended the election, if it was neither lost nor stopped.
    failure: BaseException | None

    def start(self) -> None: ...
    async def end(self, timeout_s: float) -> bool:
        """Release the lease and end; whether that was done in time."""
        ...

    def may_write(self) -> bool: ...
    def healthy(self) -> bool: ...


class ElectionThread:
    """An elector with a thread of its own. What it calls back, it calls from that thread."""

    def __init__(
        self, make_elector: Callable[[LeaseStore], Elector], open_store: OpenStore
    ) -> None:
        self._make_elector = make_elector
        self._open_store = open_store
        self._thread = threading.Thread(target=self._main, name="leader-election", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._asked_to_stop = False
        self._lock = threading.Lock()
        self.elector: Elector | None = None
        #: What ended the thread, if it was not the election.
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Release the lease and end; whether that was done in time."""
        with self._lock:
            self._asked_to_stop = True
            loop, stopping = self._loop, self._stopping
        if loop is not None and stopping is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stopping.set)
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    async def end(self, timeout_s: float) -> bool:
        """As `stop`, without holding up the caller's loop."""
        return await asyncio.to_thread(self.stop, timeout_s)

    def may_write(self) -> bool:
        return self.elector is not None and self.elector.may_write()

    def healthy(self) -> bool:
        return self.failure is None and (self.elector is None or self.elector.healthy())

    def _main(self) -> None:
        try:
            asyncio.run(self._run())
        except BaseException as error:
            self.failure = error
            _LOG.exception("leader election failed")

    async def _run(self) -> None:
        stopping = asyncio.Event()
        with self._lock:
            self._loop, self._stopping = asyncio.get_running_loop(), stopping
            if self._asked_to_stop:
                stopping.set()
        async with self._open_store() as store:
            self.elector = self._make_elector(store)
            await self.elector.run(stopping)


def decode_lease(text: bytes) -> Lease:
    return msgspec.json.decode(text, type=Lease)
