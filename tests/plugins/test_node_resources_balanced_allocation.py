from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.config.args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SKIP, SUCCESS, unschedulable
from mooring.objects.pod import ContainerStatus, ResourceRequirements
from mooring.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.makers import make_container, make_node, make_pod, resources
from tests.plugins import resource_clusters
from tests.plugins.agreement import assert_scores_agree
from tests.plugins.resource_clusters import GPU, make_device_class


def make_plugin(cluster=None, *names):
    args = NodeResourcesBalancedAllocationArgs(tuple(ResourceSpec(name, 1) for name in names))
    return NodeResourcesBalancedAllocation(args, SimpleNamespace(cluster=cluster or Cluster()))


def score(plugin, pod, snapshot):
    """Of the first node, after making sure that all forms agree, with and without PreScore."""
    state, fresh = CycleState(), CycleState()
    assert plugin.pre_score(state, pod, snapshot, snapshot.rows) == SUCCESS
    assert_scores_agree(plugin, state, pod, snapshot)
    assert_scores_agree(plugin, fresh, pod, snapshot)
    return plugin.score(state, pod, next(iter(snapshot)))


@pytest.mark.parametrize(
    ("used", "asked", "node", "expected"),
    [
        pytest.param({"cpu": 1, "memory": "2Gi"}, {"cpu": "500m", "memory": "1Gi"}, {}, 75),
        pytest.param({"cpu": 1, "memory": "2Gi"}, {"cpu": 1}, {}, 68),
        pytest.param({"cpu": 3, "memory": "1Gi"}, {"memory": "5Gi"}, {}, 91),
        pytest.param({"cpu": 1, "memory": "4Gi"}, {"cpu": 1, GPU: 2}, {GPU: 4}, 85),
        pytest.param({"cpu": "3500m", "memory": "4Gi"}, {"cpu": "1500m"}, {}, 72),
        pytest.param({"cpu": 1}, {"cpu": 1}, {"memory": None}, 75),
        # The GPU is not asked for, so it does not count: as B2.
        pytest.param({"cpu": 1, "memory": "2Gi"}, {"cpu": 1}, {GPU: 4}, 68, id="unrequested"),
    ],
)
def test_a_pod_is_scored_by_what_it_does_to_the_balance(used, asked, node, expected):
    cluster = Cluster()
    cluster.add_node(make_node(**node))
    cluster.add_pod(make_pod("there", requests=used, node="n"))
    plugin = make_plugin(cluster, "cpu", "memory", GPU)

    assert score(plugin, make_pod(requests=asked), cluster.snapshot()) == expected


def test_real_requests_count_without_defaults():
    """Two pods without requests fill a node for NodeResourcesFit, and leave it empty here."""
    cluster = Cluster()
    cluster.add_node(make_node(cpu="200m"))
    cluster.add_pod(make_pod("a", node="n"))
    cluster.add_pod(make_pod("b", node="n"))

    # 0.5 and 0 after, 0 and 0 before: 75 and 100; 50 + (50 - 25) / 2 = 62.5
    assert score(make_plugin(), make_pod(cpu="100m"), cluster.snapshot()) == 62


def test_pod_level_resources_and_status_count():
    cluster = Cluster()
    cluster.add_node(make_node())
    pod_level = make_pod(cpu="500m", memory="1Gi", pod_level={"cpu": 2})
    resized = make_pod(
        containers=[make_container("c", cpu="500m", memory="1Gi")],
        container_statuses=[
            ContainerStatus(name="c", resources=ResourceRequirements(requests=resources(cpu=2)))
        ],
    )

    # 0.5 and 0.125 after: 1 - 0.1875 = 81; 50 + (50 + 81 - 100) / 2 = 65.5
    assert score(make_plugin(), pod_level, cluster.snapshot()) == 65
    assert score(make_plugin(), resized, cluster.snapshot()) == 65


def test_a_pod_that_asks_for_none_of_the_resources_is_not_scored():
    cluster = Cluster()
    cluster.add_node(make_node())
    snapshot = cluster.snapshot()
    plugin = make_plugin()
    pod = make_pod(requests={"cpu": 0, GPU: 1})

    assert plugin.pre_score(CycleState(), pod, snapshot, snapshot.rows) == SKIP
    assert_scores_agree(plugin, CycleState(), pod, snapshot)
    assert plugin.score(CycleState(), pod, next(iter(snapshot))) == 0


def test_even_a_resource_that_is_counted_nowhere_keeps_a_pod_scored():
    cluster = Cluster()
    cluster.add_node(make_node())

    assert score(make_plugin(None, "foo"), make_pod(requests={"foo": 1}), cluster.snapshot()) == 75


def test_pods_that_ask_for_as_much_of_the_same_are_alike():
    plugin = make_plugin()
    one = make_pod("one", containers=[make_container(cpu=1), make_container(cpu=1)])
    two = make_pod("two", cpu=2, requests={GPU: 1})
    other = make_pod("other", cpu=3)

    assert plugin.sign(one) == plugin.sign(two) != plugin.sign(other)
    assert hash(tuple(plugin.sign(one).items()))


def test_a_pod_whose_resources_may_be_devices_is_not_signed():
    cluster = Cluster()
    plugin = make_plugin(cluster)
    cluster.listers.put(make_device_class("gpu", GPU))

    assert plugin.sign(make_pod(requests={GPU: 1})) == unschedulable(
        "signature disabled when dra extended resources are used in the cluster"
    )


@given(cluster=resource_clusters.ordinary_clusters(), pod=resource_clusters.ordinary_pods())
def test_states_get_the_scores_that_nodes_get(cluster, pod):
    snapshot, plugin, state = (
        cluster.snapshot(),
        make_plugin(cluster, "cpu", "memory"),
        CycleState(),
    )
    plugin.pre_score(state, pod, snapshot, snapshot.rows)

    assert_scores_agree(plugin, state, pod, snapshot)


@given(
    cluster=resource_clusters.clusters(),
    pod=resource_clusters.pods(),
    names=st.lists(st.sampled_from(resource_clusters.NAMES), unique=True),
)
def test_all_rows_at_once_score_as_each_node_does(cluster, pod, names):
    snapshot = cluster.snapshot()
    known = dict(snapshot.columns.resources)
    plugin = make_plugin(cluster, *names)
    state = CycleState()
    plugin.pre_score(state, pod, snapshot, snapshot.rows)

    assert_scores_agree(plugin, state, pod, snapshot)
    assert snapshot.columns.resources == known
