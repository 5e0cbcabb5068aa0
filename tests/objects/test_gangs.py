"""Pods that belong together get a group, however they say so."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from mooring.errors import InputError
from mooring.objects.gangs import GANG, TOPOLOGY_KEY, with_gangs
from mooring.objects.kinds import Job, JobSpec
from mooring.objects.manifests import read_manifests
from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup, Workload
from tests.makers import make_group, make_owner, make_pod

OWNER = make_owner("Job", "train")


def job(size: int = 2, **annotations: str) -> Job:
    return Job(
        api_version="batch/v1",
        kind="Job",
        metadata=ObjectMeta(name="train", namespace="default", uid="j", annotations=annotations),
        spec=JobSpec(parallelism=size, completions=size, completion_mode="Indexed"),
    )


def pods(count: int = 2, **spec) -> list[Pod]:
    return [make_pod(f"train-{n}", owner=OWNER, **spec) for n in range(count)]


def groups_of(objects, **options) -> tuple[dict[str, int | None], set[str]]:
    """Group → minCount, and the groups of pods."""
    made, _ = with_gangs(objects, **options)
    groups = {obj.name: obj.min_count for obj in made if isinstance(obj, PodGroup)}
    return groups, {obj.group_key for obj in made if isinstance(obj, Pod)}


def test_an_annotation_on_a_job_makes_all_of_it_a_gang():
    made, notes = with_gangs([job(**{GANG: "true", TOPOLOGY_KEY: "rack"}), *pods(priority=7)])
    (group,) = [obj for obj in made if isinstance(obj, PodGroup)]
    (workload,) = [obj for obj in made if isinstance(obj, Workload)]

    assert (group.min_count, group.topology_key, group.priority) == (2, "rack", 7)
    assert workload.spec.controller_ref.name == "train"
    assert group.spec.pod_group_template_ref.workload.workload_name == workload.name
    assert {obj.group_key for obj in made if isinstance(obj, Pod)} == {"default/train"}
    assert notes == [], "who asks for it is not told"


@pytest.mark.parametrize(
    ("objects", "groups"),
    [
        pytest.param([job(), *pods()], {}, id="nobody asks"),
        pytest.param([job(**{GANG: "1"}), *pods()], {"train": 1}, id="a number"),
        pytest.param(
            [job(**{GANG: "true"}), *pods(annotations={GANG: "false"})], {}, id="the pod decides"
        ),
        pytest.param([*pods(labels={GANG: "true"})], {"train": 2}, id="a label of pods"),
        pytest.param(
            pods(annotations={GANG: "true"}, labels={"jobset.sigs.k8s.io/jobset-name": "set"}),
            {"set": 2},
            id="pods of a JobSet",
        ),
        pytest.param(
            pods(
                labels={"kueue.x-k8s.io/pod-group-name": "k"},
                annotations={"kueue.x-k8s.io/pod-group-total-count": "3"},
            ),
            {"k": 3},
            id="Kueue",
        ),
        pytest.param(pods(labels={"scheduling.x-k8s.io/pod-group": "c"}), {}, id="no such group"),
    ],
)
def test_a_gang_is_made_if_its_pods_ask_for_it(objects, groups):
    found, of_pods = groups_of(objects)

    assert found == groups
    assert of_pods == ({f"default/{name}" for name in groups} or {""})


@pytest.mark.parametrize(
    ("change", "groups"),
    [
        pytest.param({}, {"train": 2}, id="all at once"),
        pytest.param({"completion_mode": None}, {}, id="not indexed"),
        pytest.param({"completions": 3}, {}, id="not all at once"),
        pytest.param({"parallelism": 1, "completions": 1}, {}, id="one pod"),
    ],
)
def test_with_its_gate_the_job_controller_makes_gangs_of_jobs(change, groups):
    train = job()
    train = replace(train, spec=replace(train.spec, **change))

    assert groups_of([train, *pods()], jobs=True)[0] == groups
    assert groups_of([train, *pods()])[0] == {}
    _, notes = with_gangs([train, *pods()], jobs=True)
    assert notes == [
        f"2 pods are read as gang default/{name}: WorkloadWithJob is on" for name in groups
    ]


def test_a_job_that_has_begun_becomes_no_gang():
    assert groups_of([job(), *pods(node="n")], jobs=True) == ({}, {""})


def test_a_group_that_exists_is_joined():
    made, _ = with_gangs([job(), *pods()], among=[make_group("train", min_count=2)], jobs=True)

    assert not [obj for obj in made if isinstance(obj, PodGroup)]
    assert {obj.group_key for obj in made if isinstance(obj, Pod)} == {"default/train"}


@pytest.mark.parametrize("value", ["yes", "0", "-1", "٣"])
def test_a_value_that_is_not_understood_is_refused(value):
    with pytest.raises(InputError, match="is not true, false or a number of pods"):
        with_gangs(pods(annotations={GANG: value}))


def test_a_pod_without_a_controller_has_no_name_for_its_gang():
    with pytest.raises(InputError, match=r"set spec\.schedulingGroup"):
        with_gangs([make_pod(annotations={GANG: "true"})])


@pytest.mark.parametrize(
    ("version", "joins"),
    [
        ("scheduling.x-k8s.io/v1alpha1", "labels: {scheduling.x-k8s.io/pod-group: mpi}"),
        ("scheduling.volcano.sh/v1beta1", "annotations: {scheduling.k8s.io/group-name: mpi}"),
    ],
)
def test_groups_of_other_schedulers_are_read_as_gangs(tmp_path, version, joins):
    path = tmp_path / "mpi.yaml"
    path.write_text(
        f"""
apiVersion: {version}
kind: PodGroup
metadata: {{name: mpi}}
spec: {{minMember: 2}}
---
apiVersion: v1
kind: Pod
metadata: {{name: mpi-0, {joins}}}
spec: {{containers: [{{name: c}}]}}
"""
    )
    manifests = read_manifests([path])

    assert groups_of(manifests.objects) == ({"mpi": 2}, {"default/mpi"})
    assert "is read as a gang" in manifests.warnings[0]


TEMPLATE = "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"
KINDS = {
    "Job": ("batch/v1", f"{{parallelism: 3, completions: 3, {TEMPLATE}}}"),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        "{replicatedJobs: [{name: leader, replicas: 1, template: {spec: {parallelism: 1, completions: 1,"
        f" {TEMPLATE}}}}}}}, {{name: workers, replicas: 2, template: {{spec: {{parallelism: 2,"
        f" completions: 2, {TEMPLATE}}}}}}}]}}",
    ),
    "LeaderWorkerSet": (
        "leaderworkerset.x-k8s.io/v1",
        "{replicas: 2, leaderWorkerTemplate: {size: 3, workerTemplate: {spec: {containers: [{name: c}]}}}}",
    ),
    "PyTorchJob": (
        "kubeflow.org/v1",
        f"{{pytorchReplicaSpecs: {{Master: {{replicas: 1, {TEMPLATE}}}, Worker: {{replicas: 3,"
        f" {TEMPLATE}}}}}}}",
    ),
    "RayJob": (
        "ray.io/v1",
        f"{{rayClusterSpec: {{headGroupSpec: {{{TEMPLATE}}}, workerGroupSpecs: [{{groupName: g, replicas: 2,"
        f" {TEMPLATE}}}]}}}}",
    ),
}


def read(tmp_path, text: str) -> tuple[dict[str, int | None], Counter[str], list[str]]:
    """Group → minCount, group → its pods, and notes."""
    path = tmp_path / "objects.yaml"
    path.write_text(text)
    made, notes = with_gangs(read_manifests([str(path)]).objects)
    groups = {obj.name: obj.min_count for obj in made if isinstance(obj, PodGroup)}
    return groups, Counter(obj.group_key for obj in made if isinstance(obj, Pod)), notes


@pytest.mark.parametrize("where", ["annotations", "labels"])
@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        pytest.param("Job", {"x": 3}, id="Job"),
        pytest.param("JobSet", {"x": 5}, id="all jobs of a JobSet"),
        pytest.param(
            "LeaderWorkerSet", {"x-0": 3, "x-1": 3}, id="each replica of a LeaderWorkerSet"
        ),
        pytest.param("PyTorchJob", {"x": 4}, id="master and workers of a PyTorchJob"),
        pytest.param("RayJob", {"": 3}, id="head and workers of a RayJob, without its submitter"),
    ],
)
def test_all_of_a_workload_or_nothing(tmp_path, kind, sizes, where):
    version, spec = KINDS[kind]
    metadata = f"{{name: x, {where}: {{{GANG}: 'true', {TOPOLOGY_KEY}: rack}}}}"

    groups, pods, notes = read(
        tmp_path, f"{{apiVersion: {version}, kind: {kind}, metadata: {metadata}, spec: {spec}}}"
    )

    if kind == "RayJob":
        assert list(groups.values()) == [3]
        assert sorted(pods.values()) == [1, 3]
    else:
        assert groups == sizes
        assert pods == {f"default/{name}": size for name, size in sizes.items()}
    assert notes == []


def test_a_part_of_a_workload_may_stay_out_of_its_gang(tmp_path):
    apart = TEMPLATE.replace(
        "{spec:", "{metadata: {annotations: {mooring.dev/gang: 'false'}}, spec:"
    )
    spec = f"{{pytorchReplicaSpecs: {{Master: {{{apart}}}, Worker: {{replicas: 3, {TEMPLATE}}}}}}}"
    metadata = f"{{name: x, annotations: {{{GANG}: 'true'}}}}"

    groups, _, _ = read(
        tmp_path,
        f"{{apiVersion: kubeflow.org/v1, kind: PyTorchJob, metadata: {metadata}, spec: {spec}}}",
    )

    assert groups == {"x": 3}


@pytest.mark.parametrize(
    ("least", "of_task", "expected"),
    [
        ("minAvailable: 2, ", "", 2),
        ("", "", 4),
        ("minAvailable: 0, ", "", 4),
        ("", "minAvailable: 1, ", 2),
    ],
)
def test_a_job_of_volcano_is_a_gang_of_the_pods_that_it_needs(tmp_path, least, of_task, expected):
    first = f"{{name: a, replicas: 3, {of_task}{TEMPLATE}}}"
    spec = f"{{{least}tasks: [{first}, {{name: b, {TEMPLATE}}}]}}"

    groups, pods, _ = read(
        tmp_path,
        f"{{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {{name: x}}, spec: {spec}}}",
    )

    assert groups == {"x": expected}
    assert pods == {"default/x": 4}


def test_a_workload_that_kueue_keeps_in_one_domain_is_a_gang_within_it():
    annotation = {"kueue.x-k8s.io/podset-required-topology": "example.com/rack"}
    made, notes = with_gangs([job(), *pods(3, annotations=annotation)])

    (group,) = [obj for obj in made if isinstance(obj, PodGroup)]
    assert (group.name, group.min_count, group.topology_key) == ("train", 3, "example.com/rack")
    assert notes == ["3 pods are read as gang default/train: Kueue admits it whole"]


@pytest.mark.parametrize(
    ("version", "label"),
    [
        ("scheduling.x-k8s.io/v1alpha1", "labels: {scheduling.x-k8s.io/pod-group: g}"),
        ("scheduling.sigs.k8s.io/v1alpha1", "labels: {pod-group.scheduling.sigs.k8s.io: g}"),
        ("scheduling.volcano.sh/v1beta1", "annotations: {scheduling.k8s.io/group-name: g}"),
    ],
)
def test_a_pod_group_of_another_scheduler_is_a_gang(tmp_path, version, label):
    groups, pods, notes = read(
        tmp_path,
        f"""
{{apiVersion: {version}, kind: PodGroup, metadata: {{name: g}}, spec: {{minMember: 2}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: p, {label}}}, spec: {{containers: [{{name: c}}]}}}}
""",
    )

    assert groups == {"g": 2}
    assert pods == {"default/g": 1}
    assert "another scheduler" in notes[0]
