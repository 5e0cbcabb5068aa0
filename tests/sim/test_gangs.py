"""Gangs in simulations: jobs, retries and an end."""

from __future__ import annotations

import pytest

from mooring.config import FeatureGates, default_config
from mooring.objects.gangs import GANG
from mooring.objects.pod import Pod
from mooring.objects.pod_groups import PodGroup
from mooring.sim.build_report import build_report
from mooring.sim.simulation import SimOptions, Simulation
from tests.groups import BY_RACK, GANGS, PREEMPTING
from tests.makers import make_group, make_node, make_owner, make_pod


def simulation(*on: str) -> Simulation:
    gates = FeatureGates(dict.fromkeys(on or GANGS, True))
    return Simulation(SimOptions(config=default_config(gates)))


def placed(sim: Simulation) -> dict[str, str]:
    return {pod.name: pod.node_name for pod in sim.api.all(Pod) if pod.node_name}


def gang(name: str, count: int, **spec) -> list[Pod]:
    return [make_pod(f"{name}-{n}", group=name, cpu=1, **spec) for n in range(count)]


def test_of_three_gangs_each_gets_the_cluster_in_turn():
    run_s = {"mooring.dev/run-seconds": "60"}
    with simulation() as sim:
        sim.load([make_node("n", cpu=4)])
        for name in ("a", "b", "c"):
            sim.load([make_group(name, min_count=3), *gang(name, 3, annotations=run_s)])
        sim.run()
        sim.scheduler.validate()

        starts = sorted({each.bound.at_s for each in sim.summary.placements.values()})
        assert len(sim.summary.placements) == 9
        assert starts == [0, 60, 120]
        assert not sim.errors


def test_a_simulation_with_a_gang_that_never_fits_ends_soon():
    """The reference tries it again and again; nothing would change in virtual time."""
    with simulation() as sim:
        sim.load([make_node("n", cpu=1), make_group("a", min_count=2), *gang("a", 2)])
        sim.run()

        assert placed(sim) == {}
        assert sim.clock.elapsed_s < 120
        assert sim.summary.of("default/a-0").attempts < 20


def test_a_gang_that_waits_is_tried_as_soon_as_something_helps():
    with simulation() as sim:
        sim.load([make_node("n", cpu=1), make_group("a", min_count=2), *gang("a", 2)])
        sim.run(until_s=100.5)
        sim.api.create(make_node("m", cpu=1))
        sim.run(until_s=100.6)

        assert sorted(placed(sim).values()) == ["m", "n"]
        (group,) = sim.api.all(PodGroup)
        assert group.condition("PodGroupScheduled").status == "True"


def test_half_a_gang_in_a_rack_keeps_the_other_half_there():
    with simulation(*BY_RACK) as sim:
        racks = [make_node(f"{r}{n}", cpu=1, labels={"rack": r}) for r in "ab" for n in (1, 2, 3)]
        sim.load([*racks, make_group("g", min_count=1, rack_key="rack")])
        sim.load(gang("g", 1))
        sim.run()
        sim.load([make_pod(f"g-{n}", group="g", cpu=1) for n in (7, 8)])
        sim.run()

        assert len(placed(sim)) == 3
        assert len({node[0] for node in placed(sim).values()}) == 1


@pytest.mark.parametrize(("size", "pods"), [(1, "1 pod is"), (2, "2 pods are")])
def test_without_the_gate_users_are_told_that_pods_are_scheduled_alone(size, pods):
    with Simulation() as sim:
        sim.load([make_node("n", cpu=1), make_group("a", min_count=2), *gang("a", size)])
        sim.run()

        assert len(placed(sim)) == 1
        (note,) = build_report(sim).notes
        assert f"{pods} in pod groups, but the feature gate GenericWorkload is off" in note


@pytest.mark.parametrize(
    ("on", "texts"),
    [
        (["GenericWorkload"], ["GangScheduling is off", "TopologyAwareWorkloadScheduling is off"]),
        (GANGS, ["TopologyAwareWorkloadScheduling is off"]),
        (BY_RACK, []),
    ],
)
def test_users_are_told_which_gate_a_group_lacks(on, texts):
    with simulation(*on) as sim:
        sim.load([make_group("a", min_count=2, rack_key="rack")])

        assert len(sim.notes) == len(texts)
        assert all(text in note for text, note in zip(texts, sim.notes, strict=True))


def test_an_annotated_workload_is_all_or_nothing():
    owner = make_owner("ReplicaSet", "rs")
    pods = [make_pod(f"rs-{n}", cpu=1, owner=owner, annotations={GANG: "true"}) for n in range(3)]
    with simulation() as sim:
        sim.load([make_node("n", cpu=2), *pods])
        sim.run()

        assert placed(sim) == {}


def test_a_group_that_no_plugin_rejected_is_tried_again_when_something_happens():
    """No node has the label, so there is no placement, and nobody to ask which events help."""
    with simulation(*BY_RACK) as sim:
        sim.load([make_node("n", cpu=1), make_group("a", min_count=1, rack_key="rack")])
        sim.load(gang("a", 1))
        node = make_node("m", cpu=1, labels={"rack": "r"})
        sim.api.later(50, lambda: sim.api.create(node))
        sim.run()

        assert placed(sim) == {"a-0": "m"}
        assert 50 <= sim.summary.last_s < 70


def preempting(*on: str) -> Simulation:
    """Two nodes full of pods of low priority, and a gang that needs both."""
    sim = simulation(*on)
    sim.load([make_node("n", cpu=2), make_node("m", cpu=2)])
    sim.load(
        make_pod(f"old-{n}", cpu=1, node="nm"[n % 2], priority=0, grace_period_s=5)
        for n in range(4)
    )
    sim.load([make_group("a", min_count=4, priority=9), *gang("a", 4, priority=9)])
    return sim


@pytest.mark.parametrize("on", [GANGS, PREEMPTING], ids=["pod by pod", "as a group"])
def test_a_gang_takes_the_place_of_less_important_pods(on):
    with preempting(*on) as sim:
        sim.run()
        sim.scheduler.validate()

        assert sorted(placed(sim)) == ["a-0", "a-1", "a-2", "a-3"]
        assert sim.summary.last_s < 30
        assert not sim.errors


@pytest.mark.parametrize("names", ["a", "ab"])
def test_a_gang_whose_nominations_change_is_not_tried_again_for_that(names):
    """Members find nodes while another one waits for its victim, and find others each time they are tried.

    1. The gang is nominated to all nodes; the victim on one of them takes 30 s to end.
    2. It is tried after its backoff: the nominations are given back, or go to other members.
    3. Each nomination that is given up may help others, but not the members that gave it up.
    """
    decisions = []

    def count(decision) -> None:
        decisions.append(decision)
        if len(decisions) > 100:
            sim.loop.stop()

    config = default_config(FeatureGates(dict.fromkeys(GANGS, True)))
    with Simulation(SimOptions(config=config, on_decision=count)) as sim:
        sim.load(make_node(node, cpu=4) for node in ("n", "m", "o"))
        sim.load([make_pod("old", cpu=3, node="n", priority=-5, grace_period_s=30)])
        for name in names:
            members = [make_pod(f"{name}-{n}", group=name, cpu=4) for n in range(3)]
            sim.load([make_group(name, min_count=3), *members])
        sim.run()
        sim.scheduler.validate()

        assert len(placed(sim)) == 3
        assert len(decisions) < 60
