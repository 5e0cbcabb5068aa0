import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.row_states import LARGEST, amounts_of, amounts_of_rows
from tests.makers import make_node, make_pod
from tests.plugins.resource_clusters import clusters, ordinary_clusters

SIZES = ({"cpu": 4, "memory": "8Gi"}, {"cpu": 8, "memory": "8Gi"})


def resources_of(columns, row):
    """What the states tell apart."""
    return (
        *columns.allocatable[:, row].tolist(),
        *columns.requested[:, row].tolist(),
        *columns.non_zero[:, row].tolist(),
        int(columns.pod_count[row]),
        int(columns.allowed_pods[row]),
    )


def assert_states_fit(columns):
    for row in range(columns.size):
        asked = columns.states.rows[columns.states.codes[row]]
        assert resources_of(columns, row) == resources_of(columns, asked)
        amounts = columns.states.amounts(columns)
        if amounts is not None:
            kept = amounts.table[:, columns.states.codes[row]]
            assert kept.tolist() == amounts_of(columns, row)


def assert_rows_have_their_amounts(columns):
    kept = columns.states.amounts_by_row(columns)
    if kept is not None:
        for row in range(columns.size):
            assert kept.table[:, row].tolist() == amounts_of(columns, row)


def cluster_of(count):
    cluster = Cluster()
    for i in range(count):
        cluster.add_node(make_node(f"n{i}", **SIZES[0]))
    return cluster


@st.composite
def changes(draw):
    """Pods that come and go, nodes that change, come and go, resources that nobody had before."""
    return draw(
        st.lists(
            st.tuples(
                st.sampled_from(("pod", "pod", "pod", "gone", "node", "remove", "gpu", "ask")),
                st.integers(0, 13),
                st.integers(0, 2),
            ),
            max_size=40,
        )
    )


@given(changes())
def test_rows_of_one_state_have_the_same_resources_whatever_happens(steps):
    cluster, pods = cluster_of(12), []
    cluster.snapshot()
    for number, (step, place, amount) in enumerate(steps):
        name = f"n{place}"
        known = name in cluster.infos and cluster.infos[name].node is not None
        if step == "pod" and known:
            pods.append(make_pod(f"p{number}", node=name, cpu=f"{amount}00m"))
            cluster.add_pod(pods[-1])
        elif step == "gpu" and known:
            pods.append(make_pod(f"p{number}", node=name, requests={f"x.com/{amount}": 1}))
            cluster.add_pod(pods[-1])
        elif step == "gone" and pods:
            cluster.remove_pod(pods.pop(place % len(pods)))
        elif step == "node":
            cluster.update_node(make_node(name, **SIZES[amount % 2]))
        elif step == "remove" and known:
            cluster.remove_node(name)
        elif step == "ask":
            columns = cluster.snapshot().columns
            if columns.states.are_few(columns):
                assert_states_fit(columns)
            else:
                assert_rows_have_their_amounts(columns)
        cluster.validate()


def test_states_are_not_kept_where_every_row_has_its_own():
    cluster = cluster_of(12)
    for i in range(12):
        cluster.add_pod(make_pod(f"p{i}", node=f"n{i}", cpu=f"{i + 1}00m"))
    columns = cluster.snapshot().columns

    assert not columns.states.are_few(columns)


def test_a_state_that_no_row_has_any_more_gives_its_number_to_another():
    cluster = cluster_of(12)
    columns = cluster.snapshot().columns
    assert columns.states.are_few(columns)
    for i in range(30):
        pod = make_pod(f"p{i}", node="n3", cpu=f"{i + 1}0m")
        cluster.add_pod(pod)
        cluster.snapshot()
        assert columns.states.are_few(columns)
        assert_states_fit(columns)
        cluster.remove_pod(pod)

    assert len(columns.states.rows) == 2


def test_a_state_that_no_row_has_any_more_has_room_for_everything():
    cluster = cluster_of(12)
    columns = cluster.snapshot().columns
    assert columns.states.are_few(columns)
    pod = make_pod("p", node="n3", cpu=4)
    cluster.add_pod(pod)
    cluster.snapshot()
    assert columns.states.are_few(columns)
    assert columns.states.amounts(columns).left[0].min() == 0

    cluster.remove_pod(pod)
    cluster.snapshot()

    assert columns.states.are_few(columns)
    assert columns.states.amounts(columns).left[0].min() == 4000


def test_there_is_room_for_more_states_than_there_were():
    cluster = cluster_of(600)
    columns = cluster.snapshot().columns
    assert columns.states.are_few(columns)
    for i in range(150):
        cluster.add_pod(make_pod(f"p{i}", node=f"n{i}", cpu=f"{i + 1}m"))
        if i % 40 == 39:
            cluster.snapshot()
            assert columns.states.are_few(columns)
            assert_states_fit(columns)


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({"cpu": 4, "memory": 0}, id="no memory"),
        pytest.param({"cpu": 4, "memory": LARGEST + 1}, id="too much to be exact"),
    ],
)
def test_amounts_are_not_kept_where_kernels_could_not_rely_on_them(node):
    cluster = cluster_of(12)
    columns = cluster.snapshot().columns
    assert columns.states.are_few(columns)
    assert columns.states.amounts(columns) is not None

    cluster.update_node(make_node("n3", **node))
    cluster.snapshot()

    assert columns.states.are_few(columns)
    assert columns.states.amounts(columns) is None
    assert columns.states.amounts_by_row(columns) is None

    cluster.update_node(make_node("n3", **SIZES[0]))
    cluster.snapshot()

    assert columns.states.amounts_by_row(columns) is not None
    assert_rows_have_their_amounts(columns)


def test_a_slot_without_a_node_hinders_no_kernel():
    cluster = cluster_of(12)
    columns = cluster.snapshot().columns
    assert columns.states.are_few(columns)

    cluster.remove_node("n3")
    cluster.snapshot()

    assert columns.states.are_few(columns)
    assert columns.states.amounts(columns).left.min() > 0


@given(cluster=clusters() | ordinary_clusters())
def test_many_rows_at_once_have_the_amounts_that_each_has(cluster):
    columns = cluster.snapshot().columns
    one_by_one = [amounts_of(columns, row) for row in range(columns.size)]

    at_once = amounts_of_rows(columns, np.arange(columns.size))

    assert (at_once is None) == (None in one_by_one)
    if at_once is not None:
        assert at_once.T.tolist() == one_by_one
