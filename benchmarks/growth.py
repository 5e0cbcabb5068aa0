"""How the cost of a decision grows: with nodes, with bound pods, with distinct kinds of pods.

    python -m benchmarks.growth [--scale 1.0] [--repeats 3] [--write benchmarks/results]

One of the three grows, the others stay as they are in the suite: 5,000 nodes, a bound pod on each.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine, suite
from benchmarks.harness import Size, measure
from benchmarks.workloads import WORKLOADS, Workload, signatures

FILE = "growth.json"

NODES = (500, 1000, 2000, 5000, 10_000, 15_000)
BOUND = (1000, 5000, 20_000, 50_000, 150_000)
SIGNATURES = (1, 5, 20, 100, 250, 500)

_STANDARD_NODES = 5000


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement of a series: what it is about, and how large that is."""

    against: str
    series: str
    x: int
    workload: Workload
    nodes: int
    bound: int | None = None


def points() -> Iterator[Point]:
    for name in ("basic", "new-signatures", "zone-spread", "preferred-affinity"):
        for nodes in NODES:
            yield Point("nodes", name, nodes, WORKLOADS[name], nodes)
    for name in ("basic", "zone-spread", "preferred-affinity"):
        for bound in BOUND:
            yield Point("bound pods", name, bound, WORKLOADS[name], _STANDARD_NODES, bound)
    for count in SIGNATURES:
        workload = signatures(count)
        yield Point("signatures", "plain pods", count, workload, _STANDARD_NODES)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of nodes and bound pods")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=f"to write {FILE} into")
    options = parser.parse_args(arguments)
    data = run(scale=options.scale, pods=options.pods, repeats=options.repeats)
    if options.write is not None:
        suite.write(data, options.write / FILE)
    print(table(data))
    return 0


def run(*, scale: float, pods: int, repeats: int) -> dict[str, Any]:
    """Raises WrongAnswer."""
    facts = machine.facts()
    results = []
    for point in points():
        bound = None if point.bound is None else int(point.bound * scale)
        size = Size(max(10, int(point.nodes * scale)), bound, pods, repeats, most_s=2.0)
        measured = measure(point.workload, size)
        print(suite.progress(measured), file=sys.stderr)
        x = point.x if point.against == "signatures" else int(point.x * scale)
        place = {"against": point.against, "series": point.series, "x": x}
        results.append(place | measured.as_data())
    return {
        "machine": facts | {"load_average_at_end": machine.load_average()},
        "results": results,
    }


def table(data: dict[str, Any]) -> str:
    lines = [f"{'against':<12}{'workload':<22}{'':>9}{'µs of CPU each':>16}{'per CPU s':>11}"]
    for result in data["results"]:
        rate = result["per_cpu_s"]["median"]
        lines.append(
            f"{result['against']:<12}{result['series']:<22}{result['x']:>9,}"
            f"{1e6 / rate:>16.0f}{rate:>11,.0f}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
