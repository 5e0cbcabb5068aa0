"""Run the cells of a grid that have no result yet."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from dataclasses import dataclass, field

from mooring.errors import MooringError
from mooring.sweep.cell import Measures
from mooring.sweep.grid import Cell
from mooring.sweep.loading import LoadedGrid
from mooring.sweep.results import Line, ResultsFile
from mooring.sweep.workers import Workers, WorkersError

#: Progress is told this often, even if no cell has ended.
_TELL_EVERY_S = 1.0

#: Called with the number of cells that have ended, and the number of all cells.
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What of a grid is done, and what is missing."""

    loaded: LoadedGrid
    #: The results that hold: cell → its line.
    done: dict[Cell, Line]
    missing: tuple[Cell, ...]
    #: How many results of the file belong to another grid, or to input that has changed.
    outdated: int


def plan(loaded: LoadedGrid, found: Iterable[Line]) -> Plan:
    by_fingerprint: dict[str, Line] = {}
    outdated: set[str] = set()
    wanted = {loaded.fingerprint(cell): cell for cell in loaded.grid.cells()}
    for line in found:
        if line.fingerprint not in wanted:
            outdated.add(line.fingerprint)
        elif not line.error:
            by_fingerprint.setdefault(line.fingerprint, line)
    done: dict[Cell, Line] = {}
    missing: list[Cell] = []
    for cell in loaded.grid.cells():
        known = by_fingerprint.get(loaded.fingerprint(cell))
        if known is None:
            missing.append(cell)
        else:
            done[cell] = _renamed(known, cell)
    return Plan(loaded, done, tuple(missing), len(outdated))


def _renamed(line: Line, cell: Cell) -> Line:
    """A result holds for equal content, whatever its configuration and input are called."""
    return Line(line.fingerprint, cell.config, cell.input, cell.seed, cell.load, line.measures)


def run_missing(
    planned: Plan, workers: Workers, results: ResultsFile, on_progress: OnProgress
) -> list[Line]:
    """A line for each cell of the grid, in its order; each is written as soon as its cell has ended.

    Raises WorkersError if the workers are gone for good, and InputError if a result cannot be written.
    """
    return _Run(planned, workers, results, on_progress).run()


@dataclass(slots=True)
class _Run:
    planned: Plan
    workers: Workers
    results: ResultsFile
    on_progress: OnProgress
    ended: dict[Cell, Line] = field(default_factory=dict)
    waiting: deque[Cell] = field(default_factory=deque)
    running: dict[Future[Measures], Cell] = field(default_factory=dict)
    #: Cells whose worker was lost, until there is another.
    lost: list[Cell] = field(default_factory=list)
    #: How often each cell was lost.
    losses: Counter[Cell] = field(default_factory=Counter)

    def run(self) -> list[Line]:
        self.ended.update(self.planned.done)
        self.waiting.extend(self.planned.missing)
        while self.waiting or self.running or self.lost:
            if self.lost and not self.running:
                self._put_back()
            self._submit()
            done, _ = wait(self.running, timeout=_TELL_EVERY_S, return_when=FIRST_COMPLETED)
            for future in done:
                self._take(future)
            self.on_progress(len(self.ended), len(self.planned.loaded.grid))
        return [self.ended[cell] for cell in self.planned.loaded.grid.cells()]

    def _submit(self) -> None:
        # Not while cells are lost: those that still run on the broken pool end first.
        while self.waiting and not self.lost and len(self.running) < self.workers.slots:
            cell = self.waiting.popleft()
            try:
                future = self.workers.submit(self.planned.loaded.work(cell))
            except BrokenExecutor:
                self.lost.append(cell)
            else:
                self.running[future] = cell

    def _take(self, future: Future[Measures]) -> None:
        cell = self.running.pop(future)
        try:
            measures = future.result()
        except BrokenExecutor:
            self.lost.append(cell)
        except CancelledError as error:
            raise WorkersError(
                "the workers are gone; finished cells are kept: run the sweep again to go on"
            ) from error
        except Exception as error:
            self._end(cell, error=_described(error))
        else:
            self._end(cell, measures)

    def _put_back(self) -> None:
        self.workers.replace_lost()
        for cell in self.lost:
            self.losses[cell] += 1
            if self.losses[cell] < self.workers.most_losses:
                self.waiting.appendleft(cell)
            else:
                self._end(cell, error=f"its worker died {self.losses[cell]} times")
        self.lost.clear()

    def _end(self, cell: Cell, measures: Measures | None = None, error: str = "") -> None:
        fingerprint = self.planned.loaded.fingerprint(cell)
        line = Line(
            fingerprint, cell.config, cell.input, cell.seed, cell.load, measures or {}, error
        )
        self.results.append(line)
        self.ended[cell] = line


def _described(error: Exception) -> str:
    text = str(error).strip()
    if isinstance(error, MooringError) and text:
        return "; ".join(text.splitlines())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
