"""Policies of scheduler-plugins on a real API server: custom resources are watched, and pods obey them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from control_plane import MOORING

from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.conftest import StartMooring
from tests.live.objects import DEFAULT_SCHEDULER
from tests.live.process import configuration
from tests.live.waiting import hold_for

pytestmark = pytest.mark.live

GROUP = "scheduling.x-k8s.io"


NUMA_GROUP = "topology.node.k8s.io"


def definition(
    kind: str, plural: str, group: str = GROUP, version_name: str = "v1alpha1"
) -> dict[str, Any]:
    """A CustomResourceDefinition that takes any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": version_name,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced" if group == GROUP else "Cluster",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [version],
        },
    }


#: What docs/policies.md tells to allow.
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "mooring-policies"},
    "rules": [
        {
            "apiGroups": [GROUP],
            "resources": ["podgroups", "elasticquotas"],
            "verbs": ["get", "list", "watch"],
        },
        {
            "apiGroups": [NUMA_GROUP],
            "resources": ["noderesourcetopologies"],
            "verbs": ["get", "list", "watch"],
        },
    ],
}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "mooring-policies"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "mooring-policies",
    },
    "subjects": [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": MOORING.name},
    ],
}


def apply(cluster: Cluster, folder: Path, *documents: dict[str, Any]) -> None:
    path = folder / "documents.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    cluster.control_plane.kubectl("apply", "-f", path)


@pytest.fixture
def definitions(cluster: Cluster, tmp_path: Path) -> None:
    kinds = [
        definition("PodGroup", "podgroups"),
        definition("ElasticQuota", "elasticquotas"),
        definition("NodeResourceTopology", "noderesourcetopologies", NUMA_GROUP, "v1alpha2"),
    ]
    apply(cluster, tmp_path, *kinds, ROLE, BINDING)
    for kind in kinds:
        name = f"crd/{kind['metadata']['name']}"
        cluster.control_plane.kubectl("wait", "--for=condition=Established", name)


def test_a_group_of_coscheduling_is_bound_when_it_is_complete(
    cluster: Cluster, start_mooring: StartMooring, definitions: None, tmp_path: Path
) -> None:
    plugin = [{"name": "Coscheduling"}]
    profile = {
        "schedulerName": DEFAULT_SCHEDULER,
        "plugins": {
            "multiPoint": {"enabled": plugin},
            "queueSort": {"enabled": plugin, "disabled": [{"name": "*"}]},
        },
    }
    group = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "training", "namespace": "default"},
        "spec": {"minMember": 3},
    }
    apply(cluster, tmp_path, group)
    start_mooring(configuration(profiles=[profile]))
    cluster.add(objects.node("node-a"))
    labels = {f"{GROUP}/pod-group": "training"}
    cluster.add(objects.pod("a", labels=labels), objects.pod("b", labels=labels))

    cluster.wait_until_refused("a", saying="cannot find enough sibling pods")
    hold_for(lambda: not node_name(cluster.pod("a")), "the group waits", seconds=1)

    cluster.add(objects.pod("c", labels=labels))
    cluster.wait_until_bound("a", "b", "c")


def test_a_quota_keeps_pods_back_until_it_grows(
    cluster: Cluster, start_mooring: StartMooring, definitions: None, tmp_path: Path
) -> None:
    profile = {
        "schedulerName": DEFAULT_SCHEDULER,
        "plugins": {
            "multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
            "postFilter": {
                "enabled": [{"name": "CapacityScheduling"}],
                "disabled": [{"name": "*"}],
            },
        },
    }

    def quota(cpu: str) -> dict[str, Any]:
        amounts = {"cpu": cpu, "memory": "8Gi"}
        return {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "quota", "namespace": "default"},
            "spec": {"min": amounts, "max": amounts},
        }

    apply(cluster, tmp_path, quota("1"))
    start_mooring(configuration(profiles=[profile]))
    cluster.add(objects.node("node-a"), objects.pod("first", cpu="1"))
    cluster.wait_until_bound("first")
    cluster.add(objects.pod("second", cpu="1"))
    cluster.wait_until_refused("second", saying="ElasticQuota default is more than Max")

    apply(cluster, tmp_path, quota("2"))
    cluster.wait_until_bound("second")


def test_a_pod_goes_to_the_node_below_the_target_load(
    cluster: Cluster, start_mooring: StartMooring, tmp_path: Path
) -> None:
    def at(percent: int) -> dict[str, Any]:
        return {"metrics": [{"type": "CPU", "operator": "AVG", "value": percent}]}

    load = {"data": {"NodeMetricsMap": {"node-a": at(90), "node-b": at(20)}}}
    (tmp_path / "load.json").write_text(json.dumps(load))
    profile = {
        "schedulerName": DEFAULT_SCHEDULER,
        "plugins": {
            "score": {"enabled": [{"name": "TargetLoadPacking"}], "disabled": [{"name": "*"}]}
        },
        "pluginConfig": [
            {
                "name": "TargetLoadPacking",
                "args": {"watcherAddress": f"file:{tmp_path / 'load.json'}"},
            }
        ],
    }
    start_mooring(configuration(profiles=[profile]))
    cluster.add(objects.node("node-a"), objects.node("node-b"))
    # A node may be seen after the pod.
    hostname = "kubernetes.io/hostname"
    cluster.add(objects.pod("there", nodeSelector={hostname: "node-b"}))
    cluster.wait_until_bound("there")
    cluster.add(objects.pod("web"))

    cluster.wait_until_bound("web")
    assert node_name(cluster.pod("web")) == "node-b"


def test_a_pod_goes_where_one_numa_zone_has_all_that_it_needs(
    cluster: Cluster, start_mooring: StartMooring, definitions: None, tmp_path: Path
) -> None:
    def topology(node: str, *cpus: str) -> dict[str, Any]:
        return {
            "apiVersion": f"{NUMA_GROUP}/v1alpha2",
            "kind": "NodeResourceTopology",
            "metadata": {"name": node},
            "attributes": [
                {"name": "topologyManagerPolicy", "value": "single-numa-node"},
                {"name": "topologyManagerScope", "value": "pod"},
            ],
            "zones": [
                {
                    "name": f"node-{number}",
                    "type": "Node",
                    "resources": [
                        {"name": name, "capacity": size, "allocatable": size, "available": size}
                        for name, size in (("cpu", cpu), ("memory", "8Gi"))
                    ],
                }
                for number, cpu in enumerate(cpus)
            ],
        }

    apply(cluster, tmp_path, topology("node-a", "1", "1"), topology("node-b", "1", "3"))
    profile = {
        "schedulerName": DEFAULT_SCHEDULER,
        "plugins": {"multiPoint": {"enabled": [{"name": "NodeResourceTopologyMatch"}]}},
    }
    start_mooring(configuration(profiles=[profile]))
    cluster.add(objects.node("node-a"))
    pod = objects.pod("numa", cpu="2")
    container = pod["spec"]["containers"][0]
    container["resources"] = {
        name: {"cpu": "2", "memory": "1Gi"} for name in ("requests", "limits")
    }
    cluster.add(pod)
    cluster.wait_until_refused("numa", saying="cannot align")

    cluster.add(objects.node("node-b"))
    cluster.wait_until_bound("numa")
    assert node_name(cluster.pod("numa")) == "node-b"
