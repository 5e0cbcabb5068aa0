"""The index of slices: what a node sees, and that it equals a rebuild after any changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.devices.allocated import AllocatedDevices, PoolID
from mooring.devices.node_matching import NodeSelectorError
from mooring.devices.slice_index import SliceIndex
from mooring.errors import InvariantError
from mooring.objects.devices import ResourceSlice
from tests.devices.device_makers import (
    make_claim,
    make_device,
    make_held,
    make_node_selector,
    make_slice,
)
from tests.makers import make_node

NODES = [make_node("n1", labels={"zone": "a"}), make_node("n2", labels={"zone": "b"})]


def seen(index: SliceIndex, node) -> list[tuple[str, bool, str, list[str]]]:
    """The pools of a node, without usable ones that have no devices for it."""
    return [
        (str(pool.id), pool.incomplete, pool.invalid, [each.name for each in pool.devices])
        for pool in index.pools_on(node).pools
        if pool.devices or not pool.usable
    ]


@pytest.mark.parametrize(
    ("piece", "nodes"),
    [
        pytest.param(make_slice("x", node="n1"), ["n1"], id="node name"),
        pytest.param(make_slice("x", all_nodes=True), ["n1", "n2"], id="all nodes"),
        pytest.param(
            make_slice("x", selector=make_node_selector("zone", "b")), ["n2"], id="labels"
        ),
        pytest.param(
            make_slice(make_device("x", node="n2"), make_device("y", node="n3"), per_device=True),
            ["n2"],
            id="nodes of devices",
        ),
        pytest.param(make_slice("x", node=None), [], id="nothing"),
    ],
)
def test_a_slice_is_for_the_nodes_that_it_names(piece, nodes):
    index = SliceIndex([piece])

    assert [node.name for node in NODES if seen(index, node)] == nodes


def test_a_node_whose_labels_change_sees_other_slices():
    index = SliceIndex([make_slice("x", selector=make_node_selector("zone", "b"))])

    assert seen(index, make_node("n1", labels={"zone": "a"})) == []
    assert seen(index, make_node("n1", labels={"zone": "b"})) != []


def test_an_unusable_pool_with_counters_is_seen_by_every_node():
    pieces = [make_slice(name="counters", node="n1", slices=2, counters={"c": "1"})]
    index = SliceIndex(pieces)

    assert seen(index, NODES[1]) == [("d/p", True, "", [])]
    index.put(make_slice(make_device("x", counters={"c": "1"}), node="n1", slices=2))
    assert seen(index, NODES[1]) == []
    index.put(make_slice(make_device("x", counters={"other": "1"}), node="n1", slices=2))
    unknown = "counter other not found in counter set cs"
    assert seen(index, NODES[1]) == [("d/p", False, unknown, [])]
    assert seen(index, NODES[0]) == [("d/p", False, unknown, [])]


@pytest.mark.parametrize(
    ("pieces", "problem"),
    [
        pytest.param([make_slice("x", "x")], "duplicate device name x", id="device names"),
        pytest.param(
            [
                make_slice(name="a", slices=2, counters={"c": "1"}),
                make_slice(name="b", slices=2, counters={"c": "1"}),
            ],
            "duplicate counter set name cs",
            id="counter sets",
        ),
        pytest.param(
            [make_slice(make_device("x", counters={"c": "1"}))],
            "counter set cs not found",
            id="no such set",
        ),
    ],
)
def test_slices_that_contradict_each_other_make_a_pool_invalid(pieces, problem):
    assert seen(SliceIndex(pieces), NODES[0]) == [("d/p", False, problem, [])]


def test_counters_are_taken_by_devices_in_use_wherever_they_are():
    pieces = [
        make_slice(name="counters", slices=3, counters={"c": "3"}),
        make_slice(make_device("x", counters={"c": "1"}), name="here", slices=3),
        make_slice(make_device("y", counters={"c": "5"}), name="there", node="n2", slices=3),
    ]
    (pool,) = SliceIndex(pieces).pools_on(NODES[0]).usable
    allocated = AllocatedDevices()

    assert pool.available(allocated) == {("cs", "c"): 3 * 10**9}
    allocated.add(make_claim(holds=[make_held("y")]))
    assert pool.available(allocated) == {("cs", "c"): -2 * 10**9}
    allocated.remove("ns/c")
    assert pool.available(allocated) == {("cs", "c"): 3 * 10**9}


def test_what_is_known_of_a_node_is_kept_until_one_of_its_pools_changes():
    index = SliceIndex(
        [make_slice("x", name="s1", pool="p1"), make_slice("x", name="s2", pool="p2", node="n2")]
    )
    kept = index.pools_on(NODES[0])

    index.put(make_slice("y", name="s2", pool="p2", node="n2"))
    assert index.pools_on(NODES[0]) is kept

    index.put(make_slice("y", name="s1", pool="p1"))
    assert seen(index, NODES[0]) == [("d/p1", False, "", ["y"])]


def test_a_pool_that_spreads_over_nodes_follows_a_change_elsewhere():
    index = SliceIndex([make_slice("x", name="s1", slices=2)])
    assert seen(index, NODES[0]) == [("d/p", True, "", [])]

    index.put(make_slice("x", name="s2", slices=2, node="n2"))
    assert seen(index, NODES[0]) == [("d/p", False, "", ["x"])]

    index.put(make_slice("x", name="s2", slices=1, node="n2", generation=2))
    assert seen(index, NODES[0]) == []

    index.remove("s2")
    assert seen(index, NODES[0]) == [("d/p", True, "", [])]


def test_the_nodes_of_a_pool_are_those_that_can_take_its_devices():
    index = SliceIndex(
        [
            make_slice("x", name="s1", pool="p1"),
            make_slice("x", name="s2", pool="p1", node="n2"),
            make_slice("x", name="s3", pool="p2", all_nodes=True),
            make_slice(name="s4", pool="p1", node="n3", counters={"c": "1"}),
        ]
    )

    assert index.nodes_of(PoolID("d", "p1")) == {"n1", "n2"}
    assert index.nodes_of(PoolID("d", "p2")) is None
    assert index.nodes_of(PoolID("d", "unknown")) == set()


def test_a_change_says_which_nodes_may_see_it():
    index = SliceIndex([make_slice("x", name="s1", pool="p1")])

    assert index.put(make_slice("x", name="s2", pool="p2", node="n2")) == {"n2"}
    assert index.put(make_slice("y", name="s2", pool="p1", node="n3")) == {"n1", "n2", "n3"}
    assert index.put(make_slice("x", name="s3", pool="p3", all_nodes=True)) is None
    assert index.put(make_slice(name="s4", pool="p4", slices=2, counters={"c": "1"})) is None
    assert index.remove("s2") == {"n1", "n3"}
    assert index.remove("unknown") == set()


def test_a_malformed_node_selector_is_an_error_for_every_node():
    bad = make_slice("x", selector=make_node_selector("zone"))
    index = SliceIndex([bad])

    for _ in range(2):
        with pytest.raises(NodeSelectorError, match="for slice s: failed to parse node selector"):
            index.pools_on(NODES[0])
    index.remove("s")
    assert seen(index, NODES[0]) == []


PIECES = st.builds(
    make_slice,
    st.sampled_from(["x", "y", make_device("z", counters={"c": "1"})]),
    st.sampled_from(["u", "v", make_device("w", node="n2")]),
    name=st.sampled_from(["s1", "s2", "s3", "s4"]),
    pool=st.sampled_from(["p", "q"]),
    generation=st.integers(1, 2),
    slices=st.integers(1, 3),
    node=st.sampled_from(["n1", "n2", None]),
    all_nodes=st.sampled_from([None, None, True]),
    selector=st.sampled_from([None, None, make_node_selector("zone", "a")]),
    per_device=st.sampled_from([None, None, True]),
    counters=st.sampled_from([None, None, {"c": "1"}]),
)


@settings(max_examples=200)
@given(
    changes=st.lists(PIECES | st.sampled_from(["s1", "s2", "s3", "s4"]), max_size=12),
    asks=st.data(),
)
def test_the_index_equals_a_rebuild_after_any_changes(changes, asks):
    index = SliceIndex()
    known: dict[str, ResourceSlice] = {}
    for change in changes:
        before = {node.name: seen(SliceIndex(known.values()), node) for node in NODES}
        if isinstance(change, str):
            affected = index.remove(change)
            known.pop(change, None)
        else:
            affected = index.put(change)
            known[change.name] = change
        for node in NODES:
            if affected is not None and node.name not in affected:
                assert seen(SliceIndex(known.values()), node) == before[node.name]
        if asks.draw(st.booleans()):
            rebuilt = SliceIndex(known.values())
            for node in NODES:
                assert seen(index, node) == seen(rebuilt, node)
    index.validate()
    assert index.slices == list(known.values())


def test_an_index_that_is_wrong_is_noticed():
    index = SliceIndex([make_slice("x"), make_slice("y", name="t", pool="q")])

    del index._on_node["n1"]["t"]

    with pytest.raises(InvariantError, match="slices by node"):
        index.validate()
