from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.cluster.cache import Cluster
from mooring.cluster.row_states import StateAmounts, amounts_of_rows
from mooring.config.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from mooring.errors import PluginError
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Action, ClusterEvent, EventResource, Hint
from mooring.framework.status import SUCCESS, unresolvable, unschedulable
from mooring.objects.pod import ContainerStatus, ResourceRequirements
from mooring.plugins.node_resources_fit import NodeResourcesFit
from tests.makers import make_container, make_node, make_pod, resources
from tests.plugins import resource_clusters
from tests.plugins.agreement import assert_filters_agree, assert_scores_agree
from tests.plugins.resource_clusters import GPU, HUGE_PAGES, IMPLICIT, make_device_class

CPU_AND_MEMORY = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))


def make_plugin(cluster=None, **args):
    return NodeResourcesFit(
        NodeResourcesFitArgs(**args), SimpleNamespace(cluster=cluster or Cluster())
    )


def make_cluster(*pods, classes=(), **node):
    """One node with these pods on it."""
    cluster = Cluster()
    cluster.add_node(make_node(**node))
    for pod in pods:
        cluster.add_pod(pod.placed_on("n"))
    for device_class in classes:
        cluster.listers.put(device_class)
    return cluster


def verdict(cluster, pod, **args):
    """On the one node, after making sure that all rows at once say the same."""
    plugin, state, snapshot = make_plugin(cluster, **args), CycleState(), cluster.snapshot()
    assert plugin.pre_filter(state, pod, snapshot) == SUCCESS
    assert_filters_agree(plugin, state, pod, snapshot)
    return plugin.filter(state, pod, next(iter(snapshot)))


def score(cluster, pod, **args):
    """Of the one node, after making sure that all forms agree, with and without PreScore."""
    plugin, state, snapshot = make_plugin(cluster, **args), CycleState(), cluster.snapshot()
    assert plugin.pre_score(state, pod, snapshot, snapshot.rows) == SUCCESS
    assert_scores_agree(plugin, state, pod, snapshot)
    assert_scores_agree(plugin, CycleState(), pod, snapshot)
    return plugin.score(state, pod, next(iter(snapshot)))


# Filter

THERE = make_pod("there", cpu=3, memory="1Gi")
CLASS = make_device_class("gpu", GPU)
LICENSE = "kubernetes.io/license"


@pytest.mark.parametrize(
    ("asked", "node", "status"),
    [
        # The node has cpu 4 and memory 8Gi; 3 and 1Gi of it are taken.
        pytest.param({"cpu": 1}, {}, SUCCESS),
        pytest.param({"cpu": 2}, {}, unschedulable("Insufficient cpu"), id="2 > 4 - 3"),
        pytest.param({"cpu": 5}, {}, unresolvable("Insufficient cpu"), id="5 > 4"),
        pytest.param(
            {"cpu": 2, "memory": "9Gi"},
            {},
            unresolvable("Insufficient cpu", "Insufficient memory"),
            id="one without hope is enough",
        ),
        pytest.param({}, {"pods": 1}, unschedulable("Too many pods")),
        pytest.param({GPU: 1}, {}, unresolvable(f"Insufficient {GPU}"), id="none there"),
        pytest.param(
            {"cpu": 1, HUGE_PAGES: "6Mi"},
            {HUGE_PAGES: "4Mi"},
            unresolvable(f"Insufficient {HUGE_PAGES}"),
            id="6Mi > 4Mi",
        ),
        pytest.param(
            {"cpu": 9},
            {"pods": None},
            unresolvable("Too many pods", "Insufficient cpu"),
            id="no pods allowed at all",
        ),
        pytest.param(
            {"z.com/b": 2, "a.com/c": 2, "cpu": 2, "memory": "8Gi", "ephemeral-storage": 2},
            {"pods": 1, "ephemeral_storage": 1, "z.com/b": 1, "a.com/c": 1},
            unresolvable(
                "Too many pods",
                "Insufficient cpu",
                "Insufficient memory",
                "Insufficient ephemeral-storage",
                "Insufficient a.com/c",
                "Insufficient z.com/b",
            ),
            id="every reason, in order",
        ),
        pytest.param({"cpu": 0, "memory": 0, GPU: 0}, {}, SUCCESS, id="nothing of anything"),
        pytest.param({"foo": 7}, {}, SUCCESS, id="a name that nobody counts"),
    ],
)
def test_a_pod_fits_where_enough_is_left(asked, node, status):
    cluster = make_cluster(THERE, **{"pods": 2, **node})

    assert verdict(cluster, make_pod(requests=asked)) == status


@pytest.mark.parametrize(
    ("name", "args", "status"),
    [
        pytest.param(GPU, {"ignored_resource_groups": ("example.com",)}, SUCCESS, id="group"),
        pytest.param(GPU, {"ignored_resources": (GPU,)}, SUCCESS, id="by name"),
        pytest.param(
            GPU,
            {"ignored_resources": ("example.com",), "ignored_resource_groups": ("other.com",)},
            unresolvable(f"Insufficient {GPU}"),
            id="another",
        ),
        pytest.param(
            HUGE_PAGES,
            {"ignored_resources": (HUGE_PAGES,)},
            unresolvable(f"Insufficient {HUGE_PAGES}"),
            id="not extended",
        ),
        pytest.param(
            LICENSE,
            {"ignored_resources": (LICENSE,), "ignored_resource_groups": ("kubernetes.io",)},
            unresolvable(f"Insufficient {LICENSE}"),
            id="Kubernetes' own",
        ),
    ],
)
def test_only_extended_resources_can_be_ignored(name, args, status):
    assert verdict(make_cluster(), make_pod(requests={name: 1}), **args) == status


@pytest.mark.parametrize(
    ("name", "node", "status"),
    [
        pytest.param(GPU, {}, SUCCESS, id="a class serves it"),
        pytest.param(GPU, {GPU: 0}, SUCCESS, id="the node offers none of it"),
        pytest.param(GPU, {GPU: 1}, unresolvable(f"Insufficient {GPU}"), id="the node offers some"),
        pytest.param(
            "deviceclass.resource.kubernetes.io/gpu", {}, SUCCESS, id="by the class's own name"
        ),
        pytest.param(IMPLICIT, {}, unresolvable(f"Insufficient {IMPLICIT}"), id="another class"),
    ],
)
def test_what_devices_serve_is_left_to_dynamic_resources(name, node, status):
    cluster = make_cluster(classes=[CLASS], **node)

    assert verdict(cluster, make_pod(requests={name: 2})) == status


def test_a_class_counts_from_when_it_comes_to_when_it_goes():
    cluster = make_cluster()
    snapshot = cluster.snapshot()
    plugin, state, pod = make_plugin(cluster), CycleState(), make_pod(requests={GPU: 1})
    plugin.pre_filter(state, pod, snapshot)
    node = next(iter(snapshot))

    assert not plugin.filter(state, pod, node).ok
    cluster.listers.put(CLASS)
    assert plugin.filter(state, pod, node).ok
    cluster.listers.put(make_device_class("gpu"))
    assert not plugin.filter(state, pod, node).ok


def test_pod_level_resources_replace_those_of_containers():
    """2 for the pod as a whole, whatever its container says, and 250m of overhead."""
    pod = make_pod(cpu="500m", pod_level={"cpu": 2}, overhead={"cpu": "250m"})

    assert verdict(make_cluster(cpu="2250m"), pod) == SUCCESS
    assert verdict(make_cluster(cpu="2249m"), pod) == unresolvable("Insufficient cpu")


def test_what_is_left_wraps_like_int64():
    """Three pods of MAX bytes are 3 * MAX = MAX - 2 after wrapping twice; then 4 - that is negative.

    With two, the sum is -2, so that six are left of four: not enough for seven, which are also more
    than the node has; and enough for five, although these are, too.
    """
    huge = [make_pod(f"huge-{i}", memory="9223372036854775807") for i in range(3)]

    assert verdict(make_cluster(*huge, memory=4), make_pod(memory=1)) == unschedulable(
        "Insufficient memory"
    )
    assert verdict(make_cluster(*huge[:2], memory=4), make_pod(memory=5)) == SUCCESS
    assert verdict(make_cluster(*huge[:2], memory=4), make_pod(memory=7)) == unresolvable(
        "Insufficient memory"
    )


@pytest.mark.parametrize("count", [6, 7, 61, 62, 200])
def test_however_many_resources_are_missing_each_is_named(count):
    """A code has a bit for each: a byte, an integer or more than fits one."""
    names = [f"example.com/r{i:03}" for i in range(count)]
    cluster = make_cluster(**{names[1]: 1})
    pod = make_pod(requests=dict.fromkeys(names, 1))

    missing = [f"Insufficient {name}" for name in names if name != names[1]]
    assert verdict(cluster, pod) == unresolvable(*missing)


def test_filter_needs_what_prefilter_keeps():
    cluster = make_cluster()
    plugin, snapshot = make_plugin(cluster), cluster.snapshot()
    columns = snapshot.columns

    with pytest.raises(PluginError, match='"PreFilterNodeResourcesFit" from cycleState: not found'):
        plugin.filter(CycleState(), make_pod(), next(iter(snapshot)))
    with pytest.raises(PluginError, match='"PreFilterNodeResourcesFit" from cycleState: not found'):
        plugin.filter_rows(CycleState(), make_pod(), columns, columns.all_rows)


# Score


def strategy(kind, *resources, points=()):
    shape = tuple(UtilizationShapePoint(utilization, score) for utilization, score in points)
    return {
        "scoring_strategy": ScoringStrategy(
            kind, resources, RequestedToCapacityRatioParam(shape) if points else None
        )
    }


USED = make_pod("used", cpu=1, memory="2Gi")
HALF = {"cpu": "500m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("args", "asked", "node", "expected"),
    [
        # (4000 - 1500) / 4000 = 62%, (8 - 3) / 8 = 62%
        pytest.param({}, HALF, {}, 62),
        # 100m and 200Mi by default: 2900 / 4000 = 72%, 5944 / 8192 = 72%
        pytest.param({}, {}, {}, 72, id="a container that does not say"),
        # 4100 > 4000: 0; (8 - 4) / 8 = 50%; the mean is 25
        pytest.param({}, {"cpu": "3100m", "memory": "2Gi"}, {}, 25),
        # An explicit 0 stays 0: 3000 / 4000 = 75%, 2 / 8 = 25%; (75 * 3 + 25) / 4 = 62.5
        pytest.param(
            strategy(LEAST_ALLOCATED, ResourceSpec("cpu", 3), ResourceSpec("memory", 1)),
            {"cpu": 0, "memory": "4Gi"},
            {},
            62,
        ),
        pytest.param(
            strategy(LEAST_ALLOCATED, *CPU_AND_MEMORY, ResourceSpec(GPU, 5)),
            HALF,
            {GPU: 8},
            62,
            id="not asked for",
        ),
        pytest.param(strategy(MOST_ALLOCATED, *CPU_AND_MEMORY), HALF, {}, 37),
        # 37 + 37 + 25 * 5 = 199; 199 / 7 = 28.4
        pytest.param(
            strategy(MOST_ALLOCATED, *CPU_AND_MEMORY, ResourceSpec(GPU, 5)),
            {**HALF, GPU: 2},
            {GPU: 8},
            28,
        ),
        pytest.param(
            strategy(MOST_ALLOCATED, ResourceSpec(GPU, 1)), {GPU: 2}, {}, 0, id="none there"
        ),
        # 3 of 10 free after 0 were used: pods count here as they request, without defaults.
        pytest.param(
            strategy(LEAST_ALLOCATED, ResourceSpec("ephemeral-storage", 1)),
            {"ephemeral-storage": 7},
            {"ephemeral_storage": 10},
            30,
            id="ephemeral storage",
        ),
        pytest.param(
            strategy(REQUESTED_TO_CAPACITY_RATIO, *CPU_AND_MEMORY, points=[(0, 0), (100, 10)]),
            HALF,
            {},
            37,
        ),
    ],
)
def test_a_node_is_scored_by_how_full_it_would_be(args, asked, node, expected):
    assert score(make_cluster(USED, **node), make_pod(requests=asked), **args) == expected


def test_scoring_takes_no_notice_of_pod_level_resources():
    """750m and 1Gi of cpu 4 and memory 8Gi: 81 and 87. 200m and 400Mi: 95 and 95."""
    one = make_pod(cpu="500m", memory="1Gi", pod_level={"cpu": 2}, overhead={"cpu": "250m"})
    other = make_pod(containers=[make_container(), make_container()], pod_level={"memory": "1Gi"})

    assert score(make_cluster(), one) == 84
    assert score(make_cluster(), other) == 95


def test_a_pod_on_a_node_counts_with_what_scoring_takes_it_to_need():
    """The pod on the node counts as 200m and 1Gi; an incoming pod that says 0 adds nothing: 95 and 87."""
    there = make_pod(
        "there", containers=[make_container(), make_container()], pod_level={"memory": "1Gi"}
    )

    assert score(make_cluster(there), make_pod(cpu=0, memory=0)) == 91


def test_a_pod_on_a_node_that_does_not_say_counts_with_defaults():
    """100m of cpu 4 and 200Mi of memory 400Mi: 97 and 50."""
    cluster = make_cluster(make_pod("silent"), memory="400Mi")

    assert score(cluster, make_pod(cpu=0, memory=0)) == 73


def test_without_args_the_defaults_hold():
    cluster = make_cluster(USED)
    plugin = NodeResourcesFit(None, SimpleNamespace(cluster=cluster))
    node = next(iter(cluster.snapshot()))

    assert plugin.score(CycleState(), make_pod(requests=HALF), node) == 62


def test_a_strategy_that_is_not_known_is_refused():
    with pytest.raises(PluginError, match="scoring strategy Tetris is not supported"):
        make_plugin(scoring_strategy=ScoringStrategy("Tetris", CPU_AND_MEMORY))


# Queueing


def hint(event, pod, old, new, cluster=None, **args):
    for registered in make_plugin(cluster, **args).events_to_register():
        if registered.event.covers(event):
            assert registered.hint is not None
            return registered.hint(pod, old, new)
    raise AssertionError(f"{event} is not registered")


def test_it_hears_of_room_that_may_have_come():
    assert [each.event for each in make_plugin().events_to_register()] == [
        ClusterEvent(EventResource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN),
        ClusterEvent(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        ClusterEvent(EventResource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
    ]


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        pytest.param(make_pod("other"), Hint.SKIP, id="it was nowhere"),
        pytest.param(make_pod("other", node="n"), Hint.QUEUE, id="it had a node"),
        pytest.param(make_pod("other", nominated="n"), Hint.QUEUE, id="one was held for it"),
    ],
)
def test_a_pod_that_goes_helps_if_it_held_room(gone, expected):
    event = ClusterEvent(EventResource.POD, Action.DELETE)

    assert hint(event, make_pod(cpu=1), gone, None) == expected


def running(status_cpu=None, node="n", **requests):
    """A pod that a resize has left with another cpu than its spec says."""
    statuses = []
    if status_cpu is not None:
        held = ResourceRequirements(requests=resources(cpu=status_cpu))
        statuses = [ContainerStatus(name="c", resources=held)]
    return make_pod(
        "other",
        node=node,
        requests={name.replace("_", "-"): amount for name, amount in requests.items()},
        container_statuses=statuses,
    )


@pytest.mark.parametrize(
    ("asked", "old", "new", "expected"),
    [
        pytest.param({"cpu": 1}, running(cpu=2), running(cpu=1), Hint.QUEUE, id="less cpu"),
        pytest.param({"cpu": 1}, running(cpu=1), running(cpu=1), Hint.SKIP, id="as much"),
        pytest.param({"memory": 1}, running(cpu=2), running(cpu=1), Hint.SKIP, id="not asked for"),
        pytest.param({"cpu": 0}, running(cpu=2), running(cpu=1), Hint.SKIP, id="0 asked for"),
        pytest.param({"memory": 1}, running(memory=2), running(memory=1), Hint.QUEUE, id="memory"),
        pytest.param(
            {"ephemeral-storage": 1},
            running(ephemeral_storage=2),
            running(),
            Hint.QUEUE,
            id="ephemeral storage",
        ),
        pytest.param({GPU: 1}, running(**{GPU: 2}), running(**{GPU: 1}), Hint.QUEUE, id="scalar"),
        pytest.param({"foo": 1}, running(foo=2), running(foo=1), Hint.SKIP, id="counted nowhere"),
        pytest.param(
            {"cpu": 1},
            running(cpu=2, node=None),
            running(cpu=1, node=None),
            Hint.SKIP,
            id="it has no node",
        ),
        pytest.param(
            {"cpu": 1}, running(3, cpu=1), running(1, cpu=1), Hint.QUEUE, id="by its status"
        ),
        pytest.param(
            {"cpu": 1}, running(3, cpu=2), running(3, cpu=1), Hint.SKIP, id="not yet by its status"
        ),
    ],
)
def test_a_pod_that_shrinks_helps_if_it_gives_up_what_is_asked_for(asked, old, new, expected):
    event = ClusterEvent(EventResource.ASSIGNED_POD, Action.UPDATE_POD_SCALE_DOWN)

    assert hint(event, make_pod(requests=asked), old, new) == expected


def test_a_pod_that_itself_shrinks_is_tried_again():
    old, new = make_pod(cpu=2), make_pod(cpu=1)
    event = ClusterEvent(EventResource.UNSCHEDULABLE_POD, Action.UPDATE_POD_SCALE_DOWN)

    assert hint(event, old, old, new) == Hint.QUEUE


@pytest.mark.parametrize(
    ("asked", "node", "expected"),
    [
        pytest.param({"cpu": 4}, {}, Hint.QUEUE, id="it fits"),
        pytest.param({"cpu": 5}, {}, Hint.SKIP, id="it does not"),
        pytest.param({}, {"pods": 0}, Hint.SKIP, id="no pods allowed"),
        pytest.param({"ignored.com/a": 1}, {}, Hint.SKIP, id="what is ignored is not ignored here"),
        pytest.param({GPU: 1}, {}, Hint.QUEUE, id="left to devices"),
    ],
)
def test_a_new_node_helps_if_the_pod_fits_when_it_is_empty(asked, node, expected):
    event = ClusterEvent(EventResource.NODE, Action.ADD)
    cluster = make_cluster(classes=[CLASS])

    assert (
        hint(
            event,
            make_pod(requests=asked),
            None,
            make_node(**node),
            cluster,
            ignored_resources=("ignored.com/a",),
        )
        == expected
    )


@pytest.mark.parametrize(
    ("asked", "old", "new", "expected"),
    [
        pytest.param({"cpu": 5}, {"cpu": 3}, {"cpu": 4}, Hint.SKIP, id="still too small"),
        pytest.param({"cpu": 1}, {"pods": 1}, {"pods": 2}, Hint.QUEUE, id="more pods allowed"),
        pytest.param({}, {"cpu": 3}, {"cpu": 4}, Hint.SKIP, id="nothing is asked for"),
        pytest.param({GPU: 0}, {GPU: 3}, {GPU: 4}, Hint.SKIP, id="0 is asked for"),
        pytest.param({"cpu": 1}, {"cpu": 3}, {"cpu": 4}, Hint.QUEUE, id="more cpu"),
        pytest.param({"cpu": 1}, {"cpu": 4}, {"cpu": 3}, Hint.SKIP, id="less cpu"),
        pytest.param({"cpu": 1}, {"memory": 3}, {"memory": 4}, Hint.SKIP, id="more of another"),
        pytest.param({"memory": 1}, {"memory": 3}, {"memory": 4}, Hint.QUEUE, id="more memory"),
        pytest.param(
            {"ephemeral-storage": 1},
            {},
            {"ephemeral_storage": 4},
            Hint.QUEUE,
            id="more ephemeral storage",
        ),
        pytest.param(
            {HUGE_PAGES: 1}, {HUGE_PAGES: 1}, {HUGE_PAGES: 2}, Hint.QUEUE, id="more of a scalar"
        ),
        pytest.param({GPU: 1}, {GPU: 4}, {GPU: 0}, Hint.QUEUE, id="a scalar left to devices"),
        pytest.param({GPU: 1}, {GPU: 4}, {GPU: 3}, Hint.SKIP, id="a scalar of which some is left"),
    ],
)
def test_a_changed_node_helps_if_it_grew_by_what_is_asked_for(asked, old, new, expected):
    event = ClusterEvent(EventResource.NODE, Action.UPDATE_NODE_ALLOCATABLE)
    cluster = make_cluster(classes=[CLASS])
    pod = make_pod(requests=asked)

    assert hint(event, pod, make_node(**old), make_node(**new), cluster) == expected


@pytest.mark.parametrize(
    ("asked", "old", "new", "expected"),
    [
        pytest.param({GPU: 1}, None, ("gpu", GPU), Hint.QUEUE, id="new: its resource"),
        pytest.param({GPU: 0}, None, ("gpu", GPU), Hint.QUEUE, id="new: none of its resource"),
        pytest.param({IMPLICIT: 1}, None, ("big", None), Hint.QUEUE, id="new: its own name"),
        pytest.param({IMPLICIT: 1}, None, ("big", GPU), Hint.QUEUE, id="new: its own name of two"),
        pytest.param({GPU: 1}, None, ("gpu", "a.com/b"), Hint.SKIP, id="new: another"),
        pytest.param({GPU: 1}, None, ("gpu", None), Hint.SKIP, id="new: none"),
        pytest.param({GPU: 1}, ("gpu", GPU), ("gpu", GPU), Hint.SKIP, id="changed: the same"),
        pytest.param({GPU: 1}, ("gpu", None), ("gpu", ""), Hint.SKIP, id="changed: none is empty"),
        pytest.param({GPU: 1}, ("gpu", None), ("gpu", GPU), Hint.QUEUE, id="changed: to it"),
        pytest.param({GPU: 1}, ("gpu", GPU), ("gpu", None), Hint.SKIP, id="changed: away from it"),
        pytest.param(
            {IMPLICIT: 1}, ("big", None), ("big", GPU), Hint.SKIP, id="changed: not its own name"
        ),
    ],
)
def test_a_device_class_helps_if_it_came_to_serve_what_is_named(asked, old, new, expected):
    event = ClusterEvent(EventResource.DEVICE_CLASS, Action.ADD if old is None else Action.UPDATE)
    before = None if old is None else make_device_class(*old)

    assert hint(event, make_pod(requests=asked), before, make_device_class(*new)) == expected


def test_pods_that_filter_and_score_alike_are_signed_alike():
    plugin = make_plugin()
    one = make_pod("one", requests={"cpu": 1, "memory": 1, GPU: 0})
    two = make_pod("two", containers=[make_container(cpu=1, memory=1)])
    larger = make_pod("larger", cpu=1, memory=2)
    # It asks for as much as the first, but each container that does not say counts in scoring.
    more_containers = make_pod(
        "more", containers=[make_container(cpu=1, memory=1), make_container("d")]
    )

    assert plugin.sign(one) == plugin.sign(two)
    assert plugin.sign(one) != plugin.sign(larger)
    assert plugin.sign(one) != plugin.sign(more_containers)
    assert hash(tuple(plugin.sign(one).items()))


@pytest.mark.parametrize(
    ("asked", "signed"),
    [
        ({"cpu": 1, GPU: 1}, False),
        ({"cpu": 1, GPU: 0}, True),
        ({"cpu": 1, "other.com/gpu": 1}, True),
    ],
)
def test_a_pod_whose_resources_may_be_devices_is_not_signed(asked, signed):
    signature = make_plugin(make_cluster(classes=[CLASS], **{GPU: 8})).sign(
        make_pod(requests=asked)
    )

    if signed:
        assert isinstance(signature, dict)
    else:
        assert signature == unschedulable(
            "signature disabled when dra extended resources are used in the cluster"
        )


# All rows at once


@given(
    cluster=resource_clusters.clusters(),
    pod=resource_clusters.pods(),
    ignored=st.sampled_from(((), (GPU,))),
)
def test_all_rows_at_once_filter_as_each_node_does(cluster, pod, ignored):
    snapshot = cluster.snapshot()
    known = dict(snapshot.columns.resources)
    plugin = make_plugin(cluster, ignored_resources=ignored)
    state = CycleState()
    plugin.pre_filter(state, pod, snapshot)

    assert_filters_agree(plugin, state, pod, snapshot)
    assert snapshot.columns.resources == known


@given(cluster=resource_clusters.ordinary_clusters(), pod=resource_clusters.ordinary_pods())
def test_states_get_the_verdicts_and_scores_that_nodes_get(cluster, pod):
    snapshot, plugin, state = cluster.snapshot(), make_plugin(cluster), CycleState()
    plugin.pre_filter(state, pod, snapshot)
    plugin.pre_score(state, pod, snapshot, snapshot.rows)

    assert_filters_agree(plugin, state, pod, snapshot)
    assert_scores_agree(plugin, state, pod, snapshot)


def test_states_all_pass_as_soon_as_there_is_room_on_each():
    cluster = make_cluster(make_pod("held", cpu=1, memory=600), cpu=2, memory=1000, pods=2)
    columns, plugin = cluster.snapshot().columns, make_plugin(cluster)
    states = StateAmounts(1)
    states.table[:, :1] = amounts_of_rows(columns, np.array([0]))

    def passes(**requests) -> bool:
        state = CycleState()
        plugin.pre_filter(state, make_pod(**requests), cluster.snapshot())
        return plugin.passes_on_states(state, make_pod(**requests), states)

    assert passes(cpu=1, memory=400)
    assert passes()
    assert not passes(cpu=1, memory=401)
    assert not passes(cpu="1001m")
    assert not passes(requests={GPU: 1})
    states.left[2, 0] = 0
    assert not passes()


@given(
    cluster=resource_clusters.clusters(),
    pod=resource_clusters.pods(),
    kind=st.sampled_from((LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)),
    scored=st.lists(
        st.builds(
            ResourceSpec, st.sampled_from(resource_clusters.NAMES), st.sampled_from((1, 3, 100))
        )
    ),
)
def test_all_rows_at_once_score_as_each_node_does(cluster, pod, kind, scored):
    snapshot = cluster.snapshot()
    known = dict(snapshot.columns.resources)
    points = [(10, 2), (50, 9), (90, 0)] if kind == REQUESTED_TO_CAPACITY_RATIO else []
    plugin = make_plugin(cluster, **strategy(kind, *scored, points=points))
    state = CycleState()
    plugin.pre_score(state, pod, snapshot, snapshot.rows)

    assert_scores_agree(plugin, state, pod, snapshot)
    assert snapshot.columns.resources == known
