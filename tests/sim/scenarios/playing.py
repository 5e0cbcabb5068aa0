"""Scenarios for tests: written as text, played on a small cluster."""

from __future__ import annotations

import textwrap
from pathlib import Path

from mooring.objects.pod import Pod
from mooring.sim.scenarios.run import Outcome, play
from mooring.sim.scenarios.scenario import read_scenarios
from mooring.sim.scenarios.scenario_cluster import ScenarioCluster
from mooring.sim.simulation import SimOptions

HEAD = "apiVersion: mooring.dev/v1\nkind: Scenario\n"


def node(name: str, *, zone: str = "a", cpu: int = 4, spec: str = "{}") -> str:
    """In the flow style, to be an entry of `objects`."""
    labels = f"{{kubernetes.io/hostname: {name}, topology.kubernetes.io/zone: {zone}}}"
    return (
        f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {labels}}}, spec: {spec},"
        f" status: {{allocatable: {{cpu: {cpu}, memory: 8Gi, pods: 20}}}}}}"
    )


def workload(
    kind: str, name: str, *, replicas: int = 1, cpu: str = "1", spec: str = "", more: str = ""
) -> str:
    """`spec` is of the pods, `more` of the workload; both as `, key: value`."""
    group = "batch/v1" if kind == "Job" else "apps/v1"
    number = f"parallelism: {replicas}, completions: {replicas}" if kind == "Job" else ""
    number = number or (f"replicas: {replicas}" if kind != "DaemonSet" else "minReadySeconds: 0")
    container = f"{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}"
    restart = ", restartPolicy: Never" if kind == "Job" else ""
    selector = "" if kind == "Job" else f", selector: {{matchLabels: {{app: {name}}}}}"
    return (
        f"{{apiVersion: {group}, kind: {kind}, metadata: {{name: {name}}}, spec: {{{number}{selector},"
        f" template: {{metadata: {{labels: {{app: {name}}}}},"
        f" spec: {{containers: [{container}]{restart}{spec}}}}}{more}}}}}"
    )


def pod(name: str, *, cpu: str = "1", labels: str = "{}", spec: str = "") -> str:
    container = f"{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}"
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {labels}}},"
        f" spec: {{containers: [{container}]{spec}}}}}"
    )


ZONES = [node("a-1", zone="a"), node("b-1", zone="b"), node("c-1", zone="c")]


def scenario(*objects: str, body: str) -> str:
    """A document; `body` has its steps and expectations."""
    listed = "".join(f"  - {each}\n" for each in objects)
    return f"{HEAD}objects:\n{listed}{textwrap.dedent(body)}"


def played(folder: Path, *objects: str, body: str, **options) -> Outcome:
    path = folder / "s.scenario.yaml"
    path.write_text(scenario(*objects, body=body))
    (only,) = read_scenarios(path)
    return play(only, **options)


def stage_of(folder: Path, *objects: str) -> ScenarioCluster:
    """A settled cluster; close it when done."""
    path = folder / "s.scenario.yaml"
    path.write_text(scenario(*objects, body="expect: no pods of app=none exist\n"))
    (only,) = read_scenarios(path)
    cluster = ScenarioCluster(SimOptions(), folder)
    cluster.apply([], only.objects)
    cluster.settle()
    return cluster


def pods(cluster: ScenarioCluster, app: str) -> dict[str, str]:
    """Name → node, of those that are not on their way out."""
    found = cluster.simulation.api.all(Pod)
    return {
        pod.name: pod.node_name
        for pod in found
        if pod.labels.get("app") == app and not pod.terminating
    }
