"""`mooring explain`: what it prints and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mooring.cli.explain_tables import bar
from tests.cli.clusters import FITS, NODES, TOO_BIG, pod
from tests.cli.running import mooring, mooring_process


@pytest.fixture
def cluster(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "cluster.yaml"
        path.write_text(text)
        return path

    return write


# The answer


def test_it_exits_0_for_a_placed_pod_and_shows_the_best_nodes_with_their_scores(cluster):
    result = mooring("explain", "web", "-f", cluster(FITS + pod("here", spec=", nodeName: n-2")))

    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "BEST NODES, 2 of 2 that fit" in lines
    # cpu (2000 - 1000) / 2000 = 50, memory (4096 - 200) / 4096 = 95; their mean is 72.
    assert any(line.split()[:3] == ["NodeResourcesFit", "72", "72"] for line in lines)
    assert "█" in result.stdout
    assert any(line.startswith("n-1 leads by ") for line in lines)
    assert lines[-1] == "default/web is on n-1 (as the cluster was at the decision)"


def test_it_exits_1_for_a_pending_pod_and_says_what_would_help(cluster):
    result = mooring("explain", "big", cluster(TOO_BIG))

    assert result.exit_code == 1
    assert "REJECTED BY, 2 of 2 nodes" in result.stdout
    would_fit_if = result.stdout.partition("WOULD FIT IF\n")[2]
    assert "lower the cpu request from 8 to 1 " in would_fit_if
    assert result.stdout.splitlines()[-1].startswith("default/big is unschedulable: 0/2 nodes")


def test_top_says_how_many_nodes_to_show(cluster):
    result = mooring("explain", "web", cluster(FITS), "--top", 1)

    assert "BEST NODES, 1 of 2 that fit" in result.stdout


def test_as_is_places_nothing_first(cluster):
    result = mooring("explain", "web", cluster(FITS), "--as-is")

    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "default/web would go to n-1 (as the files say)"


def test_one_node_is_shown_in_full(cluster):
    refused = mooring("explain", "big", cluster(TOO_BIG), "--node", "n-2")
    taken = mooring("explain", "web", cluster(FITS), "--node", "n-2")

    assert (refused.exit_code, taken.exit_code) == (1, 0)
    assert "NodeResourcesFit" in refused.stdout
    assert refused.stdout.splitlines()[-1] == (
        "default/big does not fit on n-2: NodeResourcesFit: Insufficient cpu"
    )
    assert "SCORES of n-2" in taken.stdout
    assert "which ranks 2 with" in taken.stdout.splitlines()[-1]


def test_json_has_every_node_with_every_plugin(cluster):
    data = json.loads(mooring("explain", "big", cluster(TOO_BIG), "-o", "json").stdout)

    assert data["state"] == "unschedulable"
    assert {node["node"] for node in data["nodes"]} == {"n-1", "n-2"}
    fit = data["nodes"][0]["filters"]["NodeResourcesFit"]
    assert fit["reasons"] == ["Insufficient cpu"]
    assert data["refusals"][0]["count"] == 2
    assert data["wouldFitIf"]["answers"][0]["changes"][0] == {
        "kind": "lower-request",
        "text": "lower the cpu request from 8 to 1",
        "size": 0.875,
        "resource": "cpu",
        "old": 8000,
        "new": 1000,
    }


def test_json_of_a_placed_pod_has_the_scores(cluster):
    data = json.loads(mooring("explain", "web", cluster(FITS), "-o", "json").stdout)
    node = next(each for each in data["nodes"] if each["node"] == "n-1")

    assert node["rank"] == 1
    assert node["total"] == sum(score["weighted"] for score in node["scores"].values())
    assert "wouldFitIf" not in data


def test_without_a_budget_no_changes_are_looked_for(cluster):
    result = mooring("explain", "big", cluster(TOO_BIG), "--budget", "0")

    assert result.exit_code == 1
    assert "WOULD FIT IF" not in result.stdout


def test_a_configuration_is_used(cluster, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins: {score: {disabled: [{name: NodeResourcesFit}]}}\n"
    )
    data = json.loads(
        mooring("explain", "web", cluster(FITS), "--config", config, "-o", "json").stdout
    )

    assert "NodeResourcesFit" not in data["nodes"][0]["scores"]


REFUSES_LATE = """
from mooring.plugin import unschedulable

class Reserves:
    name = "Quota"
    def reserve(self, state, pod, node): return unschedulable("the quota is used up")
    def unreserve(self, state, pod, node): pass

class Permits:
    name = "Quota"
    def permit(self, state, pod, node): return unschedulable("the quota is used up"), 0.0

class Binds:
    name = "Quota"
    def pre_bind(self, state, pod, node): return unschedulable("the quota is used up")
"""


@pytest.mark.parametrize("plugin", ["Reserves", "Permits", "Binds"])
def test_a_pod_that_is_refused_after_the_choice_is_pending(cluster, tmp_path, monkeypatch, plugin):
    """It was said to go to the node that it fits on, with exit 0."""
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    monkeypatch.delitem(__import__("sys").modules, "late", raising=False)
    (tmp_path / "late.py").write_text(REFUSES_LATE)
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"profiles: [{{plugins: {{multiPoint: {{enabled: [{{name: 'late:{plugin}'}}]}}}}}}]"
    )

    result = mooring("explain", "p", cluster(NODES + pod("p")), "--config", config, "-o", "json")

    said = json.loads(result.stdout)
    assert (result.exit_code, said["state"], said["node"]) == (1, "unschedulable", None)
    assert "the quota is used up" in said["message"]
    last = said["story"][-1]
    assert (last["point"], last["outcome"]) == ("choice", "rejected")
    assert "was given up: " in last["text"]
    assert "wouldFitIf" not in said


# What cannot be answered


@pytest.mark.parametrize(
    ("arguments", "text", "error"),
    [
        (["wbe"], FITS, "there is no pod 'wbe'; did you mean default/web?"),
        (["zzzzzz"], FITS, "there is no pod 'zzzzzz' among 2 pods"),
        (["web", "--node", "n1"], FITS, "there is no node 'n1'; did you mean n-"),
        (["web"], pod("web"), "the cluster has no nodes, so there is nothing to explain"),
        (["web"], NODES, "there is no pod 'web': the cluster has no pods"),
    ],
)
def test_it_exits_2_with_a_clear_line_if_it_cannot_answer(cluster, arguments, text, error):
    result = mooring("explain", *arguments, cluster(text))

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"error: {error}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("wrong", [["--top", "0"], ["--budget", "soon"], ["--output", "csv"]])
def test_it_exits_2_for_options_that_make_no_sense(cluster, wrong):
    assert mooring("explain", "web", cluster(FITS), *wrong).exit_code == 2


def test_an_unusable_configuration_is_named(cluster, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("kind: Nonsense\n")
    result = mooring("explain", "web", cluster(FITS), "--config", config)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {config}: ")


def test_it_runs_as_users_run_it(cluster):
    done = mooring_process("explain", "big", cluster(TOO_BIG))

    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("value", "drawn"), [(0, ""), (100, "█" * 20), (50, "█" * 10), (52, "█" * 10 + "▍"), (-1, "")]
)
def test_a_bar_is_a_share_of_the_highest(value, drawn):
    assert bar(value, 100) == drawn
