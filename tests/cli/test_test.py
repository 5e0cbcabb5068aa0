"""`mooring test`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.clusters import FITS
from tests.cli.running import mooring
from tests.sim.scenarios.playing import HEAD
from tests.unlistable import make_unlistable

GOOD = f"{HEAD}name: good\ncluster: cluster.yaml\nexpect: all pods placed\n"
BAD = f"{HEAD}name: bad\ncluster: cluster.yaml\nexpect: all pods on node n-1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(FITS)
    (tmp_path / "good.scenario.yaml").write_text(GOOD)
    return tmp_path


def test_scenarios_of_a_folder_that_all_pass_exit_0(folder):
    result = mooring("test", folder)

    assert result.exit_code == 0, result.output
    assert "passed  good  (" in result.stdout
    assert "1 scenario, 1 passed, 0 failed" in result.stdout


def test_a_difference_exits_1_and_is_shown(folder):
    (folder / "bad.scenario.yaml").write_text(BAD)

    result = mooring("test", folder)

    assert result.exit_code == 1, result.output
    assert "FAILED  bad  (" in result.stdout
    assert "expected  all pods on node n-1\n" in result.stdout
    assert "found     1 of 2 pods\n" in result.stdout
    assert "default/api on n-2\n" in result.stdout
    assert "2 scenarios, 1 passed, 1 failed" in result.stdout


def test_json_has_every_scenario(folder):
    (folder / "bad.scenario.yaml").write_text(BAD)

    result = mooring("test", folder, "-o", "json")
    data = json.loads(result.stdout)

    assert result.exit_code == 1
    assert data["passed"] is False
    bad, good = data["scenarios"]
    assert (bad["name"], bad["passed"], good["name"], good["passed"]) == (
        "bad",
        False,
        "good",
        True,
    )
    (failure,) = bad["failures"]
    assert failure["after"] == "at the end"
    assert failure["where"].endswith("bad.scenario.yaml:5")
    assert failure["pods"] == [{"pod": "default/api", "node": "n-2", "why": ""}]


def test_junit_is_written_beside_the_answer(folder):
    (folder / "bad.scenario.yaml").write_text(BAD)

    result = mooring("test", folder, "--junit", folder / "results.xml")
    suite = ElementTree.parse(folder / "results.xml").getroot()

    assert result.exit_code == 1
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    bad, good = suite
    assert good.find("failure") is None
    failure = bad.find("failure")
    assert failure is not None
    assert failure.get("message") == "expected all pods on node n-1; found 1 of 2 pods"
    assert "default/api on n-2" in (failure.text or "")


def test_a_timeline_shows_the_steps_among_what_happens(folder):
    path = folder / "drain.scenario.yaml"
    path.write_text(
        f"{HEAD}cluster: cluster.yaml\nsteps: [{{drain: n-1}}]\nexpect: no pods on node n-1\n"
    )

    result = mooring("test", path, "--timeline")

    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    events = [line[1] for line in lines if line and line[0] in ("0s", "30s")]
    assert events == ["queued", "queued", "bound", "bound", "step", "terminating", "deleted"]


def test_every_scenario_begins_with_the_cluster_that_is_named(folder):
    path = folder / "bare.scenario.yaml"
    path.write_text(f"{HEAD}expect: 2 pods placed\n")

    assert mooring("test", path).exit_code == 1
    assert mooring("test", path, "--cluster", folder / "cluster.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["/no/such.yaml"], "/no/such.yaml: cannot be read", id="no such file"),
        pytest.param(
            ["cluster.yaml"], "cluster.yaml:2: apiVersion: must be mooring.dev/v1", id="pods"
        ),
        pytest.param(["empty"], "the folder contains no *.scenario.yaml file", id="empty folder"),
        pytest.param(
            ["good.scenario.yaml", "--junit", "/no/such/file"], "cannot be written", id="no folder"
        ),
        pytest.param(
            ["good.scenario.yaml", "--cluster", "nowhere"], "nowhere: no such file", id="no cluster"
        ),
        pytest.param(
            ["good.scenario.yaml", "--context", "c"], "--context needs --kubeconfig", id="context"
        ),
        pytest.param(
            ["good.scenario.yaml", "--kubeconfig", "nowhere"], "nowhere", id="no kubeconfig"
        ),
    ],
)
def test_nonsense_is_refused(folder, monkeypatch, arguments, said):
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir()

    result = mooring("test", *arguments)

    assert result.exit_code == 2, result.output
    assert said in result.stderr


def test_a_folder_that_cannot_be_listed_is_an_error(folder):
    """Once, it ended in a traceback."""
    make_unlistable(folder)

    result = mooring("test", folder)

    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {folder}/ddd")
    assert line.endswith("cannot be read: File name too long")


def test_all_that_is_wrong_with_several_files_is_told_at_once(folder):
    for name in ("x", "y"):
        (folder / f"{name}.scenario.yaml").write_text(f"{HEAD}expct: no pods pending\n")

    result = mooring("test", folder)

    assert result.exit_code == 2
    for name in ("x", "y"):
        assert (
            f"{name}.scenario.yaml:3: expct: unknown field; did you mean 'expect'?" in result.stderr
        )
