"""The life of pods and nodes in the cache."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from mooring.cluster.cache import CacheError, Cluster
from mooring.errors import InvariantError
from mooring.objects.pod import Pod, PodCondition
from tests.makers import HOSTNAME, ZONE, make_node, make_pod


def cluster_with(*nodes: str) -> Cluster:
    cluster = Cluster()
    for name in nodes:
        cluster.add_node(make_node(name))
    return cluster


def requested_cpu(cluster: Cluster, node: str) -> int:
    snapshot = cluster.snapshot()
    return int(snapshot.columns.requested[0, snapshot.columns.row_of[node]])


def test_an_assumed_pod_counts_at_once_and_is_confirmed_by_the_watch():
    cluster = cluster_with("n")
    pod = make_pod("p", cpu="1", node="n")

    cluster.assume_pod(pod)
    assert cluster.is_assumed(pod)
    assert requested_cpu(cluster, "n") == 1000

    cluster.add_pod(pod)
    assert not cluster.is_assumed(pod)
    assert requested_cpu(cluster, "n") == 1000


def told(pod: Pod, *conditions: str, **status: Any) -> Pod:
    """A newer version of the pod, with another status."""
    now = [PodCondition(type=each, status="True") for each in conditions]
    return pod.with_status(conditions=now, **status).stored_as("2")


def test_a_version_that_changes_no_sum_takes_the_place_of_the_known_one():
    cluster = cluster_with("n")
    pod = make_pod("p", cpu="1", node="n")
    cluster.assume_pod(pod)
    cluster.snapshot()

    cluster.add_pod(confirmed := told(pod, "PodScheduled"))

    assert not cluster.is_assumed(pod)
    assert cluster.pods[pod.uid] is confirmed
    assert list(cluster.infos["n"].pods.values()) == [confirmed]
    assert requested_cpu(cluster, "n") == 1000
    cluster.validate()


@pytest.mark.parametrize(
    "newer",
    [
        pytest.param(lambda pod: told(pod, phase="Running"), id="phase"),
        pytest.param(lambda pod: told(pod, "Ready"), id="another condition"),
        pytest.param(lambda pod: make_pod("p", cpu="2", node="n"), id="resources"),
        pytest.param(lambda pod: make_pod("p", cpu="1", node="n", labels={"a": "b"}), id="labels"),
        pytest.param(
            lambda pod: make_pod("p", cpu="1", node="n", annotations={"a": "b"}), id="annotations"
        ),
        pytest.param(
            lambda pod: make_pod("p", cpu="1", node="n", deleting=datetime(2026, 1, 1, tzinfo=UTC)),
            id="deletion",
        ),
        pytest.param(lambda pod: make_pod("p", cpu="1", node="n", ports=(80,)), id="ports"),
    ],
)
def test_what_plugins_may_see_of_a_pod_on_a_node_changes_its_row(newer):
    cluster = cluster_with("n")
    pod = make_pod("p", cpu="1", node="n")
    cluster.add_pod(make_pod("other", cpu="1", node="n"))
    cluster.add_pod(pod)
    cluster.snapshot()
    position = cluster.changes.pods.position

    cluster.update_pod(changed := newer(pod))

    assert cluster.pods[pod.uid] is changed
    assert cluster.changes.pods.position > position
    cluster.validate()


def test_an_updated_pod_is_the_last_on_its_node():
    cluster = cluster_with("n")
    pods = [make_pod(name, node="n") for name in "abc"]
    for pod in pods:
        cluster.add_pod(pod)

    cluster.update_pod(told(pods[0], "Ready"))

    # As in the reference, where the last pod takes the place of one that is removed.
    assert [pod.name for pod in cluster.infos["n"].pods.values()] == ["c", "b", "a"]


def test_a_forgotten_pod_counts_no_longer():
    cluster = cluster_with("n")
    pod = make_pod("p", cpu="1", node="n")
    cluster.assume_pod(pod)

    cluster.forget_pod(pod)

    assert requested_cpu(cluster, "n") == 0
    assert cluster.pods == {}


def test_a_port_that_another_pod_holds_stays_taken_when_a_pod_is_forgotten():
    """A member of a gang is tried on the node of its victim, which still holds the port."""
    cluster = cluster_with("n")
    cluster.add_pod(make_pod("victim", ports=[80], node="n"))
    member = make_pod("member", ports=[80, 81], node="n")
    cluster.assume_pod(member)

    cluster.forget_pod(member)

    assert cluster.infos["n"].used_ports == {("0.0.0.0", "TCP", 80)}
    cluster.validate()


def test_a_pod_that_was_bound_elsewhere_than_assumed_moves():
    cluster = cluster_with("a", "b")
    cluster.assume_pod(make_pod("p", cpu="1", node="a"))

    cluster.add_pod(make_pod("p", cpu="1", node="b"))

    assert (requested_cpu(cluster, "a"), requested_cpu(cluster, "b")) == (0, 1000)


def test_a_pod_nobody_knows_is_forgotten_already():
    cluster_with("n").forget_pod(make_pod("p", node="n"))


def assumed(cluster: Cluster) -> None:
    cluster.assume_pod(make_pod("p", node="a"))


def added(cluster: Cluster) -> None:
    cluster.add_pod(make_pod("p", node="a"))


P = "default/p"


@pytest.mark.parametrize(
    ("before", "step", "error"),
    [
        pytest.param(
            added,
            lambda c: c.assume_pod(make_pod("p", node="a")),
            "is in the cache, so can't be assumed",
            id="assume what is known",
        ),
        pytest.param(
            added,
            lambda c: c.add_pod(make_pod("p", node="a")),
            "was already in added state",
            id="add twice",
        ),
        pytest.param(
            added,
            lambda c: c.forget_pod(make_pod("p", node="a")),
            "wasn't assumed so cannot be forgotten",
            id="forget what was not assumed",
        ),
        pytest.param(
            assumed,
            lambda c: c.forget_pod(make_pod("p", node="b")),
            "was assumed on a but assigned to b",
            id="forget on another node",
        ),
        pytest.param(
            assumed,
            lambda c: c.update_pod(make_pod("p", node="a")),
            "should not be updated",
            id="update what is assumed",
        ),
        pytest.param(
            lambda c: None,
            lambda c: c.update_pod(make_pod("p", node="a")),
            "is not added to scheduler cache, so cannot be updated",
            id="update what is unknown",
        ),
        pytest.param(
            lambda c: None,
            lambda c: c.remove_pod(make_pod("p", node="a")),
            "is not found in scheduler cache",
            id="remove what is unknown",
        ),
        pytest.param(
            lambda c: None, lambda c: c.remove_node("x"), "node x is not found", id="unknown node"
        ),
        pytest.param(
            lambda c: None,
            lambda c: c.add_pod(make_pod("p", uid="", node="a")),
            "pod default/p has no UID",
            id="add what has no UID",
        ),
        pytest.param(
            lambda c: None,
            lambda c: c.assume_pod(make_pod("p", uid="", node="a")),
            "pod default/p has no UID",
            id="assume what has no UID",
        ),
    ],
)
def test_a_step_that_the_books_do_not_allow_says_why(before, step, error):
    cluster = cluster_with("a", "b")
    before(cluster)

    with pytest.raises(CacheError, match=error):
        step(cluster)
    cluster.validate()


def test_a_pod_that_moves_between_nodes_means_that_events_were_lost():
    cluster = cluster_with("a", "b")
    added(cluster)

    with pytest.raises(InvariantError, match="moved from a to b"):
        cluster.update_pod(make_pod("p", node="b"))


def test_a_pod_removed_from_another_node_means_that_events_were_lost():
    cluster = cluster_with("a", "b")
    added(cluster)

    with pytest.raises(InvariantError, match="was on a and is removed from b"):
        cluster.remove_pod(make_pod("p", node="b"))


@pytest.mark.parametrize("known", [assumed, added], ids=["assumed", "added"])
def test_a_pod_is_removed_as_it_is_known_though_the_event_names_no_node(known):
    cluster = cluster_with("a")
    known(cluster)

    cluster.remove_pod(make_pod("p"))

    assert (cluster.pods, cluster.assumed_pods()) == ({}, [])
    cluster.validate()


def test_a_pod_may_come_before_its_node():
    cluster = Cluster()
    cluster.add_pod(make_pod("p", cpu="1", node="late"))
    assert len(cluster.snapshot()) == 0

    cluster.add_node(make_node("late"))

    assert requested_cpu(cluster, "late") == 1000


def test_a_node_that_leaves_is_kept_unseen_until_its_last_pod_is_gone():
    cluster = cluster_with("n")
    pod = make_pod("p", cpu="1", node="n")
    cluster.add_pod(pod)

    cluster.remove_node("n")
    assert len(cluster.snapshot()) == 0
    assert cluster.snapshot().get("n") is None
    assert "n" in cluster.infos

    cluster.remove_pod(pod)
    assert "n" not in cluster.infos


def test_a_node_that_comes_back_finds_the_pods_that_stayed():
    cluster = cluster_with("n")
    cluster.add_pod(make_pod("p", cpu="1", node="n"))
    generation = cluster.infos["n"].generation
    cluster.remove_node("n")
    cluster.snapshot()

    cluster.add_node(make_node("n"))

    assert requested_cpu(cluster, "n") == 1000
    assert cluster.infos["n"].generation > generation


def test_an_assumption_on_a_node_that_left_is_forgotten_with_the_node():
    cluster = cluster_with("n")
    pod = make_pod("p", node="n")
    cluster.assume_pod(pod)
    cluster.remove_node("n")

    cluster.forget_pod(pod)

    assert cluster.infos == {}


def test_a_slot_is_given_to_the_next_node_and_nothing_is_left_in_it():
    cluster = Cluster()
    cluster.add_node(make_node("old", **{"example.com/x": 3}))
    columns = cluster.snapshot().columns
    row = columns.row_of["old"]
    assert columns.label(HOSTNAME).codes[row] >= 0
    cluster.remove_node("old")

    cluster.add_node(make_node("new", hostname=False))
    columns = cluster.snapshot().columns

    assert columns.row_of == {"new": row}
    assert columns.label(HOSTNAME).codes[row] == -1
    assert columns.allocatable[columns.resource_index("example.com/x"), row] == 0


def test_columns_grow_with_the_cluster():
    cluster = Cluster()
    for i in range(200):
        cluster.add_node(make_node(f"n{i}", cpu=str(i + 1), zone=f"z{i % 3}"))
    snapshot = cluster.snapshot()
    columns = snapshot.columns

    assert columns.count == 200
    assert [int(columns.allocatable[0, columns.row_of[f"n{i}"]]) for i in (0, 99, 199)] == [
        1000,
        100_000,
        200_000,
    ]
    assert len(set(columns.label(ZONE).codes[columns.all_rows].tolist())) == 3


def test_zones_take_turns_in_the_order_of_nodes():
    cluster = Cluster()
    for name, zone in [
        ("a1", "a"),
        ("a2", "a"),
        ("a3", "a"),
        ("b1", "b"),
        ("c1", "c"),
        ("c2", "c"),
    ]:
        cluster.add_node(make_node(name, zone=zone))

    assert cluster.snapshot().order == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_a_node_that_changes_its_zone_goes_to_the_end_of_the_other_one():
    cluster = Cluster()
    for name, zone in [("a1", "a"), ("a2", "a"), ("b1", "b")]:
        cluster.add_node(make_node(name, zone=zone))

    cluster.update_node(make_node("a1", zone="b"))

    assert cluster.snapshot().order == ["a2", "b1", "a1"]


def test_an_image_has_the_size_its_first_node_says_and_the_nodes_that_list_it():
    cluster = Cluster()
    for name, size in [("a", 100), ("b", 999)]:
        cluster.add_node(make_node(name, images={"app:1": size}))
    state = cluster.snapshot().columns.images["app:1"]
    assert (state.size_bytes, len(state.rows)) == (100, 2)

    cluster.remove_node("a")
    assert len(cluster.snapshot().columns.images["app:1"].rows) == 1
    cluster.remove_node("b")
    assert "app:1" not in cluster.snapshot().columns.images


def test_an_image_has_another_size_if_the_only_node_that_lists_it_says_so():
    cluster = Cluster()
    cluster.add_node(make_node("a", images={"app:1": 100}))
    cluster.snapshot()

    cluster.update_node(make_node("a", images={"app:1": 300}))

    assert cluster.snapshot().columns.images["app:1"].size_bytes == 300


def test_a_heartbeat_changes_no_row():
    cluster = cluster_with("n")
    columns = cluster.snapshot().columns
    before, position = columns.node_epoch, cluster.changes.nodes.position

    cluster.update_node(make_node("n"))

    assert cluster.snapshot().columns.node_epoch == before
    assert cluster.changes.nodes.position == position


def test_only_rows_that_changed_are_written():
    cluster = cluster_with("a", "b")
    columns = cluster.snapshot().columns
    generations = columns.generations.copy()

    cluster.add_pod(make_pod("p", node="b"))
    cluster.snapshot()

    changed = np.flatnonzero(columns.generations != generations).tolist()
    assert changed == [columns.row_of["b"]]
