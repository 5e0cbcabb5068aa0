"""`--feature-gates`, and `featureGates` in a configuration."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.cli.running import mooring

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}
---
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: gang}
spec: {schedulingPolicy: {gang: {minCount: 3}}}
"""
MEMBER = """
---
apiVersion: v1
kind: Pod
metadata: {{name: gang-{}}}
spec:
  schedulingGroup: {{podGroupName: gang}}
  containers: [{{name: c, resources: {{requests: {{cpu: "1"}}}}}}]
"""
ON = "GenericWorkload=true,GangScheduling=true"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
featureGates: {GenericWorkload: true, GangScheduling: true}
"""


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER + "".join(MEMBER.format(n) for n in (1, 2, 3)))
    return path


def placed(result) -> int:
    return json.loads(result.stdout)["summary"]["placed"]


def test_gates_of_the_command_line_switch_gangs_on(cluster):
    alone = mooring("simulate", cluster, "-o", "json")
    together = mooring("simulate", cluster, "-o", "json", "--feature-gates", ON)

    assert (placed(alone), placed(together)) == (2, 0)
    assert alone.exit_code == together.exit_code == 1
    assert "use --feature-gates" in alone.stderr


def test_gates_of_the_configuration_switch_gangs_on_unless_the_command_says_otherwise(
    cluster, tmp_path
):
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    off = "GenericWorkload=false,GangScheduling=false"

    assert placed(mooring("simulate", cluster, "-o", "json", "--config", config)) == 0
    overridden = mooring(
        "simulate", cluster, "-o", "json", "--config", config, "--feature-gates", off
    )
    assert placed(overridden) == 2


@pytest.mark.parametrize(
    ("gates", "problem"),
    [
        ("Gangs=true", "unrecognized feature gate: Gangs"),
        ("GangScheduling=true", "depends on features that are disabled: [GenericWorkload]"),
        ("GenericWorkload", "missing bool value for GenericWorkload"),
    ],
)
def test_gates_that_cannot_be_set_are_refused(cluster, gates, problem):
    result = mooring("simulate", cluster, "--feature-gates", gates)

    assert result.exit_code == 2
    assert problem in result.stderr


def test_gates_of_a_configuration_are_checked_and_written_back(tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(CONFIG)
    bad.write_text(CONFIG.replace("GenericWorkload: true, ", ""))

    view = mooring("config", "view", good, "-o", "yaml")
    refused = mooring("config", "check", bad)

    written = yaml.safe_load(view.stdout)
    assert written["featureGates"] == {"GenericWorkload": True, "GangScheduling": True}
    names = [each["name"] for each in written["profiles"][0]["plugins"]["multiPoint"]["enabled"]]
    assert names[-1] == "GangScheduling"
    assert refused.exit_code == 1
    assert "featureGates: GangScheduling is enabled, but depends on" in refused.stderr


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("{schedulingPolicy: {}}", "must have exactly one of basic and gang"),
        ("{schedulingPolicy: {gang: {minCount: 0}}}", "must be 1 or more"),
        (
            "{schedulingPolicy: {basic: {}}, disruptionMode: All}",
            "spec.disruptionMode: must be Pod or PodGroup",
        ),
        (
            "{schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: a}, {key: b}]}}",
            "must have at most one entry",
        ),
    ],
)
def test_a_pod_group_that_the_api_would_refuse_is_refused(tmp_path, spec, problem):
    path = tmp_path / "group.yaml"
    path.write_text(
        CLUSTER.replace("{schedulingPolicy: {gang: {minCount: 3}}}", spec),
    )
    result = mooring("simulate", path)

    assert result.exit_code == 2
    assert problem in result.stderr
