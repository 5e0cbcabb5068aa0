"""Capacity answers are true: what is said to fit is placed, and one more or one node less is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.config import load_config
from mooring.errors import InputError
from mooring.explain.drain import nodes_of_zone, without_nodes
from mooring.explain.nodes_to_add import _smallest, nodes_to_add
from mooring.explain.room import Template, _AddingPods, how_many_more
from mooring.explain.settled import settle
from mooring.objects.kinds import DaemonSet, PodTemplate, ReplicaSetSpec
from mooring.objects.meta import ObjectMeta, OwnerReference
from mooring.objects.selectors import LabelSelector
from mooring.sim.api import RUN_SECONDS
from mooring.sim.build_report import simulate_objects
from mooring.sim.simulation import SimOptions
from tests.makers import make_node, make_pod, make_spread

OPTIONS = SimOptions()


def settled(*objects):
    return settle(objects, OPTIONS)


# How many more


def test_as_many_fit_as_the_nodes_have_room_for_and_the_next_is_told_why_not():
    cluster = settled(make_node("a", cpu=4), make_node("b", cpu=4), make_pod("p", cpu=1))

    room = how_many_more(cluster, [Template(make_pod("web", cpu=2))], limit=100)

    assert room.rounds == 3
    assert room.stopped_by == "0/2 nodes are available: 2 Insufficient cpu."
    assert sum(room.nodes.values()) == 3


def test_of_a_mix_only_whole_rounds_count():
    """A round of 2 × 1 + 1 × 2 = 4 cpu on 10 cpu: two rounds, and a third is not complete."""
    cluster = settled(make_node("a", cpu=10))
    mix = [Template(make_pod("web", cpu=1), 2), Template(make_pod("job", cpu=2))]

    room = how_many_more(cluster, mix, limit=100)

    assert (room.rounds, room.stopped_at) == (2, "default/job")
    assert room.pods == {"default/web": 4, "default/job": 2}


def test_nothing_is_preempted_for_more_and_a_run_time_does_not_free_places():
    short = {RUN_SECONDS: "1"}
    cluster = settled(make_node("a", cpu=4), make_pod("p", cpu=3, annotations=short))
    more = make_pod("web", cpu=1, priority=1000, annotations=short)

    assert how_many_more(cluster, [Template(more)], limit=100).rounds == 1


def test_the_search_ends_at_its_limit():
    cluster = settled(make_node("a", cpu=100))

    room = how_many_more(cluster, [Template(make_pod(cpu="1m"))], limit=5)

    assert (room.rounds, room.limited) == (5, True)


def test_an_empty_cluster_has_room_for_none():
    room = how_many_more(settled(), [Template(make_pod())], limit=5)

    assert room.rounds == 0
    assert "no nodes available" in room.stopped_by


# How many nodes


def test_the_number_of_nodes_is_enough_and_one_less_is_not():
    template = make_node("big", cpu=4)
    pods = [make_pod(f"p-{i}", cpu=3) for i in range(7)]
    cluster = settled(make_node("a", cpu=4), *pods)

    found = nodes_to_add(cluster, template)

    # One node takes one pod: seven pods, one of them on a.
    assert (found.waiting, found.count, found.monotone) == (6, 6, True)
    assert found.probes[6]
    assert not found.probes[5]
    added = [make_node(f"n-{i}", cpu=4) for i in range(6)]
    assert simulate_objects([make_node("a", cpu=4), *added, *pods]).all_placed


def test_pods_that_never_fit_such_a_node_are_named_and_the_others_counted():
    cluster = settled(
        make_node("a", cpu=1),
        make_pod("huge", cpu=64),
        make_pod("picky", cpu=1, node_selector={"disk": "ssd"}),
        *(make_pod(f"p-{i}", cpu=2) for i in range(3)),
    )

    found = nodes_to_add(cluster, make_node("big", cpu=4))

    assert found.count == 2
    assert {pod for pod, _ in found.hopeless} == {"default/huge", "default/picky"}


def test_no_number_is_enough_for_pods_that_fit_no_such_node():
    found = nodes_to_add(settled(make_node("a"), make_pod("huge", cpu=64)), make_node("a"))

    assert found.count is None
    assert not found.probes


def test_no_node_is_needed_where_nothing_is_pending():
    assert nodes_to_add(settled(make_node("a")), make_node("a")).count == 0


def test_the_search_gives_up_at_its_limit_and_says_what_is_left():
    pods = [make_pod(f"p-{i}", cpu=3) for i in range(9)]

    found = nodes_to_add(settled(make_node("a", cpu=1), *pods), make_node("b", cpu=4), most=4)

    assert found.count is None
    assert found.left


def test_daemons_take_their_share_of_added_nodes():
    """4 cpu less 1 for the daemon: a node takes one pod of 2 cpu, not two."""
    labels = {"app": "agent"}
    daemon = make_pod("x", cpu=1)
    agents = DaemonSet(
        api_version="apps/v1",
        kind="DaemonSet",
        metadata=ObjectMeta(name="agent", namespace="default", uid="agents"),
        spec=ReplicaSetSpec(
            selector=LabelSelector(match_labels=labels),
            template=PodTemplate(metadata=ObjectMeta(labels=labels), spec=daemon.spec),
        ),
    )
    pods = [make_pod(f"p-{i}", cpu=2) for i in range(2)]

    found = nodes_to_add(settled(make_node("a", cpu=1), agents, *pods), make_node("b", cpu=4))

    assert found.count == 2


@given(st.integers(1, 500), st.integers(1, 500))
def test_the_search_finds_the_smallest_and_tries_few(answer, start):
    tried: list[int] = []

    def is_enough(n: int) -> bool:
        tried.append(n)
        return n >= answer

    assert _smallest(is_enough, start=start, limit=100_000) == answer
    assert len(tried) <= 24


@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=8))
def test_any_answer_is_verified(cpus):
    pods = [make_pod(f"p-{i}", cpu=cpu) for i, cpu in enumerate(cpus)]
    cluster = settled(make_node("a", cpu="100m"), *pods)

    found = nodes_to_add(cluster, make_node("b", cpu=4))

    assert found.count is not None
    for number, enough in ((found.count, True), (found.count - 1, False)):
        nodes = [make_node(f"b-added-{i + 1}", cpu=4) for i in range(number)]
        report = simulate_objects([make_node("a", cpu="100m"), *nodes, *pods])
        assert report.all_placed is enough


# What may be lost


def owner(kind: str) -> OwnerReference:
    return OwnerReference(kind=kind, name="o", uid="o", controller=True)


def test_the_survivors_take_what_they_have_room_for():
    cluster = settled(
        make_node("a", cpu=4),
        make_node("b", cpu=4),
        make_pod("p", cpu=2, node="a", owner=owner("ReplicaSet")),
        make_pod("agent", cpu=1, node="a", owner=owner("DaemonSet")),
    )

    survival = without_nodes(cluster, ["a"])

    assert survival.holds
    assert (survival.displaced, survival.gone, survival.uncontrolled) == (1, 1, ())


def test_what_the_survivors_do_not_hold_is_named_with_its_reason():
    cluster = settled(
        make_node("a", cpu=4, zone="z-1"),
        make_node("b", cpu=4, zone="z-2"),
        make_pod("p", cpu=3, node="a"),
        make_pod("q", cpu=3, node="b"),
    )

    survival = without_nodes(cluster, nodes_of_zone(cluster.nodes, "z-1"))

    assert not survival.holds
    (unplaced,) = survival.unplaced
    assert unplaced.pod == "default/p"
    assert "Insufficient cpu" in unplaced.message


def test_room_made_by_eviction_does_not_count_as_holding():
    cluster = settled(
        make_node("a", cpu=4),
        make_node("b", cpu=4),
        make_pod("vip", cpu=3, node="a", priority=100),
        make_pod("low", cpu=3, node="b"),
    )

    survival = without_nodes(cluster, ["a"])

    assert not survival.holds
    assert survival.evicted == ("default/low",)


def test_unknown_nodes_and_zones_are_refused_with_those_there_are():
    cluster = settled(make_node("a", zone="z-1"))

    with pytest.raises(InputError, match="there is no node 'x'; the cluster has a"):
        without_nodes(cluster, ["x"])
    with pytest.raises(InputError, match=r"no node is in zone 'z-9'.*the values are z-1"):
        nodes_of_zone(cluster.nodes, "z-9")
    with pytest.raises(InputError, match="no node has the label rack"):
        nodes_of_zone(cluster.nodes, "rack=7")


# Fast answers are the same answers


@settings(max_examples=25, deadline=None)
@given(
    cpus=st.lists(st.sampled_from(["100m", "300m", "1"]), min_size=1, max_size=3),
    nodes=st.lists(st.integers(1, 4), min_size=1, max_size=5),
    spread=st.booleans(),
)
def test_deciding_alone_finds_the_room_that_the_whole_simulation_finds(cpus, nodes, spread):
    """Pods that need only a decision skip the queue and the binding cycle."""
    constraints = [make_spread("kubernetes.io/hostname", labels={"app": "x"})] if spread else []
    pods = [
        make_pod(f"p-{i}", cpu=cpu, labels={"app": "x"}, spread=constraints)
        for i, cpu in enumerate(cpus)
    ]
    cluster = settled(*(make_node(f"n-{i}", cpu=cpu, pods=9) for i, cpu in enumerate(nodes)))
    templates = [Template(pod) for pod in pods]

    decided = _AddingPods(cluster, templates)
    simulated = _AddingPods(cluster, templates)
    assert decided._add == decided._decide
    simulated._add = simulated._simulate
    for adding in (decided, simulated):
        with adding.simulation as simulation:
            simulation.load(cluster.objects)
            simulation.run()
            while adding.rounds < 50 and not adding.stopped_at:
                adding.add_round()

    for name in ("rounds", "stopped_at", "stopped_by", "nodes"):
        assert getattr(decided, name) == getattr(simulated, name), name


def test_the_requests_say_where_the_search_begins():
    """20 pods of 1 cpu on nodes with 4: fewer than five nodes are never tried, and five are enough."""
    pods = [make_pod(f"p-{i}", cpu=1) for i in range(21)]

    found = nodes_to_add(settled(make_node("a", cpu=1), *pods), make_node("b", cpu=4))

    assert found.count == 5
    assert min(found.probes) == 5


def test_the_number_of_pods_that_a_node_takes_says_so_too():
    pods = [make_pod(f"p-{i}", cpu="1m") for i in range(21)]

    found = nodes_to_add(
        settled(make_node("a", cpu=4, pods="1"), *pods), make_node("b", cpu=4, pods="4")
    )

    assert found.count == 5
    assert min(found.probes) == 5


def test_what_is_left_on_a_full_node_takes_nothing_from_the_others():
    """A node that holds more than it offers: the other still has room, so one node is enough."""
    full = [make_pod(f"f-{i}", cpu=1, node="a") for i in range(9)]
    pods = [make_pod(f"p-{i}", cpu=2) for i in range(3)]
    cluster = settled(make_node("a", cpu=1), make_node("c", cpu=1), *full, *pods)

    assert nodes_to_add(cluster, make_node("b", cpu=8)).count == 1


def test_a_configuration_that_ignores_requests_needs_few_nodes():
    """The arithmetic of requests proves nothing if no plugin refuses a full node."""
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}}],
        }
    )
    pods = [make_pod(f"p-{i}", cpu=4, node_selector={"pool": "b"}) for i in range(4)]
    cluster = settle([make_node("a"), *pods], SimOptions(config=config))

    assert nodes_to_add(cluster, make_node("b", cpu=4, labels={"pool": "b"})).count == 1


def test_pods_without_nodes_are_not_tried_if_nobody_asks():
    options = SimOptions(tries_without_nodes=False)

    report = simulate_objects([make_pod(f"p-{i}") for i in range(50)], options)

    assert {each.message for each in report.pending} == {"no nodes available to schedule pods"}
    assert {each.state for each in report.pending} == {"unschedulable"}


def test_without_nodes_a_pod_is_tried_once():
    tried = []
    options = SimOptions(on_decision=tried.append)

    report = simulate_objects([make_pod("p")], options)

    assert report.pending[0].attempts == 1
