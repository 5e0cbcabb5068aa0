"""Nominations: who holds which node, and what others see of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.errors import InvariantError
from mooring.framework.interface import CLEAR_NOMINATION, Nomination
from mooring.runtime.nominator import Nominator
from tests.makers import make_pod


def test_a_pod_is_nominated_to_the_node_it_is_given():
    nominator, pod = Nominator(), make_pod()

    nominator.add(pod, Nomination("n1"))

    assert nominator.nominated_node(pod.uid) == "n1"
    assert list(nominator.nodes()) == ["n1"]
    assert nominator.has_any


def test_a_node_that_is_given_counts_before_the_one_in_the_status():
    nominator, pod = Nominator(), make_pod(nominated="n1")

    nominator.add(pod, Nomination("n2"))

    assert nominator.nominated_node(pod.uid) == "n2"


@pytest.mark.parametrize(("status", "node"), [("n1", "n1"), (None, None)])
def test_without_one_the_status_says_which(status, node):
    nominator, pod = Nominator(), make_pod(nominated=status)

    nominator.add(pod)

    assert nominator.nominated_node(pod.uid) == node


def test_a_pod_is_nominated_to_one_node_at_a_time():
    nominator, pod = Nominator(), make_pod()
    nominator.add(pod, Nomination("n1"))

    nominator.add(pod, Nomination("n2"))

    assert nominator.nominated_pods_for_node("n1") == []
    assert list(nominator.nodes()) == ["n2"]


@pytest.mark.parametrize("nominating", [CLEAR_NOMINATION, None], ids=["clear", "by status"])
def test_a_nomination_is_taken_back(nominating):
    nominator, pod = Nominator(), make_pod()
    nominator.add(pod, Nomination("n1"))

    nominator.add(pod, nominating)

    assert nominator.nominated_node(pod.uid) is None
    assert not nominator.has_any
    assert not nominator.nodes()


def test_pods_are_given_in_order_of_nomination():
    pods = {pod.key: pod for pod in (make_pod("a"), make_pod("b"), make_pod("c"))}
    nominator = Nominator(queued_pod=pods.get)
    for pod in pods.values():
        nominator.add(pod, Nomination("n1"))
    nominator.add(pods["default/a"], Nomination("n1"))

    names = [pod.name for pod in nominator.nominated_pods_for_node("n1")]

    assert names == ["b", "c", "a"]
    assert nominator.nominated_pods_for_node("n2") == []


def test_a_pod_is_given_as_the_queue_has_it_now():
    queue = {}
    nominator = Nominator(queued_pod=queue.get)
    nominator.add(make_pod("p", priority=1), Nomination("n1"))

    queue["default/p"] = newer = make_pod("p", priority=2)

    assert nominator.nominated_pods_for_node("n1") == [newer]


def test_of_a_pod_that_is_not_in_the_queue_only_its_name_is_known():
    nominator = Nominator()
    nominator.add(make_pod("p", namespace="ns", uid="1", priority=9, cpu=4), Nomination("n1"))

    (pod,) = nominator.nominated_pods_for_node("n1")

    assert (pod.key, pod.uid, pod.priority, pod.requests) == ("ns/p", "1", 0, {})


def test_a_pod_re_created_under_a_name_speaks_for_the_one_before_it():
    queue = {"default/p": make_pod("p", uid="2", priority=5)}
    nominator = Nominator(queued_pod=queue.get)
    nominator.add(make_pod("p", uid="1"), Nomination("n1"))

    (pod,) = nominator.nominated_pods_for_node("n1")

    assert pod.priority == 5
    assert nominator.nominated_node("2") is None


@pytest.mark.parametrize(
    ("live", "is_nominated"),
    [
        pytest.param({}, False, id="it is gone"),
        pytest.param({"default/p": make_pod("p", node="n2")}, False, id="it has a node"),
        pytest.param({"default/p": make_pod("p")}, True, id="it waits"),
    ],
)
def test_only_a_pod_that_exists_and_waits_is_nominated(live, is_nominated):
    nominator = Nominator(live.get)

    nominator.add(make_pod("p"), Nomination("n1"))

    assert nominator.has_any is is_nominated


def test_a_pod_that_is_gone_loses_its_earlier_nomination_when_it_is_nominated_again():
    live = {"default/p": make_pod("p")}
    nominator = Nominator(live.get)
    nominator.add(make_pod("p"), Nomination("n1"))
    live.clear()

    nominator.add(make_pod("p"), Nomination("n2"))

    assert not nominator.has_any


@pytest.mark.parametrize(
    ("before", "after", "node"),
    [
        pytest.param(None, None, "held", id="never in the status: kept"),
        pytest.param(None, "n1", "n1", id="appeared in the status"),
        pytest.param("n1", "n2", "n2", id="changed in the status"),
        pytest.param("n1", None, None, id="vanished from the status"),
    ],
)
def test_an_update_follows_the_status_unless_that_never_named_a_node(before, after, node):
    nominator = Nominator()
    nominator.add(make_pod(nominated=before), Nomination("held"))

    nominator.update(make_pod(nominated=before), make_pod(nominated=after))

    assert nominator.nominated_node("default/p") == node


def test_an_update_of_a_pod_that_was_not_nominated_nominates_nothing():
    nominator = Nominator()

    nominator.update(make_pod(), make_pod(labels={"a": "b"}))

    assert not nominator.has_any


def test_an_update_to_a_pod_of_another_uid_hands_the_node_on():
    nominator = Nominator()
    nominator.add(make_pod(uid="1"), Nomination("n1"))

    nominator.update(make_pod(uid="1"), make_pod(uid="2"))

    assert nominator.nominated_node("1") is None
    assert nominator.nominated_node("2") == "n1"


def test_a_deleted_pod_is_nominated_no_more_and_others_are():
    nominator, one, other = Nominator(), make_pod("one"), make_pod("other")
    nominator.add(one, Nomination("n1"))
    nominator.add(other, Nomination("n1"))

    nominator.delete(one)
    nominator.delete(make_pod("unknown"))

    assert [pod.name for pod in nominator.nominated_pods_for_node("n1")] == ["other"]


def test_views_that_differ_are_found_out():
    nominator = Nominator()
    nominator.add(make_pod(), Nomination("n1"))

    nominator._node_of["default/p"] = "n2"

    with pytest.raises(InvariantError):
        nominator.validate()


NODES = st.sampled_from((None, "", "n1", "n2"))


@given(
    st.lists(st.tuples(st.sampled_from(("add", "update", "delete")), st.sampled_from("pq"), NODES))
)
def test_whatever_happens_both_views_of_the_nominations_agree(steps):
    nominator = Nominator()
    for step, name, node in steps:
        pod = make_pod(name, nominated=node)
        match step:
            case "add":
                nominator.add(pod, None if node is None else Nomination(node))
            case "update":
                nominator.update(make_pod(name), pod)
            case "delete":
                nominator.delete(pod)
        nominator.validate()
        assert nominator.has_any is bool(nominator.nodes())


#: What the queue has under a name: nothing, as for a pod in flight, or a pod, perhaps another one.
QUEUED = st.sampled_from(
    (None, *(make_pod(name, uid=uid, priority=n) for name in "pq" for uid in "12" for n in (0, 5)))
)


@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(("add", "delete", "queue", "try", "ask")),
            st.sampled_from("pq"),
            NODES,
            QUEUED,
        )
    ),
    is_told=st.booleans(),
)
def test_what_is_kept_of_held_nodes_is_what_asking_for_each_gives(steps, is_told):
    """Whether the queue is asked for each pod, or says itself which pods entered or left it."""
    queued = {}
    nominator = Nominator(queued_pod=queued.get)
    if is_told:
        nominator.follow(queued.get)
    asking = make_pod("p", uid="1", priority=3)
    for step, name, node, known in steps:
        match step:
            case "add":
                nominator.add(make_pod(name, uid=name, nominated=node))
            case "delete":
                nominator.delete(make_pod(name, uid=name))
            case "queue":
                queued[f"default/{name}"] = known
                nominator.moved(f"default/{name}")
            case "try":
                with nominator.trial():
                    nominator.add(make_pod(name, uid=name, nominated=node))
                    nominator.held_nodes()
                    queued[f"default/{name}"] = known
                    nominator.moved(f"default/{name}")
            case "ask":
                nominator.validate()
                held = dict(nominator.held())
                assert list(held) == list(nominator.nodes())
                for place, pods in held.items():
                    expected = nominator.nominated_pods_for_node(place)
                    assert list(pods.pods) == expected
                    assert list(pods.counting_for(asking)) == [
                        pod for pod in expected if pod.priority >= 3 and pod.uid != "1"
                    ]
