import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster import pod_counts
from mooring.cluster.cache import Cluster
from mooring.cluster.columns import ABSENT
from mooring.cluster.pod_counts import PodCounts, PodQuery, look_up
from mooring.cluster.row_counts import by_domain, domains_among
from mooring.cluster.selector_index import keys_of_pod
from mooring.objects.selectors import compile_selector
from tests import topology_clusters as topology
from tests.makers import HOSTNAME, make_node, make_pod, make_selector

WEB = compile_selector(make_selector({"app": "web"}))
EVERY_WEB_POD = PodQuery(WEB, None)


@st.composite
def queries(draw):
    return PodQuery(
        compile_selector(draw(topology.label_selectors())),
        draw(st.none() | st.frozensets(st.sampled_from(topology.NAMESPACES), max_size=2)),
        terminating=draw(st.booleans()),
    )


def web_pod(name="p", **fields):
    return make_pod(name, **{"labels": {"app": "web"}, **fields})


@pytest.mark.parametrize(
    ("query", "count"),
    [
        pytest.param(EVERY_WEB_POD, 3, id="anywhere, terminating or not"),
        pytest.param(PodQuery(WEB, frozenset(["default"])), 2, id="a namespace"),
        pytest.param(PodQuery(WEB, frozenset()), 0, id="no namespace"),
        pytest.param(PodQuery(WEB, None, terminating=False), 2, id="not terminating"),
        pytest.param(PodQuery(compile_selector(None), None), 0, id="no selector"),
        pytest.param(PodQuery(compile_selector(make_selector()), None), 4, id="any pod"),
    ],
)
def test_a_query_counts_pods_by_namespace_labels_and_deletion(query, count):
    counts = PodCounts(4)
    counts.add(web_pod("a"), 2)
    counts.add(web_pod("b", deleting=topology.DELETED), 2)
    counts.add(web_pod("c", namespace="other"), 2)
    counts.add(make_pod("d", labels={"app": "db"}), 2)

    assert counts.counts(query).tolist() == [0, 0, count, 0]


@given(asked_before=st.lists(queries(), max_size=4), data=st.data())
def test_counts_kept_through_any_history_equal_a_recount(asked_before, data):
    cluster = data.draw(topology.histories())
    for query in asked_before:
        cluster.pod_counts.counts(query)
    for _ in range(data.draw(st.integers(0, 8))):
        name = data.draw(st.sampled_from(topology.PODS))
        if name in cluster.pods and data.draw(st.booleans()):
            cluster.remove_pod(cluster.pods[name])
        else:
            topology.put_pod(cluster, data.draw(topology.placed_pods(name)))
        cluster.validate()

    for query in [*asked_before, data.draw(queries())]:
        recount = np.zeros(cluster.pod_counts.capacity, np.int64)
        for info in cluster.infos.values():
            recount[info.row] = sum(query.picks(pod) for pod in info.pods.values())
        assert cluster.pod_counts.counts(query).tolist() == recount.tolist()


@given(query=queries(), data=st.data())
def test_sums_by_domain_kept_through_any_history_equal_a_recount(query, data):
    """Asked for at any time, while nodes and domains come and go between the questions."""
    cluster = data.draw(topology.histories())
    for _ in range(data.draw(st.integers(1, 8))):
        match data.draw(st.sampled_from(("ask", "pod", "pod", "node", "drop node", "snapshot"))):
            case "ask":
                columns = cluster.snapshot().columns
                key = data.draw(st.sampled_from(topology.KEYS))
                cluster.pod_counts.kept(query).by_domain(columns.label(key), columns)
            case "pod":
                name = data.draw(st.sampled_from(topology.PODS))
                topology.put_pod(cluster, data.draw(topology.placed_pods(name)))
            case "node":
                name = data.draw(st.sampled_from((*topology.NODES, "n7", "n8")))
                cluster.update_node(data.draw(topology.nodes(name)))
            case "drop node":
                info = cluster.infos[data.draw(st.sampled_from(sorted(cluster.infos)))]
                if info.node is not None and len(cluster.infos) > 1:
                    cluster.remove_node(info.name)
            case "snapshot":
                cluster.validate()

    snapshot = cluster.snapshot()
    for key in topology.KEYS:
        column = snapshot.columns.label(key)
        sums = cluster.pod_counts.kept(query).by_domain(column, snapshot.columns)
        recount = dict.fromkeys(column.values, 0)
        for info in snapshot:
            if key in info.labels:
                recount[info.labels[key]] += sum(map(query.picks, info.pods.values()))
        assert sums.totals.tolist() == [*recount.values(), 0]
        assert sums.all == sum(recount.values())
        used = {info.labels.get(key) for info in snapshot}
        assert sums.exists.tolist() == [*(value in used for value in column.values), False]


def test_sums_that_are_out_of_date_do_not_stand_in_the_way_of_pods():
    """A count was asked for by host; then two nodes join, and a pod that counts is put on the second.

    The sums lack both hosts. They are computed again on the next read, and until then a pod may
    come to a domain that they have no place for.
    """
    cluster = Cluster()
    cluster.add_node(make_node("n0"))
    columns = cluster.snapshot().columns
    cluster.pod_counts.kept(EVERY_WEB_POD).by_domain(columns.label(HOSTNAME), columns)
    for name in ("n1", "n2"):
        cluster.add_node(make_node(name))
    cluster.snapshot()

    cluster.add_pod(web_pod(node="n2"))

    sums = cluster.pod_counts.kept(EVERY_WEB_POD).by_domain(columns.label(HOSTNAME), columns)
    assert sums.totals[columns.label(HOSTNAME).code_of("n2")] == sums.all == 1


def test_a_relabelled_pod_moves_between_counts():
    counts = PodCounts(1)
    counts.counts(EVERY_WEB_POD)
    counts.add(web_pod(), 0)
    assert counts.counts(EVERY_WEB_POD)[0] == 1

    counts.remove(web_pod(), 0)
    counts.add(make_pod(labels={"app": "db"}), 0)

    assert counts.counts(EVERY_WEB_POD)[0] == 0


def test_growing_keeps_what_was_counted():
    counts = PodCounts(1)
    counts.add(web_pod("a"), 0)
    counts.counts(EVERY_WEB_POD)

    counts.grow(3)
    counts.add(web_pod("b"), 2)

    assert counts.counts(EVERY_WEB_POD).tolist() == [1, 0, 1]


def test_the_question_asked_longest_ago_is_forgotten_and_answered_afresh():
    """What is forgotten is not kept up to date either."""
    counts = PodCounts(1)
    counts.add(web_pod("a"), 0)
    forgotten = PodQuery(WEB, frozenset(["default"]))
    counts.counts(EVERY_WEB_POD)
    counts.counts(forgotten)
    for i in range(pod_counts.MOST_COUNTERS - 2):
        counts.counts(PodQuery(WEB, frozenset([f"namespace-{i}"])))
    counts.counts(EVERY_WEB_POD)
    counts.counts(PodQuery(WEB, frozenset(["one too many"])))

    (group,) = counts._groups.values()
    assert [counter.query for counter in group.counters] == [EVERY_WEB_POD]

    counts.add(web_pod("b"), 0)

    assert counts.counts(forgotten)[0] == 2
    assert counts.counts(EVERY_WEB_POD)[0] == 2


def test_a_group_without_pods_is_forgotten():
    counts = PodCounts(1)
    counts.add(web_pod(), 0)
    counts.remove(web_pod(), 0)

    assert not list(counts._groups_by_key.find(keys_of_pod("default", {"app": "web"})))


def test_a_pod_that_was_never_added_cannot_be_removed():
    with pytest.raises(KeyError):
        PodCounts(1).remove(web_pod(), 0)


def test_domains_are_added_up_and_looked_up_by_code():
    """Rows 0 and 3 are in the first domain, 2 in the second; 1 lacks the label, the third is empty."""
    codes = np.array([0, ABSENT, 1, 0], np.int32)
    totals = by_domain(codes, np.array([1, 20, 300, 4000]), domains=3)

    assert totals.tolist() == [4001, 300, 0, 20]
    assert look_up(totals, codes).tolist() == [4001, 20, 300, 4001]
    assert domains_among(codes, domains=3).tolist() == [True, True, False, True]
    assert domains_among(codes[2:], domains=3).tolist() == [True, True, False, False]
