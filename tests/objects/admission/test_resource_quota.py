"""ResourceQuota: what it counts, in which scopes, and what would not be created."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.objects.admission.reading import (
    STANDARD,
    claim,
    container,
    limit_range,
    obj,
    pod,
    quota,
    read,
    reasons,
    workload,
)

SMALL = container(requests={"cpu": "500m", "memory": "256Mi"}, limits={"cpu": "1", "memory": "1Gi"})


def test_pods_beyond_the_quota_are_not_created_and_the_reason_is_the_api_servers():
    manifests = read(
        quota("compute", {"requests.cpu": "2", "requests.memory": "8Gi"}),
        workload("Deployment", "web", SMALL, replicas=6),
    )

    assert len(manifests.pods) == 4
    reason = (
        "exceeded quota: compute, requested: requests.cpu=500m, used: requests.cpu=2,"
        " limited: requests.cpu=2"
    )
    assert reasons(manifests) == [reason] * 2
    (line,) = manifests.refusals
    assert line.startswith("Pod shop/web-")
    assert line.endswith(f" and 1 more would not be created: {reason}")


@pytest.mark.parametrize(
    ("hard", "fit"),
    [
        ({"cpu": "1"}, 2),
        ({"memory": "1Gi"}, 4),
        ({"requests.memory": "300Mi"}, 1),
        ({"limits.cpu": "3"}, 3),
        ({"limits.memory": "2Gi"}, 2),
        ({"pods": "5"}, 5),
        ({"count/pods": "1"}, 1),
        ({"requests.nvidia.com/gpu": "1"}, 6),
        ({"count/replicasets.apps": "0"}, 0),
        ({"count/deployments.apps": "0"}, 0),
        ({"count/deployments.apps": "1"}, 6),
        ({"configmaps": "0"}, 6),
        ({"persistentvolumeclaims": "0"}, 6),
        ({"cpu": "2", "pods": "3"}, 3),
    ],
)
def test_what_a_quota_counts(hard, fit):
    manifests = read(quota("q", hard), workload("Deployment", "web", SMALL, replicas=6))

    assert len(manifests.pods) == fit
    # No pod is lost: it exists, or it is refused.
    refused = [each for each in manifests.refused if each.object.kind == "Pod"]
    assert len(manifests.pods) + len(refused) == 6


def test_extended_resources_and_ephemeral_storage_count_by_their_requests():
    gpu = container(
        requests={"ephemeral-storage": "1Gi"},
        limits={"nvidia.com/gpu": "1", "hugepages-2Mi": "4Mi"},
    )
    for hard in (
        {"requests.nvidia.com/gpu": "2"},
        {"ephemeral-storage": "2Gi"},
        {"requests.ephemeral-storage": "2Gi"},
        {"hugepages-2Mi": "8Mi"},
        {"requests.hugepages-2Mi": "8Mi"},
    ):
        manifests = read(
            quota("q", hard),
            workload("Job", "train", gpu, group="batch/v1", parallelism=3, completions=3)
            | {"spec": _job_spec(gpu, 3)},
        )
        assert len(manifests.pods) == 2, hard


def _job_spec(only: dict[str, Any], number: int) -> dict[str, Any]:
    return {
        "parallelism": number,
        "completions": number,
        "template": {"spec": {"containers": [only], "restartPolicy": "Never"}},
    }


def test_the_overhead_of_a_runtime_counts():
    kata = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "kata"},
        "handler": "kata",
        "overhead": {"podFixed": {"cpu": "500m"}},
    }
    web = workload("Deployment", "web", SMALL, replicas=3, pod_spec={"runtimeClassName": "kata"})

    assert len(read(kata, quota("q", {"cpu": "2"}), web).pods) == 2
    assert len(read(kata, quota("q", {"limits.cpu": "3"}), web).pods) == 2


def test_the_defaults_of_a_limit_range_count():
    defaults = limit_range("limits", {"type": "Container", "default": {"cpu": "1"}})

    manifests = read(quota("q", {"cpu": "2"}), defaults, workload("Deployment", "web", replicas=5))

    assert len(manifests.pods) == 2


def test_a_quota_for_cpu_needs_requests_in_every_container():
    two = [container("a"), container("b", requests={"cpu": "1"}), container("c")]
    manifests = read(
        quota("compute", {"requests.cpu": "8", "limits.memory": "8Gi", "pods": "9"}),
        pod("web", *two, initContainers=[container("init")]),
    )

    assert reasons(manifests) == [
        "failed quota: compute: must specify limits.memory for: a,b,c,init;"
        " requests.cpu for: a,c,init"
    ]


def test_resources_of_the_whole_pod_are_enough():
    whole = {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}
    hard = {"requests.cpu": "2", "limits.memory": "8Gi"}

    manifests = read(quota("q", hard), *(pod(f"p{i}", resources=whole) for i in range(3)))

    assert len(manifests.pods) == 2


SCOPES = {
    "Terminating": pod("p", SMALL, activeDeadlineSeconds=60),
    "NotTerminating": pod("p", SMALL),
    "BestEffort": pod("p"),
    "NotBestEffort": pod("p", SMALL),
}
CROSSING = {
    "podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 1,
                "podAffinityTerm": {"topologyKey": "zone", "namespaces": ["other"]},
            }
        ]
    }
}
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("written", SCOPES)
def test_a_scope_limits_some_pods(scope, written):
    manifests = read(quota("q", {"pods": "0"}, scopes=[scope]), SCOPES[written])

    opposite = {
        "Terminating": "NotTerminating",
        "NotTerminating": "Terminating",
        "BestEffort": "NotBestEffort",
        "NotBestEffort": "BestEffort",
    }
    limited = {
        "Terminating": written == "Terminating",
        "NotTerminating": written != "Terminating",
        "BestEffort": written == "BestEffort",
        "NotBestEffort": written != "BestEffort",
    }
    assert bool(manifests.refused) == limited[scope] != limited[opposite[scope]]


@pytest.mark.parametrize(
    ("expression", "with_high", "without"),
    [
        ({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}, True, False),
        ({"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}, False, False),
        ({"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]}, False, True),
        ({"scopeName": "PriorityClass", "operator": "Exists"}, True, False),
        ({"scopeName": "PriorityClass", "operator": "DoesNotExist"}, False, True),
    ],
)
def test_a_scope_selector_limits_the_pods_of_a_priority_class(expression, with_high, without):
    selector = {"matchExpressions": [expression]}
    limited = quota("q", {"pods": "0"}, scopeSelector=selector)

    high = read(HIGH, limited, pod("p", priorityClassName="high"))
    assert bool(high.refused) == with_high
    assert bool(read(HIGH, limited, pod("p")).refused) == without


def test_the_default_priority_class_counts_as_named():
    default = HIGH | {"globalDefault": True}
    limited = quota("q", {"pods": "0"}, scopes=["PriorityClass"])

    assert len(read(default, limited, pod("p")).refused) == 1


def test_a_scope_limits_pods_that_name_other_namespaces():
    limited = quota("q", {"pods": "0"}, scopes=["CrossNamespacePodAffinity"])

    assert len(read(limited, pod("p", affinity=CROSSING)).refused) == 1
    assert read(limited, pod("p")).refused == []


def test_all_scopes_of_a_quota_must_match():
    limited = quota("q", {"pods": "0"}, scopes=["BestEffort", "Terminating"])

    assert read(limited, pod("p")).refused == []
    assert len(read(limited, pod("p", activeDeadlineSeconds=5)).refused) == 1


def test_each_quota_of_the_namespace_counts_and_none_of_another():
    other = quota("a", {"pods": "0"}) | {"metadata": {"name": "a", "namespace": "other"}}
    manifests = read(
        other,
        quota("b", {"pods": "5"}),
        quota("c", {"cpu": "1"}),
        workload("Deployment", "web", SMALL, replicas=4),
    )

    assert len(manifests.pods) == 2
    assert set(reasons(manifests)) == {
        "exceeded quota: c, requested: cpu=500m, used: cpu=1, limited: cpu=1"
    }


def test_pods_that_exist_count_and_are_never_refused():
    stored = [pod(f"old-{i}", SMALL, metadata={"uid": f"u{i}"}) for i in range(3)]
    done = pod("done", SMALL, metadata={"uid": "u9"}, status={"phase": "Succeeded"})

    manifests = read(pod("new", SMALL), quota("q", {"pods": "2"}), *stored, done)

    assert [each.name for each in manifests.pods] == ["old-0", "old-1", "old-2", "done"]
    assert reasons(manifests) == [
        "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=2"
    ]


def test_the_missing_pods_of_a_dumped_workload_are_refused_as_in_the_cluster():
    """A ReplicaSet that a quota holds back is dumped with fewer pods than replicas."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs"}
    running = [
        pod(
            f"web-{i}",
            SMALL,
            metadata={
                "uid": f"u{i}",
                "labels": {"app": "web"},
                "ownerReferences": [owner | {"controller": True}],
            },
        )
        for i in range(2)
    ]
    replica_set = workload("ReplicaSet", "web", SMALL, replicas=3)
    replica_set["metadata"]["uid"] = "rs"

    manifests = read(replica_set, *running, quota("q", {"pods": "2"}))

    assert len(manifests.pods) == 2
    assert len(manifests.refused) == 1


def test_pods_in_a_running_cluster_count():
    there = read(pod("old", SMALL)).objects
    rules = read(quota("q", {"pods": "1"})).objects

    assert len(read(pod("new", SMALL), among=[*rules, *there]).refused) == 1
    assert read(pod("old", SMALL), among=[*rules, *there]).refused == []


@pytest.mark.parametrize(
    ("hard", "fit"),
    [
        ({"persistentvolumeclaims": "2"}, 2),
        ({"count/persistentvolumeclaims": "1"}, 1),
        ({"requests.storage": "3Gi"}, 3),
        ({"standard.storageclass.storage.k8s.io/requests.storage": "2Gi"}, 2),
        ({"standard.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}, 1),
        ({"gold.storageclass.storage.k8s.io/persistentvolumeclaims": "0"}, 4),
        ({"requests.cpu": "0"}, 4),
    ],
)
def test_claims_are_counted_and_summed_also_by_class(hard, fit):
    manifests = read(STANDARD, quota("q", hard), *(claim(f"c{i}") for i in range(4)))

    assert sum(each.kind == "PersistentVolumeClaim" for each in manifests.objects) == fit
    assert len(manifests.refused) == 4 - fit


def test_services_and_other_objects_are_counted():
    services = [obj("v1", "Service", f"s{i}", spec={"selector": {"a": "b"}}) for i in range(3)]

    assert len(read(quota("q", {"services": "1"}), *services).refused) == 2
    assert len(read(quota("q", {"count/services": "2"}), *services).refused) == 1
    # Quotas with the scopes of pods limit nothing else.
    scoped = quota("q", {"services": "1"}, scopes=["BestEffort"])
    assert read(scoped, *services).refused == []


def test_the_pods_of_a_workload_that_is_not_created_are_not_created_either():
    web = workload("Deployment", "web", SMALL, replicas=2)
    manifests = read(quota("q", {"count/deployments.apps": "0"}), web)

    why = (
        "exceeded quota: q, requested: count/deployments.apps=1, used: count/deployments.apps=0,"
        " limited: count/deployments.apps=0"
    )
    assert reasons(manifests) == [why, *[f"its Deployment web is not created: {why}"] * 2]
    assert manifests.pods == []


def test_the_claim_of_an_ephemeral_volume_goes_with_its_pod():
    template = {"spec": claim()["spec"]}
    volume = {"name": "tmp", "ephemeral": {"volumeClaimTemplate": template}}
    manifests = read(STANDARD, quota("q", {"pods": "0"}), pod("p", volumes=[volume]))

    assert [each.kind for each in manifests.objects] == ["StorageClass", "ResourceQuota"]
    assert [each.object.kind for each in manifests.refused] == ["Pod"]


@given(
    cpu=st.lists(st.integers(0, 2000), max_size=8),
    limit=st.integers(0, 6000),
    pods=st.integers(0, 8),
)
def test_what_is_created_never_exceeds_the_quota_and_what_is_refused_would(cpu, limit, pods):
    manifests = read(
        quota("q", {"requests.cpu": f"{limit}m", "pods": str(pods)}),
        *(pod(f"p{i}", container(requests={"cpu": f"{each}m"})) for i, each in enumerate(cpu)),
    )

    used, count = 0, 0
    created = {each.name for each in manifests.pods}
    for i, each in enumerate(cpu):
        if f"p{i}" in created:
            used, count = used + each, count + 1
            assert used <= limit
            assert count <= pods
        else:
            assert used + each > limit or count + 1 > pods
    assert len(created) + len(manifests.refused) == len(cpu)
