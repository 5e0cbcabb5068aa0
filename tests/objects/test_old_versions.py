import io

import pytest

from mooring.errors import InputError
from mooring.objects.manifests import read_manifests

WORKLOAD = """
apiVersion: {version}
kind: {kind}
metadata: {{name: web}}
spec:
  replicas: 2
  template: {{metadata: {{labels: {{app: web}}}}, spec: {{containers: [{{name: c}}]}}}}
"""


def read(text):
    return read_manifests(["-"], stdin=io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("extensions/v1beta1", "Deployment"),
        ("extensions/v1beta1", "ReplicaSet"),
        ("apps/v1beta1", "Deployment"),
        ("apps/v1beta1", "StatefulSet"),
        ("apps/v1beta2", "StatefulSet"),
    ],
)
def test_old_workloads_are_read_with_a_note_and_need_no_selector(version, kind):
    manifests = read(WORKLOAD.format(version=version, kind=kind))

    assert len(manifests.pods) == 2
    assert manifests.warnings == [
        f"1 {kind} of {version}, which Kubernetes 1.16 removed: read as apps/v1; "
        "write apiVersion: apps/v1"
    ]


@pytest.mark.parametrize(
    ("version", "kind", "said"),
    [
        ("batch/v1beta1", "CronJob", "Kubernetes 1.25 removed: read as batch/v1"),
        ("batch/v2alpha1", "CronJob", "Kubernetes 1.21 removed: read as batch/v1"),
        ("policy/v1beta1", "PodDisruptionBudget", "Kubernetes 1.25 removed: read as policy/v1"),
        (
            "scheduling.k8s.io/v1beta1",
            "PriorityClass",
            "1.22 removed: read as scheduling.k8s.io/v1",
        ),
        ("storage.k8s.io/v1beta1", "StorageClass", "1.22 removed: read as storage.k8s.io/v1"),
    ],
)
def test_other_old_versions_are_read_with_a_note(version, kind, said):
    spec = {
        "CronJob": "spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c}]}}}}}",
        "PodDisruptionBudget": "spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}",
        "PriorityClass": "value: 1",
        "StorageClass": "provisioner: p",
    }[kind]
    one = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: NAME}}\n{spec}\n"

    manifests = read(one.replace("NAME", "a") + "---\n" + one.replace("NAME", "b"))

    assert [obj.kind for obj in manifests.objects].count(kind) == 2
    assert len([w for w in manifests.warnings if said in w and w.startswith("2 ")]) == 1


def test_claims_of_before_structured_parameters_are_not_read():
    """They have no requests that v1 knows: the pod was placed, and no device was allocated."""
    text = """
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: gpu}
spec: {resourceClassName: gpu.example.com}
"""
    with pytest.raises(InputError) as error:
        read(text)

    assert list(error.value.problems) == [
        "standard input: document 1: there is no kind 'ResourceClaim' in 'resource.k8s.io/v1alpha2'; "
        "write apiVersion: resource.k8s.io/v1 and kind: ResourceClaim"
    ]


def test_claims_of_v1alpha3_are_read_with_a_note():
    text = """
apiVersion: resource.k8s.io/v1alpha3
kind: ResourceClaim
metadata: {name: gpu}
spec: {devices: {requests: [{name: r, deviceClassName: gpu.example.com}]}}
"""
    manifests = read(text)

    (claim,) = manifests.objects
    assert claim.spec.devices.requests[0].exactly.device_class_name == "gpu.example.com"
    assert "which Kubernetes 1.34 removed: read as resource.k8s.io/v1" in manifests.warnings[0]


def test_an_indexed_job_without_any_number_has_one_pod():
    text = """
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec: {completionMode: Indexed, template: {spec: {containers: [{name: c}]}}}
"""
    (pod,) = read(text).pods

    assert pod.labels["batch.kubernetes.io/job-completion-index"] == "0"
