"""`mooring simulate`: what it prints and how it exits."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
import yaml

from tests.cli.clusters import FITS, NODES, TOO_BIG, pod
from tests.cli.running import mooring, mooring_process

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"""


@pytest.fixture
def cluster(tmp_path: Path):
    def write(text: str, name: str = "cluster.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


# The answer


def test_it_exits_0_when_every_pod_is_placed(cluster):
    result = mooring("simulate", cluster(FITS))

    assert result.exit_code == 0
    assert "default/web  n-1" in result.stdout
    assert "2 placed, 0 pending; on 2 nodes" in result.stdout
    assert result.stderr == ""


def test_it_exits_1_when_a_pod_is_pending_and_says_why(cluster):
    result = mooring("simulate", cluster(TOO_BIG))

    assert result.exit_code == 1
    assert "0/2 nodes are available: 2 Insufficient cpu." in result.stdout


def test_it_exits_2_when_a_file_cannot_be_read():
    result = mooring("simulate", "/no/such/file.yaml")

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: /no/such/file.yaml: ")


def test_it_wants_something_to_read():
    result = mooring("simulate")

    assert result.exit_code == 2
    assert "give files or folders" in result.stderr


def test_a_pod_that_finishes_counts_as_placed(cluster):
    runs = ', annotations: {mooring.dev/run-seconds: "60"}'
    text = NODES + "".join(pod(f"p{i}", cpu="2", metadata=runs) for i in range(3))

    result = mooring("simulate", cluster(text))

    assert result.exit_code == 0
    assert "3 placed, 0 pending, 3 finished; on 2 nodes, in 2m0s of virtual time" in result.stdout


def test_pods_without_nodes_are_pending_and_the_run_ends(cluster):
    result = mooring("simulate", cluster(pod("p")))

    assert result.exit_code == 1
    assert "no nodes available to schedule pods" in result.stdout


def test_a_preemption_says_who_went_for_whom_and_why_there(cluster):
    text = (
        NODES
        + pod("first", cpu="2", spec=", nodeName: n-1, priority: 5")
        + pod("second", cpu="2", spec=", nodeName: n-2, priority: 1")
        + pod("urgent", cpu="2", spec=", priority: 1000")
    )

    result = mooring("simulate", cluster(text))

    assert result.exit_code == 0
    assert (
        "default/urgent (1000)  default/second (1)  n-2   least important victims" in result.stdout
    )


def test_a_gated_pod_and_one_for_another_scheduler_are_pending_with_their_reasons(cluster):
    text = (
        NODES
        + pod("gated", spec=", schedulingGates: [{name: example.com/quota}]")
        + pod("other", spec=", schedulerName: another")
    )

    result = mooring("simulate", cluster(text))

    assert result.exit_code == 1
    assert "waiting for scheduling gates: example.com/quota" in result.stdout
    assert "no profile has the scheduler name 'another'" in result.stdout


# Pods that would not be created

QUOTA = """
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute}
spec: {hard: {pods: "1"}}
"""
EXCEEDED = "exceeded quota: compute, requested: pods=1, used: pods=1, limited: pods=1"


def test_pods_that_a_quota_refuses_are_counted_and_the_exit_code_is_that_of_pending_pods(cluster):
    """They were counted as placed, or not at all, with exit code 0."""
    path = cluster(FITS + QUOTA)

    result = mooring("simulate", path)

    assert result.exit_code == 1
    assert "NOT CREATED" in result.stdout
    assert f"Pod        1  default/api  {EXCEEDED}" in result.stdout
    assert "1 placed, 0 pending, 1 not created; on 2 nodes" in result.stdout
    assert result.stderr == f"warning: Pod default/api would not be created: {EXCEEDED}\n"


def test_json_and_csv_have_the_pods_that_would_not_be_created(cluster):
    path = cluster(FITS + QUOTA)

    result = mooring("simulate", path, "-o", "json")
    data = json.loads(result.stdout)

    assert result.exit_code == 1
    assert data["summary"]["notCreated"] == 1
    assert data["notCreated"] == [
        {"kind": "Pod", "object": "default/api", "owner": "", "reason": EXCEEDED}
    ]
    rows = list(csv.reader(io.StringIO(mooring("simulate", path, "-o", "csv").stdout)))
    assert ["default/api", "not created", "", "", "", EXCEEDED] in rows


def test_many_pods_that_are_refused_for_one_reason_are_one_row(cluster):
    text = FITS + QUOTA + "".join(pod(f"p{i}", cpu="1m") for i in range(200))

    result = mooring("simulate", cluster(text))

    assert f"Pod      201  default/api  {EXCEEDED}" in result.stdout
    assert "and 200 more would not be created" in result.stderr


def test_other_commands_warn_of_pods_that_would_not_be_created(cluster):
    path = cluster(FITS + QUOTA)

    explained = mooring("explain", "web", path)
    assert explained.exit_code == 0
    assert "Pod default/api would not be created: exceeded quota" in explained.stderr

    refused = mooring("explain", "api", path)
    assert refused.exit_code == 2
    assert f"error: pod default/api would not be created: {EXCEEDED}" in refused.stderr


def test_a_claim_without_a_class_is_warned_about_and_explained(cluster):
    text = (
        NODES
        + pod("db", spec=", volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]")
        + """
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
    )
    path = cluster(text)
    line = "claim default/data has no class and there is no default StorageClass"

    simulated = mooring("simulate", path)
    assert simulated.exit_code == 1
    assert simulated.stderr == f"warning: {line}; add one\n"

    answers = json.loads(mooring("explain", "db", path, "-o", "json").stdout)["wouldFitIf"]
    assert [each["text"] for each in answers["answers"]] == [f"add a default StorageClass: {line}"]
    assert answers["answers"][0]["node"] == "n-1"


# What it reads


def test_paths_and_f_are_one(cluster):
    nodes, pods = cluster(NODES, "nodes.yaml"), cluster(pod("web") + pod("api"), "pods.yaml")

    expected = mooring("simulate", nodes, pods).stdout

    assert mooring("simulate", "-f", nodes, "-f", pods).stdout == expected
    assert mooring("simulate", nodes, "--filename", pods).stdout == expected
    assert mooring("simulate", nodes.parent).stdout == expected
    assert mooring("simulate", "-", stdin=FITS).stdout == expected
    assert mooring("simulate", "-f", "-", stdin=FITS).stdout == expected


def test_kinds_that_it_does_not_read_are_told_once(cluster):
    text = FITS + 2 * "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"

    result = mooring("simulate", cluster(text))

    assert result.exit_code == 0
    assert result.stderr == "skipped, no effect on scheduling: 2 ConfigMap\n"


def test_a_configuration_decides_which_pods_are_scheduled(cluster):
    config = cluster(CONFIG + "profiles: [{schedulerName: another}]", "scheduler.yaml")

    result = mooring("simulate", cluster(FITS), "--config", config)

    assert result.exit_code == 1
    assert "no profile has the scheduler name 'default-scheduler'" in result.stdout


def test_a_plugin_may_lie_beside_the_configuration_that_names_it(cluster, monkeypatch):
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    cluster(
        "class OnlyTwo:\n"
        "    name = 'OnlyTwo'\n"
        "    def filter(self, state, pod, node):\n"
        "        from mooring.framework.status import unschedulable\n"
        "        return None if node.name == 'n-2' else unschedulable('not n-2')\n",
        "beside.py",
    )
    config = cluster(
        CONFIG + "profiles: [{plugins: {multiPoint: {enabled: [{name: 'beside:OnlyTwo'}]}}}]",
        "scheduler.yaml",
    )

    result = mooring("simulate", cluster(FITS), "--config", config, "-o", "json")

    assert {placed["node"] for placed in json.loads(result.stdout)["placements"]} == {"n-2"}


def test_a_plugin_that_raises_fails_the_pod_and_not_the_run(cluster, monkeypatch):
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    cluster(
        "class Breaks:\n"
        "    name = 'Breaks'\n"
        "    def filter(self, state, pod, node):\n"
        "        raise ValueError('no idea')\n",
        "breaks.py",
    )
    config = cluster(
        CONFIG + "profiles: [{plugins: {multiPoint: {enabled: [{name: 'breaks:Breaks'}]}}}]",
        "scheduler.yaml",
    )

    result = mooring("simulate", cluster(FITS), "--config", config)

    assert result.exit_code == 1
    assert "Breaks" in result.stdout
    assert "no idea" in result.stdout


@pytest.mark.parametrize(
    ("source", "exit_code"),
    [
        pytest.param("import sys; sys.exit(0)\n", 2, id="when it is imported"),
        pytest.param(
            "class Ends:\n    name = 'Ends'\n"
            "    def __init__(self, args, handle):\n        raise SystemExit(0)\n"
            "    def filter(self, state, pod, node):\n        return None\n",
            2,
            id="when it is made",
        ),
        pytest.param(
            "class Ends:\n    name = 'Ends'\n"
            "    def filter(self, state, pod, node):\n        raise SystemExit(0)\n",
            1,
            id="when it is asked",
        ),
    ],
)
def test_a_plugin_that_ends_the_process_is_no_answer(cluster, monkeypatch, source, exit_code):
    """It exited 0 and printed nothing, as if every pod were placed."""
    monkeypatch.setattr("sys.path", ["", *__import__("sys").path])
    monkeypatch.delitem(__import__("sys").modules, "ends", raising=False)
    cluster(source, "ends.py")
    config = cluster(
        CONFIG + "profiles: [{plugins: {multiPoint: {enabled: [{name: 'ends:Ends'}]}}}]",
        "scheduler.yaml",
    )

    result = mooring("simulate", cluster(FITS), "--config", config)

    assert result.exit_code == exit_code
    assert "SystemExit: 0" in result.stdout + result.stderr


def test_until_takes_a_go_duration_or_seconds(cluster):
    path = cluster(NODES + pod("p", metadata=', annotations: {mooring.dev/run-seconds: "3600"}'))

    def elapsed(until: str) -> float:
        result = mooring("simulate", path, "--until", until, "-o", "json")
        return json.loads(result.stdout)["summary"]["elapsedSeconds"]

    assert elapsed("1h30m") == 5400
    assert elapsed("90") == 90
    assert elapsed("1.5") == 1.5


@pytest.mark.parametrize("until", ["", "soon", "-1s", "5", "1e99h", "inf", "nan"])
def test_until_refuses_what_is_no_length_of_time(cluster, until):
    result = mooring("simulate", cluster(FITS), "--until", until)

    assert result.exit_code == (0 if until == "5" else 2)
    assert ("is not a duration" in result.stderr) == (until != "5")


def test_a_seed_gives_the_same_answer_each_time(cluster):
    path = cluster(NODES + "".join(pod(f"p{i}", cpu="100m") for i in range(10)))

    first, second = (mooring("simulate", path, "--seed", 7).stdout for _ in range(2))

    assert first == second


# The forms of output


def test_json_has_everything(cluster):
    data = json.loads(mooring("simulate", cluster(TOO_BIG), "-o", "json").stdout)

    assert data["summary"] | {"elapsedSeconds": 0} == {
        "nodes": 2,
        "alreadyPlaced": 0,
        "placed": 2,
        "pending": 1,
        "notCreated": 0,
        "otherSchedulers": 0,
        "finished": 0,
        "preempted": 0,
        "elapsedSeconds": 0,
    }
    assert data["placements"][0] == {
        "pod": "default/web",
        "node": "n-1",
        "atSeconds": 0.0,
        "state": "running",
        "endedAtSeconds": None,
    }
    assert data["pending"][0]["plugins"] == ["NodeResourcesFit"]
    assert data["utilisation"]["nodes"][0]["resources"]["cpu"] == {
        "requested": 1000,
        "allocatable": 2000,
        "percent": 50.0,
        "unit": "millicores",
    }
    assert "timeline" not in data


def test_yaml_names_kinds_that_are_skipped(cluster):
    """The effect of a skipped kind could not be written as YAML: the command ended with a traceback."""
    path = cluster(NODES + pod("web") + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")

    result = mooring("simulate", path, "-o", "yaml")

    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["skipped"] == [
        {"kind": "Secret", "objects": 1, "effect": "none"}
    ]


def test_yaml_says_what_json_says(cluster):
    path = cluster(TOO_BIG)

    from_json = json.loads(mooring("simulate", path, "-o", "json", "--timeline").stdout)
    from_yaml = yaml.safe_load(mooring("simulate", path, "-o", "yaml", "--timeline").stdout)

    assert from_yaml == from_json


def test_csv_has_a_line_for_each_pod(cluster):
    text = mooring("simulate", cluster(TOO_BIG), "-o", "csv").stdout

    lines = list(csv.DictReader(io.StringIO(text)))
    assert [(line["pod"], line["state"], line["node"]) for line in lines] == [
        ("default/web", "running", "n-1"),
        ("default/api", "running", "n-2"),
        ("default/big", "unschedulable", ""),
    ]
    assert lines[2]["message"].startswith("0/2 nodes are available")


def test_csv_with_a_timeline_has_a_line_for_each_event(cluster):
    text = mooring("simulate", cluster(FITS), "-o", "csv", "--timeline").stdout

    lines = list(csv.DictReader(io.StringIO(text)))
    assert [(line["event"], line["pod"]) for line in lines] == [
        ("queued", "default/web"),
        ("queued", "default/api"),
        ("bound", "default/web"),
        ("bound", "default/api"),
    ]


def test_a_timeline_does_not_repeat_a_reason(cluster):
    runs = ', annotations: {mooring.dev/run-seconds: "60"}'
    text = NODES + "".join(pod(f"p{i}", cpu="2", metadata=runs) for i in range(4))

    result = mooring("simulate", cluster(text + pod("big", cpu="8")), "--timeline")

    lines = [line for line in result.stdout.splitlines() if " failed " in line and "big" in line]
    assert "Insufficient cpu" in lines[0]
    assert len(lines) > 1
    assert all(line.endswith("as before") for line in lines[1:])


def test_long_tables_are_cut_and_say_so(cluster):
    nodes = "".join(
        f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: n-{i:03}}}\n"
        'status: {allocatable: {cpu: "2", memory: 4Gi, pods: "10"}}\n'
        for i in range(60)
    )
    pods = "".join(pod(f"p{i}") for i in range(60)) + "".join(
        pod(f"b{i}", cpu="8") for i in range(50)
    )
    path = cluster(nodes + pods)

    cut, whole = mooring("simulate", path), mooring("simulate", path, "--rows", 0)

    assert "… and 20 more nodes; use --rows 0 or --output json to see all" in cut.stdout
    assert "… and 20 more pods; use --rows 0 or --output json to see all" in cut.stdout
    assert "50  default/b0  0/60 nodes are available" in cut.stdout
    assert "…" not in whole.stdout


def test_help_says_what_the_exit_codes_mean():
    text = " ".join(mooring("simulate", "--help").stdout.split())

    assert (
        "Exits 0 if every pod is placed or finished, 1 if some are pending or would not be created, 2 if"
        in text
    )
    assert "mooring simulate cluster.yaml workloads/" in text


# What is skipped, left out or not created

OTHERS = """
---
{apiVersion: v1, kind: Secret, metadata: {name: a}}
---
{apiVersion: keda.sh/v1, kind: ScaledObject, metadata: {name: a}}
---
{apiVersion: example.com/v1, kind: Database, metadata: {name: a}, spec: {instances: 3}}
"""


def test_skipped_kinds_are_told_apart(cluster):
    result = mooring("simulate", cluster(FITS + OTHERS), "-o", "json")

    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "skipped, make pods that are missing here: 1 Database.example.com",
        "skipped, shape pods, so the answer may be off: 1 ScaledObject.keda.sh",
        "skipped, no effect on scheduling: 1 Secret",
    ]
    assert json.loads(result.stdout)["skipped"] == [
        {"kind": "Database.example.com", "objects": 1, "effect": "makesPods"},
        {"kind": "ScaledObject.keda.sh", "objects": 1, "effect": "shapesPods"},
        {"kind": "Secret", "objects": 1, "effect": "none"},
    ]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        (OTHERS, "mooring cannot make the pods of Database.example.com; give the objects that"),
        ("---\n{apiVersion: v1, kind: Secret, metadata: {name: a}}", "add Pods, Deployments or"),
    ],
)
@pytest.mark.parametrize("command", ["simulate", "compare"])
def test_everything_skipped_is_not_a_yes(cluster, text, advice, command):
    more = ("--config", "default", "--config", "default") if command == "compare" else ()

    result = mooring(command, cluster(NODES + text), *more)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert "error: there are no pods to place, only kinds that mooring skips" in result.stderr
    assert advice in result.stderr


def test_only_foreign_files_are_not_a_yes(tmp_path, cluster):
    (tmp_path / "dashboards").mkdir()
    (tmp_path / "dashboards" / "a.json").write_text('{"panels": []}')

    result = mooring("simulate", cluster(NODES), tmp_path / "dashboards")

    assert result.exit_code == 2
    assert "only files without Kubernetes objects; add Pods" in result.stderr


def test_a_workload_with_no_replicas_is_a_yes(cluster):
    workload = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}
"""

    assert mooring("simulate", cluster(NODES + workload + OTHERS)).exit_code == 0


def test_a_paused_deployment_is_named(cluster):
    workload = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  paused: true
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}
"""

    result = mooring("simulate", cluster(NODES + workload))

    assert "note: paused, so no pods (set paused: false to place them): Deployment default/web" in (
        result.stderr
    )
    assert "0 placed, 0 pending" in result.stdout


def test_a_pod_that_would_not_be_created_is_a_no(cluster):
    path = cluster(FITS + pod("bad", spec=", priorityClassName: high"))

    table = mooring("simulate", path)
    data = json.loads(mooring("simulate", path, "-o", "json").stdout)
    rows = mooring("simulate", path, "-o", "csv").stdout.splitlines()

    assert table.exit_code == 1
    assert "NOT CREATED" in table.stdout
    warning = "warning: Pod default/bad would not be created: spec.priorityClassName: there is no"
    assert warning in table.stderr
    assert "2 placed, 0 pending, 1 not created" in table.stdout
    (refused,) = data["notCreated"]
    assert (refused["kind"], refused["object"]) == ("Pod", "default/bad")
    assert refused["reason"].startswith("spec.priorityClassName: there is no PriorityClass 'high'")
    assert rows[-1].startswith("default/bad,not created,,,,")


def test_strict_refuses_misspelt_fields(cluster):
    path = cluster(NODES + pod("web", spec=", nodeselector: {a: b}"))

    lenient, strict = mooring("simulate", path), mooring("simulate", path, "--strict")

    assert (lenient.exit_code, strict.exit_code) == (0, 2)
    assert "warning: " in lenient.stderr
    assert "did you mean nodeSelector?" in lenient.stderr
    assert "error: " in strict.stderr


def test_exclude_and_selector_choose_what_is_read(tmp_path, cluster):
    for name in ("v1", "v2"):
        (tmp_path / "app" / name).mkdir(parents=True)
        text = pod("web", cpu=name[1], metadata=f", labels: {{track: {name}}}")
        (tmp_path / "app" / name / "app.yaml").write_text(text)
    nodes = cluster(NODES)

    assert mooring("simulate", nodes, tmp_path / "app").exit_code == 2
    for options in (("--exclude", "v1"), ("-l", "track=v2")):
        result = mooring("simulate", nodes, tmp_path / "app", *options, "-o", "json")
        assert result.exit_code == 0
        assert json.loads(result.stdout)["utilisation"]["total"]["cpu"]["requested"] == 2000


def test_a_user_may_describe_a_kind(tmp_path, cluster):
    (tmp_path / "database.yaml").write_text(
        """
group: example.com
kind: Database
makes:
- count: ${spec.instances}
  object:
    apiVersion: v1
    kind: Pod
    metadata: {name: "${name}-${index}"}
    spec: {containers: [{name: c}]}
"""
    )

    result = mooring(
        "simulate", cluster(NODES + OTHERS), "--workload-kinds", tmp_path / "database.yaml"
    )

    assert result.exit_code == 0
    assert "3 placed" in result.stdout


def test_a_kustomization_is_rendered_or_refused_with_the_command(tmp_path, cluster, monkeypatch):
    folder, programs = tmp_path / "app", tmp_path / "bin"
    for each in (folder, programs):
        each.mkdir()
    (folder / "kustomization.yaml").write_text("resources: [pod.yaml]\n")
    (folder / "pod.yaml").write_text(pod("raw"))
    monkeypatch.setenv("PATH", str(programs))

    without = mooring("simulate", cluster(NODES), folder)

    assert without.exit_code == 2
    (line,) = without.stderr.splitlines()
    assert f"kubectl kustomize {folder} | mooring simulate -" in line

    (programs / "kubectl").write_text(f"#!/bin/sh\n/bin/cat {folder}/rendered\n")
    (programs / "kubectl").chmod(0o755)
    (folder / "rendered").write_text(pod("rendered"))

    rendered = mooring("simulate", cluster(NODES), folder)

    assert rendered.exit_code == 0
    assert f"note: {folder}: rendered with `kubectl kustomize {folder}`" in rendered.stderr
    assert "default/rendered" in rendered.stdout
    assert "default/raw" not in rendered.stdout


# As a process


def test_a_process_exits_as_the_command_says(cluster):
    fits, too_big = cluster(FITS, "fits.yaml"), cluster(TOO_BIG, "big.yaml")

    assert mooring_process("simulate", fits).returncode == 0
    assert mooring_process("simulate", too_big).returncode == 1
    bad = mooring_process("simulate", "-", stdin="{")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert "Traceback" not in bad.stderr
    assert all(line.startswith("error: ") for line in bad.stderr.splitlines())


def test_output_to_a_pipe_has_no_colour_and_no_broken_lines(cluster):
    result = mooring_process("simulate", cluster(TOO_BIG))

    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) > 120
    assert all(line == line.rstrip() for line in result.stdout.splitlines())


def test_pods_that_wait_for_the_same_reasons_are_one_line_whatever_their_counts(tmp_path):
    """Each of them is refused by another number of nodes."""
    sizes = "".join(
        f"---\napiVersion: v1\nkind: Node\nmetadata: {{name: m-{i}}}\n"
        f"status: {{allocatable: {{cpu: '{i + 1}', memory: {64 - i}Gi, pods: '10'}}}}\n"
        for i in range(45)
    )
    many = "".join(pod(f"big-{i}", cpu=f"{i + 3}, memory: {63 - i}Gi") for i in range(50))
    (tmp_path / "many.yaml").write_text(sizes + many)

    result = mooring("simulate", tmp_path / "many.yaml", "--rows", "10")

    assert result.exit_code == 1
    rows = result.stdout.split("PENDING\n")[1].splitlines()
    # For 43 some nodes lack cpu and the others memory; for the 7 largest, all nodes lack cpu.
    assert [row.split()[0] for row in rows[1:3]] == ["43", "7"]
    assert rows[3] == "use --output json to see every pod"


ALTERNATIVE = (
    "{requests: [{name: a, firstAvailable: [{name: b, deviceClassName: gpu.example.com}]}]}"
)
EXACTLY = "{requests: [{name: a, exactly: {deviceClassName: gpu.example.com}}]}"
TWO_PODS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}
"""


def test_devices_are_given_to_nodes_and_a_gate_that_mooring_does_not_read_is_named():
    result = mooring(
        *("simulate", "--nodes", "2x8cpu,32Gi", "--devices", "8xgpu,memory=80Gi,model=H100"),
        *("--feature-gates", "DRANodeAllocatableResources=true"),
    )

    assert result.exit_code == 0
    assert re.search(r"gpu\.example\.com +- +- +16 +- +16", result.stdout)
    assert "the feature gate DRANodeAllocatableResources has no effect" in result.stderr


def test_a_class_of_devices_that_does_not_exist_is_named_with_what_makes_it(tmp_path):
    claims = [
        f"""apiVersion: resource.k8s.io/v1
kind: {kind}
metadata: {{name: {kind.lower()}}}
spec: {spec}
"""
        for kind, spec in (
            ("ResourceClaim", f"{{devices: {ALTERNATIVE}}}"),
            ("ResourceClaimTemplate", f"{{spec: {{devices: {EXACTLY}}}}}"),
        )
    ]
    (tmp_path / "claims.yaml").write_text("---\n".join([*claims, TWO_PODS]))
    command = ("simulate", tmp_path, "--nodes", "2x8cpu,32Gi")

    assert (
        "warning: ResourceClaim default/resourceclaim, ResourceClaimTemplate default/"
        "resourceclaimtemplate ask for the DeviceClass 'gpu.example.com', which does not exist; "
        "add it, or give the nodes such devices: --devices 8xgpu.example.com\n"
    ) in mooring(*command).stderr
    assert mooring(*command, "--devices", "8xgpu.example.com").stderr == ""


def test_a_mistake_in_devices_is_named():
    result = mooring("simulate", "--nodes", "8cpu,32Gi", "--devices", "gpu,patitions=2")

    assert result.exit_code == 2
    assert "there is no option 'patitions'; did you mean partitions?" in result.stderr


@pytest.mark.parametrize(
    "others",
    [
        "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}",
        "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}}}",
        "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}}",
    ],
)
def test_only_kinds_that_make_no_pods_are_not_a_yes(cluster, others):
    result = mooring("simulate", cluster(NODES + "\n---\n" + others))

    kind = others.split("kind: ")[1].split(",")[0]
    assert result.exit_code == 2
    assert f"no pods to place, only kinds that make none ({kind}); add Pods" in result.stderr


def test_an_empty_cluster_is_a_yes(cluster):
    stored = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: n-1}}"

    assert mooring("simulate", cluster(NODES)).exit_code == 0
    assert mooring("simulate", cluster(f"{NODES}\n---\n{stored}")).exit_code == 0


@pytest.mark.parametrize(
    "text",
    ["", "# nothing yet\n", "---\n---\n", "[]", "{apiVersion: v1, kind: List, items: []}"],
    ids=["empty", "a comment", "separators", "an array", "a list"],
)
def test_files_without_objects_are_not_a_yes(tmp_path, cluster, text):
    """`helm template … | mooring simulate -` with a helm that failed was "0 placed, 0 pending"."""
    (tmp_path / "app.yaml").write_text(text)
    path = tmp_path / "app.yaml"
    error = f"error: there are no pods to place, no Kubernetes objects in {path}; add Pods"

    for nodes in (["--nodes", "2x4cpu,8Gi"], [cluster(NODES)], []):
        result = mooring("simulate", path, *nodes)

        assert (result.exit_code, result.stdout) == (2, "")
        assert error in result.stderr
    assert mooring("simulate", "-", stdin=text).exit_code == 2


def test_there_is_no_report_of_nothing(tmp_path):
    (tmp_path / "app.yaml").write_text("# nothing yet\n")

    result = mooring("report", tmp_path / "app.yaml", "-o", tmp_path / "report.html")

    assert result.exit_code == 2
    assert f"error: {tmp_path}/app.yaml: there is nothing to report" in result.stderr
    assert not (tmp_path / "report.html").exists()


def test_a_selector_that_chooses_nothing_is_not_a_yes(cluster):
    path = cluster(NODES + pod("web"))

    result = mooring("simulate", path, "--selector", "app=wbe")

    assert result.exit_code == 2
    assert (
        "no pods to place, no pod or workload has the labels app=wbe; choose others"
        in result.stderr
    )
    assert mooring("simulate", cluster(NODES), "--selector", "app=wbe").exit_code == 0


def test_a_folder_of_which_everything_is_excluded_is_not_a_yes(tmp_path, cluster):
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "web.yaml").write_text(pod("web"))

    result = mooring("simulate", cluster(NODES), tmp_path / "app", "--exclude", "web.yaml")

    assert result.exit_code == 2
    assert f"no Kubernetes objects in {tmp_path}/app; add Pods" in result.stderr


def test_a_custom_resource_that_makes_nothing_is_not_a_yes(cluster):
    text = "{apiVersion: kafka.strimzi.io/v1beta2, kind: Kafka, metadata: {name: events}, spec: {}}"

    result = mooring("simulate", cluster(f"{NODES}\n---\n{text}"))

    assert result.exit_code == 2
    assert "no pods to place, none are made of Kafka default/events; complete" in result.stderr


def test_a_component_alone_is_not_a_yes(tmp_path, cluster):
    """A folder of kustomize Components, which change others, was "0 placed, 0 pending"."""
    folder = tmp_path / "components"
    (folder / "limits").mkdir(parents=True)
    (folder / "limits" / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
    )

    result = mooring("simulate", cluster(NODES), folder)

    assert result.exit_code == 2
    assert f"no Kubernetes objects in {folder}; add Pods" in result.stderr


def test_only_broken_documents_without_effect_are_not_a_yes(tmp_path, cluster):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "a.yaml").write_text("apiVersion: v1\nkind: Secret\ndata: [\n")

    assert mooring("simulate", cluster(NODES), tmp_path / "more").exit_code == 2


DAEMONS = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: %s
"""


@pytest.mark.parametrize(
    ("spec", "nodes", "why"),
    [
        (
            "{nodeSelector: {node-role.kubernetes.io/control-plane: ''}, containers: [{name: c}]}",
            "3x4cpu,16Gi",
            "3 nodes without the label node-role.kubernetes.io/control-plane=",
        ),
        (
            "{containers: [{name: c}]}",
            "1x4cpu,16Gi,taint=gpu=true:NoSchedule",
            "1 node with a taint that it does not tolerate (gpu)",
        ),
        (
            "{containers: [{name: c}], affinity: {nodeAffinity: "
            "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
            "[{matchExpressions: [{key: pool, operator: Exists}]}]}}}}",
            "2x4cpu,16Gi",
            "2 nodes outside its node affinity",
        ),
    ],
)
def test_a_daemon_set_that_wants_no_node_says_why(cluster, spec, nodes, why):
    """It makes no pods, as its controller would not, and nothing was said of it."""
    result = mooring("simulate", cluster(DAEMONS % spec), "--nodes", nodes)

    assert result.exit_code == 0
    line = f"note: DaemonSet default/agent wants no node, so no pods: {why}"
    assert line in result.stderr.splitlines()


def test_a_daemon_set_that_wants_a_node_says_nothing(cluster):
    spec = "{nodeSelector: {pool: a}, containers: [{name: c}]}"
    nodes = ("--nodes", "2x4cpu,16Gi", "--nodes", "1x4cpu,16Gi,label=pool=a,name=a")

    result = mooring("simulate", cluster(DAEMONS % spec), *nodes)

    assert result.stderr == ""
    assert "1 placed, 0 pending" in result.stdout


IDLE = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c}]}}}
"""


def test_workloads_without_pods_are_named(cluster):
    result = mooring("simulate", cluster(NODES + IDLE))

    assert result.stderr.splitlines() == [
        "note: suspended, so no pods (set suspend: false to place them): Job default/job",
        "note: 0 replicas, so no pods: Deployment default/web",
    ]
