"""Sums by domain stay true while counts, nodes and columns change."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.pod_counts import PodQuery
from mooring.cluster.row_counts import DomainCounts
from mooring.objects.selectors import EVERYTHING
from tests.makers import ZONE, make_node, make_pod

ALL_PODS = PodQuery(EVERYTHING, None)


def recounted(cluster: Cluster) -> dict[str, int]:
    zones: dict[str, int] = {}
    for info in cluster.infos.values():
        if ZONE in info.labels:
            zones[info.labels[ZONE]] = zones.get(info.labels[ZONE], 0) + len(info.pods)
    return {zone: count for zone, count in zones.items() if count}


def kept(cluster: Cluster) -> dict[str, int]:
    snapshot = cluster.snapshot()
    column = snapshot.columns.label(ZONE)
    totals = snapshot.pod_counts.kept(ALL_PODS).by_domain(column, snapshot.columns).totals
    assert totals[-1] == 0
    return {column.values[code]: int(totals[code]) for code in np.flatnonzero(totals)}


@given(seed=st.integers(0, 2**32))
def test_sums_by_domain_are_what_counting_again_gives(seed):
    chance = random.Random(seed)
    cluster = Cluster()
    for step in range(60):
        act = chance.random()
        if act < 0.35 or not cluster.infos:
            cluster.update_node(
                make_node(f"n{chance.randrange(90)}", zone=f"z{chance.randrange(9)}")
            )
        elif act < 0.45:
            known = [name for name, info in cluster.infos.items() if info.node is not None]
            if known:
                cluster.remove_node(chance.choice(known))
        elif act < 0.8 or not cluster.pods:
            node = chance.choice(list(cluster.infos))
            cluster.add_pod(make_pod(f"p{step}", node=node))
        else:
            cluster.remove_pod(chance.choice(list(cluster.pods.values())))
        if chance.random() < 0.5:
            assert kept(cluster) == recounted(cluster)
            cluster.validate()
    assert kept(cluster) == recounted(cluster)


def test_sums_of_a_column_that_was_rebuilt_do_not_fail_when_rows_are_added():
    """1. Churn leaves a column full of values that no node has. 2. It is rebuilt. 3. The columns grow;
    the column that was replaced does not. 4. A pod comes to a row that it never had.
    """
    cluster = Cluster()
    cluster.update_node(make_node("n", zone="z"))
    kept(cluster)
    for i in range(1200):
        cluster.update_node(make_node("n", zone=f"z{i}"))
        cluster.snapshot()
    cluster.snapshot().columns.label(ZONE)
    for i in range(70):
        cluster.update_node(make_node(f"more-{i}", zone="z"))
        cluster.add_pod(make_pod(f"p{i}", node=f"more-{i}"))

    assert kept(cluster) == {"z": 70}


def test_shared_totals_are_copied_before_a_change():
    cluster = Cluster()
    cluster.update_node(make_node("n", zone="z"))
    cluster.add_pod(make_pod("p", node="n"))
    snapshot = cluster.snapshot()
    sums = snapshot.pod_counts.kept(ALL_PODS).by_domain(
        snapshot.columns.label(ZONE), snapshot.columns
    )
    one, all_at_once = (DomainCounts(sums.column, sums.totals, shared=True) for _ in range(2))

    one.add("z", 5)
    one.add("elsewhere", 5)
    all_at_once.add_totals(sums.totals)

    assert (one.at("z"), one.at("elsewhere"), one.at(None)) == (6, 0, 0)
    assert all_at_once.at("z") == 2
    assert kept(cluster) == {"z": 1}
