"""Configurations as scheduler-plugins publishes them are accepted, and do what they say."""

import importlib
import tomllib
from pathlib import Path

import pytest

from mooring.config import load_config
from mooring.objects.manifests import ReadOptions, read_manifests
from mooring.objects.scheduler_names import asking_for
from mooring.plugins.registry import BUILT_IN
from mooring.runtime.build import plugin_kinds
from mooring.runtime.registry import Registry
from mooring.sim.build_report import simulate_objects
from mooring.sim.simulation import SimOptions

HERE = Path(__file__).parent
PYPROJECT = HERE.parent / "pyproject.toml"


def registry():
    named = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"]["mooring.plugins"]
    classes = {}
    for name, target in named.items():
        module, _, attribute = target.partition(":")
        classes[name] = getattr(importlib.import_module(module), attribute)
    return Registry({**BUILT_IN, **classes}, installed={})


def simulated(tmp_path, configuration, objects):
    """Where each pod goes: "" if nowhere."""
    known = registry()
    config = load_config((HERE / "configurations" / configuration).read_text())
    (tmp_path / "objects.yaml").write_text(objects)
    read = read_manifests(
        [tmp_path / "objects.yaml"], options=ReadOptions(kinds=plugin_kinds(config, known))
    )
    assert not read.skipped
    asking = asking_for(read.objects, config.profiles[0].scheduler_name)
    report = simulate_objects(list(asking), SimOptions(config=config, registry=known))
    assert not report.errors
    placed = {each.pod.partition("/")[2]: each.node for each in report.placements}
    return placed, {each.pod.partition("/")[2]: each.message for each in report.unplaced}


def node(name, cpu=4, memory="8Gi", labels="{}"):
    return f"""---
apiVersion: v1
kind: Node
metadata: {{name: {name}, labels: {labels}}}
status:
  allocatable: {{cpu: {cpu}, memory: {memory}, pods: 110}}
  capacity: {{cpu: {cpu}, memory: {memory}, pods: 110}}
"""


def pod(name, cpu, *, namespace="default", labels="{}", more="", limits=""):
    return f"""---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {labels}}}
spec:
  {more}
  containers:
  - name: c
    image: i
    resources: {{requests: {{cpu: {cpu}, memory: 1Gi}}, {limits}}}
"""


GROUP = """---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: training}
spec: {minMember: 3, scheduleTimeoutSeconds: 10}
"""
MEMBER = "{scheduling.x-k8s.io/pod-group: training}"


@pytest.mark.parametrize(("nodes", "placed"), [(1, 0), (2, 4)])
def test_a_group_starts_together_or_not_at_all(tmp_path, nodes, placed):
    objects = GROUP
    objects += "".join(node(f"n{i}") for i in range(nodes))
    objects += "".join(pod(f"worker-{i}", 2, labels=MEMBER) for i in range(4))

    found, pending = simulated(tmp_path, "coscheduling.yaml", objects)

    assert len(found) == placed
    assert len(pending) == 4 - placed


def quota(namespace, least, most):
    return f"""---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {{name: quota, namespace: {namespace}}}
spec:
  min: {{cpu: {least}, memory: 100Gi}}
  max: {{cpu: {most}, memory: 100Gi}}
"""


def test_a_namespace_borrows_and_gives_back(tmp_path):
    objects = node("n1", cpu=4, memory="64Gi") + quota("a", 2, 4) + quota("b", 2, 4)
    objects += "".join(
        pod(f"borrower-{i}", 1, namespace="b", more="nodeName: n1") for i in range(4)
    )
    objects += pod("owner", 2, namespace="a") + pod("third", 1, namespace="b")

    found, pending = simulated(tmp_path, "capacity-scheduling.yaml", objects)

    assert found["owner"] == "n1"
    assert "ElasticQuota used is more than min" in pending["third"]


def test_nodes_are_packed_up_to_the_target(tmp_path):
    objects = node("idle", cpu=10) + node("warm", cpu=10)
    objects += pod("running", 3, more="nodeName: warm") + pod("p", 2)

    found, _ = simulated(tmp_path, "target-load-packing.yaml", objects)

    assert found == {"p": "warm"}


def test_risk_and_power_are_scores(tmp_path):
    objects = node("hot", cpu=10) + node("cool", cpu=10) + pod("p", 2)

    found, _ = simulated(tmp_path, "trimaran.yaml", objects)

    assert found == {"p": "cool"}


def topology(name, *cpus):
    zones = "".join(
        f"""
- name: node-{i}
  type: Node
  resources:
  - {{name: cpu, capacity: {cpu}, allocatable: {cpu}, available: {cpu}}}
  - {{name: memory, capacity: 32Gi, allocatable: 32Gi, available: 32Gi}}"""
        for i, cpu in enumerate(cpus)
    )
    return f"""---
apiVersion: topology.node.k8s.io/v1alpha2
kind: NodeResourceTopology
metadata: {{name: {name}}}
topologyPolicies: ["SingleNUMANodeContainerLevel"]
zones:{zones}
"""


def test_a_pod_goes_where_one_zone_has_room(tmp_path):
    objects = node("split", cpu=8, memory="64Gi") + topology("split", 4, 4)
    objects += node("whole", cpu=8, memory="64Gi") + topology("whole", 7, 1)
    limits = "limits: {cpu: 6, memory: 1Gi}"
    objects += pod("first", 6, limits=limits) + pod("second", 6, limits=limits)

    found, pending = simulated(tmp_path, "node-resource-topology.yaml", objects)

    assert found == {"first": "whole"}
    assert "1 cannot align container" in pending["second"]


APPLICATION = """---
apiVersion: appgroup.diktyo.x-k8s.io/v1alpha1
kind: AppGroup
metadata: {name: shop}
spec:
  numMembers: 2
  topologySortingAlgorithm: KahnSort
  workloads:
  - workload: {kind: Deployment, name: web, selector: web, apiVersion: apps/v1, namespace: default}
    dependencies:
    - workload: {kind: Deployment, name: db, selector: db, apiVersion: apps/v1, namespace: default}
      maxNetworkCost: 5
  - workload: {kind: Deployment, name: db, selector: db, apiVersion: apps/v1, namespace: default}
---
apiVersion: networktopology.diktyo.x-k8s.io/v1alpha1
kind: NetworkTopology
metadata: {name: net-topology-test, namespace: default}
spec:
  configMapName: netperfMetrics
  weights:
  - name: UserDefined
    costList:
    - topologyKey: topology.kubernetes.io/zone
      originCosts:
      - origin: z1
        costs: [{destination: z2, bandwidthCapacity: 1Gi, networkCost: 20}]
      - origin: z2
        costs: [{destination: z1, bandwidthCapacity: 1Gi, networkCost: 20}]
"""


def test_a_pod_goes_near_the_pods_that_it_talks_to(tmp_path):
    def workload(name):
        return f"{{appgroup.diktyo.x-k8s.io: shop, appgroup.diktyo.x-k8s.io.workload: {name}}}"

    def zone(name):
        return f"{{topology.kubernetes.io/region: r, topology.kubernetes.io/zone: {name}}}"

    objects = APPLICATION + node("a", labels=zone("z1")) + node("b", labels=zone("z2"))
    objects += pod("db", 2, labels=workload("db"), more="nodeName: b")
    objects += pod("web", 1, labels=workload("web"))

    found, _ = simulated(tmp_path, "network-overhead.yaml", objects)

    assert found == {"web": "b"}
