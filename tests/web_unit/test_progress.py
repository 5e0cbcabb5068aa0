"""How far a run is, as it tells while it runs."""

from __future__ import annotations

from mooring.web.run import Run, RunProgress
from tests.makers import make_node, make_pod
from tests.web_unit.clusters import run_spec


def progress_of(given):
    told: list[RunProgress] = []
    Run.of(given, told.append).close()
    return told


def test_progress_is_not_complete_while_pods_are_tried_again():
    """It stood at 100 % for most of a run."""
    told = progress_of(run_spec())

    # There are three web pods, and big and short; the gated pod is not tried.
    assert [each.total for each in told[:4]] == [5] * 4
    assert [each.done for each in told[:4]] == [1, 2, 3, 4]
    assert {each.total for each in told[4:]} == {None}
    assert [each.done for each in told[4:]] == list(range(5, len(told) + 1))
    assert "placing pods" in told[0].text
    assert "retrying" in told[-1].text


def test_pods_that_nobody_tries_are_not_waited_for():
    """It stood at "placing pods 368 of 369" to the end if one pod was gated."""
    held = [make_pod(f"gated-{i}", gates=["wait"]) for i in range(3)]
    others = make_pod("other", scheduler="somebody-else")
    told = progress_of(run_spec(*held, others, make_node("more", cpu=1)))

    assert told[0].total == 5
    assert told[-1].total is None
