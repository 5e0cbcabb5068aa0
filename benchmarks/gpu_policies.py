"""Repeat the published comparison of GPU policies on the OpenB trace, and say how far the means are apart.

    python -m benchmarks.gpu_policies --seeds 10

Pods are drawn with replacement until they request 130 % of all GPUs, and never end. The figure is the GPU
milli that is allocated when the last pod has arrived, in percent of all. Without the trace, nothing is
measured.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from mooring.config import load_config
from mooring.garbage import seldom_collecting
from mooring.sim.simulation import SimOptions
from mooring.sim.traces.drawn_load import draw_load
from mooring.sim.traces.openb import GPU_MILLI
from mooring.sim.traces.reading import read_trace
from mooring.sim.traces.replay import Replay

_ROOT = Path(__file__).parents[1]
TRACE = _ROOT.parent / "shared" / "traces" / "openb"
CONFIGS = _ROOT / "policies" / "configs"

LOAD = 1.3
#: The seeds of the publication; they draw other pods here.
FIRST_SEED = 42
#: List → policy → the published mean of ten runs.
PUBLISHED = {
    "default": {
        "random": 87.47,
        "dot-product": 90.85,
        "gpu-clustering": 91.88,
        "gpu-packing": 92.00,
        "best-fit": 93.08,
        "fgd": 95.39,
    },
    "gpuspec33": {
        "random": 86.46,
        "dot-product": 89.14,
        "gpu-clustering": 92.12,
        "gpu-packing": 93.22,
        "best-fit": 93.09,
        "fgd": 94.55,
    },
}
#: How far a mean of ten runs may be from the published one.
TOLERANCE = 0.5


class Run(NamedTuple):
    allocated_percent: float
    cpu_s: float


def run(pod_list: str, policy: str, seed: int) -> Run:
    started = time.process_time()
    trace = read_trace(
        TRACE / f"openb_pod_list_{pod_list}.csv",
        nodes_path=TRACE / "openb_node_list_gpu_node.csv",
    )
    trace = replace(trace, pods=draw_load(trace.pods, trace.nodes, load=LOAD, seed=seed))
    config = load_config((CONFIGS / f"{policy}.yaml").read_bytes())
    options = SimOptions(config=config, seed=seed)
    with Replay(trace, options, pods_end=False) as simulation, seldom_collecting():
        simulation.run()
        if simulation.errors:
            raise RuntimeError(simulation.errors[0])
        infos = simulation.scheduler.cluster.infos.values()
        held = sum(info.requested.get(GPU_MILLI, 0) for info in infos)
        offered = sum(info.allocatable.get(GPU_MILLI, 0) for info in infos)
    return Run(100 * held / offered, time.process_time() - started)


def main() -> int:
    options = _options()
    if not TRACE.is_dir():
        print(f"skipped: the OpenB trace is not at {TRACE}", file=sys.stderr)
        return 0
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    runs: dict[tuple[str, str], list[Run]] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        cells = {
            pool.submit(run, pod_list, policy, seed): (pod_list, policy)
            for seed in seeds
            for pod_list in options.lists
            for policy in options.policies
        }
        for done, cell in enumerate(as_completed(cells), 1):
            runs.setdefault(cells[cell], []).append(cell.result())
            print(f"\r{done} of {len(cells)} runs", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print("| list | policy | published | measured | spread | difference | cpu s |")
    print("|---|---|---:|---:|---:|---:|---:|")
    worst = max(_line(*cell, runs[cell]) for cell in sorted(runs))
    return 0 if worst <= TOLERANCE else 1


def _line(pod_list: str, policy: str, runs: list[Run]) -> float:
    """Print a row of the table; the distance of the means."""
    figures = [each.allocated_percent for each in runs]
    published, measured = PUBLISHED[pod_list][policy], mean(figures)
    spread = stdev(figures) if len(figures) > 1 else 0.0
    print(
        f"| {pod_list} | {policy} | {published:.2f} | {measured:.2f} | ± {spread:.2f}"
        f" | {measured - published:+.2f} | {mean(each.cpu_s for each in runs):.1f} |"
    )
    return abs(measured - published)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Exits 0 if every mean is within 0.5 of the published one, otherwise 1."
    )
    parser.add_argument("--seeds", type=int, default=10, help="how many runs for each figure")
    parser.add_argument("--jobs", type=int, help="how many runs at a time; by default, one a core")
    parser.add_argument("--lists", nargs="+", choices=PUBLISHED, default=list(PUBLISHED))
    policies = list(PUBLISHED["default"])
    parser.add_argument("--policies", nargs="+", choices=policies, default=policies)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
