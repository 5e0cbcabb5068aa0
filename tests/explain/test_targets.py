"""A user names a pod, a workload or the beginning of a name."""

from __future__ import annotations

import json

import pytest

from mooring.explain.explanation import CannotAnswer
from mooring.explain.targets import find_target
from mooring.objects.manifests import read_manifests
from tests.cli.running import mooring

TEMPLATE = """
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec:
      restartPolicy: {restart}
      containers: [{{name: c, image: i, resources: {{requests: {{cpu: {cpu}}}}}}}]
"""


def workload(kind, name, *, api="apps/v1", namespace="shop", replicas="replicas: 3", cpu="1"):
    restart = "Never" if kind == "Job" else "Always"
    template = TEMPLATE.format(name=name, cpu=cpu, restart=restart)
    if kind == "Job":
        template = template.replace(f"  selector: {{matchLabels: {{app: {name}}}}}\n", "")
    return (
        f"---\napiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
        f"spec:\n  {replicas}{template}"
    )


NODE = """
apiVersion: v1
kind: Node
metadata: {name: n-1}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "20"}}
"""
CLUSTER = (
    NODE
    + workload("Deployment", "web")
    + workload("StatefulSet", "db", replicas="replicas: 2")
    + workload("Job", "train", api="batch/v1", replicas="parallelism: 1")
    + workload("Deployment", "web", namespace="other", replicas="replicas: 1")
    + workload("Deployment", "idle", replicas="replicas: 0")
)


@pytest.fixture
def objects(tmp_path):
    (tmp_path / "c.yaml").write_text(CLUSTER)
    return read_manifests([tmp_path / "c.yaml"]).objects


@pytest.mark.parametrize(
    ("text", "namespace", "workload", "count"),
    [
        ("deployment/web", "shop", "Deployment shop/web", 3),
        ("deploy/we", "shop", "Deployment shop/web", 3),
        ("deploy/web", "shop", "Deployment shop/web", 3),
        ("deployments.apps/web", "other", "Deployment other/web", 1),
        ("deployment/shop/web", None, "Deployment shop/web", 3),
        ("shop/deployment/web", None, "Deployment shop/web", 3),
        ("sts/db", None, "StatefulSet shop/db", 2),
        ("job/train", None, "Job shop/train", 1),
        ("db-0", None, "", 1),
        ("shop/db-1", None, "", 1),
        ("pod/db-1", "shop", "", 1),
        # The beginning of the name of one pod, or of the pods of one workload.
        ("train", None, "", 1),
        ("shop/web", None, "Deployment shop/web", 3),
        ("web", "shop", "Deployment shop/web", 3),
        ("db", None, "StatefulSet shop/db", 2),
    ],
)
def test_pods_are_found_by_name_workload_and_beginning(objects, text, namespace, workload, count):
    target = find_target(objects, text, namespace=namespace)

    assert target.workload == workload
    assert len(target.pods) == count


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("deployment/web", "2 workloads are called 'deployment/web'; name one of"),
        ("web", "4 pods begin with 'web'; name one of"),
        (
            "deployment/we",
            "2 workloads begin with 'deployment/we'; name one of deployment/other/web, ",
        ),
        ("deployment/idle", "deployment/idle has no pods that need a node"),
        ("deployment/wbe", "did you mean deployment/web"),
        ("deployment/idle", "has no pods that need a node"),
        ("dbb-0", "did you mean shop/db-0"),
        ("nothing", "there is no pod 'nothing'"),
    ],
)
def test_what_is_not_clear_is_answered_by_what_is_there(objects, text, said):
    with pytest.raises(CannotAnswer) as refusal:
        find_target(objects, text)

    assert said in str(refusal.value)


def test_a_replica_set_that_was_not_read_is_known_by_its_name(objects):
    without = [obj for obj in objects if obj.kind not in ("ReplicaSet", "Deployment")]

    assert len(find_target(without, "deployment/web", namespace="shop").pods) == 3


# The command


def test_a_workload_is_explained_by_the_fates_of_its_pods(tmp_path):
    (tmp_path / "c.yaml").write_text(NODE + workload("Deployment", "web", cpu="3"))

    result = mooring("explain", "deployment/web", "-n", "shop", tmp_path / "c.yaml", "-o", "json")

    assert result.exit_code == 1
    data = json.loads(result.stdout)
    assert data["workload"] == "Deployment shop/web"
    assert [(each["state"], each["count"]) for each in data["fates"]] == [
        ("unschedulable", 1),
        ("placed", 2),
    ]
    assert data["fates"][1]["nodes"] == {"n-1": 2}
    # The example is a pod that needs an explanation, with what would help it.
    assert data["example"]["state"] == "unschedulable"
    assert data["example"]["wouldFitIf"]


def test_a_workload_whose_pods_all_fit_is_a_yes(tmp_path):
    (tmp_path / "c.yaml").write_text(NODE + workload("Deployment", "web"))

    for more in ((), ("--as-is",)):
        result = mooring("explain", "deploy/web", tmp_path / "c.yaml", *more)
        assert "Deployment shop/web: 3 pods" in result.stdout
        assert "the story of shop/web-" in result.stdout
    assert mooring("explain", "deploy/web", tmp_path / "c.yaml").exit_code == 0


def test_a_workload_whose_pods_are_refused_says_why(tmp_path):
    path = tmp_path / "refused.yaml"
    path.write_text(
        """
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", pods: "10"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {priorityClassName: nope, containers: [{name: c, image: i}]}
"""
    )
    manifests = read_manifests([path])

    with pytest.raises(CannotAnswer) as error:
        find_target(manifests.objects, "deployment/web", refused=manifests.refused)

    assert "would not create any of its 3 pods" in str(error.value)
    assert "there is no PriorityClass 'nope'" in str(error.value)
