"""The matrix says of every node what the engine says of it."""

from __future__ import annotations

import random

import pytest

from mooring.config import load_config
from mooring.explain.matrix import Matrix
from mooring.explain.what_if import WhatIf
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import Code
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.sim.simulation import SimOptions
from tests.engine import registry_with
from tests.makers import (
    make_affinity_term,
    make_node,
    make_node_affinity,
    make_node_term,
    make_pod,
    make_pod_affinity,
    make_spread,
)
from tests.runtime.frameworks import run_pre_filters

OBJECTS = [
    make_node("a", cpu=4),
    make_node("b", cpu=2),
    make_node("c", cpu=1, taints=["gpu:NoSchedule"]),
    make_node("d", cpu=1),
    make_node("e", unschedulable=True),
    make_pod("q", node="a", cpu=1),
]


@pytest.fixture
def matrix_of():
    worlds = []

    def make(pod: Pod, objects=OBJECTS, options: SimOptions | None = None) -> Matrix:
        worlds.append(WhatIf.as_read([*objects, pod], options))
        return worlds[-1].look(pod).matrix

    yield make
    for what_if in worlds:
        what_if.close()


def test_nodes_are_grouped_by_what_refused_them(matrix_of):
    refusals = matrix_of(make_pod(cpu=2)).refusals()

    assert [(each.plugin, each.reasons, each.nodes) for each in refusals] == [
        ("NodeResourcesFit", ("Insufficient cpu",), ("d",)),
        ("NodeUnschedulable", ("node(s) were unschedulable",), ("e",)),
        ("TaintToleration", ("node(s) had untolerated taint(s)",), ("c",)),
    ]


def test_a_node_shows_every_plugin_that_would_refuse_it_and_which_one_counts(matrix_of):
    view = matrix_of(make_pod(cpu=2)).node("c")
    said = {plugin: status.message for plugin, status in view.filters if not status.ok}

    assert not view.fits
    assert view.status.plugin == "TaintToleration"
    assert said == {
        "TaintToleration": "node(s) had untolerated taint(s)",
        "NodeResourcesFit": "Insufficient cpu",
    }


def test_scores_are_raw_normalised_and_weighted_and_add_up(matrix_of):
    best, second = matrix_of(make_pod(cpu=2)).best(5)

    assert (best.node, best.rank, second.node, second.rank) == ("a", 1, "b", 2)
    for view in (best, second):
        assert view.total == sum(score.weighted for score in view.scores)
        assert all(score.weighted == score.normalized * score.weight for score in view.scores)
    assert best.total > second.total


def test_nodes_that_pre_filter_leaves_out_are_refused_in_its_name(matrix_of):
    only_b = make_node_affinity(make_node_term(fields=[("metadata.name", "In", ["b"])]))
    matrix = matrix_of(make_pod(affinity=only_b))

    assert matrix.feasible == ("b",)
    assert matrix.node("a").status.plugin == "NodeAffinity"
    assert matrix.node("a").status.code == Code.UNRESOLVABLE


def test_a_pod_that_pre_filter_refuses_has_the_same_verdict_everywhere(matrix_of):
    refusals = matrix_of(make_pod(claims=["missing"])).refusals()

    assert [(each.plugin, len(each.nodes)) for each in refusals] == [("VolumeRestrictions", 5)]


class Picky:
    """A Filter that looks at one node at a time."""

    name = "Picky"

    def filter(self, state, pod, node):
        return None


def test_a_plugin_that_was_not_asked_says_nothing(matrix_of):
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"filter": {"enabled": [{"name": "Picky"}]}}}],
        }
    )
    options = SimOptions(config=config, registry=registry_with({"Picky": Picky}))
    matrix = matrix_of(make_pod(cpu=2), options=options)

    assert dict(matrix.node("a").filters)["Picky"].ok
    assert dict(matrix.node("d").filters)["Picky"] is None
    assert matrix.node("d").to_data()["filters"]["Picky"] == {"code": "NotAsked"}


def test_as_data_it_has_every_node_and_every_plugin(matrix_of):
    matrix = matrix_of(make_pod(cpu=2))
    data = matrix.to_data()

    assert [each["node"] for each in data] == list(matrix.nodes)
    assert all(
        list(each["filters"]) == [column.plugin for column in matrix.filters] for each in data
    )


@pytest.mark.parametrize("seed", range(20))
def test_every_verdict_is_that_of_the_engine_node_by_node(seed):
    objects, pod = random_cluster(random.Random(seed))
    what_if = WhatIf.as_read([*objects, pod])
    try:
        matrix = what_if.look(pod).matrix
        framework, state, snapshot = (
            what_if.scheduler.framework(pod),
            CycleState(),
            what_if.snapshot(),
        )
        assert framework is not None
        run_pre_filters(framework, state, pod, snapshot)
        for info in snapshot:
            alone = framework.filter_node(state, pod, info, snapshot)
            assert matrix.node(info.name).status == alone
    finally:
        what_if.close()


def random_cluster(rng: random.Random) -> tuple[list[KubeObject], Pod]:
    nodes = [
        make_node(
            f"n{i}",
            cpu=rng.choice([1, 2, 4]),
            zone=rng.choice(["a", "b", None]),
            taints=rng.choice([[], [], ["gpu:NoSchedule"], ["slow:PreferNoSchedule"]]),
            labels={"disk": rng.choice(["ssd", "hdd"])},
            unschedulable=rng.random() < 0.1,
        )
        for i in range(12)
    ]
    pods = [
        make_pod(
            f"q{i}",
            node=f"n{rng.randrange(12)}",
            cpu="500m",
            labels={"app": rng.choice("xy")},
            ports=rng.choice([[], [80]]),
        )
        for i in range(15)
    ]
    pod = make_pod(
        cpu=rng.choice(["500m", 1, 2]),
        labels={"app": "x"},
        ports=rng.choice([[], [80]]),
        node_selector=rng.choice([None, {"disk": "ssd"}]),
        spread=rng.choice([[], [make_spread(labels={"app": "x"})]]),
        affinity=rng.choice([None, make_pod_affinity(anti=[make_affinity_term({"app": "y"})])]),
    )
    return [*nodes, *pods], pod


def test_a_frame_has_a_row_for_each_node_and_plugin(matrix_of):
    matrix = matrix_of(make_pod(cpu=2))
    cells = sum(len(view.filters) + len(view.scores) for view in matrix.views())
    assert len(matrix.to_frame()) == cells


def test_the_plugin_that_counts_a_nominated_pod_says_so_in_its_own_cell(matrix_of):
    """The verdict was "Insufficient cpu" while every cell of the row passed."""
    nominated = make_pod("first", cpu=4, priority=10, nominated="a")
    objects = [make_node("a", cpu=4), make_node("b", cpu=4), nominated]

    matrix = matrix_of(make_pod("second", cpu=2), objects)

    view = matrix.node("a")
    assert view.status.plugin == "NodeResourcesFit"
    assert dict(view.filters)["NodeResourcesFit"] == view.status
    assert [matrix.nodes[i] for i in matrix.with_nominated] == ["a"]
    assert dict(matrix.node("b").filters)["NodeResourcesFit"].ok
