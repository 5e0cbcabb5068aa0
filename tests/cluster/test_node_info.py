"""The pods of a node, and the order in which the reference keeps them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.node_info import NodeInfo
from tests.makers import make_node, make_pod


def pods(*names: str) -> list:
    return [make_pod(name, node="n") for name in names]


def names(info: NodeInfo) -> str:
    return "".join(pod.name for pod in info.pods.values())


def test_the_last_pod_takes_the_place_of_one_that_leaves():
    a, b, c, d = pods(*"abcd")
    info = NodeInfo("n")
    for pod in (a, b, c, d):
        info.add_pod(pod)

    info.remove_pod(a)
    assert names(info) == "dbc"
    info.remove_pod(c)
    assert names(info) == "db"
    info.add_pod(a)
    assert names(info) == "dba"
    assert list(info.pods) == [d.uid, b.uid, a.uid]
    assert a.uid in info.pods
    assert c.uid not in info.pods
    assert info.pods[b.uid] is b


def test_a_pod_that_is_not_there_cannot_leave():
    info = NodeInfo("n")
    info.add_pod(make_pod("a"))

    with pytest.raises(KeyError):
        info.remove_pod(make_pod("b"))


def test_a_copy_is_changed_by_itself():
    a, b, c = pods(*"abc")
    info = NodeInfo("n")
    for pod in (a, b, c):
        info.add_pod(pod)

    copy = info.copy()
    copy.remove_pod(a)

    assert names(copy) == "cb"
    assert names(info) == "abc"


def test_a_pod_that_is_confirmed_or_updated_is_taken_out_and_added_again():
    """`updatePod` of the reference's cache removes the pod and adds it, so it becomes the last."""
    cluster = Cluster()
    cluster.add_node(make_node("n"))
    a, b, c = pods(*"abc")
    cluster.assume_pod(a)
    cluster.add_pod(b)
    cluster.add_pod(c)
    info = cluster.infos["n"]
    assert names(info) == "abc"

    cluster.add_pod(a)
    assert names(info) == "cba"
    cluster.update_pod(b)
    assert names(info) == "cab"
    cluster.remove_pod(c)
    assert names(info) == "ba"


@given(st.lists(st.sampled_from("abcdefgh"), max_size=40))
def test_any_coming_and_going_leaves_the_order_of_the_reference(steps):
    """The reference scans a slice: `s[i] = s[len(s)-1]; s = s[:len(s)-1]`."""
    by_name = {pod.name: pod for pod in pods(*"abcdefgh")}
    info = NodeInfo("n")
    reference: list[str] = []
    for name in steps:
        if name in reference:
            reference[reference.index(name)] = reference[-1]
            reference.pop()
            info.remove_pod(by_name[name])
        else:
            reference.append(name)
            info.add_pod(by_name[name])

        assert names(info) == "".join(reference)
        assert all(info.pods[pod.uid] is pod for pod in info.pods.values())
