from __future__ import annotations

import pytest

from mooring.explain.explanation import CannotAnswer
from mooring.explain.past_decision import decide_again
from mooring.library import Cluster
from mooring.web.pod_page import pod_data
from mooring.web.run_spec import RunSpec
from tests.web_unit.clusters import BIG, GATED, THERE, WEB, run_of, run_spec, trace_run_spec


@pytest.fixture(scope="module")
def run():
    run = run_of(run_spec())
    yield run
    run.close()


def page(run, key, number=None):
    past = run.past_decision(key, number)
    return pod_data(run, key, None if past is None else decide_again(run.run_spec, past), number)


@pytest.mark.parametrize("key", [BIG, WEB, THERE, GATED, "default/web-3", "default/short"])
def test_the_page_says_what_explain_says(run, key):
    expected = Cluster.of(run.run_spec.objects).explain(key).to_data()

    data = page(run, key)

    for name in ("pod", "state", "fits", "node", "asOf", "message", "story", "margin", "tied"):
        assert data[name] == expected[name], name
    assert _nodes_of(data["matrix"], run) == expected["nodes"]


def _nodes_of(matrix, run):
    """The matrix's columns as explain's rows."""
    names = [node.name for node in run.run_spec.nodes]
    ranks = {place: k for k, place in enumerate(matrix["scored"])}
    rows = []
    for i, node in enumerate(matrix["nodes"]):
        row = {
            "node": names[node],
            "fits": matrix["verdicts"][i] == 0,
            "verdict": matrix["statuses"][matrix["verdicts"][i]],
            "filters": {
                each["plugin"]: {"code": "NotAsked"}
                if each["codes"][i] == -1
                else each["statuses"][each["codes"][i]]
                for each in matrix["filters"]
            },
        }
        if i in ranks:
            k = ranks[i]
            row |= {"rank": k + 1, "total": matrix["totals"][k]}
            row["scores"] = {
                each["plugin"]: {
                    "raw": each["raw"][k],
                    "normalized": each["normalized"][k],
                    "weight": each["weight"],
                    "weighted": each["normalized"][k] * each["weight"],
                }
                for each in matrix["scores"]
            }
        rows.append(row)
    return rows


def outcomes(data):
    return {each["point"]: each["outcome"] for each in data["points"]}


def test_a_pod_that_fits_nowhere_is_lit_up_to_post_filter(run):
    lit = outcomes(page(run, BIG))

    assert lit["PreFilter"] == "passed"
    assert lit["Filter"] == "rejected"
    assert lit["PostFilter"] == "rejected"
    assert [lit[point] for point in ("PreScore", "Score", "Reserve", "Bind", "PostBind")] == [
        None
    ] * 5


def test_a_pod_that_was_placed_is_lit_up_to_the_end(run):
    lit = outcomes(page(run, WEB))

    assert lit["QueueSort"] == lit["PreScore"] == lit["Bind"] == "passed"
    assert lit["PostFilter"] == lit["Permit"] == lit["PostBind"] == "skipped"


def test_a_gated_pod_stops_at_pre_enqueue(run):
    assert outcomes(page(run, GATED))["PreEnqueue"] == "rejected"


def test_only_what_fits_nowhere_is_worth_a_counterfactual(run):
    assert page(run, BIG)["counterfactuals"]
    assert not page(run, WEB)["counterfactuals"]


def test_the_timeline_is_of_this_pod_alone(run):
    events = page(run, WEB)["timeline"]

    assert [each["what"] for each in events] == ["queued", "bound"]
    assert {each["pod"] for each in events} == {WEB}


def test_a_pod_of_a_trace_is_explained_at_the_moment_of_its_placing():
    run = run_of(trace_run_spec())
    data = page(run, "default/second")
    run.close()

    assert data["state"] == "deleted"
    assert data["asOf"] == "as the cluster was at the decision"
    assert [each["what"] for each in data["timeline"]] == ["queued", "failed", "bound", "deleted"]


def test_a_pod_that_is_not_there_cannot_be_explained(run):
    with pytest.raises(CannotAnswer, match="no pod 'default/nobody'"):
        page(run, "default/nobody")


def test_without_nodes_there_is_nothing_to_explain():
    run = run_of(RunSpec(tuple(run_spec().pods[1:])))
    with pytest.raises(CannotAnswer, match="no node"):
        page(run, BIG)
    run.close()
