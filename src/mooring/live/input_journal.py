"""Everything that reaches the engine of a live scheduler, in order, in a file: a bug that can be run again.

What the engine decides follows from its configuration and seed, and from these inputs: objects that the
watches show, attempts, flushes, answers to its writes, timers, and the order in which its tasks take their
steps. While a journal is kept, the engine's clock stands still between two inputs, so that the time is an
input, too. `journal_replay` gives an engine the same inputs again and compares what it decides.

    line 1     the version, the configuration and the seed
    line 2 …   [what, time, …], see `Record`

A journal begins with the process. When its file is as large as it may be, it goes on in another one: that
starts with all that is known, and the engine is built again from it, as after a reload. This waits until
nothing is being bound.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Generator
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Generic, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet

import msgspec

from mooring.config import KubeSchedulerConfiguration, write_config
from mooring.errors import ApiError
from mooring.framework.api import ApiWriter, ClaimWriter, Event, PodStatusPatch
from mooring.framework.clock import Clock, Timer
from mooring.objects.devices import ConsumerReference, ResourceClaim, ResourceClaimStatus
from mooring.objects.meta import KubeObject, encode_hook
from mooring.objects.pod import Pod, PodCondition, PodExtendedResourceClaimStatus
from mooring.objects.pod_groups import PodGroup

_LOG = logging.getLogger(__name__)

FORMAT = 1
DEFAULT_LIMIT_BYTES = 256 * 2**20

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


#: These are no inputs.
_RESULTS = frozenset({Record.DECIDED, Record.FATAL})

ENCODER = msgspec.json.Encoder(enc_hook=encode_hook)


class Header(msgspec.Struct, frozen=True, rename="camel"):
    """The first line."""

    mooring_journal: int
    config: dict[str, Any]
    seed: int
    #: The engine's time when the file began.
    time: float
    #: What was known when this file began, in the order in which it was known.
    known: list[tuple[str, msgspec.Raw]] = []
    #: Of waiting pods, by `namespace/name`: attempts, failed ones, and the time of the first.
    history: dict[str, tuple[int, int, float | None]] = {}


class Inputs(Protocol):
    """What a driver passes its engine's inputs through: a journal, or the replay of one."""

    def clock(self, clock: Clock) -> Clock: ...
    def writer(self, writer: ApiWriter) -> ApiWriter: ...
    def note(self, what: Record, *details: object) -> None: ...
    def note_object(self, what: Record, *objects: KubeObject) -> None: ...
    def task(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]: ...
    def is_in_task(self, loop: asyncio.AbstractEventLoop) -> bool: ...


class InputJournal:
    """Writes the inputs to a file."""

    def __init__(self, path: Path, clock: Clock, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.path = path
        self._real = clock
        self._limit_bytes = limit_bytes
        #: None when the journal has ended.
        self._file: BinaryIO | None = None
        self._size = 0
        #: The time of the latest input: the engine's time.
        self.now = clock.now()
        self._tasks = 0
        self.timers = 0
        #: How many files were begun. Timers of earlier ones are no inputs of this one.
        self.files = 0
        self._writer: JournalWriter | None = None
        #: The numbers of tasks, and those that wait for the answer to a write.
        self._numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._writing: WeakSet[Any] = WeakSet()

    def begin(
        self,
        config: KubeSchedulerConfiguration,
        seed: int,
        known: list[KubeObject] | None = None,
        history: dict[str, tuple[int, int, float | None]] | None = None,
    ) -> None:
        """Start a file; an earlier one is kept beside it, as FILE.1."""
        if self._file is not None:
            self._file.close()
        if self.path.exists():
            self.path.replace(self.path.with_name(self.path.name + ".1"))
        self._file = self.path.open("wb")
        self._size = self._tasks = self.timers = 0
        self._writer = None
        self.files += 1
        objects = [(type(obj).__name__, msgspec.Raw(ENCODER.encode(obj))) for obj in known or ()]
        self._write(Header(FORMAT, write_config(config), seed, self.now, objects, history or {}))

    @property
    def is_full(self) -> bool:
        return self._file is not None and self._size > self._limit_bytes

    def note(self, what: Record, *details: object) -> None:
        # What follows from an input happens at its time, in a replay, too.
        if what not in _RESULTS:
            self.now = self._real.now()
        if self._file is not None:
            self._write((what, self.now, *details))

    def note_object(self, what: Record, *objects: KubeObject) -> None:
        """The object as it is; of an update, that is the last one: what was before is known."""
        obj = objects[-1]
        self.note(what, type(obj).__name__, obj)

    def flush(self) -> None:
        if self._file is None:
            return
        self._file.flush()
        if self._size > 2 * self._limit_bytes:
            _LOG.warning("the journal %s is full and ends: pods are always being bound", self.path)
            self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def clock(self, clock: Clock) -> Clock:
        return _JournalClock(self, clock)

    def writer(self, writer: ApiWriter) -> ApiWriter:
        if self._writer is None:
            self._writer = JournalWriter(writer, self._answered, self._record_event)
        return self._writer

    def is_in_task(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether a task of the engine takes a step, and is not about to write."""
        task = asyncio.current_task(loop)
        return task is not None and task in self._numbers and task not in self._writing

    def task(self, work: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        self._tasks += 1
        number = self._tasks

        def turn() -> Generator[None, None, None]:
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

    def _record_event(self, writer: ApiWriter, event: Event) -> None:
        """It may start a task that is not the engine's."""
        task = asyncio.current_task()
        if task is None:
            writer.record_event(event)
            return
        self._writing.add(task)
        try:
            writer.record_event(event)
        finally:
            self._writing.discard(task)

    def _write(self, record: object) -> None:
        assert self._file is not None
        try:
            self._size += self._file.write(ENCODER.encode(record) + b"\n")
        except OSError as error:
            _LOG.warning("the journal %s cannot be written and ends: %s", self.path, error)
            self._file = None


def how_to_replay(journal: InputJournal | None) -> str:
    """What to do after an internal error."""
    if journal is None:
        return "no journal was kept; mooring run --journal FILE makes such an error repeatable"
    return f"run it again with: mooring replay {journal.path}"


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
        number, file = self._journal.timers, self._journal.files

        def fire() -> None:
            if self._journal.files == file:
                self._journal.note(Record.TIMER, number)
            callback()

        return self._clock.call_later(delay_s, fire)


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
RecordEvent = Callable[[ApiWriter, Event], None]


class JournalWriter:
    """Names each write, and passes its answer through `answered`."""

    def __init__(self, writer: ApiWriter, answered: Answered, record_event: RecordEvent) -> None:
        self._writer = writer
        self._answered = answered
        self._record_event = record_event
        self._asked: Counter[str] = Counter()
        self.claims: ClaimWriter = _JournalClaims(writer.claims, self)

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
        self._record_event(self._writer, event)


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
