"""LimitRange: default requests and limits, and the sizes that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.objects.quantity import parse_quantity
from tests.objects.admission.reading import (
    NAMESPACE,
    STANDARD,
    claim,
    container,
    limit_range,
    pod,
    read,
    reasons,
    workload,
)


def resources(manifests) -> tuple[dict[str, str], dict[str, str]]:
    """The requests and limits of the only container."""
    (made,) = manifests.pods
    (only,) = made.spec.containers
    return (
        {name: str(quantity) for name, quantity in only.resources.requests.items()},
        {name: str(quantity) for name, quantity in only.resources.limits.items()},
    )


DEFAULTS = {
    "type": "Container",
    "default": {"cpu": "1"},
    "defaultRequest": {"cpu": "200m"},
}


@pytest.mark.parametrize(
    ("limits", "given", "expected"),
    [
        pytest.param([DEFAULTS], container(), ({"cpu": "200m"}, {"cpu": "1"}), id="nothing set"),
        pytest.param(
            [DEFAULTS],
            container(requests={"cpu": "300m"}),
            ({"cpu": "300m"}, {"cpu": "1"}),
            id="a request stays",
        ),
        pytest.param(
            [DEFAULTS],
            container(limits={"cpu": "2"}),
            ({"cpu": "2"}, {"cpu": "2"}),
            id="a limit is a request before the default is",
        ),
        pytest.param(
            [{"type": "Container", "default": {"cpu": "1"}}],
            container(),
            ({"cpu": "1"}, {"cpu": "1"}),
            id="a default limit is a default request",
        ),
        pytest.param(
            [{"type": "Container", "max": {"cpu": "2"}}],
            container(),
            ({"cpu": "2"}, {"cpu": "2"}),
            id="a maximum is a default limit",
        ),
        pytest.param(
            [{"type": "Container", "min": {"cpu": "100m"}}],
            container(),
            ({"cpu": "100m"}, {}),
            id="a minimum is a default request",
        ),
        pytest.param(
            [{"type": "Pod", "max": {"cpu": "2"}}, DEFAULTS],
            container(),
            ({"cpu": "200m"}, {"cpu": "1"}),
            id="only those of containers are defaults",
        ),
    ],
)
def test_containers_get_the_defaults_of_their_namespace(limits, given, expected):
    assert resources(read(limit_range("limits", *limits), pod("web", given))) == expected


def test_init_containers_get_them_too_and_other_namespaces_do_not():
    other = pod("web", metadata={"namespace": "other"})
    manifests = read(
        limit_range("limits", DEFAULTS), pod("web", initContainers=[container("init")]), other
    )

    first, second = manifests.pods
    assert str(first.spec.init_containers[0].resources.requests["cpu"]) == "200m"
    assert second.requests == {}


def test_of_two_ranges_the_first_by_name_comes_first():
    late = limit_range("b", {"type": "Container", "default": {"cpu": "8", "memory": "1Gi"}})

    requests, limits = resources(read(late, limit_range("a", DEFAULTS), pod()))

    assert requests == {"cpu": "200m", "memory": str(parse_quantity("1Gi"))}
    assert limits["cpu"] == "1"


def test_the_pods_of_a_workload_share_their_containers():
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": "4", "pods": "10"}},
        }
        for name in ("n1", "n2")
    ]
    for made in (workload("Deployment", "web", replicas=2), workload("DaemonSet", "agent")):
        first, second = read(limit_range("limits", DEFAULTS), *nodes, made).pods

        assert first.requests == second.requests == {"cpu": 200}
        assert first.spec.containers is second.spec.containers
        assert (first.spec is second.spec) == (made["kind"] == "Deployment")


def amounts(requests: dict[str, str], limits: dict[str, str]) -> dict[str, Any]:
    return container(requests=requests, limits=limits)


@pytest.mark.parametrize(
    ("item", "given", "reason"),
    [
        pytest.param(
            {"type": "Container", "min": {"cpu": "200m"}},
            amounts({"cpu": "100m"}, {}),
            "minimum cpu usage per Container is 200m, but request is 100m",
            id="too small",
        ),
        pytest.param(
            {"type": "Container", "min": {"cpu": "200m"}, "defaultRequest": {"cpu": "300m"}},
            amounts({"cpu": "100m"}, {"cpu": "150m"}),
            "minimum cpu usage per Container is 200m, but request is 100m",
            id="too small with a limit",
        ),
        pytest.param(
            {"type": "Pod", "min": {"memory": "1Gi"}},
            amounts({}, {}),
            "minimum memory usage per Pod is 1Gi.  No request is specified",
            id="no request for a pod",
        ),
        pytest.param(
            {"type": "Container", "max": {"memory": "1Gi"}},
            amounts({}, {"memory": "2Gi"}),
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
            id="too large",
        ),
        pytest.param(
            {"type": "Pod", "max": {"cpu": "2"}},
            amounts({"cpu": "1"}, {}),
            "maximum cpu usage per Pod is 2.  No limit is specified",
            id="no limit for a pod",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            amounts({"cpu": "1"}, {"cpu": "3"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
            id="limit and request too far apart",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            amounts({"cpu": "1"}, {}),
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit"
            " is 0",
            id="a ratio without a limit",
        ),
        pytest.param(
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            amounts({}, {}),
            "cpu max limit to request ratio per Container is 2, but no request is specified or"
            " request is 0",
            id="a ratio without a request",
        ),
        pytest.param(
            {"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}},
            amounts({}, {"cpu": "2", "memory": "2Gi"}),
            "[maximum cpu usage per Container is 1, but limit is 2,"
            " maximum memory usage per Container is 1Gi, but limit is 2Gi]",
            id="two at once",
        ),
        pytest.param(
            {"type": "Container", "default": {"cpu": "500m"}},
            amounts({"cpu": "1"}, {}),
            'spec.containers[0].resources.requests: Invalid value: "1": must be less than or equal'
            " to cpu limit of 500m",
            id="a default limit below the request",
        ),
    ],
)
def test_a_pod_of_another_size_is_refused_as_the_api_server_words_it(item, given, reason):
    manifests = read(limit_range("limits", item), pod("web", given))

    assert manifests.pods == []
    assert reasons(manifests) == [reason]


def test_the_containers_of_a_pod_count_together():
    two = [container(name, limits={"cpu": "1500m"}) for name in ("a", "b")]
    item = {"type": "Pod", "max": {"cpu": "2"}}

    assert reasons(read(limit_range("limits", item), pod("web", *two))) == [
        "maximum cpu usage per Pod is 2, but limit is 3"
    ]
    assert reasons(read(limit_range("limits", item), pod("web", two[0]))) == []


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        ("1Gi", "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"),
        ("20Gi", "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 20Gi"),
        ("5Gi", None),
    ],
)
def test_claims_have_sizes_too(size, reason):
    item = {"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "10Gi"}}
    manifests = read(STANDARD, limit_range("limits", item), claim(storage=size))

    assert reasons(manifests) == ([reason] if reason else [])
    kinds = {each.kind for each in manifests.objects}
    assert ("PersistentVolumeClaim" in kinds) == (reason is None)


def test_a_stateful_set_does_not_create_a_pod_without_its_claim():
    """The claim is created first; if it is refused, the pod is not tried."""
    item = {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}
    template = {"metadata": {"name": "data"}, "spec": claim(storage="2Gi")["spec"]}
    db = workload("StatefulSet", "db", replicas=1, volumeClaimTemplates=[template])

    manifests = read(STANDARD, limit_range("limits", item), db)

    why = "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"
    assert [(each.object.kind, each.object.name, each.reason) for each in manifests.refused] == [
        ("PersistentVolumeClaim", "data-db-0", why),
        (
            "Pod",
            "db-0",
            f'failed to create PVC data-db-0: persistentvolumeclaims "data-db-0" is forbidden: {why}',
        ),
    ]


def test_a_pod_of_a_dump_keeps_its_size():
    stored = pod("web", container(), metadata={"uid": "1"})

    (made,) = read(limit_range("limits", DEFAULTS), stored).pods

    assert made.namespace == NAMESPACE
    assert made.requests == {}
