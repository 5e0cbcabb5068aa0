"""One seed: a cluster, its schedulers, everybody else, and what goes wrong.

    0 s ─────── things happen and break ─────── BUSY_S ─── faults stop, actors stop ─── rest ───▶

In mode *safety* the run ends when the faults would stop: whatever broke, nothing wrong was done. In mode
*liveness* the faults stop, and then everything must come to rest, and be right.
"""

from __future__ import annotations

import gc
import logging
import signal
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from mooring.config import FeatureGates, KubeSchedulerConfiguration, load_config
from mooring.live.input_journal import JournalStore, RecentInputs
from mooring.runtime.registry import Registry
from mooring.sim.claim_controller import ClaimController
from mooring.sim.volume_controller import VolumeController
from tools.fuzz import awaits, invariants
from tools.fuzz.actors import Actors
from tools.fuzz.invariants import Truth, Violation
from tools.fuzz.loop import WORLD, FuzzLoop
from tools.fuzz.network import Wire
from tools.fuzz.outside import Outside
from tools.fuzz.scheduler import DriftingClock, SchedulerProcess, make_registry
from tools.fuzz.server import ApiServer, Asked
from tools.fuzz.store import Store
from tools.fuzz.swarm import Swarm

Mode = Literal["safety", "liveness"]

#: How long things happen.
BUSY_S = 90.0
#: Then, how long it may take until every pod that fits has been woken, and until all is at rest.
WOKEN_S = 200.0
REST_S = 480.0

#: How many steps a scheduler takes between two looks at its books, on average; and after the faults.
_CHECK_EVERY = 150
_CHECK_EVERY_AT_REST = 600

_RECENT_INPUTS = 500

_POINTS = sorted(awaits.POINTS)
#: At how many of them one world aims.
_AIMS = 5
_GANGS = FeatureGates({"GenericWorkload": True, "GangScheduling": True})


@dataclass(slots=True)
class Result:
    """What came of a seed."""

    seed: int
    mode: Mode
    #: Empty if nothing was wrong.
    violation: str = ""
    #: When it was noticed, in virtual seconds.
    at_s: float = 0.0
    steps: int = 0
    on: tuple[str, ...] = ()
    faults: Counter[str] = field(default_factory=Counter)
    done: Counter[str] = field(default_factory=Counter)
    #: Where tasks of mooring were when their process was killed.
    killed_at: Counter[str] = field(default_factory=Counter)
    #: Where tasks of mooring were seen to wait, at random steps. An await that nobody waits at is no place to
    #: be killed at: what it waits for is there already.
    waited_at: Counter[str] = field(default_factory=Counter)
    #: A number that differs if anything went differently: two runs of a seed have the same.
    fingerprint: int = 0


class _Unwritten(RecentInputs):
    """So few inputs that they begin again now and then; a world leaves no file."""

    def __init__(self, name: str) -> None:
        super().__init__(Path(), name, most=_RECENT_INPUTS)

    def save(self) -> Path | None:
        return None


class World:
    def __init__(
        self,
        seed: int,
        mode: Mode,
        *,
        without: Iterable[str] = (),
        hostile: bool = False,
        log: Callable[[str], None] | None = None,
        make_journal: Callable[[str], JournalStore] | None = None,
        registry: Callable[[], Registry] = make_registry,
        aim: bool = False,
    ) -> None:
        """`make_journal` is given the name of each scheduler that starts. With `aim`, a scheduler is
        killed as soon as it waits at one of a few awaits (`awaits.POINTS`), others for each seed.
        """
        self._make_journal = make_journal or _Unwritten
        self._registry = registry
        self.swarm = Swarm(seed, without=without, hostile=hostile, aimed=aim)
        self.result = Result(seed, mode, on=tuple(sorted(self.swarm.on)))
        self._mode = mode
        self._log = log
        self.loop = FuzzLoop()
        self.loop.set_exception_handler(self._unhandled)
        clock = DriftingClock(self.loop)
        self.store = Store(self.loop, clock)
        self.truth = Truth(self.store, self.swarm)
        self.server = ApiServer(self.loop, self.store, self.swarm)
        self.server.on_write.append(self._writes)
        self.server.after_write.append(self._written)
        self.actors = Actors(self.swarm, self.store)
        self._rng = self.swarm.stream("world")
        self._outside = Outside(self.swarm, self.store)
        self._config = self._make_config()
        self._processes: list[SchedulerProcess] = []
        self._buried: list[SchedulerProcess] = []
        self._starts: Counter[str] = Counter()
        #: Whoever makes the next write of this kind dies with it: before it, or after it.
        self._dies_at_write: str | None = None
        #: Whoever waits at one of these points next dies there (`awaits.POINTS`).
        self._dies_at_await: set[str] = _aims(seed) if aim else set()
        self._steps_to_check = _CHECK_EVERY
        #: Whether somebody else has bound a pod to another node than the one that was assumed for it. That
        #: node is free then, and nobody is woken for it, as in the reference (ForgetPod fails).
        self._frees_in_silence = False

    def run(self) -> Result:
        handler = _Listener(self)
        logger = logging.getLogger("mooring")
        level, propagate = logger.level, logger.propagate
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG if self._log is not None else logging.WARNING)
        logger.propagate = False
        try:
            self._live()
        except Violation as violation:
            self._fail(str(violation))
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagate
            self._end()
        return self.result

    # Its life

    def _live(self) -> None:
        self.store.watch(VolumeController(self.store))
        self.store.watch(ClaimController(self.store))
        self._at(0.0, self.actors.begin)
        for name in ("a", "b") if self.swarm.has("second scheduler") else ("a",):
            self._at(self._rng.random() * 5.0, self._start, name)
        for _ in range(self._rng.randint(0, 50)):
            self._at(self._when(), self.actors.act)
        self._plan_faults()
        self._run_until(BUSY_S)
        self._heal()
        if self._mode == "liveness":
            self._run_until(BUSY_S + WOKEN_S)
            self._check_placed(woken=True)
            self._run_until(BUSY_S + REST_S)
            self._check_rest()
            self._check_placed(woken=False)

    def _plan_faults(self) -> None:
        plans: dict[str, tuple[int, Callable[[], None]]] = {
            "compaction": (4, self.store.compact),
            "server restart": (3, lambda: self.server.restart(self._rng.random() * 8.0)),
            "kill": (6, self._plan_kill),
            "stop": (3, lambda: self._signal(signal.SIGTERM)),
            "reload": (4, lambda: self._signal(signal.SIGHUP)),
        }
        for fault, (most, action) in plans.items():
            if self.swarm.has(fault):
                for _ in range(self._rng.randint(1, most)):
                    self._at(self._when(), self._count_and_do, fault, action)

    def _count_and_do(self, fault: str, action: Callable[[], None]) -> None:
        self.swarm.counts[fault] += 1
        action()

    def _when(self) -> float:
        """Some at the same moment as what the scheduler does: its timers go off at whole seconds."""
        at_s = self._rng.random() * (BUSY_S - 1.0)
        return float(round(at_s)) if self._rng.random() < 0.3 else at_s

    def _heal(self) -> None:
        """No more faults; what is broken already may take its time to be noticed."""
        self.swarm.breaks = False
        self._dies_at_write = None
        self._dies_at_await.clear()
        for process in self._processes:
            process.dies_at = None
        self.actors.collect_all()
        self._at(BUSY_S + 30.0, self.actors.collect_all)

    def _at(self, when_s: float, action: Callable[..., None], *args: Any) -> None:
        self.loop.call_at(when_s, self._do, action, args, context=WORLD)

    def _do(self, action: Callable[..., None], args: tuple[Any, ...]) -> None:
        try:
            action(*args)
        except Violation as violation:
            self._fail(str(violation))

    def _run_until(self, when_s: float) -> None:
        if not self.result.violation:
            self.loop.call_at(when_s, self.loop.stop, context=WORLD)
            self.loop.run_forever()

    # Schedulers

    def _start(self, name: str) -> None:
        self._starts[name] += 1
        number = self._starts[name]
        rng = self.swarm.stream(f"process {name} {number}")
        drifts = self.swarm.has("clock drift")
        process = SchedulerProcess(
            f"{name}-{number}",
            self.loop,
            self._config,
            self._connect,
            clock=DriftingClock(
                self.loop,
                offset_s=rng.uniform(-3600.0, 3600.0) if drifts else 0.0,
                rate=rng.uniform(0.97, 1.03) if drifts else 1.0,
            ),
            rng=rng,
            after_step=self._stepped,
            on_end=self._ended,
            make_journal=lambda: self._make_journal(f"{name}-{number}"),
            registry=self._registry,
            traits=self._outside,
        )
        self._processes.append(process)
        process.start()

    async def _connect(self, process: SchedulerProcess) -> Wire:
        return await self.server.connect(process)

    def _ended(self, process: SchedulerProcess) -> None:
        self._processes.remove(process)
        self._buried.append(process)
        for where in process.killed_at:
            self.result.killed_at[where] += 1
        for wire in self.server.open_wires:
            if wire.owner is process:
                wire.closed_by_client()
        process.dead = True
        if process.error is not None:
            self._fail(f"{process.name} ended with {process.error!r}")
        again_s = self._rng.choice([0.1, 1.0, 5.0, 20.0])
        self._at(self.loop.time() + again_s, self._start, process.name.partition("-")[0])

    def _plan_kill(self) -> None:
        """Before any step, or with a write: when it arrives, or when it is done and not yet answered; or at
        an await that is named, so that those that are short or seldom have their turn, too.
        """
        if not self._processes:
            return
        match self._rng.randrange(3):
            case 0:
                process = self._rng.choice(self._processes)
                process.dies_at = process.steps + self._rng.randint(1, 400)
            case 1:
                self._dies_at_write = self._rng.choice(["before", "after"])
            case _:
                self._dies_at_await.add(self._rng.choice(_POINTS))

    def _signal(self, number: int) -> None:
        if self._processes:
            process = self._rng.choice(self._processes)
            if number != signal.SIGTERM or process.exit_code is None:
                process.signal(number)
                if number == signal.SIGTERM:
                    # A second one would end this process, too.
                    process.signals.pop(number, None)

    def _writes(self, asked: Asked) -> None:
        process: SchedulerProcess = asked.wire.owner
        if "/leases" in asked.path or "/events" in asked.path:
            return
        if self._dies_at_write == "before" and not process.dead:
            self._die_with(process, asked)
        if "/pods/" in asked.path and not _uid_of(asked):
            self._fail(f"{asked.method} {asked.path} could hit another pod of the same name")
        self.truth.writer = process
        self.truth.is_late = process.dead or not self._may_write(process)
        self.truth.is_abandoned = not asked.wire.is_open
        self._mark(asked.method, asked.path, asked.body, self.loop._now)
        self._say(f"{process.name} {asked.method} {asked.path} {asked.body.decode()[:300]}")

    def _written(self, asked: Asked) -> None:
        self.truth.writer = None
        process: SchedulerProcess = asked.wire.owner
        if self._dies_at_write == "after" and not process.dead and "/leases" not in asked.path:
            self._die_with(process, asked)

    def _die_with(self, process: SchedulerProcess, asked: Asked) -> None:
        self._dies_at_write = None
        what = asked.path.rpartition("/")[2] if "binding" in asked.path else asked.method
        self.result.done[f"killed at write: {what}"] += 1
        process.kill()

    def _may_write(self, process: SchedulerProcess) -> bool:
        return process.runner is not None and process.runner.may_write()

    def _stepped(self, process: SchedulerProcess) -> None:
        self.result.steps += 1
        if process.engine is not None and self.swarm.has("gangs"):
            self.truth.note_binding(process.engine)
        if process.engine is not None and self.swarm.has("priorities"):
            self.truth.note_held(process, process.engine)
        point = None if process.dead else process.waits_at(self._dies_at_await)
        if point is not None:
            self._dies_at_await.discard(point)
            self.result.done["killed at the await aimed at"] += 1
            process.kill()
            return
        self._steps_to_check -= 1
        if self._steps_to_check > 0:
            return
        every = _CHECK_EVERY if self.swarm.breaks else _CHECK_EVERY_AT_REST
        self._steps_to_check = self._rng.randint(1, 2 * every)
        self.result.waited_at.update(process.waiting_places())
        engine = process.engine
        if engine is not None:
            try:
                invariants.check_engine(engine)
            except Violation as violation:
                self._fail(f"{process.name}: {violation}")

    # At rest

    def _leader(self) -> SchedulerProcess:
        leaders = [each for each in self._processes if each.schedules and self._may_write(each)]
        if len(leaders) != 1:
            raise Violation(f"{len(leaders)} schedulers lead: {[each.name for each in leaders]}")
        return leaders[0]

    def _check_placed(self, *, woken: bool) -> None:
        if woken and (self.truth.was_lied_to or self._frees_in_silence):
            # What was not told cannot wake anybody; the self-check finds it in its own time.
            return
        if not self.result.violation:
            engine = self._leader().engine
            assert engine is not None
            invariants.check_all_are_placed(engine, self.truth, woken=woken)

    def _check_rest(self) -> None:
        if not self.result.violation:
            invariants.check_rest(self._leader(), self.store, self.truth)

    # What is wrong

    def _unhandled(self, loop: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Violation):
            self._fail(str(error))
        else:
            trace = "".join(traceback.format_exception(error)) if error is not None else ""
            self._fail(f"unhandled: {context.get('message')}: {error!r}\n{trace}")

    def _fail(self, problem: str) -> None:
        if not self.result.violation:
            self.result.violation = problem
            self.result.at_s = self.loop._now
            self._say(f"VIOLATION: {problem}")
        if self.loop.is_running():
            self.loop.stop()

    def _mark(self, *what: object) -> None:
        self.result.fingerprint = zlib.crc32(repr(what).encode(), self.result.fingerprint)

    def _say(self, text: str) -> None:
        if self._log is not None:
            self._log(f"{self.loop._now:9.3f} {text}")

    def noticed(self, record: logging.LogRecord) -> None:
        self._say(f"{record.levelname} {record.getMessage()}")
        self._frees_in_silence |= "was assumed on" in record.getMessage()
        if record.name == "mooring.live.self_check" and record.levelno >= logging.ERROR:
            self.result.done["repair"] += 1
            if not self.truth.was_lied_to:
                self._fail(f"the self-check had something to do: {record.getMessage()}")
        if record.levelno >= logging.CRITICAL or record.exc_info:
            trace = logging.Formatter().formatException(record.exc_info) if record.exc_info else ""
            self._fail(f"logged: {record.getMessage()}\n{trace}")

    def _end(self) -> None:
        self.result.faults.update(self.swarm.counts)
        self.result.done.update(self.truth.counts)
        self.result.done.update(self.server.answered)
        for fault in ("clock drift", "second scheduler"):
            self.result.faults[fault] += self.swarm.has(fault)
        self.result.done["processes"] += sum(self._starts.values())
        self._mark(self.result.steps, self.store.version)
        self.loop.set_exception_handler(lambda loop, context: None)
        for process in (*self._processes, *self._buried):
            process.dead = True
            process.bury()
        self.loop.close()

    def _make_config(self) -> KubeSchedulerConfiguration:
        plugins = [
            {"name": name}
            for name, feature in (("MayHold", "permit"), ("MayLinger", "PostBind"))
            if self.swarm.has(feature)
        ]
        limit = {"qps": 10, "burst": 3} if self.swarm.has("request limit") else {}
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": {"multiPoint": {"enabled": plugins}},
                    "pluginConfig": [{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 30}}],
                }
            ],
            "clientConnection": limit,
            "extenders": self._outside.extenders(),
            "delayCacheUntilActive": self.swarm.has("watch as leader only"),
        }
        gates = _GANGS if self.swarm.has("gangs") else FeatureGates({})
        config = load_config(document, gates=gates)
        elects = self.swarm.has("second scheduler") or self._rng.random() < 0.5
        return replace(config, leader_election=replace(config.leader_election, leader_elect=elects))


def _aims(seed: int) -> set[str]:
    """Every point has its turn, and neighbours in different worlds: they often need the same."""
    apart = len(_POINTS) // _AIMS
    return {_POINTS[(seed + n * apart) % len(_POINTS)] for n in range(_AIMS)}


def _uid_of(asked: Asked) -> str:
    """The UID that a write depends on."""
    document = asked.document
    found: str = document.get("metadata", {}).get("uid", "")
    return found or document.get("preconditions", {}).get("uid", "")


class _Listener(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.DEBUG)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.noticed(record)


def run_seed(
    seed: int,
    mode: Mode,
    *,
    without: Iterable[str] = (),
    hostile: bool = False,
    log: Callable[[str], None] | None = None,
    aim: bool = False,
) -> Result:
    return World(seed, mode, without=without, hostile=hostile, log=log, aim=aim).run()


def prepare_worker() -> None:
    """Worlds leave many objects behind, and few cycles: a sixth of the time went to looking for them."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def begin_worker() -> None:
    """Ctrl-C is for the process that tells the result, not for those of the pool."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    prepare_worker()


#: A seed, its mode, what is left out, whether nonsense is sent, and whether kills are aimed.
Task = tuple[int, Mode, tuple[str, ...], bool, bool]


def run_task(task: Task) -> Result:
    """As `run_seed`, for a pool of workers."""
    seed, mode, without, hostile, aim = task
    return run_seed(seed, mode, without=without, hostile=hostile, aim=aim)
