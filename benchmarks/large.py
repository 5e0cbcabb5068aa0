"""A simulation of a very large cluster: memory, the time to build it, and decisions per second.

    python -m benchmarks.large [--nodes 100000] [--bound 1000000] [--pods 2000] [--write benchmarks/results]

Nodes and bound pods are created in the API of a simulation, and the scheduler hears of each. Then plain pods
come and live through everything until their binding is confirmed. All must be placed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import answers, driving, machine
from benchmarks.driver import Driver
from benchmarks.memory import memory_mb
from benchmarks.workloads import WORKLOADS
from mooring.garbage import seldom_collecting

FILE = "large.json"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--bound", type=int, default=1_000_000)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=f"to write {FILE} into")
    options = parser.parse_args(arguments)
    with seldom_collecting():
        data = run(options.nodes, options.bound, options.pods)
    if options.write is not None:
        options.write.mkdir(parents=True, exist_ok=True)
        (options.write / FILE).write_text(json.dumps(data, indent=2) + "\n")
    print(text(data))
    return 0


def run(nodes: int, bound: int, pods: int) -> dict[str, Any]:
    """Raises WrongAnswer if a pod is not placed."""
    facts, workload = machine.facts(), WORKLOADS["basic"]
    started = time.process_time()
    with Driver() as driver:
        for obj in workload.objects(nodes, bound):
            driver.api.create(obj)
        driver.settle()
        built_s = time.process_time() - started
        held_mb = memory_mb("VmRSS")
        print(f"built in {built_s:.0f} s of CPU, {held_mb:,.0f} MB", file=sys.stderr, flush=True)
        came = workload.pods("pod", pods)
        first_s: list[float] = []
        # The first decision looks at every row, and the tables of the cluster are built for it.
        driving.live_through(driver, came[:1], first_s, time.process_time)
        started = time.process_time()
        driving.live_through(driver, came[1:], [], time.process_time)
        spent_s = time.process_time() - started
        placed = sum(name.startswith("default/pod-") for name in driver.placements())
        if placed != pods:
            raise answers.WrongAnswer(f"{placed} of {pods} pods are placed")
    return {
        "machine": facts | {"load_average_at_end": machine.load_average()},
        "nodes": nodes,
        "bound": bound,
        "pods": pods,
        "built_cpu_s": round(built_s, 1),
        "first_decision_cpu_s": round(first_s[0], 3),
        "pods_per_cpu_s": round((pods - 1) / spent_s),
        "held_mb": held_mb,
        "peak_mb": memory_mb("VmHWM"),
    }


def text(data: dict[str, Any]) -> str:
    return (
        f"{data['nodes']:,} nodes, {data['bound']:,} pods: built in {data['built_cpu_s']:.0f} s of CPU,"
        f" {data['held_mb']:,.0f} MB; the first decision takes {data['first_decision_cpu_s']:.2f} s,"
        f" then {data['pods_per_cpu_s']:,} pods/s of CPU; {data['peak_mb']:,.0f} MB at the most"
    )


if __name__ == "__main__":
    sys.exit(main())
