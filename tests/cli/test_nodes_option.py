"""`--nodes` and `-n` mean the same for every command that reads a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mooring.errors import InputError
from mooring.library import Cluster
from tests.cli.clusters import NODES, pod
from tests.cli.running import mooring

APP = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]}
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "app.yaml").write_text(APP)
    return folder


def test_simulate_places_an_application_on_nodes_from_nothing(app):
    result = mooring("simulate", "-f", app, "--nodes", "2xm5.xlarge,zones=2", "-o", "json")

    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["summary"]["nodes"] == 2
    # Three replicas, and an agent on each node.
    assert data["summary"]["placed"] == 5
    assert {each["node"] for each in data["placements"]} == {"m5-xlarge-1", "m5-xlarge-2"}


def test_several_groups_are_added_to_the_nodes_of_the_files(app):
    (app / "nodes.yaml").write_text(NODES)

    result = mooring(
        *("simulate", app, "--nodes", "2x8cpu,32Gi", "--nodes", "g5.xlarge,taint=gpu:NoSchedule"),
        *("-o", "json"),
    )

    nodes = {each["node"] for each in json.loads(result.stdout)["utilisation"]["nodes"]}
    assert nodes == {"n-1", "n-2", "8cpu-32gi-1", "8cpu-32gi-2", "g5-xlarge-1"}


@pytest.mark.parametrize(
    "command",
    [
        ("explain", "deployment/web"),
        ("capacity", "--drain", "4cpu-16gi-1"),
        ("compare", "--config", "default", "--config", "default"),
        ("simulate",),
        ("report", "-o", "-", "--budget", "0"),
    ],
)
def test_every_command_that_reads_a_cluster_has_nodes(app, command):
    result = mooring(*command, "-f", app, "--nodes", "3x4cpu,16Gi")

    assert result.exit_code == 0, result.output


def test_scenarios_can_start_with_nodes_from_nothing(app):
    (app / "a.scenario.yaml").write_text(
        "apiVersion: mooring.dev/v1\nkind: Scenario\nname: it fits\nsteps:\n- apply: app.yaml\n"
        "  expect: 3 pods of app=web placed\n"
    )

    result = mooring("test", app / "a.scenario.yaml", "--nodes", "3x4cpu,16Gi")

    assert result.exit_code == 0, result.output
    assert mooring("test", app / "a.scenario.yaml", "--nodes", "1x1cpu,1Gi").exit_code == 1


def test_a_wrong_description_is_refused_with_similar_names(app):
    result = mooring("simulate", app, "--nodes", "3xm5.xlagre")

    assert result.exit_code == 2
    assert "did you mean m5.xlarge" in result.stderr


def test_nodes_alone_are_a_cluster():
    assert mooring("simulate", "--nodes", "3xm5.xlarge").exit_code == 0


@pytest.mark.parametrize(
    "command", [("simulate",), ("explain", "web"), ("capacity", "--lose", "a")]
)
def test_without_nodes_a_hint_says_how_to_get_some(app, command):
    result = mooring(*command, "-f", app)

    assert result.exit_code in (1, 2)
    assert "add nodes with --nodes 3xm5.xlarge" in result.stderr


def test_a_trace_brings_its_own_nodes():
    result = mooring("report", "--trace", "t", "--nodes", "m5.large", "-o", "-")

    assert result.exit_code == 2
    assert "--trace brings its own cluster" in result.stderr


def test_the_library_has_nodes_from_nothing(app):
    cluster = Cluster.load(app, nodes=["2xm5.xlarge"])

    assert [node.name for node in cluster.nodes] == ["m5-xlarge-1", "m5-xlarge-2"]
    with pytest.raises(InputError, match="did you mean"):
        Cluster.load(nodes=["m5.xlagre"])


def test_a_namespace_is_that_of_objects_without_one(app):
    (app / "other.yaml").write_text(pod("there", metadata=", namespace: other"))

    result = mooring("simulate", app, "-n", "shop", "--nodes", "m5.2xlarge", "-o", "json")

    pods = [each["pod"] for each in json.loads(result.stdout)["placements"]]
    assert sorted({pod.partition("/")[0] for pod in pods}) == ["other", "shop"]
    assert "other/there" in pods
