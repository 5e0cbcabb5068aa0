"""The workloads, written after upstream's scheduler_perf (`test/integration/scheduler_perf`).

A cluster has as many bound pods as nodes unless a workload says otherwise, one on each, in ten zones. What
differs from upstream is harder here, not easier: zone spreading allows a skew of 1 and not of 5, and terms
that upstream has hold for every node hold for half of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache

from benchmarks import answers, devices, driving
from benchmarks.answers import Holds
from benchmarks.manifests import (
    CPU_PER_NODE_MILLI,
    CPU_PER_POD_MILLI,
    ZONES,
    Template,
    affinity_term,
    make,
    make_node,
    node_name,
    pod_affinity,
    preferred_term,
    spread,
)
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.objects.well_known import HOSTNAME, ZONE

_CSI_DRIVER = "ebs.csi.aws.com"
_MOST_VOLUMES = 39
_PODS_PER_NODE = CPU_PER_NODE_MILLI // CPU_PER_POD_MILLI

PLAIN = Template()


def _plain(_: int) -> Template:
    return PLAIN


@dataclass(frozen=True, slots=True)
class Workload:
    """A cluster, the pods that come, and what must be true afterwards."""

    name: str
    #: A sentence for the reader of a table.
    says: str
    #: What it is called in scheduler_perf; empty if it is not there.
    upstream: str = ""
    #: How the n-th measured pod is made, and the n-th bound one.
    template: Callable[[int], Template] = _plain
    bound: Callable[[int], Template] = _plain
    bound_per_node: int = 1
    #: Objects beside nodes and pods, for a cluster of so many nodes; and those that a pod brings along.
    beside: Callable[[int], Iterator[KubeObject]] = lambda _: iter(())
    brings: Callable[[str], Iterator[KubeObject]] = lambda _: iter(())
    #: Pods in the queue that have been tried in vain.
    backlog: int = 0
    drive: driving.Drive = driving.decide
    #: Whether pods are in the queue before the clock starts.
    queued: bool = True
    #: Pods that are placed before the clock starts, and that a full evaluation is asked about as well.
    warm_up: int = 60
    #: How many pods can be placed on so many nodes.
    most: Callable[[int], int] = lambda nodes: nodes * (_PODS_PER_NODE - 1) // 2
    #: What must hold on so many nodes, beside that all pods are placed.
    holds: Callable[[int], Holds] = field(default=lambda _: answers.fits(_PODS_PER_NODE))
    #: Decisions per second to be reached at 5,000 nodes with 5,000 bound pods.
    goal: int | None = None
    #: Whether all measured pods are placed; else none of them.
    fits: bool = True

    def objects(self, nodes: int, bound: int | None = None) -> Iterator[KubeObject]:
        """The cluster before the measured pods come."""
        for i in range(nodes):
            yield make_node(i)
        yield from self.beside(nodes)
        for i in range(self.bound_count(nodes) if bound is None else bound):
            name = f"bound-{i}"
            yield from self.brings(name)
            yield self.bound(i).pod(name).placed_on(node_name(i % nodes))

    def bound_count(self, nodes: int) -> int:
        return nodes * self.bound_per_node

    def pods(self, prefix: str, count: int, first: int = 0) -> list[Pod]:
        """Pods as they come; `prefix` tells those of one run from those of another.

        `first` is the number that the first is made by.
        """
        return [self.template(first + i).pod(f"{prefix}-{i}") for i in range(count)]


@cache
def _app(n: int) -> Template:
    """Plain pods of one out of many applications."""
    return Template({"app": f"app-{n}"}, cpu_milli=50 + n % 50, memory=f"{100 + n}Mi")


def signatures(count: int) -> Workload:
    """Plain pods of so many applications, taking turns."""
    return Workload(
        name=f"{count}-signatures",
        says=f"plain pods of {count} makes, taking turns",
        template=lambda i: _app(i % count),
        # All makes have been met when the clock starts.
        warm_up=max(60, count),
        goal={20: 5000, 2000: 4000}.get(count),
    )


def _in_lower_zones(i: int) -> bool:
    """Whether the n-th bound pod, which is on the n-th node, is in the first half of the zones."""
    return i % ZONES < ZONES // 2


def _one_in_five(i: int) -> bool:
    return i % 5 == 0


def _where(is_alike: Callable[[int], bool], alike: Template) -> Callable[[int], Template]:
    return lambda i: alike if is_alike(i) else PLAIN


_GREEN = {"color": "green"}
_BLUE = {"color": "blue"}
_RED = {"color": "red"}
_YELLOW = {"color": "yellow"}

_NODE_AFFINITY = Template(
    affinity={
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchExpressions": [
                            {"key": ZONE, "operator": "In", "values": ["zone-1", "zone-2"]}
                        ]
                    }
                ]
            }
        }
    }
)
_POD_AFFINITY = Template(_BLUE, affinity={"podAffinity": pod_affinity(affinity_term(_BLUE, ZONE))})
_POD_ANTI_AFFINITY = Template(
    _GREEN, affinity={"podAntiAffinity": pod_affinity(affinity_term(_GREEN, HOSTNAME))}
)
_REQUIRED_AND_PREFERRED = Template(
    _GREEN,
    affinity={
        "podAntiAffinity": pod_affinity(
            affinity_term(_GREEN, HOSTNAME), preferred=[preferred_term(_GREEN, ZONE, 10)]
        ),
        "podAffinity": pod_affinity(preferred=[preferred_term({"app": "plain"}, ZONE, 50)]),
    },
)
_PREFERRED_AFFINITY = Template(
    _RED,
    affinity={"podAffinity": pod_affinity(preferred=[preferred_term(_RED, HOSTNAME, 1)])},
)
_PREFERRED_ANTI_AFFINITY = Template(
    _YELLOW,
    affinity={"podAntiAffinity": pod_affinity(preferred=[preferred_term(_YELLOW, HOSTNAME, 1)])},
)
_HARD_SPREAD = Template(_BLUE, topologySpreadConstraints=spread(_BLUE, max_skew=1, hard=True))
_SOFT_SPREAD = Template(_BLUE, topologySpreadConstraints=spread(_BLUE, max_skew=5, hard=False))
_SERVED = Template({"app": "served"})
_LOW_PRIORITY = Template({"app": "low"}, cpu_milli=900)
_HIGH_PRIORITY = Template({"app": "high"}, cpu_milli=3000, priority=10)
_WITH_CLAIM = Template({"app": "volumes"}, claim=True)

_MIXTURE = (PLAIN, _POD_AFFINITY, _POD_ANTI_AFFINITY, _PREFERRED_AFFINITY, _PREFERRED_ANTI_AFFINITY)


def _service(_: int) -> Iterator[KubeObject]:
    yield make(
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "served", "namespace": "default", "uid": "served"},
            "spec": {"selector": {"app": "served"}},
        }
    )


def _csi_nodes(nodes: int) -> Iterator[KubeObject]:
    for i in range(nodes):
        driver = {"name": _CSI_DRIVER, "nodeID": node_name(i), "topologyKeys": []}
        yield make(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": {"name": node_name(i), "uid": f"csi-{i}"},
                "spec": {"drivers": [driver | {"allocatable": {"count": _MOST_VOLUMES}}]},
            }
        )


def _claim_and_volume(name: str) -> Iterator[KubeObject]:
    """Bound to each other already, as in upstream's workload."""
    capacity = {"storage": "1Gi"}
    yield make(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{name}", "uid": f"pv-{name}"},
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "capacity": capacity,
                "csi": {"driver": _CSI_DRIVER, "volumeHandle": f"vol-{name}"},
                "claimRef": {"namespace": "default", "name": name, "uid": f"pvc-{name}"},
                "persistentVolumeReclaimPolicy": "Retain",
            },
            "status": {"phase": "Bound"},
        }
    )
    yield make(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"pvc-{name}",
                "annotations": {"pv.kubernetes.io/bind-completed": "true"},
            },
            "spec": {
                "accessModes": ["ReadOnlyMany"],
                "resources": {"requests": capacity},
                "volumeName": f"pv-{name}",
            },
            "status": {"phase": "Bound", "capacity": capacity},
        }
    )


#: Name, what it says, upstream's name, pods, slices, claims, pods that a node has devices for, goal.
_DEVICES = (
    (
        "devices",
        "each pod has a claim from a template for one of ten devices a node",
        "SchedulingWithResourceClaimTemplate",
        devices.WITH_CLAIM,
        devices.whole_devices,
        devices.asking(),
        devices.PER_NODE,
        1000,
    ),
    (
        "devices-half-full",
        "as devices, with five of the ten in use",
        "",
        devices.WITH_CLAIM,
        devices.in_use(5),
        devices.asking(),
        devices.PER_NODE - 5,
        None,
    ),
    (
        "devices-nearly-full",
        "as devices, with eight of the ten in use",
        "",
        devices.WITH_CLAIM,
        devices.in_use(8),
        devices.asking(),
        devices.PER_NODE - 8,
        None,
    ),
    (
        "device-selectors",
        "as devices, with a CEL selector that every other device matches",
        "",
        devices.WITH_CLAIM,
        devices.whole_devices,
        devices.selectors,
        devices.PER_NODE // 2,
        None,
    ),
    (
        "device-constraints",
        "two devices a pod, which must have the same attribute",
        "",
        devices.WITH_CLAIM,
        devices.whole_devices,
        devices.same_numa,
        devices.PER_NODE // 2 - 1,
        None,
    ),
    (
        "device-shares",
        "a part of a device a pod (consumable capacity)",
        "",
        devices.WITH_CLAIM,
        devices.shared_devices,
        devices.part,
        devices.PER_NODE * 4,
        None,
    ),
    (
        "device-partitions",
        "five devices a node, to be used whole or as two halves (partitionable)",
        "",
        devices.WITH_CLAIM,
        devices.partitions,
        devices.asking(),
        devices.PER_NODE // 2,
        None,
    ),
    (
        "device-backtracking",
        "a partition of any size and a whole device a pod (partitionable, with backtracking)",
        "",
        devices.WITH_CLAIM,
        devices.partitions,
        devices.whole_and_part,
        devices.PER_NODE // 4,
        None,
    ),
    (
        "device-resources",
        "an extended resource that devices serve",
        "SchedulingWithExtendedResource",
        devices.WITH_RESOURCE,
        devices.whole_devices,
        lambda _: iter(()),
        devices.PER_NODE,
        None,
    ),
)


def _device_workload(
    name: str,
    says: str,
    upstream: str,
    template: Template,
    beside: Callable[[int], Iterator[KubeObject]],
    brings: Callable[[str], Iterator[KubeObject]],
    per_node: int,
    goal: int,
) -> Workload:
    return Workload(
        name=name,
        says=says,
        upstream=upstream,
        template=lambda _: template,
        beside=beside,
        brings=brings,
        warm_up=10,
        most=lambda nodes: nodes * per_node // 2,
        holds=lambda _: answers.fits(per_node + 1),
        goal=goal,
    )


WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(
            name="basic",
            says="plain pods of one make",
            upstream="SchedulingBasic",
            goal=20_000,
        ),
        signatures(20),
        signatures(2000),
        Workload(
            name="new-signatures",
            says="plain pods, no two of one kind: each kind is evaluated for the first time",
            template=lambda i: Template({"app": "one-off"}, memory=f"{100 + i}Mi"),
            goal=10_000,
        ),
        Workload(
            name="node-affinity",
            says="two zones of ten are required",
            upstream="SchedulingNodeAffinity",
            template=lambda _: _NODE_AFFINITY,
            most=lambda nodes: nodes * 3,
            holds=lambda _: answers.in_zones((1, 2)),
        ),
        Workload(
            name="pod-affinity",
            says="a zone with pods of the same colour is required; half of them have some",
            upstream="SchedulingPodAffinity",
            template=lambda _: _POD_AFFINITY,
            bound=_where(_in_lower_zones, _POD_AFFINITY),
            most=lambda nodes: nodes * 9,
            holds=lambda _: answers.in_zones(range(ZONES // 2)),
        ),
        Workload(
            name="pod-anti-affinity",
            says="a node without pods of the same colour is required; a fifth of them have one",
            upstream="SchedulingPodAntiAffinity",
            template=lambda _: _POD_ANTI_AFFINITY,
            bound=_where(_one_in_five, _POD_ANTI_AFFINITY),
            most=lambda nodes: nodes * 3 // 5,
            holds=lambda _: answers.one_a_node(_one_in_five),
        ),
        Workload(
            name="required-and-preferred",
            says="as pod-anti-affinity, with preferred affinity and anti-affinity by zone beside it",
            template=lambda _: _REQUIRED_AND_PREFERRED,
            bound=_where(_one_in_five, _REQUIRED_AND_PREFERRED),
            most=lambda nodes: nodes * 3 // 5,
            holds=lambda _: answers.one_a_node(_one_in_five),
            goal=4000,
        ),
        Workload(
            name="preferred-affinity",
            says="a node with pods of the same colour is preferred; half of them have one",
            upstream="SchedulingPreferredPodAffinity",
            template=lambda _: _PREFERRED_AFFINITY,
            bound=_where(_in_lower_zones, _PREFERRED_AFFINITY),
            most=lambda nodes: nodes * 9,
            holds=lambda _: answers.beside_one(_in_lower_zones),
            goal=3000,
        ),
        Workload(
            name="preferred-anti-affinity",
            says="a node without pods of the same colour is preferred; half of them have one",
            upstream="SchedulingPreferredPodAntiAffinity",
            template=lambda _: _PREFERRED_ANTI_AFFINITY,
            bound=_where(_in_lower_zones, _PREFERRED_ANTI_AFFINITY),
            holds=lambda nodes: answers.apart_while_possible(_in_lower_zones, nodes),
        ),
        Workload(
            name="zone-spread",
            says="zones may differ by one pod",
            upstream="TopologySpreading",
            template=lambda _: _HARD_SPREAD,
            holds=lambda _: answers.zones_within(1),
            goal=5000,
        ),
        Workload(
            name="soft-zone-spread",
            says="zones should differ by five pods at most",
            goal=5000,
            upstream="PreferredTopologySpreading",
            template=lambda _: _SOFT_SPREAD,
            holds=lambda _: answers.zones_within(5),
        ),
        Workload(
            name="default-spread",
            says="pods of a service, spread as the defaults say; half of the bound ones are its own",
            upstream="DefaultTopologySpreading",
            template=lambda _: _SERVED,
            bound=_where(_in_lower_zones, _SERVED),
            beside=_service,
            goal=5000,
        ),
        Workload(
            name="mixed-base",
            says="plain pods among bound ones with every kind of pod affinity",
            upstream="MixedSchedulingBasePod",
            bound=lambda i: _MIXTURE[i % len(_MIXTURE)],
        ),
        Workload(
            name="mixed-churn",
            says="as basic, while nodes, services and pods that fit nowhere come and go",
            upstream="SchedulingWithMixedChurn",
            drive=driving.with_churn,
        ),
        Workload(
            name="unschedulable-backlog",
            says="as basic, beside 2,000 pods that fit nowhere; one pod in eleven joins them",
            upstream="Unschedulable",
            backlog=2000,
            drive=driving.before_a_backlog,
        ),
        Workload(
            name="unschedulable",
            says="pods of one make that fit nowhere",
            template=lambda _: driving.TOO_LARGE,
            fits=False,
        ),
        Workload(
            name="preemption",
            says="every node is full, and three pods have to go for each that comes",
            upstream="PreemptionBasic",
            template=lambda _: _HIGH_PRIORITY,
            bound=lambda _: _LOW_PRIORITY,
            bound_per_node=4,
            drive=driving.preempt,
            warm_up=10,
            most=lambda nodes: min(200, nodes // 2),
            holds=lambda _: answers.victims_per_pod(3),
            goal=667,
        ),
        Workload(
            name="csi-volumes",
            says="each pod has a claim bound to a CSI volume, of which a node takes 39",
            upstream="SchedulingCSIPVs",
            template=lambda _: _WITH_CLAIM,
            bound=lambda _: _WITH_CLAIM,
            beside=_csi_nodes,
            brings=_claim_and_volume,
            warm_up=10,
            holds=lambda _: answers.fits(_MOST_VOLUMES),
        ),
        *(_device_workload(*each) for each in _DEVICES),
        Workload(
            name="whole-life",
            says="as basic, from the pod's appearance to its confirmed binding",
            drive=driving.live_through,
            queued=False,
            goal=12_000,
        ),
    )
}
