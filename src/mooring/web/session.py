"""The session that all tabs of the page share: the runs, the jobs, and the worker processes.

    Run   running ─▶ ready            its worker stays, to answer questions about pods
             ├──▶ failed
             └──▶ cancelled           its worker was ended

The session computes nothing: it keeps the answers of workers.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mooring
from mooring.errors import MooringError
from mooring.explain.past_decision import PastDecision
from mooring.web.messages import Progress
from mooring.web.origin import CHANGES_FILE
from mooring.web.requested_changes import Named, RequestedChanges
from mooring.web.run_spec import PageSource, run_spec_path
from mooring.web.what_if import Applied
from mooring.web.worker_process import Gone, Refused, WorkerProcess

#: A run of 50,000 pods takes half a gigabyte. With more runs than this, the least recently used worker ends;
#: the run is repeated when a question needs it.
_MOST_WARM = 4
_MOST_JOBS = 50
_MOST_PAGES = 64
MOST_RUNS = 50
DEFAULT_BUDGET_S, MOST_BUDGET_S = 2.0, 60.0

BASE_NAME = "as it is"


class NotReady(MooringError):
    """There is no answer: the job is running, failed or cancelled."""

    def __init__(self, message: str, problems: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.problems = problems or []


class Missing(MooringError):
    """There is no such run or job."""


@dataclass(slots=True)
class Job:
    """Work in the background."""

    id: int
    kind: str
    run: int
    title: str
    state: str = "running"
    done: int = 0
    total: int | None = None
    phase: str = "starting"
    #: What is counted, if not things: `bytes`.
    unit: str = ""
    problems: list[dict[str, Any]] = field(default_factory=list)
    result: bytes | None = None
    #: For counterfactuals: the answers that can be applied.
    answers: list[Applied] = field(default_factory=list)
    #: The question; the same question again gets this job.
    about: tuple[object, ...] = ()
    break_off: Callable[[], Coroutine[Any, Any, None]] | None = None
    task: asyncio.Task[None] | None = None

    def to_data(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "run": self.run,
            "title": self.title,
            "state": self.state,
            "done": self.done,
            "total": self.total,
            "phase": self.phase,
            "unit": self.unit,
            "problems": self.problems,
        }


@dataclass(slots=True)
class RunEntry:
    """A run as the session knows it."""

    id: int
    name: str
    run_spec: Path
    base: int | None = None
    changes: tuple[str, ...] = ()
    state: str = "running"
    #: Whether its input is there; the first run's has to be read.
    read: bool = True
    job: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] | None = None
    #: While it runs, what pods moved to: pod, place, pod, place, …
    moves: array[int] = field(default_factory=lambda: array("i"))
    worker: WorkerProcess | None = None
    #: Cached answers.
    kept: dict[str, bytes] = field(default_factory=dict)
    pages: dict[str, bytes] = field(default_factory=dict)
    #: Only one question at a time may restart the worker, or make a past decision again.
    waking: asyncio.Lock = field(default_factory=asyncio.Lock)
    looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    last_asked: int = 0

    def to_data(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "base": self.base,
            "changes": list(self.changes),
            "state": self.state,
            "read": self.read,
            "job": self.job,
            "problems": self.problems,
            "summary": self.summary,
            "started": "start" in self.kept,
        }


class Session:
    """Created by `open`, ended by `close`."""

    def __init__(self, source: PageSource, folder: Path, desk: WorkerProcess) -> None:
        self._source = source
        self._origin = source.origin()
        self._folder = folder
        #: The worker for questions that need no run: texts, checks, and the input of new runs.
        self._desk = desk
        self._runs: dict[int, RunEntry] = {}
        self._jobs: dict[int, Job] = {}
        self._made_runs = 0
        self._made_jobs = 0
        self._made_run_specs = 0
        self._questions = 0
        self.version = 0
        self._change = asyncio.Event()

    @classmethod
    async def open(cls, source: PageSource, folder: Path) -> Session:
        """The first run starts at once, with reading. The caller removes the folder, where input is kept."""
        session = cls(source, folder, await WorkerProcess.start())
        session._start_run(
            RunEntry(session._next_run(), BASE_NAME, session._run_spec_path(), read=False)
        )
        return session

    async def close(self) -> None:
        for job in list(self._jobs.values()):
            await self.cancel(job.id)
        workers = [run.worker for run in self._runs.values() if run.worker is not None]
        await asyncio.gather(self._desk.end(), *(worker.end() for worker in workers))

    # The state of the session

    def to_data(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "mooring": mooring.__version__,
            **self._origin.to_data(),
            "report": False,
            "runs": [run.to_data() for run in self._runs.values()],
            "jobs": [job.to_data() for job in self._jobs.values()],
        }

    async def change_after(self, version: int) -> None:
        """Wait until the session changes after this version."""
        while self.version <= version:
            await self._change.wait()

    def _changed(self) -> None:
        self.version += 1
        self._change.set()
        self._change = asyncio.Event()

    # Questions about a run; all raise Missing, NotReady, Refused or Gone

    async def map(self, number: int) -> bytes:
        return self._ready(number).kept["map"]

    def start(self, number: int) -> bytes:
        """The map before the run."""
        run = self._run(number)
        if "start" not in run.kept:
            raise NotReady(f"run {number} has not started", run.problems)
        return run.kept["start"]

    def moves(self, number: int, after: int) -> dict[str, Any]:
        """What pods moved to while the run is under way, after the first so many numbers."""
        moves = self._run(number).moves
        return {"moves": moves[after:].tolist(), "next": len(moves)}

    async def time(self, number: int) -> bytes:
        run = self._ready(number)
        if "time" not in run.kept:
            run.kept["time"] = await self._asked(run, "time")
        return run.kept["time"]

    async def pod(self, number: int, key: str, attempt: int | None = None) -> bytes:
        run, page = self._ready(number), f"{key} {attempt or ''}"
        if page not in run.pages:
            answer = await self._asked(run, "pod", key=key, number=attempt, seen=None)
            if isinstance(answer, PastDecision):
                seen = await self._decided_again(run, answer)
                answer = await self._asked(run, "pod", key=key, number=attempt, seen=seen)
            while len(run.pages) >= _MOST_PAGES:
                del run.pages[next(iter(run.pages))]
            run.pages[page] = answer
        return run.pages[page]

    async def config(self, number: int) -> bytes:
        run = self._known(number)
        answer: bytes = await self._at_desk("config", run_spec=run.run_spec)
        return answer

    async def manifest(self, number: int, named: Named) -> bytes:
        run = self._known(number)
        answer: bytes = await self._at_desk("manifest", run_spec=run.run_spec, named=named)
        return answer

    async def check(self, number: int, *, config: str, objects: str) -> bytes:
        run = self._known(number)
        answer: bytes = await self._at_desk(
            "check", run_spec=run.run_spec, config=config, objects=objects
        )
        return answer

    def result(self, number: int) -> bytes:
        job = self._job(number)
        if job.state == "running":
            raise NotReady("the job is still running")
        if job.result is None and job.state == "done":
            raise Missing("the job has no result")
        if job.result is None:
            raise NotReady(f"the job is {job.state}", job.problems)
        return job.result

    # Work

    async def what_if(
        self,
        base: int,
        changes: list[RequestedChanges],
        *,
        name: str,
        counterfactual: tuple[int, int] | None,
    ) -> RunEntry:
        """Start another run."""
        if len(self._runs) >= MOST_RUNS:
            raise NotReady(f"there are already {MOST_RUNS} runs; delete one first")
        origin, target = self._known(base), self._run_spec_path()
        applied = None if counterfactual is None else self._answer(*counterfactual)
        sentences: tuple[str, ...] = await self._at_desk(
            "derive",
            run_spec=origin.run_spec,
            changes=changes,
            counterfactual=applied,
            target=target,
        )
        number = self._next_run()
        called = self._distinct(name or _title(sentences))
        run = RunEntry(number, called, target, base=base, changes=sentences)
        self._start_run(run)
        return run

    async def export(self, base: int, changes: list[RequestedChanges]) -> dict[str, Any]:
        """The changes of a run and these, as a file, and the command that simulates with it."""
        run_spec = self._known(base).run_spec
        text = await self._at_desk("export", run_spec=run_spec, changes=changes)
        return {"text": text, "file": CHANGES_FILE, "command": self._origin.with_changes()}

    async def own_changes(self, number: int) -> dict[str, Any]:
        """The changes that made a run of its base, to change them and run again."""
        run = self._known(number)
        base = None if run.base is None else self._runs.get(run.base)
        changes = await self._at_desk(
            "own_changes", run_spec=run.run_spec, base=None if base is None else base.run_spec
        )
        return {"base": 1 if base is None else base.id, "name": run.name, "changes": changes}

    def room(self, number: int, pod: str) -> Job:
        """How many more copies of the pod fit."""
        run, about = self._known(number), ("capacity", number, pod)
        known = self._about(about)
        if known is not None:
            return known
        job = self._new_job("capacity", run.id, f"how many more {pod} fit", about)
        job.task = asyncio.create_task(self._count_room(job, run, pod))
        return job

    def counterfactuals(self, number: int, pod: str, budget_s: float) -> Job:
        run = self._ready(number)
        about = ("counterfactuals", number, pod, budget_s)
        known = self._about(about)
        if known is not None:
            return known
        job = self._new_job("counterfactuals", run.id, f"what would make {pod} fit", about)
        job.task = asyncio.create_task(self._counterfactuals(job, run, pod, budget_s))
        return job

    def compare(self, first: int, second: int, *, why: bool = False) -> Job:
        """Compare two runs; with `why`, explain the first decisions that differ."""
        runs = self._ready(first), self._ready(second)
        kind = "why" if why else "compare"
        about = (kind, first, second)
        known = self._about(about)
        if known is not None:
            return known
        title = f"{runs[0].name} and {runs[1].name}"
        job = self._new_job(kind, second, title, about)
        job.task = asyncio.create_task((self._why if why else self._compare)(job, *runs))
        return job

    async def cancel(self, number: int) -> None:
        job = self._job(number)
        if job.state == "running":
            job.state = "cancelled"
            self._changed()
            if job.break_off is not None:
                await job.break_off()
        if job.task is not None:
            # The task ends once its worker has ended.
            await asyncio.gather(job.task, return_exceptions=True)

    async def forget(self, number: int) -> None:
        run = self._run(number)
        if run.base is None:
            raise NotReady("the first run cannot be deleted: all others start from it")
        await self.cancel(run.job)
        if run.worker is not None:
            await run.worker.end()
        del self._runs[number]
        await asyncio.to_thread(run.run_spec.unlink, missing_ok=True)
        self._changed()

    async def settled(self, job: Job) -> None:
        """Wait until the job ends."""
        if job.task is not None:
            await asyncio.gather(job.task, return_exceptions=True)

    def job(self, number: int) -> Job:
        return self._job(number)

    # The work itself

    def _start_run(self, run: RunEntry) -> None:
        self._runs[run.id] = run
        job = self._new_job("run", run.id, run.name, ())
        run.job = job.id
        job.task = asyncio.create_task(self._play(job, run))

    async def _play(self, job: Job, run: RunEntry) -> None:
        worker = run.worker = await self._worker_for(job)
        async with _Outcome(self, job):
            if not run.read:
                await self._read(worker, job, run)
            run.kept["start"] = await worker.ask("start", run_spec=run.run_spec).reply
            self._changed()
            asked = worker.ask("run", run_spec=run.run_spec, on_progress=self._noting(job, run))
            run.summary = await asked.reply
            run.kept["map"] = await worker.ask("map", run=run.id).reply
            run.kept["outcome"] = await worker.ask("outcome").reply
            await self._end_least_used()
        run.state = "ready" if job.state == "done" else job.state
        run.problems = job.problems
        if run.state != "ready":
            run.worker = None
            await worker.end()
        self._changed()

    async def _read(self, worker: WorkerProcess, job: Job, run: RunEntry) -> None:
        asked = worker.ask(
            "read", source=self._source, target=run.run_spec, on_progress=self._noting(job, run)
        )
        # Only the worker can say what there is to warn of.
        self._origin = await asked.reply
        run.read = True
        job.phase = "starting"

    async def _counterfactuals(self, job: Job, run: RunEntry, pod: str, budget_s: float) -> None:
        async with _Outcome(self, job):
            worker = await self._awake(run)
            if job.state == "cancelled":
                return
            asked = worker.ask("counterfactuals", run=run.id, key=pod, budget_s=budget_s)

            async def break_off() -> None:
                worker.cancel(asked)

            job.break_off = break_off
            job.result, job.answers = await asked.reply

    async def _count_room(self, job: Job, run: RunEntry, pod: str) -> None:
        worker = await self._worker_for(job)
        async with _Outcome(self, job):
            asked = worker.ask(
                "room", run_spec=run.run_spec, key=pod, on_progress=self._noting(job, run)
            )
            job.result = await asked.reply
        await worker.end()

    async def _compare(self, job: Job, first: RunEntry, second: RunEntry) -> None:
        async with _Outcome(self, job):
            job.result, _ = await self._compared(first, second)

    async def _compared(self, first: RunEntry, second: RunEntry) -> tuple[bytes, list[str]]:
        compared: tuple[bytes, list[str]] = await self._at_desk(
            "compare",
            runs=(first.id, second.id),
            names=(first.name, second.name),
            outcomes=(first.kept["outcome"], second.kept["outcome"]),
        )
        return compared

    async def _why(self, job: Job, first: RunEntry, second: RunEntry) -> None:
        worker = await self._worker_for(job)
        async with _Outcome(self, job):
            job.phase = "making decisions again"
            _, pods = await self._compared(first, second)
            choices = [
                await self._asked(run, "first_choices", pods=pods) for run in (first, second)
            ]
            asked = worker.ask(
                "why",
                names=(first.name, second.name),
                run_specs=(first.run_spec, second.run_spec),
                choices=(choices[0], choices[1]),
            )
            job.result = await asked.reply
        await worker.end()

    def _noting(self, job: Job, run: RunEntry) -> Callable[[Progress], None]:
        def note(progress: Progress) -> None:
            job.done, job.total, job.phase = progress.done, progress.total, progress.phase
            job.unit = progress.unit
            run.moves.extend(progress.moves)
            self._changed()

        return note

    # Workers

    async def _worker_for(self, job: Job) -> WorkerProcess:
        """A new worker, which ends if the job is cancelled, even if that happened while it started."""
        worker = await WorkerProcess.start()
        job.break_off = worker.end
        if job.state == "cancelled":
            await worker.end()
        return worker

    async def _asked(self, run: RunEntry, name: str, **arguments: Any) -> Any:
        """Ask the run's worker; ask again if it ended meanwhile."""
        try:
            return await (await self._awake(run)).ask(name, **arguments).reply
        except Gone:
            return await (await self._awake(run)).ask(name, **arguments).reply

    async def _at_desk(self, name: str, **arguments: Any) -> Any:
        """Ask the desk worker; restart it if an earlier text crashed it."""
        if not self._desk.alive:
            self._desk = await WorkerProcess.start()
        return await self._desk.ask(name, **arguments).reply

    async def _awake(self, run: RunEntry) -> WorkerProcess:
        """The run's worker; if it has ended, a new worker repeats the run."""
        self._questions += 1
        run.last_asked = self._questions
        async with run.waking:
            if run.worker is None or not run.worker.alive:
                run.worker = await WorkerProcess.start()
                await run.worker.ask("run", run_spec=run.run_spec).reply
                await self._end_least_used()
            return run.worker

    async def _end_least_used(self) -> None:
        warm = [
            run for run in self._runs.values() if run.worker is not None and run.state == "ready"
        ]
        for run in sorted(warm, key=lambda each: each.last_asked)[: -(_MOST_WARM - 1)]:
            worker, run.worker = run.worker, None
            assert worker is not None
            await worker.end()

    async def _decided_again(self, run: RunEntry, past: PastDecision) -> Any:
        """Make the decision again in another process, so that the run's worker can still answer."""
        async with run.looking:
            looker = await WorkerProcess.start()
            try:
                return await looker.ask("past_decision", run_spec=run.run_spec, past=past).reply
            finally:
                await looker.end()

    # Runs and jobs

    def _run(self, number: int) -> RunEntry:
        if number not in self._runs:
            raise Missing(f"no run {number}")
        return self._runs[number]

    def _known(self, number: int) -> RunEntry:
        """A run whose input is there."""
        run = self._run(number)
        if not run.read:
            raise NotReady("the cluster is not read yet", run.problems)
        return run

    def _ready(self, number: int) -> RunEntry:
        run = self._run(number)
        if run.state != "ready":
            raise NotReady(f"run {number} is not ready: it is {run.state}", run.problems)
        return run

    def _job(self, number: int) -> Job:
        if number not in self._jobs:
            raise Missing(f"no job {number}")
        return self._jobs[number]

    def _answer(self, job: int, answer: int) -> Applied:
        answers = self._job(job).answers
        if not 0 <= answer < len(answers):
            raise Missing(f"job {job} has no answer {answer}")
        return answers[answer]

    def _about(self, about: tuple[object, ...]) -> Job | None:
        """The latest running or finished job for this question."""
        for job in reversed(self._jobs.values()):
            if job.about == about and job.state in ("running", "done"):
                return job
        return None

    def _new_job(self, kind: str, run: int, title: str, about: tuple[object, ...]) -> Job:
        self._made_jobs += 1
        job = Job(self._made_jobs, kind, run, title, about=about)
        self._jobs[job.id] = job
        over = [each.id for each in self._jobs.values() if each.state != "running"]
        for old in over[: max(len(self._jobs) - _MOST_JOBS, 0)]:
            del self._jobs[old]
        self._changed()
        return job

    def _distinct(self, name: str) -> str:
        """The name of a run, with a number if another run has it."""
        names = {run.name for run in self._runs.values()}
        numbered = (f"{name} ({number})" for number in range(2, len(names) + 2))
        return next(each for each in (name, *numbered) if each not in names)

    def _next_run(self) -> int:
        self._made_runs += 1
        return self._made_runs

    def _run_spec_path(self) -> Path:
        self._made_run_specs += 1
        return run_spec_path(self._folder, self._made_run_specs)


class _Outcome:
    """`async with`: writes the result of the work into its job."""

    def __init__(self, session: Session, job: Job) -> None:
        self._session = session
        self._job = job

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> bool:
        job = self._job
        if job.state == "cancelled":
            job.result = None
        elif error is None:
            job.state = "done"
            job.done = job.total or job.done
        else:
            job.state = "failed"
            job.problems = _problems(error)
        self._session._changed()
        return isinstance(error, MooringError)


def _problems(error: BaseException) -> list[dict[str, Any]]:
    if isinstance(error, Refused) and error.refusal.problems:
        return list(error.refusal.problems)
    return [{"path": "", "line": None, "text": str(error) or type(error).__name__}]


def _title(changes: tuple[str, ...]) -> str:
    return ", ".join(changes[:2]) + (" …" if len(changes) > 2 else "") or "the same again"
