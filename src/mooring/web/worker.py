"""A worker process of the page: it runs a simulation, and answers questions about it.

    server ── Question, Cancel ──▶ stdin    worker    stdout ── Progress…, Answer or Refusal ──▶ server

It answers one question at a time, in order. All long work happens here, so that the server always answers at
once. Ending the process cancels its work.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from mooring.errors import ConfigError, InputError, MooringError
from mooring.explain.explanation import CannotAnswer
from mooring.explain.past_decision import PastDecision, decide_again
from mooring.explain.what_if import DecisionView
from mooring.garbage import collect_seldom, spare_what_stays
from mooring.sim.simulation import Simulation
from mooring.web.changes_file import changes_text
from mooring.web.cluster_map import map_data, start_map_data
from mooring.web.comparison import (
    Outcome,
    comparison_data,
    differing_pods,
    first_choices,
    seen_choices,
    why_data,
)
from mooring.web.messages import (
    Answer,
    Cancel,
    Progress,
    Question,
    Refusal,
    framed,
    packed,
    read_message,
)
from mooring.web.origin import Origin
from mooring.web.pod_page import pod_data
from mooring.web.requested_changes import Named, RequestedChanges
from mooring.web.room import room_data
from mooring.web.run import Run, RunProgress
from mooring.web.run_spec import PageSource, RunSpec, read_run_spec, write_run_spec
from mooring.web.source_lines import Problem, located
from mooring.web.timeline import timeline_data
from mooring.web.what_if import (
    Applied,
    apply,
    config_text,
    found_sentences,
    object_text,
    read_beside,
    read_config,
)

_PROGRESS_EVERY_S = 0.1
#: How many run_specs are kept for questions about what is in them.
_MOST_RUN_SPECS = 2
#: Explaining a placed pod repeats the run: in this process if the run took less time, else in another.
_QUICK_S = 1.5


class Worker:
    """Answers questions; `ANSWERS` lists them."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._run_specs: dict[Path, RunSpec] = {}
        self._run: Run | None = None
        self.questions: queue.SimpleQueue[Question] = queue.SimpleQueue()
        self.cancelled: set[int] = set()
        self._number = 0
        self._next_progress_s = 0.0
        self._told_moves = 0

    def listen(self, pipe: IO[bytes]) -> None:
        """Read messages, in a thread of its own. The process exits when the server closes the pipe."""
        while (message := read_message(pipe)) is not None:
            if isinstance(message, Cancel):
                self.cancelled.add(message.number)
            else:
                self.questions.put(message)
        os._exit(0)

    def answer(self, question: Question) -> None:
        self._number = question.number
        try:
            value = ANSWERS[question.name](self, **question.arguments)
            reply: Answer | Refusal = Answer(question.number, value)
        except (InputError, ConfigError) as error:
            reply = self._refusal(error.problems[0], [Problem(text) for text in error.problems])
        except CannotAnswer as error:
            reply = Refusal(question.number, str(error), missing=True)
        except MooringError as error:
            reply = self._refusal(str(error), [])
        except Exception as error:
            traceback.print_exc()
            what = f"internal error, please report it: {type(error).__name__}: {error}"
            reply = Refusal(question.number, what, bug=True)
        self._send(reply)

    def _refusal(self, message: str, problems: list[Problem]) -> Refusal:
        return Refusal(self._number, message, tuple(each.to_data() for each in problems))

    # Before the run

    def read(self, *, source: PageSource, target: Path) -> Origin:
        """Read the input of the first run, for this and other workers."""
        self._send(Progress(self._number, 0, None, "reading"))
        origin, run_spec = source.read(self._read_progress)
        write_run_spec(run_spec, target)
        self._run_specs[target] = run_spec
        return origin

    def config(self, *, run_spec: Path) -> bytes:
        return packed({"text": config_text(self._run_spec(run_spec))})

    def manifest(self, *, run_spec: Path, named: Named) -> bytes:
        text = object_text(self._run_spec(run_spec), named)
        if text is None:
            raise CannotAnswer(f"there is no {named.kind} {named.key!r} in this run")
        return packed({"text": text})

    def check(self, *, run_spec: Path, config: str, objects: str) -> bytes:
        problems: list[Problem] = []
        found: list[str] = []
        try:
            if config:
                read_config(config)
            if objects:
                known = self._run_spec(run_spec).objects
                found = found_sentences(read_beside(objects, known), known)
        except (InputError, ConfigError) as error:
            problems = located(error.problems, config or objects)
        except MooringError as error:
            problems = [Problem(str(error))]
        data = [each.to_data() for each in problems]
        return packed({"ok": not problems, "problems": data, "found": found})

    def derive(
        self,
        *,
        run_spec: Path,
        changes: list[RequestedChanges],
        counterfactual: Applied | None,
        target: Path,
    ) -> tuple[str, ...]:
        """Writes the run_spec of another run; returns its changes in sentences."""
        outcome = apply(self._run_spec(run_spec), changes, counterfactual)
        write_run_spec(outcome.run_spec, target)
        return outcome.changes

    def export(self, *, run_spec: Path, changes: list[RequestedChanges]) -> str:
        """All changes that lead from the command's input to what the run would be with these."""
        return changes_text(apply(self._run_spec(run_spec), changes).run_spec.applied)

    def own_changes(self, *, run_spec: Path, base: Path | None) -> list[RequestedChanges]:
        """The changes that the run has and its base has not."""
        applied = self._run_spec(run_spec).applied
        return list(applied[0 if base is None else len(self._run_spec(base).applied) :])

    # Running

    def start(self, *, run_spec: Path) -> bytes:
        """The cluster before the run, to be looked at meanwhile. An invalid configuration is refused."""
        started_from = self._run_spec(run_spec)
        Simulation(started_from.options()).close()
        return packed(start_map_data(started_from))

    def run(self, *, run_spec: Path) -> dict[str, object]:
        started_from = self._run_spec(run_spec)
        spare_what_stays()
        _step_back()
        self._run = Run.of(started_from, self._run_progress)
        spare_what_stays()
        return self._run.summary()

    def past_decision(self, *, run_spec: Path, past: PastDecision) -> DecisionView:
        _step_back()
        return decide_again(self._run_spec(run_spec), past)

    # After the run

    def map(self, *, run: int) -> bytes:
        return packed({"run": run, **map_data(self._ready)})

    def time(self) -> bytes:
        return packed(timeline_data(self._ready))

    def pod(
        self, *, key: str, number: int | None, seen: DecisionView | None
    ) -> bytes | PastDecision:
        """The decision that has to be made again first, if that would take long."""
        run, past = self._ready, self._ready.past_decision(key, number)
        if past is not None and seen is None:
            if run.took_s > _QUICK_S:
                return past
            seen = decide_again(run.run_spec, past)
        return packed(pod_data(run, key, seen, number))

    def outcome(self) -> bytes:
        """What came of the run, for another worker to compare with."""
        return pickle.dumps(Outcome.of(self._ready), pickle.HIGHEST_PROTOCOL)

    def compare(
        self, *, runs: tuple[int, int], names: tuple[str, str], outcomes: tuple[bytes, bytes]
    ) -> tuple[bytes, list[str]]:
        """One run against another, and the pods whose first decision differs; it needs neither run."""
        before, after = map(pickle.loads, outcomes)
        data = comparison_data(names, (before, after))
        return packed({"runs": runs, **data}), differing_pods(before, after)

    def first_choices(self, *, pods: list[str]) -> list[PastDecision]:
        return first_choices(self._ready, pods)

    def why(
        self,
        *,
        names: tuple[str, str],
        run_specs: tuple[Path, Path],
        choices: tuple[list[PastDecision], list[PastDecision]],
    ) -> bytes:
        """How both runs came to decisions that differ."""
        _step_back()
        views = [
            seen_choices(self._run_spec(path), pasts)
            for path, pasts in zip(run_specs, choices, strict=True)
        ]
        return packed({"why": why_data(names, (views[0], views[1]))})

    def room(self, *, run_spec: Path, key: str) -> bytes:
        """How many more copies of a pod fit, as `mooring capacity --pod` counts them."""
        _step_back()
        return packed(room_data(self._run_spec(run_spec), key, self._count))

    def counterfactuals(
        self, *, run: int, key: str, budget_s: float
    ) -> tuple[bytes, list[Applied]]:
        number = self._number

        def timer() -> float:
            return float("inf") if number in self.cancelled else time.perf_counter()

        found = self._ready.counterfactuals(key, budget_s=budget_s, timer=timer)
        data = {"run": run, **found.to_data()}
        return packed(data), [Applied(key, answer) for answer in found.answers]

    # Small steps

    @property
    def _ready(self) -> Run:
        assert self._run is not None, "asked about a run before it was run"
        return self._run

    def _run_spec(self, path: Path) -> RunSpec:
        if path not in self._run_specs:
            while len(self._run_specs) >= _MOST_RUN_SPECS:
                del self._run_specs[next(iter(self._run_specs))]
            self._run_specs[path] = read_run_spec(path)
        return self._run_specs[path]

    def _run_progress(self, progress: RunProgress) -> None:
        now = time.perf_counter()
        if now < self._next_progress_s:
            return
        self._next_progress_s = now + _PROGRESS_EVERY_S
        places, told = progress.places, self._told_moves
        self._told_moves = len(places.pods)
        moved = zip(places.pods[told:], places.moved_to[told:], strict=True)
        moves = tuple(number for move in moved for number in move)
        self._send(Progress(self._number, progress.done, progress.total, progress.text, moves))

    def _read_progress(self, done: int, total: int) -> None:
        now = time.perf_counter()
        if done >= total:
            self._send(Progress(self._number, 0, None, "checking what was read"))
        elif now >= self._next_progress_s:
            self._next_progress_s = now + _PROGRESS_EVERY_S
            self._send(Progress(self._number, done, total, "reading", unit="bytes"))

    def _count(self, done: int) -> None:
        self._send(Progress(self._number, done, None, "adding pods"))

    def _send(self, message: object) -> None:
        self._out.write(framed(message))
        self._out.flush()


ANSWERS: dict[str, Callable[..., Any]] = {
    method.__name__: method
    for method in (
        Worker.read,
        Worker.config,
        Worker.manifest,
        Worker.check,
        Worker.derive,
        Worker.export,
        Worker.own_changes,
        Worker.room,
        Worker.start,
        Worker.run,
        Worker.outcome,
        Worker.compare,
        Worker.first_choices,
        Worker.why,
        Worker.past_decision,
        Worker.map,
        Worker.time,
        Worker.pod,
        Worker.counterfactuals,
    )
}


def _step_back() -> None:
    """Lower the priority of this process: the browser and the server come first."""
    if hasattr(os, "nice"):
        os.nice(5)


def main() -> None:
    """Messages use the standard streams; what plugins print goes to standard error.

    Programs that fetch credentials must not read the messages, so they get an empty input.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    collect_seldom()
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    source = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    worker = Worker(out)
    threading.Thread(target=worker.listen, args=(source,), daemon=True).start()
    try:
        while True:
            worker.answer(worker.questions.get())
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
