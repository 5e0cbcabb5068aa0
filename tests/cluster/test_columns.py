"""Nodes as columns: whatever happened before, the rows say what the nodes say."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.columns import (
    _FIRST_CAPACITY,
    ABSENT,
    Columns,
    InternedColumn,
    LabelColumn,
    row_count,
)
from mooring.cluster.node_info import NodeInfo
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from tests.makers import make_node, make_pod

LABELS = ("disk", "rack")
RESOURCES = ("example.com/gpu", "example.com/fpga", "example.com/nic")


class History:
    """A random past of a cluster: nodes and pods come, change and go."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.cluster = Cluster()
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.steps = [self.put_node, self.put_node, self.drop_node, self.add_pod, self.add_pod]
        self.steps += [self.drop_pod, self.look]

    def live(self, steps: int) -> None:
        for _ in range(steps):
            self.random.choice(self.steps)()
            if self.random.random() < 0.5:
                self.cluster.validate()

    def put_node(self) -> None:
        pick = self.random.choice
        node = make_node(
            f"n{self.random.randrange(6)}",
            cpu=pick([1, 2, 4]),
            pods=pick([1, 110]),
            labels={key: pick("abc") for key in LABELS if pick([True, False])},
            taints=[f"{key}:NoSchedule" for key in "xy" if pick([True, False])],
            unschedulable=pick([True, False]),
            images={f"app:{i}": 100 for i in range(3) if pick([True, False])},
            features=[f for f in ("F", "G") if pick([True, False])],
            zone=pick([None, "a", "b"]),
            **{name: pick([1, 2]) for name in RESOURCES if pick([True, False])},
        )
        self.nodes[node.name] = node
        self.cluster.update_node(node)

    def drop_node(self) -> None:
        if self.nodes:
            name = self.random.choice(sorted(self.nodes))
            del self.nodes[name]
            self.cluster.remove_node(name)

    def add_pod(self) -> None:
        pod = make_pod(
            f"p{len(self.pods)}-{self.random.random()}",
            node=f"n{self.random.randrange(6)}",
            cpu=self.random.choice([None, "100m", 1]),
            requests={self.random.choice(RESOURCES): 1},
            ports=[self.random.choice([80, 443])],
        )
        self.pods[pod.uid] = pod
        self.cluster.add_pod(pod)

    def drop_pod(self) -> None:
        if self.pods:
            self.cluster.remove_pod(self.pods.pop(self.random.choice(sorted(self.pods))))

    def look(self) -> None:
        self.cluster.snapshot()
        self.cluster.columns.label(self.random.choice(LABELS))


def rows_of(cluster: Cluster) -> dict[str, dict[str, object]]:
    """Every node as its row says it is, whichever row that is."""
    columns = cluster.snapshot().columns
    return {name: _row(columns, row) for name, row in columns.row_of.items()}


def _row(columns: Columns, row: int) -> dict[str, object]:
    def amounts(array: np.ndarray) -> dict[str, int]:
        found = {name: int(array[i, row]) for name, i in columns.resources.items()}
        return {name: amount for name, amount in found.items() if amount}

    labels = {key: columns.label(key) for key in LABELS}
    return {
        "allocatable": amounts(columns.allocatable),
        "requested": amounts(columns.requested),
        "non zero": columns.non_zero[:, row].tolist(),
        "pods": (int(columns.pod_count[row]), int(columns.allowed_pods[row])),
        "unschedulable": bool(columns.unschedulable[row]),
        "taints": columns.taint_sets.values[columns.taint_sets.codes[row]],
        "ports": columns.port_sets.values[columns.port_sets.codes[row]],
        "features": columns.feature_sets.values[columns.feature_sets.codes[row]],
        "labels": {
            key: column.values[column.codes[row]]
            for key, column in labels.items()
            if column.codes[row] != ABSENT
        },
        "images": {name for name, state in columns.images.items() if row in state.rows},
    }


@given(seed=st.integers(0, 2**32))
def test_after_any_past_the_rows_are_those_of_a_cluster_that_had_none(seed):
    history = History(seed)
    history.live(40)
    fresh = Cluster()
    for node in history.nodes.values():
        fresh.add_node(node)
    # In the order in which they are on their nodes now: two that take one port share it.
    for info in history.cluster.infos.values():
        for pod in info.pods.values():
            fresh.add_pod(pod)

    lived = rows_of(history.cluster)
    for name, row in rows_of(fresh).items():
        # A port that two pods hold is free when either leaves, as in the reference.
        assert lived[name].pop("ports") <= row.pop("ports")
        assert lived[name] == row
    assert lived.keys() == history.nodes.keys()
    assert set(history.cluster.snapshot().order) == set(history.nodes)
    history.cluster.validate()


def test_a_slot_that_was_given_back_is_the_next_to_be_taken():
    columns = Columns()
    assert [columns.take_slot() for _ in range(3)] == [0, 1, 2]

    columns.free_slot(1)

    assert [columns.take_slot(), columns.take_slot()] == [1, 3]
    assert columns.size == 4


def test_arrays_grow_and_keep_what_they_hold():
    cluster = Cluster()
    cluster.add_node(make_node("first", cpu=3, labels={"disk": "ssd"}, taints=["x:NoSchedule"]))
    cluster.add_pod(make_pod("p", node="first", cpu=1, ports=[80]))
    before = rows_of(cluster)["first"]
    assert cluster.columns.capacity == _FIRST_CAPACITY

    for i in range(_FIRST_CAPACITY):
        cluster.add_node(make_node(f"n{i}"))

    assert rows_of(cluster)["first"] == before
    assert cluster.columns.capacity == 2 * _FIRST_CAPACITY
    assert len(cluster.columns.label("disk").codes) == 2 * _FIRST_CAPACITY


def test_a_resource_that_was_never_seen_gets_a_place_of_its_own():
    columns = Columns()
    info = NodeInfo("n", columns.take_slot())
    info.set_node(make_node("n", **{f"example.com/r{i}": i + 1 for i in range(9)}))

    columns.write_node(info)

    for i in range(9):
        assert columns.allocatable[columns.resource_index(f"example.com/r{i}"), 0] == i + 1
    assert columns.allocatable.shape == columns.requested.shape


def test_each_distinct_value_is_judged_once():
    column = InternedColumn(4, "")
    for row, value in enumerate(["a", "b", "a", ""]):
        column.write(row, value)
    judged = []

    def verdict(value):
        judged.append(value)
        return value == "a"

    assert column.judge(verdict, slice(0, 4)).tolist() == [True, False, True, False]
    assert judged == ["", "a", "b"]
    assert column.judge(verdict, np.array([2])).tolist() == [True]


def test_values_that_no_row_has_any_more_are_forgotten():
    column = InternedColumn(2, "")
    for i in range(100):
        column.write(0, f"v{i}")
    column.write(1, "kept")

    column.compact(range(2))

    assert column.values == ["", "v99", "kept"]
    assert [column.values[code] for code in column.codes.tolist()] == ["v99", "kept"]


def test_churn_leaves_no_taints_behind():
    cluster = Cluster()
    for i in range(1200):
        cluster.update_node(make_node("n", taints=[f"k{i}:NoSchedule"]))
        cluster.snapshot()
    # Values are forgotten when the set of nodes changes, which is when codes may change.
    cluster.add_node(make_node("m"))
    columns = cluster.snapshot().columns

    assert len(columns.taint_sets.values) < 10
    assert rows_of(cluster)["n"]["taints"][0].key == "k1199"


def test_a_label_that_a_row_does_not_have_is_absent():
    column = LabelColumn("disk", 3)
    column.write(0, "ssd")
    column.write(1, "")
    column.write(2, None)

    assert column.codes.tolist() == [0, 1, ABSENT]
    assert [column.code_of(value) for value in ("ssd", "", "hdd", None)] == [0, 1, ABSENT, ABSENT]


def test_rows_are_counted_whichever_way_they_are_named():
    assert row_count(slice(0, 5)) == 5
    assert row_count(np.array([7, 9])) == 2
