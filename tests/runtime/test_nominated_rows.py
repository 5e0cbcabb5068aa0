"""The rows to which pods are nominated, kept between pods of one priority."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.runtime.nominated_rows import NominatedRows
from mooring.runtime.nominator import Nominator
from tests.makers import make_node, make_pod

NAMES = st.sampled_from("pqr")
NODES = st.sampled_from(("n0", "n1", "n2", "elsewhere"))
PRIORITIES = st.sampled_from((0, 5))
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("add", "add", "delete", "queue", "node", "ask", "ask")),
        NAMES,
        NODES,
        PRIORITIES,
    ),
    max_size=30,
)


@given(steps=STEPS)
def test_kept_rows_are_those_of_asking_for_each_node(steps):
    cluster = Cluster()
    for i in range(3):
        cluster.add_node(make_node(f"n{i}"))
    queued = {}
    nominator = Nominator()
    nominator.follow(queued.get)
    rows = NominatedRows(nominator)
    for step, name, node, priority in steps:
        pod = make_pod(name, uid=name, priority=priority)
        match step:
            case "add":
                nominator.add(make_pod(name, uid=name, nominated=node))
            case "delete":
                nominator.delete(pod)
            case "queue":
                queued[pod.key] = pod
                nominator.moved(pod.key)
            case "node":
                if node in cluster.snapshot().columns.row_of:
                    cluster.remove_node(node)
                else:
                    cluster.add_node(make_node(node))
            case "ask":
                snapshot = cluster.snapshot()
                expected = {
                    row: [
                        other
                        for other in nominator.nominated_pods_for_node(known)
                        if other.priority >= priority and other.uid != name
                    ]
                    for known, row in snapshot.columns.row_of.items()
                }
                found = rows.for_pod(pod, snapshot)
                assert {row: list(pods) for row, pods in found.items()} == {
                    row: pods for row, pods in expected.items() if pods
                }
