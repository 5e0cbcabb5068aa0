"""A comparison tells what differs, why, and whether that is worse."""

from __future__ import annotations

import pytest

from mooring.cluster.node_info import NodeInfo
from mooring.config import load_config
from mooring.explain.compare import Variant, compare, parse_threshold, regressions, values_of
from mooring.explain.measures import measure, shapes_of
from mooring.explain.past_decision import RunInput
from mooring.objects.meta import OwnerReference
from tests.makers import make_node, make_pod

MOST_ALLOCATED = load_config(
    b"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
)

WEB = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="u", controller=True)


def info_of(node, *pods) -> NodeInfo:
    info = NodeInfo(node.name)
    info.set_node(node)
    for pod in pods:
        info.add_pod(pod)
    return info


# Measures


def test_fragmentation_is_the_share_of_the_free_that_pods_cannot_use_where_it_lies():
    """Free cpu: 1 on a, 3 on b. A 2-cpu pod cannot use a's: 1 / 4. A 1-cpu pod can use all: 0.

    Three of the first and one of the second: (3 · 1/4 + 1 · 0) / 4 = 0.1875.
    """
    infos = [
        info_of(make_node("a", cpu=4), make_pod("x", cpu=3)),
        info_of(make_node("b", cpu=4), make_pod("y", cpu=1)),
    ]
    shapes = shapes_of([*(make_pod(cpu=2) for _ in range(3)), make_pod(cpu=1)])

    cpu = measure(infos, shapes).resources[0]

    assert (cpu.resource, cpu.fragmentation) == ("cpu", 0.1875)
    assert cpu.utilisation == 0.5
    # Loads 0.75 and 0.25: 0.25 from their mean.
    assert cpu.imbalance == 0.25


def test_free_cpu_without_memory_beside_it_is_fragmented():
    infos = [info_of(make_node("a", cpu=4, memory="1Gi"))]

    cpu = measure(infos, shapes_of([make_pod(cpu=1, memory="2Gi")])).resources[0]

    assert cpu.fragmentation == 1.0


def test_zone_skew_counts_zones_that_a_workload_does_not_reach():
    """web: 3 in a, 0 in b: skew 3, and all on one node."""
    pods = [make_pod(f"web-{i}", owner=WEB) for i in range(3)]
    infos = [info_of(make_node("a", zone="a"), *pods), info_of(make_node("b", zone="b"))]

    spread = measure(infos, shapes_of(pods)).spread

    assert (spread.max_zone_skew, spread.mean_zone_skew, spread.mean_node_share) == (3, 3.0, 1.0)
    assert spread.worst == "ReplicaSet default/web"


def test_measures_of_nothing_are_none():
    measures = measure([], shapes_of([]))

    assert measures.nodes == 0
    assert all(each.utilisation is None for each in measures.resources)
    assert measures.spread.mean_zone_skew is None


# Comparing


def two_nodes_and(*pods):
    return [make_node("a", cpu=4), make_node("b", cpu=4), *pods]


def test_two_equal_configurations_do_not_differ():
    objects = two_nodes_and(make_pod("p", cpu=1), make_pod("q", cpu=1))

    comparison = compare([Variant("one", RunInput(objects)), Variant("two", RunInput(objects))])

    assert not comparison.differences[0].moved
    assert not comparison.differences[0].why


def test_the_first_decision_that_differs_is_explained_by_scores_of_the_same_cluster():
    objects = two_nodes_and(make_pod("p", cpu=1), make_pod("q", cpu=1))

    comparison = compare(
        [Variant("least", RunInput(objects)), Variant("most", RunInput(objects, MOST_ALLOCATED))]
    )

    (difference,) = comparison.differences
    assert difference.moved == (("default/q", "b", "a"),)
    (why,) = difference.why
    assert (why.pod, why.same_state) == ("default/q", True)
    least, most = why.sides
    assert (least.node, most.node) == ("b", "a")
    for side in (least, most):
        best = max(side.scores, key=lambda each: each.total)
        assert best.node == side.node
        assert all(each.total == sum(each.by_plugin.values()) for each in side.scores)


def test_a_pod_that_packing_saves_a_place_for_is_pending_only_by_spreading():
    """Spread, two small pods leave 3 + 3 cpu; packed, they leave 2 + 4, and the large pod fits."""
    objects = two_nodes_and(make_pod("p", cpu=1), make_pod("q", cpu=1), make_pod("large", cpu=4))

    comparison = compare(
        [Variant("most", RunInput(objects, MOST_ALLOCATED)), Variant("least", RunInput(objects))]
    )

    assert comparison.differences[0].only_pending_here == ("default/large",)
    (worse,) = regressions(comparison, [parse_threshold("pending", "+0")])
    assert (worse.variant, worse.baseline, worse.value) == ("least", 0, 1)
    assert not regressions(comparison, [parse_threshold("pending", "+1")])
    assert not regressions(comparison, [parse_threshold("pending", "1")])


def test_clusters_are_compared_too():
    pods = [make_pod("p", cpu=3), make_pod("q", cpu=3)]
    small, large = [make_node("a", cpu=4), *pods], two_nodes_and(*pods)

    comparison = compare([Variant("small", RunInput(small)), Variant("large", RunInput(large))])

    assert comparison.differences[0].only_pending_before == ("default/q",)
    assert not any(each.same_state for each in comparison.differences[0].why)


def test_every_value_has_a_key_of_its_own():
    objects = two_nodes_and(make_pod("p", cpu=1))
    run = compare([Variant("one", RunInput(objects)), Variant("two", RunInput(objects))]).runs[0]
    keys = [key for key, _, _ in values_of(run)]

    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("text", ["", "+", "lots", "-1", "5%", "nan", "inf"])
def test_a_threshold_that_is_none_is_refused(text):
    with pytest.raises(ValueError):
        parse_threshold("pending", text)
