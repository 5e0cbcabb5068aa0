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
from tools.fuzz.world import Mode, Result, Task, prepare_worker, run_seed, run_task

MODES: tuple[Mode, ...] = ("safety", "liveness")

#: Say how far it has come this often.
_TELL_EVERY_S = 10.0


@click.command()
@click.option("--seeds", default=200, show_default=True, help="How many seeds, in each mode.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--seed", type=int, help="Run this one seed again, and show what happens.")
@click.option("--mode", type=click.Choice(["safety", "liveness", "both"]), default="both")
@click.option("--workers", default=os.cpu_count() or 1, show_default=True)
@click.option("--without", multiple=True, help="A fault or an actor to leave out (repeatable).")
@click.option("--shrink", "shrinks", is_flag=True, help="Leave out what the failure does not need.")
@click.option(
    "--hostile", is_flag=True, help="Also send nonsense: objects and answers (safety only)."
)
@click.option(
    "--aim", is_flag=True, help="Kill at one await of the code, another one for each seed."
)
@click.option("--quiet", is_flag=True, help="With --seed: only the result.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def main(
    seeds: int,
    first: int,
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

    Exits 0 if no seed failed, 1 if one did, 2 if the question makes no sense.
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
    failed = False
    for each in modes:
        tasks = [(seed, each, without, hostile, aim) for seed in range(first, first + seeds)]
        failed |= _many(tasks, each, workers, output)
    sys.exit(1 if failed else 0)


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


def _many(seeds: list[Task], mode: Mode, workers: int, output: str) -> bool:
    started = told = time.monotonic()
    failures: list[Result] = []
    total = Result(seeds[0][0], mode)
    for ran, result in enumerate(_results(seeds, workers), start=1):
        total.steps += result.steps
        total.faults.update(result.faults)
        total.done.update(result.done)
        total.killed_at.update(result.killed_at)
        total.waited_at.update(result.waited_at)
        if result.violation:
            failures.append(result)
            click.echo(f"FAILED {_told(result)}", err=output == "json")
        if time.monotonic() - told > _TELL_EVERY_S:
            told = time.monotonic()
            click.echo(f"{mode}: {ran} of {len(seeds)} seeds, {len(failures)} failed", err=True)
    took_s = time.monotonic() - started
    reached = sorted(awaits.reached_by(total.killed_at))
    missed = sorted(set(awaits.POINTS) - set(reached))
    wrong = sorted(awaits.waited_wrongly([*total.waited_at, *total.killed_at]))
    if output == "json":
        summary = {
            "mode": mode,
            "commit": _commit(),
            "seeds": len(seeds),
            "failed": [each.seed for each in failures],
            "seconds": round(took_s, 1),
            "steps": total.steps,
            "faults": total.faults,
            "done": total.done,
            "killPointsReached": reached,
            "killPointsMissed": missed,
            "waitedWhereNoneCan": wrong,
        }
        click.echo(msgspec.json.encode(summary))
        return bool(failures or wrong)
    click.echo(
        f"{mode}: {len(seeds)} seeds from {seeds[0][0]}, {len(failures)} failed; {took_s:.0f} s,"
        f" {total.steps} steps, {total.done['processes']} starts, {total.faults['kill']} kills"
        f" at {len(reached)} of the {len(awaits.POINTS)} awaits at which a task can wait,"
        f" {total.done['bind']} binds; commit {_commit()}"
    )
    click.echo(f"  faults: {_counts({name: total.faults[name] for name in ALL_FAULTS})}")
    click.echo(f"  done: {_counts(dict(sorted(total.done.items())))}")
    if wrong:
        click.echo(f"  a task waited where none can (awaits.py): {', '.join(wrong)}")
    if missed:
        click.echo(f"  awaits where no process was killed: {', '.join(missed)}")
    if failures:
        click.echo(f"  failed: {', '.join(str(each.seed) for each in failures)}; again with:")
        click.echo(f"  make fuzz ARGS='--mode {mode} --seed {failures[0].seed} --shrink'")
    return bool(failures or wrong)


def _results(tasks: list[Task], workers: int) -> Iterator[Result]:
    if workers <= 1 or len(tasks) <= 1:
        prepare_worker()
        yield from map(run_task, tasks)
        return
    with multiprocessing.get_context("spawn").Pool(workers, prepare_worker) as pool:
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
