"""The language of scheduler_perf, on files in the shape of upstream's."""

from __future__ import annotations

import json

import pytest

from benchmarks import scheduler_perf
from benchmarks.perf.language import Template, Unsupported, read_test_cases, resolved

POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec:
  containers:
  - {name: c, image: pause, resources: {requests: {cpu: 100m}}}
"""
LARGE = POD.replace("100m", "64")
CONFIG = """
- name: Basic
  defaultPodTemplatePath: templates/pod.yaml
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes}
  - {opcode: createPods, countParam: $before}
  - {opcode: createPods, countParam: $measured, collectMetrics: true}
  workloads:
  - name: small
    labels: [performance]
    threshold: 100
    featureGates: {SchedulerQueueingHints: false}
    params: {nodes: 5, before: 3, measured: 20}
- name: Churn
  defaultPodTemplatePath: templates/pod.yaml
  workloadTemplate:
  - {opcode: createNodes, count: 3}
  - opcode: churn
    mode: recreate
    number: 1
    templatePaths: [templates/large.yaml]
    intervalMilliseconds: 5
  - {opcode: createPods, count: 30, collectMetrics: true}
  workloads:
  - {name: small, params: {}}
- name: Deleted
  defaultPodTemplatePath: templates/half.yaml
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
  - {name: small, params: {}}
- name: Unknown
  workloadTemplate: [{opcode: levitate}]
  workloads:
  - {name: small, params: {}}
- name: Full
  defaultPodTemplatePath: templates/large.yaml
  workloadTemplate:
  - {opcode: createNodes, count: 1}
  - {opcode: createPods, count: 1, collectMetrics: true}
  workloads:
  - {name: small, params: {}}
"""


@pytest.fixture
def folder(tmp_path):
    area = tmp_path / "misc"
    (area / "templates").mkdir(parents=True)
    (area / "performance-config.yaml").write_text(CONFIG)
    half = POD.replace("100m", "2")
    for name, text in (("pod", POD), ("large", LARGE), ("half", half)):
        (area / "templates" / f"{name}.yaml").write_text(text)
    return tmp_path


def measured(folder, name):
    (case,) = (case for case in read_test_cases(folder) if case.name == name)
    return scheduler_perf.measure(case, case.workloads[0])


def test_measured_pods_are_counted_and_stand_beside_the_threshold(folder):
    row = measured(folder, "Basic")

    assert (row.name, row.pods, row.threshold) == ("misc/Basic/small", 20, 100)
    assert row.per_s > 0
    # A locked gate cannot be switched off.
    assert row.ignored_gates == ("SchedulerQueueingHints=false",)


def test_other_pods_come_and_go_meanwhile(folder):
    assert measured(folder, "Churn").pods == 30


def test_pods_are_deleted_at_a_rate_and_make_room(folder):
    assert measured(folder, "Deleted").pods == 2


@pytest.mark.parametrize(
    ("name", "missing"),
    [("Unknown", "opcode levitate"), ("Full", "the pods that must be scheduled are not")],
)
def test_a_workload_that_cannot_run_says_what_is_missing(folder, name, missing):
    row = measured(folder, name)

    assert row.missing == missing
    assert missing in scheduler_perf.table([row])


def test_the_command_runs_what_matches(folder, capsys):
    arguments = ["--folder", str(folder), "--labels", "performance", "--output", "json"]

    assert scheduler_perf.main(arguments) == 0

    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["name"] == "misc/Basic/small"
    assert scheduler_perf.main(["--folder", str(folder), "--match", "nothing*"]) == 2
    assert scheduler_perf.main(["--folder", str(folder), "--match", "*/Unknown/*"]) == 1


def test_parameters_are_filled_in():
    given = {"countParam": "$n", "createPodsOp": {"opcode": "createPods", "countParam": "$m"}}

    assert resolved(given, {"n": 3, "m": 4}) == {
        "count": 3,
        "createPodsOp": {"opcode": "createPods", "count": 4},
    }
    with pytest.raises(Unsupported, match=r"no parameter \$n"):
        resolved(given, {})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: {{.Index}}", 7),
        ("a: {{ Mod .Index 4 }}", 3),
        ("a: {{DivideInt .Count .Index}}", 14),
        ("a: {{AddInt .Index 1}}", 8),
    ],
)
def test_a_template_knows_its_number(text, value, tmp_path):
    assert Template(tmp_path / "t.yaml", text).manifest(7, 100) == {"a": value}


def test_what_a_template_cannot_say_is_named(tmp_path):
    with pytest.raises(Unsupported, match=r"t.yaml: \{\{range .Items\}\}"):
        Template(tmp_path / "t.yaml", "a: {{range .Items}}").manifest()
