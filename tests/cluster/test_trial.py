"""After a trial the cluster is as it was: the originals come back, whatever was changed.

1. A pod that was removed and added again came last on its node, and the order of pods decides between
   victims of equal importance.
2. A node that was moved to another zone and back came last in its zone, and the order of nodes decides which
   of them a sample has.
"""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.own_columns import PodsColumn
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from tests.makers import (
    make_affinity_term,
    make_group,
    make_node,
    make_pod,
    make_pod_affinity,
    make_service,
)

APPS = ("a", "b")


def books(cluster: Cluster) -> dict[str, object]:
    """Everything that the cluster says, in its order."""
    snapshot = cluster.snapshot()
    columns = snapshot.columns
    groups = cluster.pod_groups
    return {
        "order": list(snapshot.order),
        "entries": {
            name: (info.row, info.node, list(info.pods.values()), sorted(info.used_ports))
            for name, info in cluster.infos.items()
        },
        "pods": list(cluster.pods.items()),
        "assumed": sorted(pod.key for pod in cluster.assumed_pods()),
        "sums": {
            name: [column.values[row] for row in snapshot.rows]
            for name, column in columns.own_columns.by_name.items()
        },
        "failed": {name: dict(c.failed) for name, c in columns.own_columns.by_name.items()},
        "objects": {
            kind.__name__: list(objects.items())
            for kind, objects in cluster.listers._by_kind.items()
            if objects
        },
        "groups": {key: state.uids() for key, state in groups._groups.items()} if groups else {},
    }


def weight(pod: Pod) -> int:
    if pod.labels.get("app") == "b":
        raise ValueError("weighs nothing")
    return 1 + pod.priority


def draw_node(rng: random.Random, name: str) -> Node:
    return make_node(name, cpu=str(rng.randint(1, 8)), zone=rng.choice(("z1", "z2", "z3")))


def draw_pod(rng: random.Random, name: str, node: str) -> Pod:
    near = make_affinity_term({"app": rng.choice(APPS)})
    return make_pod(
        name,
        node=node,
        labels={"app": rng.choice(APPS)},
        priority=rng.randint(0, 3),
        affinity=make_pod_affinity(near) if rng.random() < 0.3 else None,
        group="gang" if rng.random() < 0.3 else None,
    )


def draw_cluster(rng: random.Random) -> Cluster:
    cluster = Cluster(has_pod_groups=True)
    cluster.declare_column(PodsColumn("weight", weight), "Weigher")
    cluster.listers.put(make_group(min_count=2))
    for i in range(rng.randint(1, 5)):
        cluster.add_node(draw_node(rng, f"n{i}"))
    for i in range(rng.randint(0, 10)):
        # Some nodes of pods are not known.
        pod = draw_pod(rng, f"p{i}", f"n{rng.randint(0, 5)}")
        (cluster.assume_pod if rng.random() < 0.3 else cluster.add_pod)(pod)
    return cluster


def change(cluster: Cluster, rng: random.Random, number: int) -> None:
    """Any change that a what-if could make."""
    pods, nodes = list(cluster.pods.values()), list(cluster.snapshot().order)
    match rng.randint(0, 8):
        case 0:
            cluster.add_node(draw_node(rng, f"new{number}"))
        case 1 if nodes:
            cluster.update_node(draw_node(rng, rng.choice(nodes)))
        case 2 if nodes:
            cluster.remove_node(rng.choice(nodes))
        case 3 if pods:
            cluster.remove_pod(rng.choice(pods))
        case 4:
            cluster.assume_pod(draw_pod(rng, f"new{number}", f"n{rng.randint(0, 7)}"))
        case 5 if pods:
            pod = rng.choice(pods)
            assumed = cluster.take_out(pod)
            if rng.random() < 0.5:
                cluster.put_back(pod, assumed=assumed)
        case 6 if pods:
            # A newer version: a pod that was assumed is confirmed.
            pod = rng.choice(pods)
            newer = pod.with_status(phase=rng.choice(("Running", "Pending")))
            (cluster.add_pod if cluster.is_assumed(pod) else cluster.update_pod)(newer)
        case 7:
            cluster.listers.put(make_service(f"s{rng.randint(0, 2)}", selector={"app": "a"}))
        case _:
            cluster.listers.drop(make_group())


@given(st.randoms(use_true_random=False))
def test_after_a_trial_everything_is_as_it_was(rng):
    cluster = draw_cluster(rng)
    before = books(cluster)

    with cluster.trial():
        for number in range(rng.randint(1, 8)):
            change(cluster, rng, number)
            if rng.random() < 0.3:
                cluster.snapshot()
            if rng.random() < 0.2:
                inside = books(cluster)
                with cluster.trial():
                    change(cluster, rng, 100 + number)
                assert _without_rows(books(cluster)) == _without_rows(inside)

    assert books(cluster) == before
    cluster.validate()


def _without_rows(of: dict[str, object]) -> dict[str, object]:
    """Nodes that a trial adds inside another keep their row to the end of the outer one."""
    entries = of["entries"]
    assert isinstance(entries, dict)
    there = {n: e for n, e in entries.items() if e[1] is not None or e[2]}
    return {**of, "entries": there}


def test_the_pods_of_a_node_keep_their_order():
    cluster = Cluster()
    cluster.add_node(make_node("n"))
    pods = [make_pod(name, node="n") for name in "abc"]
    for pod in pods:
        cluster.add_pod(pod)

    with cluster.trial():
        cluster.remove_pod(pods[0])
        assert [pod.name for pod in cluster.infos["n"].pods.values()] == ["c", "b"]

    assert list(cluster.infos["n"].pods.values()) == pods


def test_the_nodes_of_a_zone_keep_their_order():
    cluster = Cluster()
    for name in "abc":
        cluster.add_node(make_node(name, zone="z1"))

    with cluster.trial():
        cluster.update_node(make_node("a", zone="z2"))
        assert cluster.snapshot().order == ["b", "a", "c"]

    assert cluster.snapshot().order == ["a", "b", "c"]


def test_a_trial_that_fails_leaves_nothing_behind():
    cluster = Cluster()
    cluster.add_node(make_node("n"))

    try:
        with cluster.trial():
            cluster.add_pod(make_pod("p", node="n"))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass

    assert not cluster.pods
    cluster.validate()
