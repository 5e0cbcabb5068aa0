"""Policies on a real API server, with configurations as scheduler-plugins publishes them.

Custom resources are watched, and pods obey them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from control_plane import MOORING

from mooring.objects.meta import ObjectMeta
from mooring.objects.pod import Pod
from mooring_policies.node_resource_topology.fingerprint import fingerprint
from tests.live import objects
from tests.live.cluster import Cluster, node_name
from tests.live.conftest import StartMooring
from tests.live.objects import DEFAULT_SCHEDULER
from tests.live.process import configuration
from tests.live.waiting import hold_for

pytestmark = pytest.mark.live

GROUP = "scheduling.x-k8s.io"
NUMA_GROUP = "topology.node.k8s.io"
APP_GROUP = "appgroup.diktyo.x-k8s.io"
NETWORK_GROUP = "networktopology.diktyo.x-k8s.io"
METRICS_GROUP = "metrics.k8s.io"

#: Names of schedulers in the published configurations.
NETWORK, NUMA = "network-aware-scheduler", "topo-aware-scheduler"

PUBLISHED = Path(__file__).parents[2] / "policies" / "tests" / "configurations"


def published(name: str, **args: dict[str, Any]) -> dict[str, Any]:
    """A published configuration, with these arguments beside its own, by plugin."""
    config = yaml.safe_load((PUBLISHED / f"{name}.yaml").read_text())
    for entry in config["profiles"][0].get("pluginConfig", ()):
        entry["args"] |= args.get(entry["name"], {})
    common = configuration()
    return {**common, **config, "leaderElection": common["leaderElection"]}


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
            "scope": "Cluster" if group in (NUMA_GROUP, METRICS_GROUP) else "Namespaced",
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
        *(
            {"apiGroups": [group], "resources": [plural], "verbs": ["get", "list", "watch"]}
            for group, plural in (
                (NUMA_GROUP, "noderesourcetopologies"),
                (APP_GROUP, "appgroups"),
                (NETWORK_GROUP, "networktopologies"),
            )
        ),
        {"apiGroups": [METRICS_GROUP], "resources": ["nodes"], "verbs": ["get", "list"]},
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
        definition("AppGroup", "appgroups", APP_GROUP),
        definition("NetworkTopology", "networktopologies", NETWORK_GROUP),
    ]
    apply(cluster, tmp_path, *kinds, ROLE, BINDING)
    for kind in kinds:
        name = f"crd/{kind['metadata']['name']}"
        cluster.control_plane.kubectl("wait", "--for=condition=Established", name)


def test_a_group_of_coscheduling_is_bound_when_it_is_complete(
    cluster: Cluster, start_mooring: StartMooring, definitions: None, tmp_path: Path
) -> None:
    group = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "training", "namespace": "default"},
        "spec": {"minMember": 3},
    }
    apply(cluster, tmp_path, group)
    start_mooring(published("coscheduling"))
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
    def quota(cpu: str) -> dict[str, Any]:
        amounts = {"cpu": cpu, "memory": "8Gi"}
        return {
            "apiVersion": f"{GROUP}/v1alpha1",
            "kind": "ElasticQuota",
            "metadata": {"name": "quota", "namespace": "default"},
            "spec": {"min": amounts, "max": amounts},
        }

    apply(cluster, tmp_path, quota("1"))
    start_mooring(published("capacity-scheduling"))
    cluster.add(objects.node("node-a"), objects.pod("first", cpu="1"))
    cluster.wait_until_bound("first")
    cluster.add(objects.pod("second", cpu="1"))
    cluster.wait_until_refused("second", saying="ElasticQuota default is more than Max")

    apply(cluster, tmp_path, quota("2"))
    cluster.wait_until_bound("second")


def load_file(folder: Path, **nodes: tuple[int, int]) -> str:
    """An answer of load-watcher in a file: node → mean and deviation of its CPU load, in percent."""

    def metrics(*values: int) -> dict[str, Any]:
        operators = zip(("AVG", "STD"), values, strict=True)
        return {
            "metrics": [
                {"type": "CPU", "operator": name, "value": value} for name, value in operators
            ]
        }

    load = {f"node-{name}": metrics(*values) for name, values in nodes.items()}
    (folder / "load.json").write_text(json.dumps({"data": {"NodeMetricsMap": load}}))
    return f"file:{folder / 'load.json'}"


def wait_for_nodes(
    cluster: Cluster, *names: str, scheduler: str, limits: dict[str, str] | None = None
) -> None:
    """A pod on each: then the scheduler has seen them all."""
    for name in names:
        selector = {objects.HOSTNAME: name}
        there = objects.pod(f"on-{name}", nodeSelector=selector, scheduler=scheduler)
        there["spec"]["containers"][0]["resources"]["limits"] = limits or {}
        cluster.add(there)
    cluster.wait_until_bound(*(f"on-{name}" for name in names))


def test_a_pod_goes_to_the_node_below_the_target_load(
    cluster: Cluster, start_mooring: StartMooring, tmp_path: Path
) -> None:
    address = load_file(tmp_path, a=(90, 0), b=(20, 0))
    start_mooring(published("target-load-packing", TargetLoadPacking={"watcherAddress": address}))
    cluster.add(objects.node("node-a"), objects.node("node-b"))
    wait_for_nodes(cluster, "node-a", "node-b", scheduler="trimaran")

    cluster.add(objects.pod("web", scheduler="trimaran"))

    assert cluster.wait_until_bound("web")["web"] == "node-b"


def test_a_pod_goes_to_the_node_that_the_metrics_server_shows_below_the_target_load(
    cluster: Cluster, start_mooring: StartMooring, tmp_path: Path
) -> None:
    """The objects of the metrics server, which a definition serves at its path."""
    kind = definition("NodeMetrics", "nodes", METRICS_GROUP, "v1beta1")
    apply(cluster, tmp_path, kind, ROLE, BINDING)
    cluster.control_plane.kubectl(
        "wait", "--for=condition=Established", f"crd/nodes.{METRICS_GROUP}"
    )
    cluster.add(objects.node("node-a"), objects.node("node-b"))
    apply(cluster, tmp_path, node_metrics("node-a", "3600m"), node_metrics("node-b", "800m"))
    start_mooring(published("target-load-packing"))
    wait_for_nodes(cluster, "node-a", "node-b", scheduler="trimaran")

    cluster.add(objects.pod("web", scheduler="trimaran"))

    assert cluster.wait_until_bound("web")["web"] == "node-b"


def node_metrics(node: str, cpu: str) -> dict[str, Any]:
    return {
        "apiVersion": f"{METRICS_GROUP}/v1beta1",
        "kind": "NodeMetrics",
        "metadata": {"name": node},
        "timestamp": "2026-01-01T00:00:00Z",
        "window": "10s",
        "usage": {"cpu": cpu, "memory": "1Gi"},
    }


@pytest.mark.parametrize(
    ("plugin", "args", "load"),
    [
        pytest.param(
            "LoadVariationRiskBalancing",
            {"safeVarianceMargin": 1, "safeVarianceSensitivity": 2},
            {"a": (40, 40), "b": (40, 5)},
            id="a steady load",
        ),
        pytest.param(
            "LowRiskOverCommitment",
            {"smoothingWindowSize": 5, "riskLimitWeights": {"cpu": 0.5, "memory": 0.5}},
            {"a": (90, 5), "b": (5, 1)},
            id="a load below the requests",
        ),
        pytest.param(
            "Peaks",
            {
                "NodePowerModel": {
                    "node-a": {"k0": 471.7, "k1": 100, "k2": 0.05},
                    "node-b": {"k0": 471.7, "k1": 1, "k2": 0.05},
                }
            },
            {"a": (30, 0), "b": (30, 0)},
            id="less power",
        ),
    ],
)
def test_a_pod_goes_to_the_node_with(
    cluster: Cluster,
    start_mooring: StartMooring,
    tmp_path: Path,
    plugin: str,
    args: dict[str, Any],
    load: dict[str, tuple[int, int]],
) -> None:
    profile = {
        "schedulerName": "trimaran",
        "plugins": {"score": {"enabled": [{"name": plugin}], "disabled": [{"name": "*"}]}},
        "pluginConfig": [
            {"name": plugin, "args": {**args, "watcherAddress": load_file(tmp_path, **load)}}
        ],
    }
    start_mooring(configuration(profiles=[profile]))
    cluster.add(objects.node("node-a"), objects.node("node-b"))
    # What the limits of its pods exceed is a risk for a node.
    above = {"cpu": "32"}
    wait_for_nodes(cluster, "node-a", "node-b", scheduler="trimaran", limits=above)

    cluster.add(*objects.pods("web", 3, cpu="500m", scheduler="trimaran"))

    placed = cluster.wait_until_bound("web-0", "web-1", "web-2")
    assert {placed[f"web-{number}"] for number in range(3)} == {"node-b"}


def workload(name: str) -> dict[str, str]:
    return {APP_GROUP: "shop", f"{APP_GROUP}.workload": name}


def application() -> list[dict[str, Any]]:
    """A shop: its web pods talk to its database; zones are far from each other."""

    def of(name: str) -> dict[str, Any]:
        return {"kind": "Deployment", "name": name, "selector": name, "apiVersion": "apps/v1"}

    def costs(origin: str, destination: str) -> dict[str, Any]:
        return {
            "origin": origin,
            "costList": [{"destination": destination, "networkCost": 20}],
        }

    group = {
        "apiVersion": f"{APP_GROUP}/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {
            "numMembers": 2,
            "topologySortingAlgorithm": "KahnSort",
            "workloads": [
                {
                    "workload": of("web"),
                    "dependencies": [{"workload": of("db"), "maxNetworkCost": 5}],
                },
                {"workload": of("db")},
            ],
        },
        "status": {
            "topologyOrder": [
                {"workload": of("db"), "index": 1},
                {"workload": of("web"), "index": 2},
            ]
        },
    }
    topology = {
        "apiVersion": f"{NETWORK_GROUP}/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "net-topology-test", "namespace": "default"},
        "spec": {
            "weights": [
                {
                    "name": "UserDefined",
                    "topologyList": [
                        {
                            "topologyKey": objects.ZONE,
                            "originList": [costs("z1", "z2"), costs("z2", "z1")],
                        }
                    ],
                }
            ]
        },
    }
    return [group, topology]


def test_a_pod_goes_near_the_pods_that_it_talks_to(
    cluster: Cluster, start_mooring: StartMooring, definitions: None, tmp_path: Path
) -> None:
    apply(cluster, tmp_path, *application())
    start_mooring(published("network-overhead"))
    region = {"topology.kubernetes.io/region": "r"}
    cluster.add(
        objects.node("node-a", cpu="16", zone="z1", labels=region),
        objects.node("node-b", cpu="1", zone="z2", labels=region),
    )
    wait_for_nodes(cluster, "node-a", "node-b", scheduler=NETWORK)
    there = {objects.HOSTNAME: "node-b"}
    cluster.add(objects.pod("db", scheduler=NETWORK, labels=workload("db"), nodeSelector=there))
    cluster.wait_until_bound("db")

    cluster.add(objects.pod("web", scheduler=NETWORK, labels=workload("web")))

    assert cluster.wait_until_bound("web")["web"] == "node-b"


def test_the_pods_of_an_application_queue_in_the_order_of_its_workloads(
    cluster: Cluster, start_mooring: StartMooring, definitions: None, tmp_path: Path
) -> None:
    """The web pod is older; the place goes to the database, which comes first in the application."""
    apply(cluster, tmp_path, *application())
    port = [{"containerPort": 80, "hostPort": 80}]
    for name in ("web", "db"):
        cluster.add(objects.pod(name, scheduler=NETWORK, labels=workload(name), ports=port))
    cluster.add(objects.node("node-a", zone="z1"))

    start_mooring(published("network-overhead"))

    cluster.wait_until_bound("db")
    cluster.wait_until_refused("web", saying="free ports")


def test_a_share_of_a_gpu_is_held_on_one_gpu_and_known_after_a_restart(
    cluster: Cluster, start_mooring: StartMooring
) -> None:
    profile = {
        "schedulerName": DEFAULT_SCHEDULER,
        "plugins": {"multiPoint": {"enabled": [{"name": "Open-Gpu-Share"}]}},
    }
    resources = {"nvidia.com/gpu": "2", "mooring.dev/gpu-milli": "2000"}
    first = start_mooring(configuration(profiles=[profile]), name="first")
    cluster.add(objects.node("node-a", resources=resources))

    def share(name: str, milli: int) -> str:
        cluster.add(objects.pod(name, resources={"mooring.dev/gpu-milli": str(milli)}))
        cluster.wait_until_bound(name)
        annotations: dict[str, str] = cluster.pod(name)["metadata"]["annotations"]
        return annotations["alibabacloud.com/gpu-index"]

    assert share("a", 600) != share("b", 700)
    first.stop()
    start_mooring(configuration(profiles=[profile]), name="second")

    # 400 and 300 are left: together enough, but on no GPU.
    cluster.add(objects.pod("c", resources={"mooring.dev/gpu-milli": "500"}))
    cluster.wait_until_refused("c")
    assert (
        share("d", 350) == cluster.pod("a")["metadata"]["annotations"]["alibabacloud.com/gpu-index"]
    )


def topology(node: str, *cpus: str, pods: tuple[str, ...] | None = None) -> dict[str, Any]:
    """What the agent of a node writes: its zones, and the pods that it has counted, if it says so."""
    attributes = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "pod"}
    if pods is not None:
        counted = [Pod(metadata=ObjectMeta(name=name, namespace="default")) for name in pods]
        attributes["nodeTopologyPodsFingerprint"] = fingerprint(counted)
    return {
        "apiVersion": f"{NUMA_GROUP}/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": node},
        "attributes": [{"name": name, "value": value} for name, value in attributes.items()],
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


def guaranteed(name: str, cpu: str, **more: Any) -> dict[str, Any]:
    pod = objects.pod(name, cpu=cpu, **more)
    for kind in ("requests", "limits"):
        pod["spec"]["containers"][0]["resources"][kind] = {"cpu": cpu, "memory": "1Gi"}
    return pod


def test_a_pod_goes_where_one_numa_zone_has_all_that_it_needs(
    cluster: Cluster, start_mooring: StartMooring, definitions: None, tmp_path: Path
) -> None:
    apply(cluster, tmp_path, topology("node-a", "1", "1"), topology("node-b", "1", "3"))
    start_mooring(published("node-resource-topology"))
    cluster.add(objects.node("node-a"), guaranteed("numa", "2", scheduler=NUMA))
    cluster.wait_until_refused("numa", saying="cannot align")

    cluster.add(objects.node("node-b"))
    assert cluster.wait_until_bound("numa")["numa"] == "node-b"


def test_a_node_with_a_pod_of_another_scheduler_is_left_out_until_its_agent_has_counted_it(
    cluster: Cluster, start_mooring: StartMooring, definitions: None, tmp_path: Path
) -> None:
    apply(cluster, tmp_path, topology("node-a", "3", "3"))
    start_mooring(published("node-resource-topology"))
    cluster.add(objects.node("node-a"))
    cluster.add(guaranteed("foreign", "2", scheduler="another", nodeName="node-a"))
    running = json.dumps({"status": {"phase": "Running"}})
    cluster.control_plane.kubectl(
        "patch", "pod", "foreign", "--subresource=status", "--type=merge", "-p", running
    )
    cluster.add(guaranteed("numa", "2", scheduler=NUMA))
    cluster.wait_until_refused("numa", saying="invalid node topology data")

    apply(cluster, tmp_path, topology("node-a", "1", "1", pods=("foreign",)))
    cluster.wait_until_refused("numa", saying="cannot align pod")

    apply(cluster, tmp_path, topology("node-a", "1", "3", pods=("foreign",)))
    cluster.wait_until_bound("numa")
