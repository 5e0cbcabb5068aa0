"""A pod's page per attempt, and for pods that are gone or were there from the start."""

from __future__ import annotations

import pytest

from mooring.explain.past_decision import decide_again
from mooring.objects.defaults import Defaults
from mooring.sim.api import RUN_SECONDS
from mooring.web.pod_page import pod_data
from mooring.web.run_spec import RunSpec
from tests.makers import make_node, make_pod
from tests.web_unit.clusters import run_of, trace_run_spec


@pytest.fixture(scope="module")
def run():
    objects = [
        make_node("n1", cpu=4),
        make_node("n2", cpu=2),
        make_pod("cheap", cpu=3, priority=1, node="n1"),
        make_pod("dear", cpu=4, priority=1000),
        make_pod("short", cpu=1, annotations={RUN_SECONDS: "10"}),
        make_pod("over", cpu=1, node="n2", phase="Succeeded"),
        make_pod("there", cpu="100m", priority=2000, node="n2"),
        make_pod("gated", cpu=1, gates=["wait"]),
    ]
    defaults = Defaults(objects)
    run = run_of(RunSpec(tuple(defaults.of(obj) for obj in objects)))
    yield run
    run.close()


def page(run, name, number=None):
    key = f"default/{name}"
    past = run.past_decision(key, number)
    return pod_data(run, key, None if past is None else decide_again(run.run_spec, past), number)


def points(data):
    return {each["point"]: each for each in data["points"]}


def test_a_pod_that_was_evicted_has_a_page_that_names_the_preemptor(run):
    data = page(run, "cheap")

    assert data["state"] == "preempted"
    assert data["preemption"]["by"]["pod"] == "default/dear"
    assert data["preemption"]["by"]["priority"] == 1000
    assert data["sentences"][0] == "it had node n1 from the start; no decision"
    assert "preempted at 0s" in data["sentences"][1]
    assert "default/dear" in data["sentences"][1]
    assert data["matrix"] is None


def test_a_pod_that_preempted_shows_post_filter_and_names_its_victims(run):
    data = page(run, "dear")

    assert [each["outcome"] for each in data["attempts"]] == ["preempted", "failed", "bound"]
    assert data["attempt"] == 3
    assert [each["pod"] for each in data["preemption"]["victims"]] == ["default/cheap"]
    post_filter = points(data)["PostFilter"]
    assert post_filter["outcome"] == "helped"
    assert "evicted default/cheap (priority 1) from n1" in post_filter["text"]


def test_each_attempt_is_shown_on_the_cluster_of_its_moment(run):
    first = page(run, "dear", 1)

    assert first["attempt"] == 1
    assert first["state"] == "preempted" or first["state"] == "failed"
    assert first["asOf"] == "as the cluster was at attempt 1"
    assert points(first)["Filter"]["outcome"] == "rejected"
    assert points(first)["PostFilter"]["outcome"] == "helped"
    assert points(first)["Bind"]["outcome"] is None
    assert not any(first["matrix"]["verdicts"][i] == 0 for i in range(2))


def test_a_finished_pod_is_finished_and_not_placed(run):
    data = page(run, "short")

    assert data["state"] == "finished"
    assert data["node"] == "n2"
    assert any("finished at 10s" in text for text in data["sentences"])


def test_a_pod_that_had_finished_before_has_a_page(run):
    data = page(run, "over")

    assert data["state"] == "finished"
    assert data["sentences"][-1] == "it had finished before the simulation began"


def test_where_a_pod_came_with_its_node_everything_is_hypothetical(run):
    data = page(run, "there")

    assert data["node"] == "n2"
    assert data["sentences"][0] == "it had node n2 from the start; no decision"
    assert points(data)["Filter"]["hypothetical"]
    if data["chosen"] != "n2":
        assert f"would go to {data['chosen']}" in data["sentences"][1]


def test_what_a_gated_pod_would_meet_is_hypothetical(run):
    data = points(page(run, "gated"))

    assert not data["PreEnqueue"]["hypothetical"]
    assert data["Filter"]["hypothetical"]


def test_points_that_a_bound_pod_passes_by_are_skipped_and_not_unreached(run):
    data = points(page(run, "dear"))

    assert data["Score"]["outcome"] == "skipped"
    assert data["Score"]["text"] == "only one node fits, so there is nothing to score"
    assert data["Permit"]["outcome"] == "skipped"


def test_a_pod_that_left_while_it_waited_shows_its_last_attempt():
    run = run_of(trace_run_spec())
    data = page(run, "never")
    run.close()

    assert data["state"] == "deleted"
    assert data["node"] is None
    assert points(data)["Filter"]["outcome"] == "rejected"
    assert not data["counterfactuals"]
