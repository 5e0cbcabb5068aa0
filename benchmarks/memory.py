"""What a cluster costs in memory, and how long a scheduler takes from a file on disk to its first decision.

    python -m benchmarks.memory [--nodes 5000] [--pods 150000] [--write benchmarks/results]

Each figure is taken in a process of its own, as the operating system sees it: resident memory, not what
Python thinks it has. In `hold` objects come one by one, as from a watch; `start` reads a file as the
command line does.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import listing, machine, suite
from benchmarks.manifests import Template
from mooring.config import default_config
from mooring.framework.clock import Timer
from mooring.framework.silent_writer import SilentWriter
from mooring.garbage import collect_seldom
from mooring.objects.decoding import decode_json
from mooring.objects.manifests import read_manifests
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.objects.shared_parts import SharedParts
from mooring.plugins.registry import default_registry
from mooring.runtime.metrics import Metrics
from mooring.scheduler.dependencies import Dependencies
from mooring.scheduler.engine import Engine

FILE = "memory.json"

Figures = dict[str, float]

_ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--repeats", type=int, default=3, help="of the start")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help=f"to write {FILE} into")
    options = parser.parse_args(arguments)
    data = run(options.nodes, options.pods, options.repeats)
    if options.write is not None:
        suite.write(data, options.write / FILE)
    print(table(data))
    return 0


def run(
    nodes: int, pods: int, repeats: int, *, call: Callable[..., Figures] | None = None
) -> dict[str, Any]:
    """`call` calls one of the functions below; without it, in a process for each call."""
    call = call or _in_process
    facts = machine.facts()
    empty, with_nodes, whole = (call(hold, n, p) for n, p in ((0, 0), (nodes, 0), (nodes, pods)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        listing.write_cluster(path, nodes, pods)
        starts = [call(start, str(path)) for _ in range(repeats)]
        file_mb = path.stat().st_size / 1e6
    starts.sort(key=lambda each: float(each["total_wall_s"]))
    return {
        "machine": facts | {"load_average_at_end": machine.load_average()},
        "nodes": nodes,
        "pods": pods,
        "empty_mb": empty["resident_mb"],
        "resident_mb": whole["resident_mb"],
        "peak_mb": whole["peak_mb"],
        "node_kb": _each_kb(with_nodes, empty, nodes),
        "pod_kb": _each_kb(whole, with_nodes, pods),
        "file_mb": round(file_mb, 1),
        #: The repeat in the middle, and the extremes of all.
        "start": starts[len(starts) // 2],
        "start_wall_s": [starts[0]["total_wall_s"], starts[-1]["total_wall_s"]],
    }


def hold(nodes: int, pods: int) -> Figures:
    """Everything is decoded, counted and in the columns; a decision has been made."""
    scheduler = _scheduler()
    for i in range(nodes):
        scheduler.added(decode_json(listing.node_text(i).encode(), Node))
    shared_parts = SharedParts()
    for text in listing.pod_texts(nodes, pods):
        scheduler.added(shared_parts.join(decode_json(text.encode(), Pod)).pod)
    if nodes:
        _first_decision(scheduler)
    gc.collect()
    return {"resident_mb": memory_mb("VmRSS"), "peak_mb": memory_mb("VmHWM")}


def start(path: str) -> Figures:
    """From a file to the first decision, in seconds, wall and processor."""
    collect_seldom()
    clocks = [(time.perf_counter(), time.process_time())]
    objects = read_manifests([path]).objects
    clocks.append((time.perf_counter(), time.process_time()))
    scheduler = _scheduler()
    for obj in objects:
        scheduler.added(obj)
    scheduler.cluster.snapshot()
    clocks.append((time.perf_counter(), time.process_time()))
    _first_decision(scheduler)
    clocks.append((time.perf_counter(), time.process_time()))
    seconds = {}
    for n, part in enumerate(("read", "build", "first_decision")):
        for clock, name in enumerate(("wall_s", "cpu_s")):
            seconds[f"{part}_{name}"] = round(clocks[n + 1][clock] - clocks[n][clock], 3)
    for clock, name in enumerate(("wall_s", "cpu_s")):
        seconds[f"total_{name}"] = round(clocks[-1][clock] - clocks[0][clock], 3)
    return seconds | {"resident_mb": memory_mb("VmRSS"), "peak_mb": memory_mb("VmHWM")}


def table(data: dict[str, Any]) -> str:
    started = data["start"]
    return "\n".join(
        [
            f"{data['nodes']:,} nodes and {data['pods']:,} pods",
            f"held: {data['resident_mb']:,.0f} MB resident, {data['peak_mb']:,.0f} MB at the most;"
            f" {data['node_kb']:.1f} kB a node, {data['pod_kb']:.1f} kB a pod",
            f"start from {data['file_mb']:,.0f} MB of JSON: {started['total_wall_s']:.1f} s"
            f" ({started['total_cpu_s']:.1f} s of CPU): read {started['read_wall_s']:.1f},"
            f" build {started['build_wall_s']:.1f}, first decision"
            f" {started['first_decision_wall_s']:.2f}; {started['peak_mb']:,.0f} MB at the most",
        ]
    )


class _StoppedClock:
    def now(self) -> float:
        return 0.0

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        raise NotImplementedError("nothing waits here")


def _scheduler() -> Engine:
    return Engine(
        default_config(),
        Dependencies(
            clock=_StoppedClock(),
            writer=SilentWriter(),
            spawn=lambda work: work.close(),
            registry=default_registry(),
            metrics=Metrics(),
        ),
    )


def _first_decision(scheduler: Engine) -> None:
    scheduler.added(Template().pod("first"))
    scheduler.schedule_one()
    if "first" not in scheduler.cluster.pods:
        raise SystemExit("the first pod was not placed")


def _in_process(function: Callable[..., Figures], *arguments: int | str) -> Figures:
    """Call a function of this module in a new process, with the same interpreter and paths."""
    name = function.__name__
    program = (
        f"import json; from benchmarks.memory import {name};"
        f" print(json.dumps({name}(*{arguments!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=_ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    figures: Figures = json.loads(done.stdout)
    return figures


def _each_kb(with_them: Figures, without: Figures, count: int) -> float:
    return round((with_them["resident_mb"] - without["resident_mb"]) * 1000 / max(count, 1), 2)


def memory_mb(field: str) -> float:
    """VmRSS is what is resident, VmHWM the most that ever was."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return round(int(line.split()[1]) * 1024 / 1e6, 1)
    raise RuntimeError(f"no {field} in /proc/self/status")


if __name__ == "__main__":
    sys.exit(main())
