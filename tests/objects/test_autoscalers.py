"""HorizontalPodAutoscalers: how many replicas their workloads have."""

from __future__ import annotations

import pytest

from tests.objects.admission.reading import obj, read, workload


def autoscaler(name: str, least: int | None, most: int, *, kind: str = "Deployment", version="v2"):
    target = {"apiVersion": "apps/v1", "kind": kind, "name": name}
    spec = {"scaleTargetRef": target, "maxReplicas": most}
    if least is not None:
        spec["minReplicas"] = least
    return obj(f"autoscaling/{version}", "HorizontalPodAutoscaler", name, spec=spec)


@pytest.mark.parametrize(
    ("replicas", "least", "most", "expected"),
    [
        pytest.param(None, 3, 10, 3, id="the least, if nothing is written"),
        pytest.param(1, 3, 10, 3, id="the least"),
        pytest.param(5, 3, 10, 5, id="within the limits, as written"),
        pytest.param(20, 3, 10, 10, id="the most"),
        pytest.param(0, 3, 10, 0, id="0 turns it off"),
        pytest.param(None, None, 10, 1, id="the least is 1 by default"),
        pytest.param(2, None, 10, 2, id="2 are more than that"),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
@pytest.mark.parametrize("version", ["v1", "v2", "v2beta2"])
def test_a_workload_has_replicas_within_the_limits(replicas, least, most, expected, kind, version):
    fields = {} if replicas is None else {"replicas": replicas}

    manifests = read(
        workload(kind, "web", **fields), autoscaler("web", least, most, kind=kind, version=version)
    )

    assert len(manifests.pods) == expected


def test_only_its_own_workload_is_scaled():
    manifests = read(
        workload("Deployment", "web"),
        workload("Deployment", "api"),
        workload("StatefulSet", "web"),
        autoscaler("web", 3, 5),
        autoscaler("gone", 9, 9),
    )

    assert len(manifests.pods) == 3 + 1 + 1


def test_replicas_that_are_not_as_written_are_told_in_one_line():
    manifests = read(
        workload("Deployment", "web", replicas=1),
        workload("Deployment", "api", replicas=9),
        workload("Deployment", "idle"),
        autoscaler("web", 3, 5),
        autoscaler("api", 3, 5),
        autoscaler("idle", 2, 5),
    )

    assert manifests.warnings == [
        "autoscalers change the replicas: Deployment shop/web 1 → 3, Deployment shop/api 9 → 5"
    ]
    assert len(manifests.pods) == 3 + 5 + 2


def test_an_autoscaler_of_the_cluster_counts_for_a_new_workload():
    around = read(autoscaler("web", 3, 5)).objects

    assert len(read(workload("Deployment", "web"), among=around).pods) == 3
