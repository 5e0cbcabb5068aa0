"""Every workload beside an earlier commit, in one alternating run: is anything slower, or larger?

    python -m benchmarks.beside_commit COMMIT [--nodes 500 5000] [--rounds 3] [--workloads basic …]

The commit is checked out into a temporary folder and runs with the packages that are installed here. In each
round both sides run `benchmarks.suite` once, each in a process of its own. The fastest round of each side
counts, by processor time: other work on the machine only makes a round slower. Memory is the most that a
process had resident until the timed part had ended; of a commit that does not tell, the most it ever had.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from benchmarks.workloads import WORKLOADS

HERE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Side:
    """One round, or the best of several."""

    decisions_per_s: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Row:
    workload: str
    nodes: int
    before: Side
    now: Side

    @property
    def speed(self) -> float:
        return self.now.decisions_per_s / self.before.decisions_per_s


class RoundFailed(Exception):
    """The commit cannot be checked out, or one side cannot run a workload."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exits 1 if a workload is slower than `--least` of before, 2 if one side cannot run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least", type=float, default=0.95, help="speed against before")
    parser.add_argument("--most-s", type=float, default=2.0, help="of a round, roughly")
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--output", choices=["table", "json"], default="table")
    options = parser.parse_args(arguments)
    rows = []
    try:
        with checked_out(options.commit) as before:
            known = workloads_of(before)
            for workload in sorted(set(options.workloads) - known):
                print(f"{workload}: unknown to {options.commit}, left out", file=sys.stderr)
            for nodes in options.nodes:
                for workload in (each for each in options.workloads if each in known):
                    run = partial(one_round, workload=workload, nodes=nodes, most_s=options.most_s)
                    sides = alternate(run, before, options.rounds)
                    rows.append(Row(workload, nodes, *sides))
                    print(text(rows[-1]), file=sys.stderr)
    except RoundFailed as error:
        print(error, file=sys.stderr)
        return 2
    if options.output == "json":
        json.dump([asdict(row) for row in rows], sys.stdout, indent=1)
        print()
    slower = [row for row in rows if row.speed < options.least]
    for row in slower:
        print(f"slower than {options.least}: {text(row)}", file=sys.stderr)
    return 1 if slower else 0


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "before"
        _git("worktree", "add", "--detach", str(path), commit)
        try:
            yield path
        finally:
            _git("worktree", "remove", "--force", str(path))


def workloads_of(checkout: Path) -> set[str]:
    """Raises RoundFailed."""
    listing = "from benchmarks.workloads import WORKLOADS; print(*WORKLOADS)"
    return set(_python(checkout, "-c", listing)[0].split())


def alternate(run: Callable[[Path], Side], before: Path, rounds: int) -> tuple[Side, Side]:
    """The best of before, and the best of now."""
    sides = [(run(before), run(HERE)) for _ in range(rounds)]
    return _best([side for side, _ in sides]), _best([side for _, side in sides])


def one_round(checkout: Path, *, workload: str, nodes: int, most_s: float) -> Side:
    """Raises RoundFailed."""
    command = ["-m", "benchmarks.suite", "--output", "json", "--repeats", "1"]
    command += ["--nodes", str(nodes), "--workloads", workload, "--most-s", str(most_s)]
    output, peak_mb = _python(checkout, *command)
    result = json.loads(output)["results"][0]
    return Side(result["per_cpu_s"]["median"], result.get("peak_mb", peak_mb))


def text(row: Row) -> str:
    return (
        f"{row.workload:<24} {row.nodes:>6} nodes"
        f" {row.before.decisions_per_s:>9,.0f} → {row.now.decisions_per_s:>9,.0f}/s"
        f" {row.speed:5.2f} ×  {row.before.peak_mb:>5,.0f} → {row.now.peak_mb:>5,.0f} MB"
    )


def _best(sides: list[Side]) -> Side:
    return Side(max(side.decisions_per_s for side in sides), min(side.peak_mb for side in sides))


def _python(checkout: Path, *arguments: str) -> tuple[str, float]:
    """What a program of the checkout prints, and the most megabytes that it had. Raises RoundFailed."""
    paths = [checkout / "src", checkout / "policies" / "src", checkout]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=checkout,
            env=environment,
            stdout=output,
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise RoundFailed(f"{' '.join(arguments)} failed in {checkout}: {errors.read()}")
        return output.read(), usage.ru_maxrss / 1000


def _git(*arguments: str) -> None:
    done = subprocess.run(
        ["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RoundFailed(f"git {' '.join(arguments)}: {done.stderr.strip()}")


if __name__ == "__main__":
    sys.exit(main())
