"""Pods that belong together get a group, however they say so."""

from __future__ import annotations

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
        f"gang default/{name} has 2 pods of these objects: WorkloadWithJob is on" for name in groups
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
