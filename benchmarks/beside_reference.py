"""Processor time per decision beside kube-scheduler's own scheduling cycle, in one alternating run.

    python -m benchmarks.beside_reference [--nodes 500 5000 15000] [--rounds 3] [--workloads basic …]

`benchmarks/reference` is a Go program that builds the real scheduler of v1.36.4 and calls its ScheduleOne on
the same workloads. In each round it decides twice, once with the nodes that it samples by default and once
with all of them, and mooring decides in between. Of each, the round with the least processor time counts:
what else the machine does only ever adds to it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.answers import WrongAnswer
from benchmarks.harness import Trial
from benchmarks.workloads import WORKLOADS

FILE = "reference.json"

_SOURCE = Path(__file__).parent / "reference"
#: Neither side needs the whole of a decision's surroundings; these workloads exist on both sides.
BOTH_HAVE = (
    "basic",
    "20-signatures",
    "new-signatures",
    "node-affinity",
    "pod-affinity",
    "pod-anti-affinity",
    "required-and-preferred",
    "preferred-affinity",
    "preferred-anti-affinity",
    "zone-spread",
    "soft-zone-spread",
    "default-spread",
    "mixed-base",
    "unschedulable",
    "csi-volumes",
    "preemption",
)

#: percentageOfNodesToScore: 0 is the adaptive default.
_SAMPLING, _ALL_NODES = 0, 100

#: How many milliseconds of processor time a pod takes, and pods per second of wall time.
Rates = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Row:
    """One workload at one size; processor time in milliseconds a pod, the least of all rounds."""

    workload: str
    nodes: int
    rounds: int
    sampling_cpu_ms: float
    all_nodes_cpu_ms: float
    mooring_cpu_ms: float
    sampling_per_wall_s: float
    all_nodes_per_wall_s: float
    mooring_per_wall_s: float

    @property
    def times_sampling(self) -> float:
        """How many times the processor time of mooring the reference takes as it is by default."""
        return self.sampling_cpu_ms / self.mooring_cpu_ms

    @property
    def times_all_nodes(self) -> float:
        return self.all_nodes_cpu_ms / self.mooring_cpu_ms


class ReferenceFailed(Exception):
    """The reference could not be built, or failed on a workload."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exits 1 if either side answers wrongly, 2 if the reference cannot be built or fails on a workload."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 5000, 15_000])
    parser.add_argument("--pods", type=int, default=1000, help="in each round, at most")
    parser.add_argument("--seconds", type=float, default=4.0, help="of the reference in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", nargs="+", choices=BOTH_HAVE, default=list(BOTH_HAVE))
    parser.add_argument("--output", choices=["table", "json"], default="table")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=f"to write {FILE} into")
    options = parser.parse_args(arguments)
    try:
        reference = Reference(build(), pods=options.pods, seconds=options.seconds)
        data = run(
            reference,
            options.workloads,
            options.nodes,
            options.pods,
            options.rounds,
            keep=partial(write, options.write) if options.write is not None else None,
        )
    except WrongAnswer as wrong:
        print(f"wrong answer: {wrong}", file=sys.stderr)
        return 1
    except ReferenceFailed as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps(data, indent=2) if options.output == "json" else table(rows_of(data)))
    return 2 if data["missing"] else 0


def build() -> Path:
    """Compile the reference, which takes minutes the first time. Raises ReferenceFailed."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mooring"
    binary = cache / "reference-bench"
    cache.mkdir(parents=True, exist_ok=True)
    command = ["go", "build", "-trimpath", "-o", str(binary), "."]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    print("building the reference (minutes the first time)", file=sys.stderr)
    try:
        done = subprocess.run(
            command, cwd=_SOURCE, env=environment, capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise ReferenceFailed("the reference is a Go program: install Go, then try again") from None
    if done.returncode:
        raise ReferenceFailed(f"the reference cannot be built: {done.stderr.strip()}")
    return binary


@dataclass(frozen=True, slots=True)
class Reference:
    """The compiled reference."""

    binary: Path
    pods: int
    seconds: float

    def decide(self, workload: str, nodes: int, percentage: int) -> Rates:
        """Raises ReferenceFailed."""
        options = {
            "workload": workload,
            "nodes": nodes,
            "percentage": percentage,
            "pods": self.pods,
            "seconds": self.seconds,
        }
        command = [str(self.binary), *(f"-{name}={value}" for name, value in options.items())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ReferenceFailed(f"the reference failed: {done.stderr.strip()}")
        said = json.loads(done.stdout)
        return said["cpu_ms_per_pod"], said["pods_per_s"]


def run(
    reference: Reference,
    workloads: Iterable[str],
    sizes: Sequence[int],
    pods: int,
    rounds: int,
    *,
    keep: Callable[[dict[str, Any]], None] | None = None,
) -> dict[str, Any]:
    """Raises WrongAnswer. A row of which the reference fails is left out, and named among the missing.

    `keep` gets what is known after each row, so that a run that is cut short loses nothing.
    """
    facts = machine.facts()
    data: dict[str, Any] = {"machine": facts, "rows": [], "missing": []}
    for name in workloads:
        for nodes in sizes:
            try:
                row = measure(reference, name, nodes, pods, rounds)
            except ReferenceFailed as error:
                print(f"{name}, {nodes:,} nodes: {error}", file=sys.stderr, flush=True)
                data["missing"].append({"workload": name, "nodes": nodes})
                continue
            print(progress(row), file=sys.stderr, flush=True)
            data["rows"].append(asdict(row))
            data["machine"] = facts | {"load_average_at_end": machine.load_average()}
            if keep is not None:
                keep(data)
    return data


def write(folder: Path, data: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{FILE}.part"
    part.write_text(json.dumps(data, indent=2) + "\n")
    part.replace(folder / FILE)


def measure(reference: Reference, name: str, nodes: int, pods: int, rounds: int) -> Row:
    """Raises WrongAnswer and ReferenceFailed."""
    decide = mooring(name, nodes, pods)
    sampling, here, everywhere = [], [], []
    for _ in range(rounds):
        sampling.append(reference.decide(name, nodes, _SAMPLING))
        here.append(decide())
        everywhere.append(reference.decide(name, nodes, _ALL_NODES))
    return Row(
        workload=name,
        nodes=nodes,
        rounds=rounds,
        sampling_cpu_ms=min(sampling)[0],
        all_nodes_cpu_ms=min(everywhere)[0],
        mooring_cpu_ms=round(min(here)[0], 4),
        sampling_per_wall_s=max(rate for _, rate in sampling),
        all_nodes_per_wall_s=max(rate for _, rate in everywhere),
        mooring_per_wall_s=round(max(rate for _, rate in here), 1),
    )


def mooring(name: str, nodes: int, pods: int) -> Callable[[], Rates]:
    """A round of mooring. Only attempts are timed, as in the reference, by processor time."""
    workload = WORKLOADS[name]
    trial = Trial(workload, nodes, list(workload.objects(nodes)))
    warm_up = min(workload.warm_up, max(1, workload.most(nodes) // 4))
    count = min(pods, workload.most(nodes) - warm_up)

    def decide() -> Rates:
        repeat = trial.run(warm_up, count, time.process_time)
        cpu_s = sum(repeat.attempts_s)
        return cpu_s * 1000 / count, count / cpu_s

    return decide


# Tables


def rows_of(data: dict[str, Any]) -> list[Row]:
    return [Row(**row) for row in data["rows"]]


def progress(row: Row) -> str:
    return f"{row.workload}, {row.nodes:,} nodes: {row.times_sampling:.0f} times the reference"


def table(rows: Iterable[Row]) -> str:
    """For a terminal."""
    lines = [
        f"{'CPU ms a pod':<26}{'nodes':>7}{'sampling':>10}{'all nodes':>11}{'mooring':>10}"
        f"{'× sampling':>12}{'× all':>8}"
    ]
    lines += (
        f"{row.workload:<26}{row.nodes:>7}{row.sampling_cpu_ms:>10.2f}{row.all_nodes_cpu_ms:>11.1f}"
        f"{row.mooring_cpu_ms:>10.3f}{row.times_sampling:>12.1f}{row.times_all_nodes:>8.0f}"
        for row in rows
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
