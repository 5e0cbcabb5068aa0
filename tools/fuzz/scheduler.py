"""One process of `mooring run`: from its start to its end, or to its death at any step."""

from __future__ import annotations

import asyncio
import contextvars
import random
import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from mooring.config import KubeSchedulerConfiguration
from mooring.config.types import Extender
from mooring.framework.clock import sleep
from mooring.framework.interface import Handle
from mooring.framework.status import Status, unschedulable, wait
from mooring.live.connection import Connection
from mooring.live.driver import ClosableTransport
from mooring.live.input_journal import JournalStore
from mooring.live.leader_election import ElectionClock, Elector, LeaseStore, OpenStore
from mooring.live.operations import Listen
from mooring.live.reload import ConfigSource
from mooring.live.runner import Host, Runner, RunOptions
from mooring.objects.pod import Pod
from mooring.plugins.registry import BUILT_IN
from mooring.runtime.registry import Registry
from mooring.scheduler.engine import Engine
from tools.fuzz.awaits import waits, waits_at
from tools.fuzz.loop import PROCESS, FuzzLoop

#: When the clock of the world begins: 2026-01-01.
EPOCH_S = 1_767_225_600.0


class DriftingClock:
    """The clock of one machine: set wrong, and too fast or too slow."""

    def __init__(self, loop: FuzzLoop, *, offset_s: float = 0.0, rate: float = 1.0) -> None:
        self._loop = loop
        self._offset_s = offset_s
        self._rate = rate

    def now(self) -> float:
        return EPOCH_S + self._offset_s + self.monotonic()

    def monotonic(self) -> float:
        return self._loop.time() * self._rate

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        return self._loop.call_later(max(0.0, delay_s) / self._rate, callback)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s / self._rate)


class MayHold:
    """Permit that holds pods back for a while, or refuses them: their label says which."""

    name = "MayHold"

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle
        #: UIDs of pods that have waited: they would do nothing else for ever.
        self._waited: set[str] = set()

    def permit(self, state: object, pod: Pod, node_name: str) -> Status | tuple[Status, float]:
        match pod.labels.get("permit"):
            case "refused":
                return unschedulable("not here")
            case "waits" if pod.uid in self._waited:
                return unschedulable("waited in vain")
            case "waits":
                self._waited.add(pod.uid)
                return wait(), 15.0
            case "let-go":
                self._handle.clock.call_later(5.0, lambda: self._let_go(pod.uid))
                return wait(), 15.0
        return Status()

    def _let_go(self, uid: str) -> None:
        waiting = self._handle.waiting_pod(uid)
        if waiting is not None:
            waiting.allow(self.name)


def make_registry() -> Registry:
    return Registry({**BUILT_IN, "MayHold": MayHold, "MayLinger": MayLinger}, installed={})


class MayLinger:
    """Has work to do after the bind."""

    name = "MayLinger"

    def __init__(self, args: object, handle: Handle) -> None:
        self._clock = handle.clock

    async def post_bind(self, state: object, pod: Pod, node_name: str) -> None:
        await sleep(self._clock, 0.5)


class Traits(Protocol):
    """How processes of a world reach others."""

    most_connections: int
    page_size: int

    async def authorization(self) -> str | None: ...
    async def renew(self) -> None: ...
    async def run_beside(self, call: Callable[[], None]) -> None: ...
    def make_transport(self, extenders: Sequence[Extender]) -> ClosableTransport: ...


class ElectionTask:
    """An election on the scheduler's own loop: in virtual time, nothing holds it up."""

    def __init__(
        self, make_elector: Callable[[LeaseStore], Elector], open_store: OpenStore
    ) -> None:
        self._make_elector = make_elector
        self._open_store = open_store
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.elector: Elector | None = None
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            async with self._open_store() as store:
                self.elector = self._make_elector(store)
                await self.elector.run(self._stopping)
        except Exception as error:
            self.failure = error

    async def end(self, timeout_s: float) -> bool:
        self._stopping.set()
        if self._task is None:
            return True
        done, _ = await asyncio.wait((self._task,), timeout=timeout_s)
        return bool(done)

    def may_write(self) -> bool:
        return self.elector is not None and self.elector.may_write()

    def healthy(self) -> bool:
        return self.failure is None and (self.elector is None or self.elector.healthy())


class SchedulerProcess:
    """A `loop.Process`."""

    def __init__(
        self,
        name: str,
        loop: FuzzLoop,
        config: KubeSchedulerConfiguration,
        connect: Callable[[SchedulerProcess], Any],
        *,
        clock: DriftingClock,
        rng: random.Random,
        after_step: Callable[[SchedulerProcess], None],
        on_end: Callable[[SchedulerProcess], None],
        make_journal: Callable[[], JournalStore],
        registry: Callable[[], Registry],
        traits: Traits,
    ) -> None:
        self.name = name
        self.tasks: list[asyncio.Task[Any]] = []
        self.signals: dict[int, Callable[[], object]] = {}
        self.steps = 0
        #: The step before which it dies; None if it does not.
        self.dies_at: int | None = None
        self.dead = False
        #: Where each task was when the process died: the points that a kill has reached.
        self.killed_at: list[str] = []
        self.exit_code: int | None = None
        self.error: BaseException | None = None
        self.runner: Runner | None = None
        self._loop = loop
        self._config = config
        self._connect = connect
        self._clock = clock
        self._rng = rng
        self._after_step = after_step
        self._on_end = on_end
        #: The task whose step was the last; None if that was a callback of something else.
        self._stepped: asyncio.Task[Any] | None = None
        #: The points that all tasks were looked at for (`waits_at`).
        self._looked_for: frozenset[str] = frozenset()
        self._make_journal = make_journal
        self._registry = registry
        self._traits = traits

    def start(self) -> None:
        context = contextvars.copy_context()
        context.run(PROCESS.set, self)
        self._loop.create_task(self._main(), context=context)

    async def _main(self) -> None:
        async def connect() -> Connection:
            async def open_socket() -> Any:
                return (await self._connect(self)).client

            return Connection(
                "http://api.test:80",
                authorization=self._traits.authorization,
                renew=self._traits.renew,
                most_connections=self._traits.most_connections,
                open_socket=open_socket,
            )

        config = self._config
        options = RunOptions(
            source=ConfigSource(override=lambda _: config),
            listen=Listen("127.0.0.1", 0),
            seed=self._rng.getrandbits(32),
            make_journal=self._make_journal,
        )
        host = Host(
            clock=self._clock,
            election_clock=ElectionClock(self._clock.monotonic, self._clock.now, self._clock.sleep),
            rng=self._rng,
            make_election=ElectionTask,
            identity=lambda: self.name,
            on_synced=lambda: None,
            make_registry=self._registry,
            make_transport=self._traits.make_transport,
            run_beside=self._traits.run_beside,
            page_size=self._traits.page_size,
        )
        try:
            self.runner = Runner(options, config, connect, host)
            self.exit_code = await self.runner.run()
        except Exception as error:
            self.error = error
        self._on_end(self)

    def step(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        if self.dead:
            return
        self.steps += 1
        if self.steps == self.dies_at:
            self.kill()
            return
        stepped = getattr(callback, "__self__", None)
        self._stepped = stepped if isinstance(stepped, asyncio.Task) else None
        callback(*args)
        self._after_step(self)

    def waits_at(self, points: Collection[str]) -> str | None:
        """One of these points (`awaits.POINTS`) that a task of it waits at, if there is one.

        Asked after every step. A step moves the task that took it and no other, so all tasks are looked at
        only when there are other points than before.
        """
        if not points:
            return None
        tasks: Iterable[asyncio.Task[Any]] = () if self._stepped is None else (self._stepped,)
        if self._looked_for != points:
            self._looked_for = frozenset(points)
            self.tasks = [task for task in self.tasks if not task.done()]
            tasks = self.tasks
        return next((at for at in (waits_at(task, points) for task in tasks) if at), None)

    def waiting_places(self) -> list[str]:
        """The lines of mooring that its tasks wait in."""
        return [place for places in self.waiting() for place in places]

    def waiting(self) -> list[list[str]]:
        """The same, for each task."""
        self.tasks = [task for task in self.tasks if not task.done()]
        return [waits(task) for task in self.tasks]

    def kill(self) -> None:
        """As SIGKILL does: nothing of it runs any more."""
        self.dead = True
        self.killed_at = self.waiting_places()
        self._on_end(self)

    def signal(self, number: int) -> bool:
        """Whether somebody has caught it."""
        handler = self.signals.get(number)
        if handler is None or self.dead:
            return False
        context = contextvars.copy_context()
        context.run(PROCESS.set, self)
        self._loop.call_soon(handler, context=context)
        return True

    @property
    def engine(self) -> Engine | None:
        if self.dead or self.runner is None or self.runner.driver is None:
            return None
        return self.runner.driver.scheduler

    @property
    def schedules(self) -> bool:
        """Whether it has got as far as to place pods."""
        return self.engine is not None and self.runner is not None and self.runner.is_scheduling

    def bury(self) -> None:
        """Close what its death has left open; its world must be over."""
        self._on_end = lambda _: None
        # What cleans up must not make an event loop of its own, which nobody would close.
        asyncio.set_event_loop(None)
        if self.runner is not None:
            self.runner.close_journal()
        with warnings.catch_warnings():
            # Work that a task was to begin, and never did.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            for task in self.tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                # It may want to clean up first.
                with suppress(RuntimeError, ValueError):
                    task.get_coro().close()
        self.tasks.clear()
