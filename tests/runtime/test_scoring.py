"""Scores: asked for, normalised, weighed and added up."""

from __future__ import annotations

import numpy as np
import pytest

from mooring.framework.cycle_state import CycleState
from mooring.runtime import scoring
from mooring.runtime.plugin_calls import PluginFailure
from tests.makers import make_pod
from tests.runtime.frameworks import (
    framework_of,
    make_plugin,
    run_scores,
    snapshot_of,
)

POD = make_pod("p")

NODES = snapshot_of("a", "b", "c")
ALL = np.array([0, 1, 2], np.intp)


def scores_by_name(**scores):
    return lambda state, pod, node: scores[node.name]


def run(framework, feasible=ALL, seen_as=None):
    return run_scores(framework, CycleState(), POD, NODES, feasible, seen_as)


def test_the_total_is_the_sum_of_the_weighed_scores():
    framework = framework_of(
        make_plugin("A", score=scores_by_name(a=10, b=20, c=100)),
        make_plugin("B", score=scores_by_name(a=7, b=0, c=1)),
        weights={"A": 2, "B": 3},
    )

    matrix = run(framework)

    assert matrix.plugins == ["A", "B"]
    assert matrix.weights == [2, 3]
    # 2·10 + 3·7, 2·20 + 3·0, 2·100 + 3·1
    assert matrix.total.tolist() == [41, 40, 203]


def test_only_feasible_nodes_are_scored():
    asked = []

    def score(state, pod, node):
        asked.append(node.name)
        return 1

    matrix = run(framework_of(make_plugin(score=score)), np.array([0, 2], np.intp))

    assert asked == ["a", "c"]
    assert matrix.rows.tolist() == [0, 2]
    assert matrix.total.tolist() == [1, 1]


def test_normalising_changes_scores_in_place_and_leaves_the_raw_ones_as_they_were():
    def normalize(state, pod, scores):
        scores[:] = scores * 100 // scores.max()

    plugin = make_plugin(score=scores_by_name(a=1, b=2, c=4), normalize_scores=normalize)

    matrix = run(framework_of(plugin))

    assert matrix.raw[0].tolist() == [1, 2, 4]
    assert matrix.normalized[0].tolist() == [25, 50, 100]


@pytest.mark.parametrize("rows", [ALL, np.array([0, 2], np.intp)], ids=["all", "some"])
def test_scores_of_all_rows_at_once_are_those_of_each_node(rows):
    values = np.array([5, 6, 7], np.int64)
    at_once = make_plugin(score_rows=lambda state, pod, columns, rows: values[rows])
    one_by_one = make_plugin(score=scores_by_name(a=5, b=6, c=7))

    assert (
        run(framework_of(at_once), rows).total.tolist()
        == run(framework_of(one_by_one), rows).total.tolist()
    )


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param([1.0, 2.0, 3.0], id="fractions"),
        pytest.param([1, 2], id="too few"),
        pytest.param([1, 2, 3, 4], id="too many"),
    ],
)
def test_rows_that_are_not_scored_one_by_one_in_integers_fail_the_attempt(scores):
    plugin = make_plugin(score_rows=lambda *_: np.array(scores))

    with pytest.raises(PluginFailure, match="must return an int64 for each row"):
        run(framework_of(plugin))


@pytest.mark.parametrize(
    ("raw", "wrong"),
    [
        pytest.param((0, 50, 100), None, id="the whole range"),
        pytest.param((0, 101, 100), 101, id="too high"),
        pytest.param((0, -1, 100), -1, id="too low"),
    ],
)
def test_scores_must_be_between_0_and_100(raw, wrong):
    framework = framework_of(
        make_plugin(score=scores_by_name(**dict(zip("abc", raw, strict=True))))
    )

    if wrong is None:
        assert run(framework).total.tolist() == list(raw)
        return
    with pytest.raises(PluginFailure) as caught:
        run(framework)
    assert str(caught.value) == (
        'applying score defaultWeights on Score plugins: plugin "X" returns an invalid score'
        f" {wrong}, it should in the range of [0, 100] after normalizing"
    )
    assert caught.value.plugin == "X"


def test_the_range_counts_after_normalising_and_not_before():
    def halve(state, pod, scores):
        scores //= 2

    plugin = make_plugin(score=scores_by_name(a=0, b=150, c=200), normalize_scores=halve)

    assert run(framework_of(plugin)).total.tolist() == [0, 75, 100]


def test_a_plugin_scores_the_nodes_it_is_shown_in_place_of_the_rows():
    """An extender that answers with node objects takes their pods away from the plugins' sight."""
    shown = [NODES.at(2), NODES.at(1), NODES.at(0)]

    matrix = run(framework_of(make_plugin(score=scores_by_name(a=1, b=2, c=3))), ALL, shown)

    assert matrix.total.tolist() == [3, 2, 1]


def test_rows_are_a_slice_only_if_every_slot_is_feasible():
    assert scoring.compact_rows(ALL, NODES) == slice(0, 3)
    assert scoring.compact_rows(ALL[:2], NODES).tolist() == [0, 1]
