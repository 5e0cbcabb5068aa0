"""`python -m tools.fuzz`: many random worlds on all cores, or one of them again."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import click
import msgspec

from tools.fuzz import awaits
from tools.fuzz.shrink import shrink
from tools.fuzz.swarm import ALL_FAULTS, ALL_FEATURES
from tools.fuzz.world import Mode, Result, Task, begin_worker, prepare_worker, run_seed, run_task

MODES: tuple[Mode, ...] = ("safety", "liveness")

#: Say how far it has come this often.
_TELL_EVERY_S = 10.0

#: As a shell says it of a command that was interrupted.
_INTERRUPTED = 130


@click.command()
@click.option("--seeds", default=200, show_default=True, help="How many seeds, in each mode.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--minutes", type=float, help="Stop after so long, in each mode.")
@click.option("--seed", type=int, help="Run this one seed again, and show what happens.")
@click.option("--mode", type=click.Choice(["safety", "liveness", "both"]), default="both")
@click.option("--workers", default=os.cpu_count() or 1, show_default=True)
@click.option("--without", multiple=True, help="A fault or an actor to leave out (repeatable).")
@click.option("--shrink", "shrinks", is_flag=True, help="Leave out what the failure does not need.")
@click.option(
    "--hostile", is_flag=True, help="Also send nonsense: objects and answers (safety only)."
)
@click.option(
    "--aim", is_flag=True, help="Kill at chosen awaits of the code, others for each seed."
)
@click.option("--quiet", is_flag=True, help="With --seed: only the result.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def main(
    seeds: int,
    first: int,
    minutes: float | None,
    seed: int | None,
    mode: str,
    workers: int,
    without: tuple[str, ...],
    shrinks: bool,
    hostile: bool,
    aim: bool,
    quiet: bool,
    output: str,
) -> None:
    """Run the live scheduler under random faults, in virtual time.

    Ctrl-C ends the run and tells what came of it so far.

    Exits 0 if no seed failed, 1 if one did, 2 if the question makes no sense, 130 if it was interrupted
    before one failed.
    """
    unknown = [name for name in without if name not in ALL_FAULTS and name not in ALL_FEATURES]
    if unknown:
        raise click.UsageError(
            f"--without {unknown[0]!r}: there is no such fault or actor; choose one of"
            f" {', '.join([*ALL_FAULTS, *ALL_FEATURES])}"
        )
    if aim and shrinks:
        raise click.UsageError("--aim does not go with --shrink")
    if hostile and (mode != "safety" or shrinks):
        raise click.UsageError("--hostile goes with --mode safety, and not with --shrink")
    modes = MODES if mode == "both" else tuple(each for each in MODES if each == mode)
    _repeat_exactly()
    if seed is not None:
        asked = [(seed, each, without, hostile, aim) for each in modes]
        sys.exit(_one(asked, shrinks=shrinks, quiet=quiet, output=output))
    if seeds < 1:
        raise click.UsageError("--seeds must be at least 1")
    failed = interrupted = False
    for each in modes:
        tasks = [(seed, each, without, hostile, aim) for seed in range(first, first + seeds)]
        again = " --aim" if aim else " --hostile" if hostile else " --shrink"
        total = Total(each, len(tasks), first, minutes, again)
        interrupted = total.add_all(_results(tasks, workers), output)
        total.tell(output)
        failed |= total.failed
        if interrupted:
            break
    sys.exit(1 if failed else _INTERRUPTED if interrupted else 0)


def _repeat_exactly() -> None:
    """Sets of strings must have the same order in every run."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tools.fuzz", *sys.argv[1:]])


def _one(tasks: list[Task], *, shrinks: bool, quiet: bool, output: str) -> int:
    failed = 0
    for seed, mode, without, hostile, aim in tasks:
        log = None if quiet or output == "json" else print
        result = run_seed(seed, mode, without=without, hostile=hostile, log=log, aim=aim)
        if result.violation and shrinks:
            kept, result = shrink(result, without, tell=lambda text: click.echo(text, err=True))
            click.echo(f"it takes: {', '.join(kept) or 'nothing of these'}", err=True)
        if output == "json":
            click.echo(msgspec.json.encode(result))
        else:
            click.echo(_told(result))
        failed |= bool(result.violation)
    return int(failed)


def _told(result: Result) -> str:
    head = f"{result.mode} seed {result.seed} at commit {_commit()}: {result.steps} steps"
    head += f", fingerprint {result.fingerprint:08x}"
    if not result.violation:
        return f"{head}; nothing wrong"
    return f"{head}; at {result.at_s:.3f} s: {result.violation}\n  with: {', '.join(result.on)}"


class Total:
    """What came of many seeds of a mode."""

    def __init__(
        self, mode: Mode, asked: int, first: int, minutes: float | None, again: str
    ) -> None:
        """`again`: what to add to the command that runs a failed seed again."""
        self._mode = mode
        self._asked = asked
        self._first = first
        self._most_s = None if minutes is None else minutes * 60.0
        self._again = again
        self._ran = 0
        self._took_s = 0.0
        self._failures: list[Result] = []
        self._sum = Result(first, mode)

    def add_all(self, results: Iterator[Result], output: str) -> bool:
        """Whether somebody interrupted it; what has ended until then counts."""
        started = told = time.monotonic()
        try:
            for result in results:
                self._add(result)
                if result.violation:
                    click.echo(f"FAILED {_told(result)}", err=output == "json")
                now = time.monotonic()
                self._took_s = now - started
                if now - told > _TELL_EVERY_S:
                    told = now
                    click.echo(f"{self._counted()}, {len(self._failures)} failed", err=True)
                if self._most_s is not None and self._took_s >= self._most_s:
                    break
        except KeyboardInterrupt:
            return True
        return False

    def _add(self, result: Result) -> None:
        self._ran += 1
        total = self._sum
        total.steps += result.steps
        total.faults.update(result.faults)
        total.done.update(result.done)
        total.killed_at.update(result.killed_at)
        total.waited_at.update(result.waited_at)
        if result.violation:
            self._failures.append(result)

    def _counted(self) -> str:
        return f"{self._mode}: {self._ran} of {self._asked} seeds"

    @property
    def _waited_wrongly(self) -> list[str]:
        return sorted(awaits.waited_wrongly([*self._sum.waited_at, *self._sum.killed_at]))

    @property
    def failed(self) -> bool:
        return bool(self._failures or self._waited_wrongly)

    def tell(self, output: str) -> None:
        reached = sorted(awaits.reached_by(self._sum.killed_at))
        missed = sorted(set(awaits.POINTS) - set(reached))
        if output == "json":
            self._write_json(reached, missed)
        else:
            self._write_text(reached, missed)

    def _write_json(self, reached: list[str], missed: list[str]) -> None:
        summary = {
            "mode": self._mode,
            "commit": _commit(),
            "seeds": self._ran,
            "asked": self._asked,
            "failed": [each.seed for each in self._failures],
            "seconds": round(self._took_s, 1),
            "steps": self._sum.steps,
            "faults": self._sum.faults,
            "done": self._sum.done,
            "killPointsReached": reached,
            "killPointsMissed": missed,
            "waitedWhereNoneCan": self._waited_wrongly,
        }
        click.echo(msgspec.json.encode(summary))

    def _write_text(self, reached: list[str], missed: list[str]) -> None:
        total = self._sum
        click.echo(
            f"{self._counted()} from {self._first}, {len(self._failures)} failed;"
            f" {self._took_s:.0f} s, {total.steps} steps, {total.done['processes']} starts,"
            f" {total.faults['kill']} kills at {len(reached)} of the {len(awaits.POINTS)} awaits at"
            f" which a task can wait, {total.done['bind']} binds; commit {_commit()}"
        )
        click.echo(f"  faults: {_counts({name: total.faults[name] for name in ALL_FAULTS})}")
        click.echo(f"  done: {_counts(dict(sorted(total.done.items())))}")
        if self._waited_wrongly:
            wrong = ", ".join(self._waited_wrongly)
            click.echo(f"  a task waited where none can (awaits.py): {wrong}")
        if missed:
            click.echo(f"  awaits where no process was killed: {', '.join(missed)}")
        if self._failures:
            seeds = ", ".join(str(each.seed) for each in self._failures)
            click.echo(f"  failed: {seeds}; again with:")
            again = f"--mode {self._mode} --seed {self._failures[0].seed}{self._again}"
            click.echo(f"  make fuzz ARGS='{again}'")


def _results(tasks: list[Task], workers: int) -> Iterator[Result]:
    if workers <= 1 or len(tasks) <= 1:
        prepare_worker()
        yield from map(run_task, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers, begin_worker) as pool:
        yield from pool.imap_unordered(run_task, tasks, chunksize=4)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


if __name__ == "__main__":
    main()
