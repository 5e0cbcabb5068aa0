"""RuntimeClass: what it adds to a pod, and which pods are refused."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.objects.admission.runtime_class import (
    OVERHEAD_DIFFERS,
    OVERHEAD_WITHOUT_CLASS,
    merged,
)
from mooring.objects.taints import Toleration
from tests.objects.admission.reading import container, pod, read, reasons, workload

KATA: dict[str, Any] = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
    "scheduling": {
        "nodeSelector": {"runtime": "kata"},
        "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
    },
}


def test_overhead_selector_and_tolerations_are_added():
    app = container(requests={"cpu": "1", "memory": "1Gi"})
    written = pod("web", app, runtimeClassName="kata", nodeSelector={"disk": "ssd"})

    (made,) = read(KATA, written).pods

    assert made.requests == {"cpu": 1250, "memory": 2**30 + 120 * 2**20}
    assert made.spec.node_selector == {"disk": "ssd", "runtime": "kata"}
    assert Toleration(key="kata", operator="Exists", effect="NoSchedule") in made.spec.tolerations


def test_the_pods_of_a_workload_get_it_and_share_one_spec():
    deployment = workload("Deployment", "web", replicas=3, pod_spec={"runtimeClassName": "kata"})

    pods = read(KATA, deployment).pods

    assert [each.requests["cpu"] for each in pods] == [250] * 3
    assert len({id(each.spec) for each in pods}) == 1


def test_a_class_without_overhead_and_scheduling_changes_nothing():
    plain = {key: KATA[key] for key in ("apiVersion", "kind", "metadata", "handler")}

    (made,) = read(plain, pod(runtimeClassName="kata")).pods

    assert made.spec.overhead == {}
    assert made.spec.node_selector is None


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        pytest.param(
            {"runtimeClassName": "gvisor"},
            'pod rejected: RuntimeClass "gvisor" not found',
            id="no such class",
        ),
        pytest.param(
            {"runtimeClassName": "kata", "nodeSelector": {"runtime": "runc"}},
            "conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata;"
            " pod.spec.nodeSelector[runtime] = runc",
            id="another value in the selector",
        ),
        pytest.param(
            {"runtimeClassName": "kata", "overhead": {"cpu": "1"}},
            OVERHEAD_DIFFERS,
            id="another overhead",
        ),
        pytest.param({"overhead": {"cpu": "1"}}, OVERHEAD_WITHOUT_CLASS, id="overhead, no class"),
    ],
)
def test_a_pod_that_does_not_agree_with_its_class_is_refused(spec, reason):
    manifests = read(KATA, pod("web", **spec), pod("other"))

    assert [each.name for each in manifests.pods] == ["other"]
    assert reasons(manifests) == [reason]
    assert manifests.refusals == [f"Pod shop/web would not be created: {reason}"]


def test_a_pod_may_repeat_the_overhead_of_its_class():
    written = pod(runtimeClassName="kata", overhead={"cpu": "0.25", "memory": "120Mi"})

    assert reasons(read(KATA, written)) == []


@pytest.mark.parametrize(
    "stored",
    [{"metadata": {"uid": "1"}}, {"nodeName": "n1"}, {"status": {"phase": "Running"}}],
    ids=["a UID", "a node", "a phase"],
)
def test_a_pod_of_a_dump_stays_as_it_is(stored):
    """Its class may have changed or gone since, and it runs with what it got."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}},
    }
    (made,) = read(KATA, node, pod("web", runtimeClassName="gone", **stored)).pods
    assert made.spec.overhead == {}

    (made,) = read(KATA, node, pod("web", runtimeClassName="kata", **stored)).pods
    assert made.spec.overhead == {}


ALL = Toleration(operator="Exists")
EQUAL = Toleration(key="a", operator="Equal", value="1", effect="NoSchedule")
EXISTS = Toleration(key="a", operator="Exists", effect="NoSchedule")
SHORT = Toleration(key="a", operator="Exists", effect="NoExecute", toleration_seconds=10)
LONG = Toleration(key="a", operator="Exists", effect="NoExecute", toleration_seconds=60)
OTHER = Toleration(key="b", operator="Exists")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param([EQUAL], [EQUAL], [EQUAL], id="the same twice"),
        pytest.param([EQUAL], [EXISTS], [EXISTS], id="every value covers one"),
        pytest.param([EXISTS], [EQUAL], [EXISTS], id="in the other order"),
        pytest.param([ALL], [EQUAL, OTHER], [ALL], id="every key covers all"),
        pytest.param([SHORT], [LONG], [LONG], id="a longer time covers a shorter one"),
        pytest.param([EQUAL], [OTHER], [EQUAL, OTHER], id="another key"),
        pytest.param([EXISTS], [LONG], [EXISTS, LONG], id="another effect"),
    ],
)
def test_of_two_tolerations_the_wider_one_is_kept(first, second, expected):
    assert merged(first, second) == expected
