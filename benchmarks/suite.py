"""Decisions per second of every workload, in process, every node looked at.

    python -m benchmarks.suite [--nodes 500 5000] [--pods 1000] [--repeats 3] [--workloads basic …]

What a decision is, and what is left out, stands in docs/performance.md. `--write` keeps the results as
JSON for `benchmarks.report`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.answers import WrongAnswer
from benchmarks.harness import Measured, Size, measure
from benchmarks.workloads import WORKLOADS, Workload

FILE = "suite.json"


def main(arguments: Sequence[str] | None = None, known: Mapping[str, Workload] = WORKLOADS) -> int:
    """Exits 1 if a workload was answered wrongly: then nothing is said about its speed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[500, 5000])
    parser.add_argument("--pods", type=int, default=1000, help="measured in each repeat, at most")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-s", type=float, default=5.0, help="of a repeat, roughly")
    parser.add_argument("--workloads", nargs="+", choices=list(known), default=list(known))
    parser.add_argument("--output", choices=["table", "json"], default="table")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=f"to write {FILE} into")
    options = parser.parse_args(arguments)
    sizes = [
        Size(nodes, pods=options.pods, repeats=options.repeats, most_s=options.most_s)
        for nodes in options.nodes
    ]
    try:
        data = run([known[name] for name in options.workloads], sizes)
    except WrongAnswer as wrong:
        print(f"wrong answer: {wrong}", file=sys.stderr)
        return 1
    if options.write is not None:
        write(data, options.write / FILE)
    if options.output == "json":
        json.dump(data, sys.stdout, indent=2)
        print()
    else:
        print(table(data))
    return 0


def run(workloads: Iterable[Workload], sizes: Sequence[Size]) -> dict[str, Any]:
    """Raises WrongAnswer."""
    facts = machine.facts()
    results = []
    for workload in workloads:
        for size in sizes:
            measured = measure(workload, size)
            print(progress(measured), file=sys.stderr)
            results.append(measured.as_data())
    return {
        "machine": facts | {"load_average_at_end": machine.load_average()},
        "results": results,
    }


def progress(measured: Measured) -> str:
    return (
        f"{measured.workload}, {measured.nodes} nodes, {measured.bound} bound: "
        f"{measured.per_cpu_s.median:,.0f}/s"
    )


def table(data: dict[str, Any]) -> str:
    """For a terminal."""
    lines = [
        f"{'workload':<24}{'nodes':>7}{'bound':>8}{'pods':>6}"
        f"{'per CPU s':>11}{'low – high':>16}{'per wall s':>12}{'NumPy passes each':>19}"
    ]
    for result in data["results"]:
        cpu = result["per_cpu_s"]
        spread = f"{cpu['low']:,.0f} – {cpu['high']:,.0f}"
        lines.append(
            f"{result['workload']:<24}{result['nodes']:>7}{result['bound']:>8}{result['pods']:>6}"
            f"{cpu['median']:>11,.0f}{spread:>16}{result['per_wall_s']['median']:>12,.0f}"
            f"{result['passes_per_decision']:>19.2f}"
        )
    return "\n".join(lines)


def write(data: dict[str, Any], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
