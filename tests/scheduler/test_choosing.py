"""Which of the best nodes is taken."""

from __future__ import annotations

import gc
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.snapshot import RANKS
from mooring.scheduler.choosing import ByName, SeededSpread
from tests.makers import make_node
from tests.runtime.frameworks import snapshot_of

NAMES = ("b", "a", "d", "c")
NODES = snapshot_of(*NAMES)


def choose(tie_break, *names: str, snapshot=NODES) -> str:
    columns = snapshot.columns
    best = np.array([columns.row_of[name] for name in names], np.intp)
    return columns.names[tie_break(best, snapshot)]


def test_the_first_name_is_taken_whichever_row_it_has():
    assert choose(ByName(), *NAMES) == "a"
    assert choose(ByName(), "d", "c") == "c"
    assert choose(ByName(), "d") == "d"


@pytest.mark.parametrize("tie_break", [ByName(), SeededSpread(1)], ids=["by name", "seeded"])
def test_a_tie_break_puts_all_nodes_into_one_order(tie_break):
    keys = tie_break.keys(NODES)

    assert len(set(keys.tolist())) == len(NAMES)
    assert 0 <= keys.min() <= keys.max() < RANKS
    assert tie_break.keys(NODES) is keys, "the same array for the same snapshot"


@given(seed=st.integers(0, 2**32))
def test_a_seed_orders_nodes_the_same_way_wherever_they_stand(seed):
    """So that a run repeats itself though nodes came in another order."""
    shuffled = snapshot_of(*sorted(NAMES))

    assert choose(SeededSpread(seed), *NAMES) == choose(
        SeededSpread(seed), *NAMES, snapshot=shuffled
    )


def test_seeds_spread_ties_over_all_nodes():
    assert {choose(SeededSpread(seed), *NAMES) for seed in range(40)} == set(NAMES)


@pytest.mark.parametrize("tie_break", [ByName(), SeededSpread(1)], ids=["by name", "seeded"])
def test_nodes_that_join_find_their_place_in_the_order(tie_break):
    cluster = Cluster()
    for name in NAMES:
        cluster.add_node(make_node(name))
    first = choose(tie_break, *NAMES, snapshot=cluster.snapshot())
    for i in range(100):
        cluster.add_node(make_node(f"x{i}"))

    assert choose(tie_break, *NAMES, snapshot=cluster.snapshot()) == first


def test_a_tie_break_keeps_no_cluster_alive():
    """After a reload, an earlier engine and all its pods were kept until the next pod was tried."""
    tie_break = SeededSpread(1)
    snapshot = snapshot_of("a", "b")
    tie_break.keys(snapshot)
    kept = ref(snapshot)

    del snapshot
    gc.collect()

    assert kept() is None
