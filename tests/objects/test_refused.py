"""One broken reference keeps its own pod out, and no other."""

import io

import pytest

from mooring.errors import InputError
from mooring.objects.manifests import read_as_written, read_manifests

LABELS = "{kubernetes.io/hostname: n1, kubernetes.io/os: linux, kubernetes.io/arch: amd64}"
NODE = (
    f"{{apiVersion: v1, kind: Node, metadata: {{name: n1, labels: {LABELS}}}, "
    "status: {allocatable: {pods: 9}}}\n---\n"
)


def pod(name, spec="", metadata=""):
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}{metadata}}}, "
        f"spec: {{containers: [{{name: c}}]{spec}}}}}\n---\n"
    )


def deployment(spec="", replicas=2):
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: c}}]{spec}}}
---
"""


def read(text):
    return read_manifests(["-"], stdin=io.BytesIO(text.encode()))


def test_a_pod_with_an_unknown_priority_class_is_refused_alone():
    manifests = read(NODE + pod("bad", ", priorityClassName: high") + pod("good"))

    assert [p.name for p in manifests.pods] == ["good"]
    (refused,) = manifests.refused
    assert refused.title == "Pod default/bad"
    assert refused.reason == (
        "spec.priorityClassName: there is no PriorityClass 'high'; add it, or use one of "
        "system-cluster-critical, system-node-critical"
    )


def test_the_pods_of_a_workload_with_an_unknown_priority_class_are_refused():
    manifests = read(NODE + deployment(", priorityClassName: high") + pod("good"))

    assert [p.name for p in manifests.pods] == ["good"]
    assert [each.object.labels["app"] for each in manifests.refused] == ["web", "web"]
    assert {obj.kind for obj in manifests.objects} == {"Node", "Pod", "Deployment", "ReplicaSet"}


def test_a_dumped_pod_whose_node_is_gone_is_left_out_and_its_controller_replaces_it():
    owner = ", ownerReferences: [{kind: ReplicaSet, name: web-abc, controller: true}]"
    labels = ", labels: {app: web, pod-template-hash: abc}"
    lost = pod("web-abc-x", ", nodeName: gone", owner + labels)
    kept = pod("web-abc-y", ", nodeName: n1", owner + labels)

    manifests = read(NODE + deployment() + lost + kept)

    assert "web-abc-x" not in [p.name for p in manifests.pods]
    assert len(manifests.pods) == 2
    assert manifests.warnings == ["1 pod is on Node 'gone', which was not read, and left out"]
    assert manifests.refused == []


def test_a_pod_without_a_controller_whose_node_is_gone_is_refused():
    manifests = read(NODE + pod("lost", ", nodeName: gone") + pod("good"))

    assert [p.name for p in manifests.pods] == ["good"]
    (refused,) = manifests.refused
    assert refused.reason == "spec.nodeName: there is no Node 'gone'; add it, or leave this out"


@pytest.mark.parametrize("spec", [", priorityClassName: high", ", nodeName: gone"])
def test_a_scenario_refuses_such_an_object(tmp_path, spec):
    (tmp_path / "a.yaml").write_text(NODE + pod("bad", spec))

    with pytest.raises(InputError) as error:
        read_as_written([tmp_path])

    assert len(error.value.problems) == 1
