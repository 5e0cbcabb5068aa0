"""The order in which nodes are looked at."""

from __future__ import annotations

import pytest

from mooring.cluster.node_tree import NodeTree, zone_key
from tests.makers import REGION, ZONE, make_node

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"


def tree_of(*nodes: str) -> NodeTree:
    """`a1` is in zone a; a node without a letter in no zone."""
    tree = NodeTree()
    for name in nodes:
        tree.add(make_node(name, zone=name[0] if name[0].isalpha() else None))
    return tree


@pytest.mark.parametrize(
    ("labels", "key"),
    [
        ({}, ""),
        ({ZONE: "z"}, ":\0:z"),
        ({REGION: "r"}, "r:\0:"),
        ({ZONE: "z", REGION: "r"}, "r:\0:z"),
        ({OLD_ZONE: "old", ZONE: "z", REGION: "r"}, "r:\0:old"),
        ({OLD_REGION: "old", REGION: "r", ZONE: "z"}, "old:\0:z"),
        ({OLD_ZONE: "", ZONE: "z"}, ""),
    ],
    ids=repr,
)
def test_a_zone_is_known_by_region_and_zone_and_by_their_old_labels_first(labels, key):
    assert zone_key(make_node(labels=labels)) == key


@pytest.mark.parametrize(
    ("nodes", "order"),
    [
        ([], []),
        (["a1", "a2"], ["a1", "a2"]),
        (["b1", "a1", "b2", "a2"], ["b1", "a1", "b2", "a2"]),
        (["a1", "a2", "a3", "b1", "c1", "c2"], ["a1", "b1", "c1", "a2", "c2", "a3"]),
        (["1", "a1", "2", "a2"], ["1", "a1", "2", "a2"]),
    ],
)
def test_zones_take_turns_in_the_order_in_which_they_were_first_seen(nodes, order):
    assert tree_of(*nodes).order() == order


def test_a_zone_that_was_empty_for_a_while_comes_last():
    tree = tree_of("a1", "b1")
    tree.remove("a1")

    assert tree.add(make_node("a2", zone="a"))

    assert tree.order() == ["b1", "a2"]


def test_a_node_that_changes_its_zone_goes_to_the_end_of_the_other():
    tree = tree_of("a1", "a2", "b1")

    assert tree.add(make_node("a1", zone="b"))

    assert tree.order() == ["a2", "b1", "a1"]
    assert len(tree) == 3


def test_a_node_that_stays_in_its_zone_keeps_its_place():
    tree = tree_of("a1", "a2")

    assert not tree.add(make_node("a1", zone="a", cpu=99))

    assert tree.order() == ["a1", "a2"]


def test_a_node_that_is_not_there_need_not_be_removed():
    tree = tree_of("a1")

    tree.remove("gone")

    assert tree.order() == ["a1"]
