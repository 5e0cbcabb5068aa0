"""Gangs that a step of a scenario applies."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from mooring.cli.main import cli

SCENARIO = """
apiVersion: mooring.dev/v1
kind: Scenario
config:
  apiVersion: kubescheduler.config.k8s.io/v1
  kind: KubeSchedulerConfiguration
  featureGates: {GenericWorkload: true, GangScheduling: true}
objects:
- apiVersion: v1
  kind: Node
  metadata: {name: node}
  status: {allocatable: {cpu: "1", memory: 1Gi, pods: "9"}}
steps:
- apply:
    apiVersion: kubeflow.org/v1
    kind: PyTorchJob
    metadata: {name: x, annotations: {mooring.dev/gang: "true"}}
    spec:
      pytorchReplicaSpecs:
        Worker:
          replicas: 2
          template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]}}
expect: {pending: true}
"""


def test_pods_that_a_custom_resource_makes_in_a_step_are_a_gang(tmp_path: Path) -> None:
    file = tmp_path / "x.scenario.yaml"
    file.write_text(SCENARIO)

    result = CliRunner().invoke(cli, ["test", str(file)])

    assert result.exit_code == 0, result.output
