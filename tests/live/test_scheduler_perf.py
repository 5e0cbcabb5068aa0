"""scheduler_perf against a real API server: the script of a workload does live what it does in process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import scheduler_perf

pytestmark = pytest.mark.live

POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: c, image: pause, resources: {requests: {cpu: "2"}}}
"""
CONFIG = """
- name: Deleted
  defaultPodTemplatePath: pod.yaml
  workloadTemplate:
  - {opcode: createNodes, count: 1}
  - {opcode: createPods, count: 2, namespace: first}
  - {opcode: createPods, count: 2, namespace: second, skipWaitToCompletion: true}
  - {opcode: barrier, stageRequirement: Attempted}
  - {opcode: startCollectingMetrics, namespaces: [second]}
  - {opcode: deletePods, namespace: first, deletePodsPerSecond: 10}
  - {opcode: barrier, namespaces: [second]}
  - {opcode: stopCollectingMetrics}
  workloads:
  - {name: small, params: {}, threshold: 1}
"""


@pytest.mark.parametrize("scheduler", ["mooring", "kube-scheduler"])
def test_a_workload_runs_live(tmp_path: Path, scheduler: str) -> None:
    (tmp_path / "performance-config.yaml").write_text(CONFIG)
    (tmp_path / "pod.yaml").write_text(POD)
    arguments = ["--folder", str(tmp_path), "--live", scheduler, "--write", str(tmp_path)]

    assert scheduler_perf.main(arguments) == 0

    data = json.loads((tmp_path / scheduler_perf.FILE).read_text())
    (row,) = data["rows"]
    assert (data["live"], row["pods"], row["missing"]) == (scheduler, 2, "")
    assert row["seconds"] > 0
