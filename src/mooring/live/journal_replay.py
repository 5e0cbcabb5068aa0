"""Run the journal of a live scheduler again, and compare what is decided."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast
from weakref import WeakSet

import msgspec

from mooring import errors
from mooring.config import FeatureGates, KubeSchedulerConfiguration, load_config
from mooring.errors import ApiError, InputError, MooringError
from mooring.framework.api import ApiWriter
from mooring.framework.clock import Clock, Timer
from mooring.live.driver import Driver, DriverParts
from mooring.live.input_journal import (
    FORMAT,
    Header,
    JournalWriter,
    Record,
    SavedEngine,
    steps,
)
from mooring.live.metrics import LiveMetrics
from mooring.objects.decoding import convert
from mooring.objects.devices import ResourceClaim
from mooring.objects.kinds import KINDS
from mooring.objects.meta import KubeObject
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.plugins.registry import default_registry
from mooring.runtime.registry import Registry
from mooring.scheduler.choosing import SeededSpread
from mooring.scheduler.engine import Engine, Saved

T = TypeVar("T")

#: A task has its turn after so many turns of the event loop at the most.
_MOST_TURNS = 1000
#: A task that is cancelled may clean up first, and wait again.
_MOST_CANCELS = 20


@dataclass(slots=True)
class Replayed:
    """What came of a journal."""

    inputs: int = 0
    decisions: int = 0
    #: The first decision that differs, in words; empty if all are the same.
    difference: str = ""
    #: The first internal error, as the replay meets it; empty if it meets none.
    error: str = ""
    #: As the journal has it.
    recorded_error: str = ""

    @property
    def same(self) -> bool:
        return not self.difference and bool(self.error) == bool(self.recorded_error)


def replay_journal(
    path: Path, make_registry: Callable[[], Registry] = default_registry
) -> Replayed:
    """Raises InputError if the file is no journal, and ConfigError if its plugins cannot be built."""
    loop = asyncio.new_event_loop()
    try:
        with path.open("rb") as lines:
            replay = _Replay(_header(path, lines.readline()), make_registry)
            # A process that was killed may have left half a line.
            records = (msgspec.json.decode(line) for line in lines if line.endswith(b"\n"))
            return loop.run_until_complete(replay.run(path, records))
    except OSError as error:
        raise InputError([f"{path}: {error.strerror}"]) from error
    finally:
        loop.close()


def _header(path: Path, line: bytes) -> Header:
    try:
        header = msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError as error:
        raise InputError([f"{path}: this is no journal of mooring: {error}"]) from error
    if header.mooring_journal != FORMAT:
        raise InputError(
            [f"{path}: format {header.mooring_journal}; this version reads format {FORMAT}"]
        )
    return header


def _config(document: dict[str, Any]) -> KubeSchedulerConfiguration:
    gates = FeatureGates(document.get("featureGates", {}))
    return load_config(document, gates=gates)


class _Difference(Exception):
    pass


class _Replay:
    """The `Inputs` of a driver, from a file."""

    def __init__(self, header: Header, make_registry: Callable[[], Registry]) -> None:
        self._result = Replayed()
        self._clock = _ReplayClock()
        #: The decisions that the journal tells next must be these.
        self._decided: list[tuple[str, int, str]] = []
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._tasks = 0
        #: The tasks of the engine.
        self._numbered: WeakSet[Any] = WeakSet()
        self._writer: JournalWriter | None = None
        #: Whether the journal has ended, so that nobody waits for a turn any more.
        self._over = False
        #: The number of the task that may take one step.
        self._turn_of = 0
        self._known: dict[tuple[str, str], KubeObject] = {}
        config = _config(header.config)
        if config.extenders:
            raise InputError(
                ["extenders are asked while a pod is tried: their answers are not known"]
            )
        parts = DriverParts(
            clock=self._clock,
            writer=cast(ApiWriter, _Nowhere()),
            metrics=LiveMetrics(),
            on_fatal=self._fatal,
            make_registry=make_registry,
            tie_break=SeededSpread(header.seed),
            seed=header.seed,
            inputs=self,
        )
        self._config = config
        self._parts = parts
        self._header = header

    async def run(self, path: Path, records: Iterator[list[Any]]) -> Replayed:
        driver = Driver(self._config, self._parts)
        self._structs = _structs(driver.scheduler)
        self._clock.time_s = self._header.time
        if self._header.saved is not None:
            self._load(driver, self._header.saved)
        result = self._result
        try:
            for record in records:
                result.inputs += 1
                self._clock.time_s = record[1]
                await self._play(driver, Record(record[0]), record[2:])
        except _Difference as difference:
            result.difference = str(difference)
        except (msgspec.DecodeError, ValueError, IndexError) as error:
            line = result.inputs + 1
            raise InputError([f"{path}, line {line}: this makes no sense: {error}"]) from error
        finally:
            await self._give_up(driver)
            driver.close()
        return result

    async def _give_up(self, driver: Driver) -> None:
        """End the tasks that the journal left in the middle."""
        self._over = True
        await asyncio.sleep(0)
        for _ in range(_MOST_CANCELS):
            for task in (*driver.tasks, *driver.patches):
                task.cancel()
            await asyncio.sleep(0)

    async def _play(self, driver: Driver, what: Record, details: list[Any]) -> None:
        match what:
            case Record.ADDED | Record.UPDATED | Record.DELETED:
                self._tell(driver, what, self._object(*details))
            case Record.ATTEMPT:
                driver.attempt_once()
            case Record.FLUSH_BACKOFF:
                driver.flush_backoff_once()
            case Record.FLUSH_LEFTOVER:
                driver.flush_leftover_once()
            case Record.DECIDED:
                self._compare(tuple(details))
            case Record.ANSWER:
                self._answer(*details)
                # Whoever asked may be a task within a task: these have no turns.
                await asyncio.sleep(0)
            case Record.TIMER:
                await self._fire(details[0])
            case Record.STEP:
                await self._step(details[0])
            case Record.RELOAD:
                driver.reload(_config(details[0]))
            case Record.FATAL | Record.CRASHED:
                self._result.recorded_error = self._result.recorded_error or details[0]

    # Objects

    def _object(self, kind: str, document: dict[str, Any]) -> KubeObject:
        return convert(document, self._structs[kind])

    def _tell(self, driver: Driver, what: Record, obj: KubeObject) -> None:
        name = (type(obj).__name__, obj.key)
        if what is Record.DELETED:
            self._known.pop(name, None)
            driver.deleted(obj)
            return
        old = self._known.get(name)
        self._known[name] = obj
        if what is Record.UPDATED and old is not None:
            driver.updated(old, obj)
        else:
            driver.added(obj)

    def _load(self, driver: Driver, saved: SavedEngine) -> None:
        known = [self._object(kind, msgspec.json.decode(text)) for kind, text in saved.objects]
        for obj in known:
            self._known[type(obj).__name__, obj.key] = obj
        driver.scheduler.load_saved(
            Saved(known, saved.queue, saved.nominations, saved.search_start)
        )

    # Decisions

    def note(self, what: Record, *details: Any) -> None:
        if what is Record.DECIDED:
            self._decided.append(details)
        elif what in (Record.FATAL, Record.CRASHED):
            self._fatal(details[0])

    def note_object(self, what: Record, *objects: KubeObject) -> None:
        pass

    def _compare(self, recorded: tuple[Any, ...]) -> None:
        if not self._decided:
            raise _Difference(f"the journal has {_told(recorded)}, and the replay decides nothing")
        decided = self._decided.pop(0)
        if decided != recorded:
            raise _Difference(f"the journal has {_told(recorded)}, the replay {_told(decided)}")
        self._result.decisions += 1

    def _fatal(self, problem: str) -> None:
        self._result.error = self._result.error or problem

    # Time, writes and tasks

    def clock(self, clock: Clock) -> Clock:
        return clock

    def writer(self, writer: ApiWriter) -> ApiWriter:
        if self._writer is None:
            self._writer = JournalWriter(writer, self._await_answer, self.write_beside)
        return self._writer

    def write_beside(self, write: Callable[[], None]) -> None:
        """Nobody waits for the answer, so nothing is written."""

    async def _await_answer(self, which: str, write: Awaitable[Any]) -> Any:
        write.close()  # type: ignore[attr-defined]
        return await self._answers.setdefault(which, asyncio.get_running_loop().create_future())

    def _answer(self, which: str, result: Any, error: dict[str, Any] | None) -> None:
        loop = asyncio.get_running_loop()
        answer = self._answers.setdefault(which, loop.create_future())
        if answer.done():
            return
        if error is not None:
            answer.set_exception(_error(error))
            # Whoever asked may have been cancelled since.
            answer.exception()
        elif isinstance(result, dict):
            # A claim, or an object that was updated: the name of the write does not say which.
            answer.set_result(self._stored(result))
        else:
            answer.set_result(None)

    def _stored(self, document: dict[str, Any]) -> KubeObject:
        return convert(document, self._structs.get(document.get("kind", ""), ResourceClaim))

    def is_in_task(self, loop: asyncio.AbstractEventLoop) -> bool:
        task = asyncio.current_task(loop)
        return task is not None and task in self._numbered

    def task(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        self._tasks += 1
        number = self._tasks

        def turn() -> Generator[None, None, None]:
            self._numbered.add(asyncio.current_task())
            while self._turn_of != number and not self._over:
                yield
            self._turn_of = 0

        return steps(work, turn)

    async def _fire(self, number: int) -> None:
        for _ in range(_MOST_TURNS):
            if self._clock.fire(number):
                return
            await asyncio.sleep(0)
        raise _Difference(f"timer {number} goes off in the journal, and is not set in the replay")

    async def _step(self, number: int) -> None:
        self._turn_of = number
        for _ in range(_MOST_TURNS):
            await asyncio.sleep(0)
            if not self._turn_of:
                return
        raise _Difference(f"task {number} goes on in the journal, and waits in the replay")


def _structs(engine: Engine) -> dict[str, type[KubeObject]]:
    custom = (kind.struct for each in engine.frameworks.values() for kind in each.kinds())
    known: list[type[KubeObject]] = [Pod, Node, *(kind.struct for kind in KINDS), *custom]
    return {struct.__name__: struct for struct in known}


def _error(data: dict[str, Any]) -> ApiError:
    kind: Any = getattr(errors, data["type"], ApiError)
    maybe_done = data["maybeDone"]
    error = kind(data["message"], **({} if maybe_done is None else {"maybe_done": maybe_done}))
    if not isinstance(error, ApiError):
        raise MooringError(f"{data['type']} is no error of an API server")
    error.status, error.reason = data["status"], data["reason"]
    return error


def _told(decided: tuple[Any, ...]) -> str:
    uid, attempts, node = decided
    return f"attempt {attempts} at the pod with UID {uid} " + (f"go to {node}" if node else "fail")


class _ReplayClock:
    def __init__(self) -> None:
        self.time_s = 0.0
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._timers = 0

    def now(self) -> float:
        return self.time_s

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        self._timers += 1
        self._callbacks[self._timers] = callback
        return _ReplayTimer(self._callbacks, self._timers)

    def fire(self, number: int) -> bool:
        """Whether such a timer is set."""
        callback = self._callbacks.pop(number, None)
        if callback is not None:
            callback()
        return callback is not None


class _ReplayTimer:
    def __init__(self, callbacks: dict[int, Callable[[], None]], number: int) -> None:
        self._callbacks = callbacks
        self._number = number

    def cancel(self) -> None:
        self._callbacks.pop(self._number, None)


class _Nowhere:
    """Every write is answered by the journal."""

    others_allocate = True

    def __init__(self) -> None:
        self.claims = self

    def __getattr__(self, name: str) -> Callable[..., Awaitable[None]]:
        async def write(*details: object) -> None:
            raise AssertionError(f"{name} is answered by the journal")

        return write
