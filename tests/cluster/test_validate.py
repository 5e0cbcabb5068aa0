"""`Cluster.validate` compares everything that is kept with a rebuild: whatever is spoiled, it notices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import Columns
from mooring.cluster.pod_counts import PodQuery
from mooring.errors import InvariantError, check_kept
from mooring.objects.devices import (
    Allocation,
    Device,
    DeviceAllocationResult,
    DeviceClass,
    DevicesAllocation,
    ResourceClaim,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from mooring.objects.meta import ObjectMeta
from mooring.objects.selectors import selector_from_map
from mooring.objects.taints import Taint
from tests.makers import (
    ZONE,
    make_affinity_term,
    make_node,
    make_owner,
    make_pod,
    make_pod_affinity,
    make_service,
)
from tests.volume_world import make_claim, make_volume

WEB = {"app": "web"}
GPUS = "deviceclass.resource.kubernetes.io/gpu"
QUERY = PodQuery(selector_from_map(WEB), frozenset(("default",)))


def lived() -> Cluster:
    """A cluster that keeps something of every kind, and has a past: rows were freed, pods moved."""
    cluster = Cluster()
    for name in ("gone", "a", "b"):
        cluster.add_node(
            make_node(
                name,
                labels={ZONE: f"zone-{name}", "disk": "ssd"},
                taints=["dedicated:NoSchedule"] if name == "a" else (),
                images={"app:1": 100} if name == "a" else None,
                features=["F"] if name == "a" else (),
            )
        )
    anti = make_pod_affinity(anti=[make_affinity_term(WEB, ZONE)])
    cluster.add_pod(
        make_pod("p", node="a", cpu="1", labels=WEB, ports=[80], claims=["c"], affinity=anti)
    )
    cluster.add_pod(make_pod("q", node="a", memory="1Gi", labels=WEB))
    cluster.add_pod(make_pod("r", node="a"))
    cluster.add_pod(make_pod("unseen", node="ghost", cpu="1"))
    cluster.assume_pod(make_pod("s", node="b"))
    cluster.remove_node("gone")
    cluster.listers.put(make_service("web", selector=WEB))
    cluster.listers.put(DeviceClass(metadata=ObjectMeta(name="gpu")))
    pool = ResourcePool(name="p", resource_slice_count=1)
    spec = ResourceSliceSpec(driver="d", pool=pool, all_nodes=True, devices=[Device(name="x")])
    cluster.listers.put(ResourceSlice(metadata=ObjectMeta(name="s"), spec=spec))
    cluster.listers.put(device_claim("1"))
    result = DeviceAllocationResult(request="r", driver="d", pool="p", device="x")
    allocation = Allocation(devices=DevicesAllocation(results=[result]))
    cluster.claims.assume(
        replace(device_claim("2"), status=ResourceClaimStatus(allocation=allocation))
    )
    volume = make_volume("v")
    cluster.listers.put(volume)
    cluster.listers.put(make_claim("c"))
    cluster.volumes.volumes.assume(volume)
    cluster.volumes.volumes_of_class(volume.spec.storage_class_name)
    # What is derived when it is asked for.
    snapshot = cluster.snapshot()
    zones = cluster.columns.label(ZONE)
    cluster.columns.label("disk")
    cluster.pod_counts.kept(QUERY).by_domain(zones, cluster.columns)
    web = make_pod(labels=WEB, owner=make_owner("ReplicaSet", "w"))
    for held in cluster.held_terms.matching(web, {}):
        held.rows.by_domain(zones, cluster.columns)
    assert cluster.deduced_selectors.of(web).requirements
    assert GPUS in cluster.device_classes
    assert len(snapshot.rows) == len(snapshot.name_keys[snapshot.rows]) == 2
    assert len(cluster.columns.images["app:1"].index) == 1
    return cluster


def device_claim(version: str) -> ResourceClaim:
    meta = ObjectMeta(name="held", namespace="ns", uid="u-held", resource_version=version)
    return ResourceClaim(metadata=meta)


def row(cluster: Cluster) -> int:
    return cluster.infos["a"].row


def counter(cluster: Cluster):
    return cluster.pod_counts._counters[QUERY]


def group(cluster: Cluster):
    return next(each for each in cluster.pod_counts._groups.values() if each.labels == WEB)


def term(cluster: Cluster):
    (held,) = cluster.held_terms._terms.values()
    return held


def put(array_of: Callable[[Columns], np.ndarray], value: object) -> Callable[[Cluster], None]:
    def spoil(cluster: Cluster) -> None:
        array_of(cluster.columns)[..., row(cluster)] = value

    return spoil


def pop_sum(cluster: Cluster) -> None:
    (sums,) = counter(cluster).rows._sums.values()
    sums.totals[0] += 1


def sum_of_all(cluster: Cluster) -> None:
    (sums,) = term(cluster).rows._sums.values()
    sums.all += 1


def domain_exists(cluster: Cluster) -> None:
    (sums,) = counter(cluster).rows._sums.values()
    sums.exists[0] = not sums.exists[0]


def replace_pod(cluster: Cluster) -> None:
    pod = next(pod for pod in cluster.pods.values() if pod.name == "p")
    cluster.pods[pod.uid] = replace(pod)


def pod_in_two_places(cluster: Cluster) -> None:
    pod = cluster.infos["a"].pods.values()[0]
    cluster.infos["b"].pods.add(pod)


def nobody_is_left(cluster: Cluster) -> None:
    (uid,) = cluster.infos["ghost"].pods
    cluster.infos["ghost"].pods.remove(uid)
    del cluster.pods[uid]


def another_zone(cluster: Cluster) -> None:
    cluster._tree._zone_of["a"] = "elsewhere"


def node_of_no_zone(cluster: Cluster) -> None:
    cluster._tree._zones["zone"] = {"nobody": None}


def outdated_assumption(cluster: Cluster) -> None:
    (assumed,) = cluster.volumes.volumes._assumed.values()
    cluster.volumes.volumes._assumed["v"] = assumed.stored_as("other")


def speaks_of_nobody(cluster: Cluster) -> None:
    memo = cluster.held_terms._matching
    memo[next(iter(memo))] = ({}, [])


def deduced_otherwise(cluster: Cluster) -> None:
    memo = cluster.deduced_selectors._deduced
    memo[next(iter(memo))] = selector_from_map({"app": "db"})


def listed_under_another_key(cluster: Cluster) -> None:
    known = cluster.listers._by_kind[DeviceClass]
    known["other"] = known.pop("gpu")


SPOILED = {
    # Pods
    "a pod is missing": (lambda c: c.pods.popitem(), "the nodes of pods"),
    "a pod is on two nodes": (pod_in_two_places, "is on a and on b"),
    "a pod is another version": (replace_pod, "another version"),
    "an assumed pod is unknown": (lambda c: c._assumed.add("nobody"), "not in the cache"),
    "an index of a pod": (lambda c: c.infos["a"].pods._indexed().popitem(), "pods on a node"),
    # Nodes
    "a sum of requests": (lambda c: c.infos["a"].requested.update(cpu=5), "a, requested, cpu: 5"),
    "a sum for scoring": (
        lambda c: setattr(c.infos["a"], "non_zero_cpu", 5),
        "a, non-zero requests",
    ),
    "an offer": (lambda c: c.infos["a"].allocatable.update(cpu=5), "a, allocatable, cpu"),
    "the pods allowed": (lambda c: setattr(c.infos["a"], "allowed_pods", 5), "allowed pods"),
    "a port": (lambda c: c.infos["a"].used_ports.add(("0.0.0.0", "TCP", 81)), "a, ports"),
    "a claim": (lambda c: c.infos["a"].pvc_refs.clear(), "a, claims in use"),
    "the row of a node": (lambda c: setattr(c.infos["a"], "row", 0), "row"),
    "an entry for nothing": (nobody_is_left, "ghost is kept without a node and without pods"),
    # The order of nodes
    "the zone of a node": (another_zone, "the zones of the nodes, a"),
    "a node in the tree": (node_of_no_zone, "the nodes of the zones|not consistent"),
    "the order": (lambda c: c.snapshot().order.reverse(), "the order of nodes"),
    "the rows in order": (lambda c: c.snapshot().rows.fill(0), "the rows of the snapshot"),
    "the ranks of names": (lambda c: c.snapshot().name_keys.fill(0), "the ranks of names"),
    # Columns
    "allocatable": (put(lambda c: c.allocatable, 7), "allocatable"),
    "requested": (put(lambda c: c.requested, 7), "requested"),
    "non-zero": (put(lambda c: c.non_zero, 7), "non-zero requests"),
    "pod count": (put(lambda c: c.pod_count, 7), "count of pods"),
    "allowed pods": (put(lambda c: c.allowed_pods, 7), "allowed pods"),
    "alive": (put(lambda c: c.alive, False), "alive"),
    "unschedulable": (put(lambda c: c.unschedulable, True), "unschedulable"),
    "generation": (put(lambda c: c.generations, 0), "the generation of the row of a"),
    "a generation to come": (lambda c: setattr(c.generations, "latest", 0), "not assigned yet"),
    "taints": (put(lambda c: c.taint_sets.codes, 0), "taints"),
    "ports": (put(lambda c: c.port_sets.codes, 0), "the ports in the row of a"),
    "features": (put(lambda c: c.feature_sets.codes, 0), "features"),
    "a label": (put(lambda c: c.label("disk").codes, -1), "label columns, disk"),
    "a domain": (put(lambda c: c.label(ZONE).codes, 1), "label columns"),
    "labels": (lambda c: c.columns._labels.__setitem__(row(c), {}), "labels"),
    "codes of taints": (
        lambda c: c.columns.taint_sets._code_of.pop((Taint(key="dedicated", effect="NoSchedule"),)),
        "the codes of taints",
    ),
    "codes of a label": (lambda c: c.columns.label("disk")._code_of.clear(), "label disk, ssd"),
    "a name": (lambda c: c.columns.names.__setitem__(row(c), "x"), "name"),
    "a row by name": (lambda c: c.columns.row_of.update(x=0), "rows"),
    "a row of a resource": (lambda c: c.columns.resources.update(x=0), "allocatable, x"),
    "a short array": (
        lambda c: setattr(c.columns, "non_zero", c.columns.non_zero[:, :9]),
        "columns, capacity",
    ),
    "images of a row": (lambda c: c.columns._listed_images[row(c)].clear(), "images"),
    "rows of an image": (lambda c: c.columns.images["app:1"].rows.add(1 - row(c)), "image"),
    "the array of an image": (
        lambda c: c.columns.images["app:1"].index.fill(9),
        "the array of image app:1",
    ),
    "a slot": (lambda c: c.columns._free.clear(), "rows"),
    "a slot that is taken": (lambda c: c.columns._free.append(row(c)), "rows"),
    # Counts of pods
    "a group": (lambda c: c.pod_counts._groups.popitem(), "groups of pods"),
    "a group's rows": (lambda c: group(c).rows.update({1: 9}), "groups of pods.*rows"),
    "a group's counters": (lambda c: group(c).counters.clear(), "counted by"),
    "the index of groups": (
        lambda c: c.pod_counts._groups_by_key._under.popitem(),
        "the index of groups of pods",
    ),
    "a count": (lambda c: counter(c).rows.counts.fill(3), "the count of the pods of"),
    "the index of counts": (
        lambda c: c.pod_counts._counters_by_key._under.clear(),
        "the index of counts of pods",
    ),
    "keys of a count": (lambda c: setattr(counter(c), "keys", ()), "index"),
    "a sum by domain": (pop_sum, f"sums by {ZONE}, domains"),
    "a domain with nodes": (domain_exists, "domains with nodes"),
    # Affinity terms
    "a term": (lambda c: c.held_terms._terms.clear(), "affinity terms"),
    "who holds a term": (lambda c: setattr(term(c), "holders", 7), "affinity terms"),
    "rows of a term": (lambda c: term(c).rows.counts.fill(2), "the pods with"),
    "the sum of a term": (sum_of_all, "the pods with.*total"),
    "the index of terms": (
        lambda c: c.held_terms._by_key._under.clear(),
        "the index of affinity terms",
    ),
    "the terms of a pod": (speaks_of_nobody, "the terms that match pods of default"),
    # What is looked up
    "an assumed volume": (outdated_assumption, "persistentvolumes v is assumed"),
    "the index of volumes": (
        lambda c: c.volumes._by_class._values.clear(),
        "the index of PersistentVolume",
    ),
    "volumes in order": (
        lambda c: next(iter(c.volumes._by_class._sorted.values())).clear(),
        "the index of PersistentVolume objects, sorted",
    ),
    "volumes of a class": (
        lambda c: next(iter(c.volumes._by_class._under.values())).clear(),
        "the index of PersistentVolume",
    ),
    "a deduced selector": (deduced_otherwise, "deduced selectors"),
    "services": (lambda c: c.deduced_selectors._services.clear(), "the selectors of services"),
    "device classes": (
        lambda c: c.device_classes._class_of.clear(),
        "the resources of device classes",
    ),
    "seen classes": (lambda c: c.device_classes._seen.clear(), "device classes that were seen"),
    "a resource of another class": (
        lambda c: c.device_classes._class_of.update(
            {"a.example/b": c.device_classes._class_of[GPUS]}
        ),
        "a.example/b is kept for a device class",
    ),
    "a claim for devices": (lambda c: c.claims._latest.pop("ns/held"), "the keys of claims"),
    "an assumed claim": (lambda c: c.claims._assumed.clear(), "claim ns/held is neither"),
    "an outdated claim": (
        lambda c: c.listers._by_kind[ResourceClaim].update({"ns/held": device_claim("9")}),
        "claim ns/held is assumed, but the watch shows a newer one",
    ),
    "allocations": (lambda c: c.claims._counted.clear(), "allocations in use"),
    "devices": (lambda c: c.claims.devices.remove("ns/held"), "devices held by claims"),
    "classes by name": (lambda c: c.device_pools.classes.clear(), "device classes, gpu"),
    "slices": (lambda c: c.device_pools.slices.remove("s"), "resource slices, s"),
    "a key": (listed_under_another_key, "DeviceClass other"),
}


def test_a_cluster_that_lived_is_what_a_rebuild_gives():
    cluster = lived()

    cluster.validate()
    cluster.validate()


@pytest.mark.parametrize(("spoil", "problem"), SPOILED.values(), ids=SPOILED)
def test_whatever_is_spoiled_is_noticed(spoil, problem):
    cluster = lived()
    spoil(cluster)

    with pytest.raises(InvariantError, match=problem):
        cluster.validate()


def test_rows_that_are_free_at_the_end_are_no_difference():
    cluster = lived()
    for i in range(100):
        cluster.add_node(make_node(f"n{i}", zone="z"))
    cluster.add_pod(make_pod("x", node="n9", labels=WEB))
    cluster.validate()
    for i in range(10, 100):
        cluster.remove_node(f"n{i}")

    cluster.validate()


def test_looking_changes_nothing_but_rows_that_were_to_be_written():
    cluster = lived()
    counts, before = cluster.pod_counts.counts(QUERY), cluster.generations.latest
    snapshot = cluster.snapshot()
    cluster.add_pod(make_pod("late", node="b", labels=WEB))

    cluster.validate()

    assert cluster.snapshot() is snapshot
    assert cluster.pod_counts.counts(QUERY) is counts
    assert cluster.changes.pods.since(before) == [cluster.infos["b"].row]
    assert cluster.columns.pod_count[cluster.infos["b"].row] == 2


def test_the_first_difference_is_named():
    kept = {"a": {"cpu": 1, "memory": 2}, "b": {}}
    with pytest.raises(
        InvariantError, match=r"^node, a, memory: 2 is kept, and a rebuild gives 3$"
    ):
        check_kept("node", kept, {"a": {"cpu": 1, "memory": 3}, "b": {"cpu": 1}})
    with pytest.raises(
        InvariantError, match=r"^node, b, cpu: nothing is kept, and a rebuild gives 1"
    ):
        check_kept("node", kept, {"a": {"cpu": 1, "memory": 2}, "b": {"cpu": 1}})
