"""A load is drawn from a trace until it reaches a multiple of the GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.errors import InputError
from mooring.sim.traces.drawn_load import draw_load
from mooring.sim.traces.openb import GPU_MILLI
from mooring.sim.traces.reading import read_trace

TRACE = read_trace(Path(__file__).parents[1] / "data" / "openb")
#: The GPUs of the nodes of that trace, in thousandths.
OFFERED = sum(
    node.status.allocatable[GPU_MILLI].value
    for node in TRACE.nodes
    if GPU_MILLI in node.status.allocatable
)


def drawn(load: float, seed: int):
    return draw_load(TRACE.pods, TRACE.nodes, load=load, seed=seed)


def requested(pods) -> int:
    return sum(each.pod.requests.get(GPU_MILLI, 0) for each in pods)


@pytest.mark.parametrize("load", [0.1, 1.0, 1.3, 20])
def test_the_last_pod_is_the_one_that_reaches_the_load(load):
    pods = drawn(load, seed=1)

    assert requested(pods[:-1]) < load * OFFERED <= requested(pods)


def test_a_seed_draws_the_same_pods_each_time_and_another_seed_draws_others():
    names = [[each.pod.name for each in drawn(5, seed)] for seed in (1, 1, 2)]

    assert names[0] == names[1] != names[2]


def test_drawn_pods_have_the_shapes_of_the_trace_names_of_their_own_and_no_end():
    pods = drawn(20, seed=3)
    specs = [each.pod.spec for each in TRACE.pods]

    assert all(each.pod.spec in specs for each in pods)
    assert len({each.pod.key for each in pods}) == len({each.pod.uid for each in pods}) == len(pods)
    assert [each.arrives_s for each in pods] == [float(i) for i in range(len(pods))]
    assert all(each.run_s is None and each.leaves_s is None for each in pods)


def test_without_gpus_there_is_nothing_to_reach():
    pods_without = [each for each in TRACE.pods if GPU_MILLI not in each.pod.requests]
    nodes_without = [node for node in TRACE.nodes if GPU_MILLI not in node.status.allocatable]

    with pytest.raises(InputError, match="no node has GPUs"):
        draw_load(TRACE.pods, nodes_without, load=1, seed=0)
    with pytest.raises(InputError, match="no pod requests any"):
        draw_load(pods_without, TRACE.nodes, load=1, seed=0)
