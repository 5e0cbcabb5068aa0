"""The scores of the policies, worked by hand; all rows at once say what each node says."""

import msgspec
import numpy as np
import pytest
from hypothesis import given

from mooring.plugin import CycleState
from mooring_policies.gpu_sharing.best_fit import BestFitScore
from mooring_policies.gpu_sharing.clustering import GpuClusteringScore
from mooring_policies.gpu_sharing.dot_product import DotProductScore
from mooring_policies.gpu_sharing.fgd import FGDScore
from mooring_policies.gpu_sharing.open_gpu_share import OpenGpuShare
from mooring_policies.gpu_sharing.packing import GpuPackingScore
from mooring_policies.gpu_sharing.random_node import RandomScore
from policies.tests.gpu_sharing.clusters import Handle, clusters, gpu_node, gpu_pod, pods
from tests.plugins.agreement import assert_scores_agree

HALF_GPU = {"weight": 1, "gpuMilli": 600, "gpuCount": 1}


def score_of(policy, pod, node, *placed) -> int:
    """Of a node with pods on it."""
    handle = Handle()
    handle.cluster.add_node(node)
    for each in placed:
        handle.cluster.add_pod(each)
    state = CycleState()
    OpenGpuShare(None, handle).pre_filter(state, pod, handle.cluster.snapshot())
    return policy.score(state, pod, handle.cluster.infos[node.name])


def share(milli, gpu, name="held"):
    return gpu_pod(name, share=milli, node="n", on=str(gpu))


@pytest.mark.parametrize(
    ("pod", "node", "placed", "score"),
    [
        # (64 - 8) / 128 = 0.4375 of the cpus and (2 - 0.5) / 8 = 0.1875 of the GPUs would be left.
        pytest.param(gpu_pod(share=500, cpu="8"), gpu_node(), [], 68, id="100 × (1 - 0.3125)"),
        # 8 - 8 cpus and 1 - 1 GPUs.
        pytest.param(gpu_pod(whole=1, cpu="8"), gpu_node(gpus=1, cpu=8), [], 100, id="full"),
        pytest.param(gpu_pod(cpu="64"), gpu_node(gpus=8), [], 50, id="all GPUs stay free"),
    ],
)
def test_best_fit_prefers_nodes_on_which_little_is_left(pod, node, placed, score):
    assert score_of(BestFitScore(), pod, node, *placed) == score


def test_best_fit_spreads_scores_over_0_to_100():
    scores = np.array([60, 68, 80])
    BestFitScore().normalize_scores(CycleState(), gpu_pod(), scores)
    equal = np.array([60, 60])
    BestFitScore().normalize_scores(CycleState(), gpu_pod(), equal)

    assert scores.tolist() == [0, 40, 100]
    assert equal.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("args", "score"),
    [
        # 64/128 × 32/128 = 0.125 for cpu, 2/8 × 2/8 = 0.0625 for GPUs; 1 - 0.1875 / 2.
        pytest.param({}, 90, id="parts of the largest node"),
        # 1 × 0.5 for cpu, 1 × 1 for GPUs; 1 - 1.5 / 2.
        pytest.param({"normMethod": "node"}, 25, id="parts of the node"),
    ],
)
def test_the_dot_product_prefers_nodes_that_are_least_aligned_with_the_pod(args, score):
    assert score_of(DotProductScore(args), gpu_pod(whole=2, cpu="32"), gpu_node()) == score


@pytest.mark.parametrize(
    ("pod", "placed", "score"),
    [
        # 2 GPUs are 6 less than the largest node has: 25 × 6 / 8 = 18.
        pytest.param(gpu_pod(share=100), [], 43, id="unused: 25 + 18"),
        # 1.5 GPUs are free: 25 × 6.5 / 8 = 20.
        pytest.param(gpu_pod(share=100), [share(500, 0)], 95, id="only shares: 75 + 20"),
        # 0.5 GPUs are free: 25 × 7.5 / 8 = 23.
        pytest.param(
            gpu_pod(share=100),
            [share(500, 0), gpu_pod("w", whole=1, node="n", on="1")],
            73,
            id="shares and others: 50 + 23",
        ),
        pytest.param(gpu_pod(whole=1), [share(500, 0)], 20, id="others only: 0 + 20"),
        pytest.param(gpu_pod(), [share(500, 0)], 0, id="no GPU"),
    ],
)
def test_clustering_keeps_pods_together_that_want_as_many_gpus(pod, placed, score):
    assert score_of(GpuClusteringScore(), pod, gpu_node(), *placed) == score


@pytest.mark.parametrize(
    ("pod", "gpus", "placed", "score"),
    [
        pytest.param(gpu_pod(share=100), 8, [], 25, id="unused node: 33 - 8"),
        pytest.param(gpu_pod(share=100), 20, [], 20, id="unused node: no less than its GPUs"),
        # 500 are free on the GPU: 50 %.
        pytest.param(gpu_pod(share=100), 2, [share(500, 0)], 95, id="a GPU in use: 100 - 50 / 10"),
        pytest.param(gpu_pod(share=600), 2, [share(500, 0)], 49, id="an unused GPU: 50 - 1"),
        pytest.param(gpu_pod(whole=3), 4, [share(500, 0)], 47, id="three unused GPUs: 50 - 3"),
        pytest.param(gpu_pod(), 2, [share(500, 0)], 0, id="no GPU"),
    ],
)
def test_packing_uses_gpus_that_are_in_use_first(pod, gpus, placed, score):
    assert score_of(GpuPackingScore(), pod, gpu_node(gpus=gpus), *placed) == score


@pytest.mark.parametrize(
    ("pod", "placed", "score"),
    [
        # 0.6 fits on both GPUs before (1000, 600) and after (600, 600): sigmoid(0) = 0.5.
        pytest.param(gpu_pod(share=400), [share(400, 1)], 50, id="no fragment appears"),
        # (1000, 1000) → (400, 1000): 400 become a fragment, sigmoid(-0.4) = 0.401.
        pytest.param(gpu_pod(share=600), [], 40, id="a fragment of 400 appears"),
        # (1000, 400) → (1000, 0): a fragment of 400 goes, sigmoid(0.4) = 0.598.
        pytest.param(gpu_pod(share=400), [share(600, 1)], 59, id="a fragment of 400 goes"),
        # (1000, 500) → (0, 500): 500 were a fragment before and are one after.
        pytest.param(gpu_pod(whole=1), [share(500, 1)], 50, id="fragments stay"),
        pytest.param(gpu_pod(), [share(500, 1)], 50, id="no GPU"),
    ],
)
def test_fgd_prefers_nodes_whose_fragmentation_shrinks(pod, placed, score):
    policy = FGDScore({"typicalPods": [HALF_GPU]}, Handle())

    assert score_of(policy, pod, gpu_node(), *placed) == score


def test_fgd_counts_the_pods_of_a_trace_or_those_that_it_has_met():
    met, placed = gpu_pod("met", share=600), gpu_pod("placed", share=600, node="n", on="0")
    by_trace = FGDScore(None, Handle(expected_pods=[gpu_pod(share=600)]))
    by_queue = FGDScore(None, Handle())
    by_queue.pre_enqueue(met)
    handle = Handle()
    handle.cluster.add_node(gpu_node())
    handle.cluster.add_pod(placed)
    by_nodes = FGDScore(None, handle)

    policies = (by_trace, by_queue, by_nodes)

    # As with the list above: a share of 600 on an unused node leaves a fragment.
    assert [score_of(policy, gpu_pod(share=600), gpu_node()) for policy in policies] == [40] * 3


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param({"podIncreaseStep": 0}, "podIncreaseStep", id="a step of 0 never ends"),
        pytest.param({"podPopularityThreshold": 101}, "podPopularityThreshold", id="over 100 %"),
        pytest.param({"typicalPods": [{"weight": 0}]}, "weight", id="a pod that never occurs"),
        pytest.param(
            {"typicalPods": [{"weight": 1, "gpuMilli": 1001}]}, "gpuMilli", id="more than a GPU"
        ),
        pytest.param({"typicalPods": [{"weight": 1, "gpus": 1}]}, "gpus", id="an unknown field"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_by_name(args, problem):
    with pytest.raises(msgspec.ValidationError, match=problem):
        FGDScore(args, Handle())


def test_without_typical_pods_fgd_treats_all_nodes_alike():
    assert score_of(FGDScore(None, Handle()), gpu_pod(share=600), gpu_node()) == 50


def test_random_chooses_one_feasible_node_and_the_same_one_each_time():
    handle = Handle()
    for name in "abcdefgh":
        handle.cluster.add_node(gpu_node(name))
    snapshot = handle.cluster.snapshot()

    def chosen(pod, seed):
        policy, state = RandomScore({"seed": seed}), CycleState()
        policy.pre_score(state, pod, snapshot, snapshot.rows)
        assert_scores_agree(policy, state, pod, snapshot)
        return [node.name for node in snapshot if policy.score(state, pod, node)]

    choices = {tuple(chosen(gpu_pod(f"p{i}"), 0)) for i in range(40)}

    assert all(len(choice) == 1 for choice in choices)
    assert len(choices) > 4
    assert chosen(gpu_pod("p"), 1) == chosen(gpu_pod("p"), 1)


@pytest.mark.parametrize(
    "policy",
    [BestFitScore, GpuClusteringScore, GpuPackingScore, DotProductScore, FGDScore],
)
@given(cluster=clusters(), pod=pods())
def test_all_rows_at_once_score_as_each_node(policy, cluster, pod):
    handle = Handle(cluster, expected_pods=[gpu_pod(share=300), gpu_pod(whole=1, models=["T4"])])
    arguments = {DotProductScore: (None,), FGDScore: (None, handle)}.get(policy, ())
    state, snapshot = CycleState(), cluster.snapshot()
    OpenGpuShare(None, handle).pre_filter(state, pod, snapshot)

    assert_scores_agree(policy(*arguments), state, pod, snapshot)
