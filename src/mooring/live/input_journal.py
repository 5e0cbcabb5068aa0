"""Everything that reaches the engine of a live scheduler, in order, in a file: a bug that can be run again.

What the engine decides follows from its configuration and seed, and from these inputs: objects that the
watches show, attempts, flushes, answers to its writes, timers, and the order in which its tasks take their
steps. While a journal is kept, the engine's clock stands still between two inputs, so that the time is an
input, too. `journal_replay` gives an engine the same inputs again and compares what it decides.

    line 1     the version, the configuration and the seed
    line 2 …   [what, time, …], see `Record`

A journal begins with the process. When it is as large as it may be, it begins again with all that is known
(`Engine.save`), as soon as nothing is being bound: a replay can start there, and the running engine goes on
as it is. With `--journal` the inputs go to a file (`JournalFile`). Without, the last of them are kept in
memory, and written to a file after an internal error (`RecentInputs`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

import msgspec

from mooring.config import KubeSchedulerConfiguration, write_config
from mooring.errors import ApiError
from mooring.framework.api import ApiWriter, ClaimWriter, Event, PodStatusPatch
from mooring.framework.clock import Clock, Timer
from mooring.objects.devices import ConsumerReference, ResourceClaim, ResourceClaimStatus
from mooring.objects.meta import KubeObject, ObjectMeta, encode_hook
from mooring.objects.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from mooring.objects.pod_groups import PodGroup
from mooring.queue.saved_queue import SavedQueue
from mooring.scheduler.engine import Saved

_LOG = logging.getLogger(__name__)

FORMAT = 2
DEFAULT_LIMIT_BYTES = 256 * 2**20

#: How many inputs are kept in memory, at least: a pod that is placed at once makes about seven.
RECENT_INPUTS = 5_000
#: In a large cluster, one input for so many objects: to begin again takes time for each of them.
OBJECTS_AN_INPUT = 8

K = TypeVar("K", bound=KubeObject)
T = TypeVar("T")


class Record(StrEnum):
    """What a line tells; in brackets, what follows the time."""

    #: An object that the watch shows [its kind, the object].
    ADDED = "added"
    UPDATED = "updated"
    DELETED = "deleted"
    #: The next pod is tried.
    ATTEMPT = "attempt"
    #: What was decided for it [UID, attempts, node or ""]: not an input, but what a replay is compared with.
    DECIDED = "decided"
    FLUSH_BACKOFF = "flush backoff"
    FLUSH_LEFTOVER = "flush leftover"
    #: A write was answered [which, the object or None, the error or None].
    ANSWER = "answer"
    #: A timer went off [its number].
    TIMER = "timer"
    #: A task went on, until it waits again or ends [its number].
    STEP = "step"
    #: Another configuration [the configuration].
    RELOAD = "reload"
    #: The state is not consistent; the process ends [the problem].
    FATAL = "fatal"
    #: An attempt, or the handling of an input, ended with an exception that nobody expected [the problem].
    CRASHED = "crashed"


#: These are no inputs.
_RESULTS = frozenset({Record.DECIDED, Record.FATAL, Record.CRASHED})

ENCODER = msgspec.json.Encoder(enc_hook=encode_hook)


class SavedEngine(msgspec.Struct, frozen=True, rename="camel"):
    """What was known when the journal began, if not with the process (`scheduler.engine.Saved`)."""

    #: The kind of each object, and the object.
    objects: list[tuple[str, msgspec.Raw]]
    queue: SavedQueue
    nominations: list[tuple[str, ObjectMeta]]
    search_start: int


class Header(msgspec.Struct, frozen=True, rename="camel"):
    """The first line."""

    mooring_journal: int
    config: dict[str, Any]
    seed: int
    #: The engine's time when the journal began.
    time: float
    saved: SavedEngine | None = None


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a journal begins with."""

    config: KubeSchedulerConfiguration
    seed: int
    time: float
    #: None: the process begins, too.
    saved: Saved | None

    def encoded(self) -> bytes:
        return ENCODER.encode(
            Header(FORMAT, write_config(self.config), self.seed, self.time, self._saved_engine())
        )

    def _saved_engine(self) -> SavedEngine | None:
        saved = self.saved
        if saved is None:
            return None
        objects = [(type(obj).__name__, msgspec.Raw(ENCODER.encode(obj))) for obj in saved.objects]
        return SavedEngine(objects, saved.queue, saved.nominations, saved.search_start)


class Inputs(Protocol):
    """What a driver passes its engine's inputs through: a journal, or the replay of one."""

    def clock(self, clock: Clock) -> Clock: ...
    def writer(self, writer: ApiWriter) -> ApiWriter: ...
    def note(self, what: Record, *details: object) -> None: ...
    def note_object(self, what: Record, *objects: KubeObject) -> None: ...
    def task(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]: ...
    def is_in_task(self, loop: asyncio.AbstractEventLoop) -> bool: ...
    def write_beside(self, write: Callable[[], None]) -> None:
        """Write what the engine waits for no answer to; it may start tasks."""
        ...


class JournalStore(Protocol):
    """Where a journal's inputs go."""

    def begin(self, beginning: Beginning) -> None:
        """Forget the inputs before, or keep them apart."""
        ...

    def add(self, record: tuple[object, ...]) -> None: ...
    @property
    def is_full(self) -> bool:
        """Whether the journal is to begin again."""
        ...

    def flush(self) -> None:
        """Called every second."""
        ...

    def save(self) -> Path | None:
        """There was an internal error: the file that has the inputs so far; None if there is none."""
        ...

    def close(self) -> None: ...


class JournalFile:
    """A file; when it is full, it becomes FILE.1, and the next one begins."""

    def __init__(self, path: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._path = path
        self._limit_bytes = limit_bytes
        #: None when the journal has ended.
        self._file: BinaryIO | None = None
        self._size = 0

    def begin(self, beginning: Beginning) -> None:
        self.close()
        if self._path.exists():
            self._path.replace(self._path.with_name(self._path.name + ".1"))
        self._file = self._path.open("wb")
        self._size = 0
        self._write(beginning.encoded())

    def add(self, record: tuple[object, ...]) -> None:
        if self._file is not None:
            self._write(ENCODER.encode(record))

    @property
    def is_full(self) -> bool:
        return self._file is not None and self._size > self._limit_bytes

    def flush(self) -> None:
        if self._file is None:
            return
        self._file.flush()
        if self._size > 2 * self._limit_bytes:
            _LOG.warning("the journal %s is full and ends: pods are always being bound", self._path)
            self.close()

    def save(self) -> Path | None:
        if self._file is not None:
            self._file.flush()
        return self._path

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: bytes) -> None:
        assert self._file is not None
        try:
            self._size += self._file.write(line + b"\n")
        except OSError as error:
            _LOG.warning("the journal %s cannot be written and ends: %s", self._path, error)
            self._file = None


class RecentInputs:
    """The last inputs, in memory; encoded only if they are wanted, as objects never change."""

    def __init__(self, folder: Path, name: str, most: int = RECENT_INPUTS) -> None:
        self._folder = folder
        self._name = name
        self._least = self._most = most
        self._beginning: Beginning | None = None
        self._records: list[tuple[object, ...]] = []
        #: Where they were written; None if they were not. One process leaves one file.
        self.path: Path | None = None

    def begin(self, beginning: Beginning) -> None:
        objects = 0 if beginning.saved is None else len(beginning.saved.objects)
        self._most = max(self._least, objects // OBJECTS_AN_INPUT)
        self._beginning = beginning
        self._records = []

    def add(self, record: tuple[object, ...]) -> None:
        if self._beginning is not None:
            self._records.append(record)

    @property
    def is_full(self) -> bool:
        # Without a beginning they could not be replayed.
        return self._beginning is None or len(self._records) > self._most

    def flush(self) -> None:
        if len(self._records) > 4 * self._most:
            # Pods are always being bound. It begins again when none is.
            self.close()

    def save(self) -> Path | None:
        if self.path is not None or self._beginning is None:
            return self.path
        try:
            number, name = tempfile.mkstemp(".journal", self._name + "-", self._folder)
            self.path = Path(name)
            with os.fdopen(number, "wb") as file:
                file.write(self._beginning.encoded() + b"\n")
                file.writelines(ENCODER.encode(record) + b"\n" for record in self._records)
        except OSError as error:
            _LOG.warning("the inputs cannot be written to %s: %s", self._folder, error)
            if self.path is not None:
                with suppress(OSError):
                    self.path.unlink()
                self.path = None
        return self.path

    def close(self) -> None:
        self._beginning = None
        self._records = []


def recent_inputs() -> RecentInputs:
    """Written to the folder for temporary files (TMPDIR), readable by nobody else."""
    name = f"mooring-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
    return RecentInputs(Path(tempfile.gettempdir()), name)


class InputJournal:
    """Notes the inputs of an engine, and with them its clock, its writes and its tasks."""

    def __init__(self, store: JournalStore, clock: Clock) -> None:
        self.store = store
        self._real = clock
        #: The time of the latest input: the engine's time.
        self.now = clock.now()
        self._tasks = 0
        self.timers = 0
        #: The timers that are set.
        self.pending_timers: set[int] = set()
        self._writer: JournalWriter | None = None
        #: The numbers of tasks, and those that wait for the answer to a write.
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._writing: set[Any] = set()

    def begin(
        self, config: KubeSchedulerConfiguration, seed: int, saved: Saved | None = None
    ) -> None:
        """Begin with the process, or again: then no task may be under way and no timer be set."""
        self._tasks = self.timers = 0
        if self._writer is not None:
            self._writer.begin()
        self.store.begin(Beginning(config, seed, self.now, saved))

    @property
    def may_begin(self) -> bool:
        return self.store.is_full and not self.pending_timers

    def note(self, what: Record, *details: object) -> None:
        # What follows from an input happens at its time, in a replay, too.
        if what not in _RESULTS:
            self.now = self._real.now()
        self.store.add((what, self.now, *details))

    def note_object(self, what: Record, *objects: KubeObject) -> None:
        """The object as it is; of an update, that is the last one: what was before is known."""
        obj = objects[-1]
        self.note(what, type(obj).__name__, obj)

    def clock(self, clock: Clock) -> Clock:
        return _JournalClock(self, clock)

    def writer(self, writer: ApiWriter) -> ApiWriter:
        if self._writer is None:
            self._writer = JournalWriter(writer, self._answered, self.write_beside)
        return self._writer

    def is_in_task(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a task of the engine takes a step, and is not about to write."""
        task = asyncio.current_task(loop)
        return task is not None and task in self._numbers and task not in self._writing

    def task(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        self._tasks += 1
        number = self._tasks
        task: asyncio.Task[Any] | None = None

        def turn() -> Generator[None, None, None]:
            nonlocal task
            if task is None:
                task = asyncio.current_task()
                self._numbers[task] = number
            if task not in self._writing:
                self.note(Record.STEP, number)
            yield from ()

        return steps(work, turn)

    async def _answered(self, which: str, answer: Awaitable[T]) -> T:
        """Its steps while it writes are not the engine's; the one with which it goes on is."""
        task = asyncio.current_task()
        self._writing.add(task)
        try:
            result = await answer
            self.note(Record.ANSWER, which, result, None)
            return result
        except ApiError as error:
            self.note(Record.ANSWER, which, None, _error_data(error))
            raise
        finally:
            self._writing.discard(task)
            if task in self._numbers:
                self.note(Record.STEP, self._numbers[task])

    def write_beside(self, write: Callable[[], None]) -> None:
        """The tasks that it starts are not the engine's."""
        task = asyncio.current_task()
        if task is None:
            write()
            return
        self._writing.add(task)
        try:
            write()
        finally:
            self._writing.discard(task)


def _error_data(error: ApiError) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "message": str(error),
        "status": error.status,
        "reason": error.reason,
        "maybeDone": getattr(error, "maybe_done", None),
    }


class _JournalClock:
    """Stands still between two inputs; timers that go off are inputs."""

    def __init__(self, journal: InputJournal, clock: Clock) -> None:
        self._journal = journal
        self._clock = clock

    def now(self) -> float:
        return self._journal.now

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        self._journal.timers += 1
        number, pending = self._journal.timers, self._journal.pending_timers

        def fire() -> None:
            pending.discard(number)
            self._journal.note(Record.TIMER, number)
            callback()

        pending.add(number)
        return _JournalTimer(self._clock.call_later(delay_s, fire), pending, number)


class _JournalTimer:
    def __init__(self, timer: Timer, pending: set[int], number: int) -> None:
        self._timer = timer
        self._pending = pending
        self._number = number

    def cancel(self) -> None:
        self._pending.discard(self._number)
        self._timer.cancel()


def follow_inner_tasks(loop: asyncio.AbstractEventLoop, inputs: Inputs) -> None:
    """Tasks that a task of the engine starts, as those of two PreBind plugins, have numbers, too."""
    earlier: Any = loop.get_task_factory() or _plain_task

    def make(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        is_numbered = getattr(work, "cr_code", None) is steps.__code__
        if inputs.is_in_task(loop) and not is_numbered:
            work = inputs.task(work)
        return earlier(loop, work, **options)

    loop.set_task_factory(make)


def _plain_task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    return asyncio.Task(work, loop=loop, **options)


async def steps(work: Coroutine[Any, Any, T], turn: Callable[[], Generator[None, None, None]]) -> T:
    """Do the work; before each of its steps, wait for its turn."""
    return await _Steps(work, turn)


class _Steps(Generic[T]):
    def __init__(
        self, work: Coroutine[Any, Any, T], turn: Callable[[], Generator[None, None, None]]
    ) -> None:
        self._work = work
        self._turn = turn

    def __await__(self) -> Generator[Any, Any, T]:
        work = self._work
        thrown: BaseException | None = None
        try:
            yield from self._turn()
        except BaseException:
            # A task that is cancelled before its first step does nothing.
            work.close()
            raise
        while True:
            try:
                waits_for = work.send(None) if thrown is None else work.throw(thrown)
            except StopIteration as end:
                return cast(T, end.value)
            thrown = None
            try:
                yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:
                thrown = error
            thrown = (yield from self._await_turn()) or thrown

    def _await_turn(self) -> Generator[None, None, BaseException | None]:
        """The cancellation that came meanwhile."""
        cancelled: BaseException | None = None
        while True:
            try:
                yield from self._turn()
                return cancelled
            except asyncio.CancelledError as error:
                cancelled = error


#: Waits for the answer to a write, which has a name that is the same in every run.
Answered = Callable[[str, Awaitable[Any]], Awaitable[Any]]
WriteBeside = Callable[[Callable[[], None]], None]


class JournalWriter:
    """Names each write, and passes its answer through `answered`."""

    def __init__(self, writer: ApiWriter, answered: Answered, write_beside: WriteBeside) -> None:
        self._writer = writer
        self._answered = answered
        self._write_beside = write_beside
        self._asked: Counter[str] = Counter()
        self.claims: ClaimWriter = _JournalClaims(writer.claims, self)

    def begin(self) -> None:
        """Count the writes of the same name from the beginning."""
        self._asked.clear()

    async def ask(self, what: str, obj: KubeObject, answer: Awaitable[Any]) -> Any:
        name = f"{what} {obj.key} {obj.uid}"
        self._asked[name] += 1
        return await self._answered(f"{name} {self._asked[name]}", answer)

    async def bind(self, pod: Pod, node_name: str) -> None:
        await self.ask("bind", pod, self._writer.bind(pod, node_name))

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        await self.ask("patch", pod, self._writer.patch_pod_status(pod, patch))

    async def patch_pod_group_status(self, group: PodGroup, condition: PodCondition) -> None:
        answer = self._writer.patch_pod_group_status(group, condition)
        await self.ask("patch group", group, answer)

    async def delete_pod(self, pod: Pod) -> None:
        await self.ask("delete", pod, self._writer.delete_pod(pod))

    async def update_object(self, obj: K) -> K:
        stored: K = await self.ask("update", obj, self._writer.update_object(obj))
        return stored

    def record_event(self, event: Event) -> None:
        self._write_beside(lambda: self._writer.record_event(event))


class _JournalClaims:
    def __init__(self, claims: ClaimWriter, journal: JournalWriter) -> None:
        self._claims = claims
        self._ask = journal.ask

    @property
    def others_allocate(self) -> bool:
        return self._claims.others_allocate

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        return await self._claim("get", claim, self._claims.get(claim))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        return await self._claim("create", claim, self._claims.create(claim))

    async def set_finalizers(self, claim: ResourceClaim, finalizers: list[str]) -> ResourceClaim:
        answer = self._claims.set_finalizers(claim, finalizers)
        return await self._claim("finalizers", claim, answer)

    async def set_status(self, claim: ResourceClaim, status: ResourceClaimStatus) -> ResourceClaim:
        return await self._claim("status", claim, self._claims.set_status(claim, status))

    async def remove_reservation(self, claim: ResourceClaim, user: Pod | ConsumerReference) -> None:
        await self._ask("unreserve", claim, self._claims.remove_reservation(claim, user))

    async def delete(self, claim: ResourceClaim) -> None:
        await self._ask("delete", claim, self._claims.delete(claim))

    async def set_extended_resource_claim(
        self, pod: Pod, status: PodExtendedResourceClaimStatus
    ) -> None:
        await self._ask("extended", pod, self._claims.set_extended_resource_claim(pod, status))

    async def _claim(
        self, what: str, claim: ResourceClaim, answer: Awaitable[ResourceClaim]
    ) -> ResourceClaim:
        stored: ResourceClaim = await self._ask(what, claim, answer)
        return stored
