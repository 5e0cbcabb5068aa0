"""Runs upstream's scheduler_perf workloads, beside the pods per second that upstream demands.

    python -m benchmarks.scheduler_perf [--labels performance] [--match 'affinity/*'] [--list]
    PYTHONPATH=tools/control-plane python -m benchmarks.scheduler_perf --live mooring …

The workloads are read from the Go module that `make control-plane` downloads. In process, a rate is pods per
second of processor time, from the moment that a workload begins to measure to the moment that it stops.
With `--live`, it is pods per second of wall time against a real API server, with mooring or kube-scheduler as
a process of its own. Upstream's thresholds are of wall time, with an API server and etcd in the same process.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import machine
from benchmarks.perf.cluster import PerfCluster, Stuck
from benchmarks.perf.executor import Executor
from benchmarks.perf.language import (
    NotFound,
    TestCase,
    Unsupported,
    Workload,
    find_folder,
    read_test_cases,
)

if TYPE_CHECKING:
    from benchmarks.perf.live_cluster import LiveCluster

FILE = "scheduler_perf.json"


@dataclass(frozen=True, slots=True)
class Row:
    """One workload: what was measured, or why it was not."""

    name: str
    pods: int = 0
    #: Of processor time in process, of wall time live.
    seconds: float = 0.0
    #: Upstream's pods per second; 0 if it demands nothing.
    threshold: float = 0.0
    ignored_gates: tuple[str, ...] = ()
    #: Why there is no figure.
    missing: str = ""

    @property
    def per_s(self) -> float:
        return self.pods / self.seconds if self.seconds else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Exits 1 if a workload fails, and 2 if upstream's files are not found or none is chosen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--match", default="*", help="a pattern for AREA/TESTCASE/WORKLOAD")
    parser.add_argument("--labels", nargs="*", default=[], help="that a workload must have")
    parser.add_argument("--folder", type=Path, help="upstream's test/integration/scheduler_perf")
    parser.add_argument("--live", choices=["mooring", "kube-scheduler"], help="with an API server")
    parser.add_argument("--list", action="store_true", help="only name the workloads")
    parser.add_argument("--output", choices=["table", "json"], default="table")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=f"to write {FILE} into")
    options = parser.parse_args(arguments)
    try:
        cases = read_test_cases(options.folder or find_folder())
    except NotFound as error:
        print(error, file=sys.stderr)
        return 2
    chosen = list(choose(cases, options.match, options.labels))
    if not chosen:
        print(f"no workload matches {options.match!r} with these labels", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(name_of(case, workload) for case, workload in chosen))
        return 0
    data = run(chosen, options.live)
    if options.write is not None:
        options.write.mkdir(parents=True, exist_ok=True)
        (options.write / FILE).write_text(json.dumps(data, indent=2) + "\n")
    rows = rows_of(data)
    print(json.dumps(data, indent=2) if options.output == "json" else table(rows))
    return 1 if any(row.missing for row in rows) else 0


def choose(
    cases: Sequence[TestCase], pattern: str, labels: Sequence[str]
) -> Iterator[tuple[TestCase, Workload]]:
    for case in cases:
        for workload in case.workloads:
            if set(labels) <= set(workload.labels) and fnmatchcase(
                name_of(case, workload), pattern
            ):
                yield case, workload


def name_of(case: TestCase, workload: Workload) -> str:
    return f"{case.area}/{case.name}/{workload.name}"


def run(chosen: Sequence[tuple[TestCase, Workload]], live: str | None = None) -> dict[str, Any]:
    facts = machine.facts()
    rows = []
    for case, workload in chosen:
        row = measure(case, workload, live)
        said = row.missing or f"{row.per_s:,.0f} pods/s"
        print(f"{row.name}: {said}", file=sys.stderr)
        rows.append(asdict(row))
    facts["load_average_at_end"] = machine.load_average()
    return {"machine": facts, "live": live, "rows": rows}


def measure(case: TestCase, workload: Workload, live: str | None = None) -> Row:
    name, threshold = name_of(case, workload), workload.threshold
    try:
        outcome = Executor(case, workload, _cluster(case, workload, live)).run()
    except (Unsupported, Stuck) as problem:
        return Row(name, threshold=threshold, missing=str(problem))
    seconds = round(outcome.seconds, 4)
    return Row(name, outcome.pods, seconds, threshold, outcome.ignored_gates)


def _cluster(case: TestCase, workload: Workload, live: str | None) -> PerfCluster | LiveCluster:
    if live is None:
        return PerfCluster(workload.gates, case.config)
    # The control plane's modules are on the path only for live runs.
    from benchmarks.perf.live_cluster import LiveCluster

    return LiveCluster(live, workload.gates, case.config)


def rows_of(data: dict[str, Any]) -> list[Row]:
    return [Row(**row) for row in data["rows"]]


def table(rows: Sequence[Row]) -> str:
    """For a terminal."""
    width = max(len(row.name) for row in rows)
    lines = [f"{'workload':<{width}}{'pods':>8}{'pods/s':>10}{'upstream':>10}{'×':>7}"]
    for row in rows:
        if row.missing:
            lines.append(f"{row.name:<{width}}  {row.missing}")
            continue
        demanded = f"{row.threshold:,.0f}" if row.threshold else ""
        times = f"{row.per_s / row.threshold:.0f}" if row.threshold else ""
        lines.append(
            f"{row.name:<{width}}{row.pods:>8,}{row.per_s:>10,.0f}{demanded:>10}{times:>7}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
