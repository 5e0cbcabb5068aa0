"""Comparing two decisions on one pod, to the last cell of their matrices."""

from __future__ import annotations

from mooring.explain.matrix import matrix_of
from mooring.scheduler.decision import Decision


def assert_same_decision(got: Decision, expected: Decision) -> None:
    assert got.node_name == expected.node_name
    assert got.feasible_count == expected.feasible_count
    assert got.evaluated == expected.evaluated
    assert got.pre_filter == expected.pre_filter
    assert sorted(got.feasible.tolist()) == sorted(expected.feasible.tolist())
    assert sorted(got.winners.tolist()) == sorted(expected.winners.tolist())
    assert got.diagnosis.unschedulable_plugins == expected.diagnosis.unschedulable_plugins
    if expected.node_name is None:
        assert got.diagnosis.fit_error == expected.diagnosis.fit_error
    ours, theirs = matrix_of(got), matrix_of(expected)
    assert ours.nodes == theirs.nodes
    for mine, wanted in zip(ours.views(), theirs.views(), strict=True):
        assert mine.to_data() == wanted.to_data()
        assert mine == wanted
