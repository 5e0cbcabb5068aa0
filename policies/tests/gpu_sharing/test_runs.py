"""Whole runs of a small cluster under each policy: no GPU is given away twice, and runs repeat themselves."""

from __future__ import annotations

import random

import pytest

from mooring.sim.simulation import SimOptions
from mooring.sim.traces.drawn_load import draw_load
from mooring.sim.traces.replay import Replay
from mooring.sim.traces.trace import Trace, TracePod
from mooring_policies.gpu_sharing.free_gpus import GPU_INDEX, FreeGpus
from mooring_policies.gpu_sharing.requests import gpu_request
from policies.tests.gpu_sharing.clusters import gpu_node, gpu_pod
from policies.tests.shipped_configs import configuration, registry

POLICIES = ("random", "dot-product", "gpu-clustering", "gpu-packing", "best-fit", "fgd")


def small_trace() -> Trace:
    rng = random.Random(17)
    nodes = [
        gpu_node(f"n{i:02}", rng.choice((1, 2, 4, 8)), model=rng.choice(("T4", "A10")), cpu=96)
        for i in range(16)
    ]
    shapes = [
        *({"share": rng.randrange(50, 1000), "cpu": str(rng.randrange(1, 9))} for _ in range(30)),
        *(
            {"whole": rng.choice((1, 1, 1, 2, 4)), "cpu": str(rng.randrange(4, 12))}
            for _ in range(20)
        ),
        *({"cpu": str(rng.randrange(1, 16))} for _ in range(8)),
        *({"share": 300, "models": ["T4"]} for _ in range(4)),
    ]
    pods = [TracePod(gpu_pod(f"p{i:02}", **shape), 0.0) for i, shape in enumerate(shapes)]
    return Trace("small", nodes, draw_load(pods, nodes, load=1.3, seed=5))


def run(policy: str) -> dict[str, tuple[str, str]]:
    """Pod → its node, and the GPUs that its annotation names; checks the books on the way."""
    options = SimOptions(config=configuration(policy), registry=registry(), seed=3)
    with Replay(small_trace(), options, pods_end=False) as simulation:
        simulation.run()
        infos = simulation.scheduler.cluster.infos
        simulation.scheduler.validate()
        assert simulation.errors == []
        for info in infos.values():
            free = FreeGpus(infos).at(info).free
            held = sum(gpu_request(pod).total_milli for pod in info.pods.values())
            # If two pods held the same part of a GPU, less would be missing than they hold.
            assert sum(free) == 1000 * len(free) - held
        return {
            pod.name: (info.name, pod.metadata.annotations.get(GPU_INDEX, ""))
            for info in infos.values()
            for pod in info.pods.values()
        }


@pytest.mark.parametrize("policy", POLICIES)
def test_no_gpu_is_given_away_twice_and_a_run_repeats_itself(policy):
    placed = run(policy)

    assert len(placed) > 50
    assert any(gpus for _, gpus in placed.values())
    assert run(policy) == placed


def test_policies_differ():
    assert len({tuple(sorted(run(policy).items())) for policy in POLICIES}) == len(POLICIES)
