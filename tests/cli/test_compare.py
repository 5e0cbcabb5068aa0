"""`mooring compare` answers in every form, and fails a build when it is told to."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.clusters import FITS, NODES, pod
from tests.cli.running import mooring

MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
#: Packed, two small pods leave a node for the large one; spread, they do not.
CLUSTER = NODES + pod("p", cpu="500m") + pod("q", cpu="500m") + pod("z-large", cpu="2")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "most.yaml").write_text(MOST_ALLOCATED)
    return tmp_path


def compared(files: Path, *arguments: object, exit_code: int = 0) -> str:
    result = mooring("compare", "-f", files / "cluster.yaml", *arguments)
    assert result.exit_code == exit_code, result.output
    return result.stdout


def both(files: Path) -> tuple[object, ...]:
    return ("--config", files / "most.yaml", "--config", "default")


def test_the_table_says_what_differs_and_why(files):
    text = compared(files, *both(files))

    assert "WHY default/q" in text
    assert "NodeResourcesFit" in text
    assert "pending only with default: 1" in text


def test_json_has_everything(files):
    data = json.loads(compared(files, *both(files), "-o", "json"))

    (difference,) = data["differences"]
    assert difference["onlyPendingInVariant"] == ["default/z-large"]
    assert difference["why"][0]["sameState"] is True
    assert [each["values"]["pending"] for each in data["variants"]] == [0, 1]


def test_csv_has_a_line_a_measure_and_a_line_a_pod(files):
    rows = list(csv.reader(io.StringIO(compared(files, *both(files), "-o", "csv"))))

    assert rows[0] == ["kind", "name", str(files / "most.yaml"), "default"]
    assert ["measure", "pending", "0", "1"] in rows
    assert ["pod", "default/z-large", "n-2", "pending"] in rows


def test_html_is_one_file_with_every_name_escaped(files):
    strange = files / "<script>alert(1)<"
    strange.mkdir()
    (strange / "most.yaml").write_text(MOST_ALLOCATED)

    text = compared(files, "--config", strange / "most.yaml", "--config", "default", "-o", "html")

    assert text.startswith("<!doctype html>")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http" not in text


@pytest.mark.parametrize(
    ("limits", "exit_code"),
    [
        pytest.param([], 0, id="not asked"),
        pytest.param(["--fail-on-regression"], 1, id="one more is pending"),
        pytest.param(["--max-pending", "+0"], 1, id="a limit alone"),
        pytest.param(["--max-pending", "+1"], 0, id="one more is allowed"),
        pytest.param(["--fail-on-regression", "--max-preemptions", "+0"], 0, id="another limit"),
    ],
)
def test_a_regression_fails_the_build(files, limits, exit_code):
    compared(files, *both(files), *limits, exit_code=exit_code)


def test_the_other_way_round_is_no_regression(files):
    text = compared(
        files, "--config", "default", "--config", files / "most.yaml", "--fail-on-regression"
    )

    assert "no regression" in text


def test_clusters_are_compared(files):
    (files / "larger.yaml").write_text(CLUSTER + "---" + NODES.replace("n-", "m-"))

    result = mooring(
        "compare",
        "--cluster",
        files / "cluster.yaml",
        "--cluster",
        files / "larger.yaml",
        "-o",
        "json",
    )

    data = json.loads(result.stdout)
    assert [each["values"]["pending"] for each in data["variants"]] == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["--config", "default"], "nothing to compare", id="one variant"),
        pytest.param(
            ["--config", "default", "--config", "/no/such"],
            "/no/such: cannot be read",
            id="no file",
        ),
        pytest.param(
            ["--config", "default", "--config", "default", "--max-pending", "few"],
            "'few' is not a limit",
            id="a limit in words",
        ),
        pytest.param(
            [*["--config", "default"] * 2, *["--cluster", "x"] * 2], "not both", id="both"
        ),
    ],
)
def test_nonsense_is_refused(files, arguments, said):
    result = mooring("compare", "-f", files / "cluster.yaml", *arguments)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_plugin_that_is_not_there_is_told_by_the_file_that_names_it(files):
    path = files / "wrong.yaml"
    head = MOST_ALLOCATED.partition("profiles:")[0]
    path.write_text(head + "profiles: [{plugins: {filter: {enabled: [{name: NodePort}]}}}]")

    result = mooring("compare", files / "cluster.yaml", "--config", "default", "--config", path)

    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {path}: ")


def test_an_empty_cluster_is_compared_all_the_same(tmp_path):
    path = tmp_path / "pods.yaml"
    path.write_text(pod("web"))

    result = mooring("compare", path, "--config", "default", "--config", "default")

    assert result.exit_code == 0, result.output
    assert "0 pods on another node" in result.stdout


def test_the_same_configuration_twice_has_two_names(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(FITS)

    result = mooring("compare", path, "--config", "default", "--config", "default")

    assert "default (2)" in result.stdout
