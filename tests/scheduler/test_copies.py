"""Copies of a pod go, all at once, where they go one at a time."""

from __future__ import annotations

import random

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.config import load_config
from mooring.framework.interface import Depends
from mooring.framework.status import SKIP
from mooring.objects.devices import DeviceClass
from mooring.objects.meta import ObjectMeta
from mooring.objects.taints import Taint
from mooring.scheduler.choosing import SeededSpread, first_by_name
from tests.engine import Engine
from tests.makers import HOSTNAME, ZONE, make_node, make_pod
from tests.runtime.test_evaluation import SHAPES

#: The shapes without host ports, spread constraints and affinity to pods.
ALONE = (0, 1, 2, 3, 5)


def config_with(strategy: str):
    shape = [{"utilization": 0, "score": 10}, {"utilization": 60, "score": 2}]
    args = {"scoringStrategy": {"type": strategy, "resources": [{"name": "cpu", "weight": 3}]}}
    if strategy == "RequestedToCapacityRatio":
        args["scoringStrategy"]["requestedToCapacityRatio"] = {"shape": shape}
    return load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": args}]}],
        }
    )


STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def a_cluster(chance: random.Random) -> Engine:
    """Nodes that differ in all that the scores look at, with pods on them."""
    tie_break = first_by_name if chance.random() < 0.5 else SeededSpread(chance.randrange(9))
    engine = Engine(config=config_with(chance.choice(STRATEGIES)), tie_break=tie_break)
    for i in range(chance.randrange(1, 9)):
        name = f"n{i}"
        labels = {HOSTNAME: name, ZONE: chance.choice("ab")}
        if chance.random() < 0.5:
            labels["disk"] = "ssd"
        engine.handlers.added(
            make_node(
                name,
                cpu=chance.choice((1, 2, 4)),
                memory=chance.choice(("1Gi", "4Gi")),
                pods=chance.choice((3, 10)),
                labels=labels,
                taints=[
                    Taint(key=key, effect="PreferNoSchedule")
                    for key in "xyz"[: chance.randrange(4)]
                ],
            )
        )
        for n in range(chance.randrange(3)):
            shapes = SHAPES if chance.random() < 0.1 else [SHAPES[n] for n in ALONE]
            pod = chance.choice(shapes)(f"{name}-{n}")
            engine.handlers.added(replace(pod, spec=replace(pod.spec, node_name=name)))
    return engine


def one_at_a_time(engine: Engine, pod, most: int) -> tuple[list[str], str]:
    placed = []
    while len(placed) < most:
        copy = replace(pod, metadata=ObjectMeta(**_renamed(pod, f"copy-{len(placed)}")))
        decision = engine.scheduler.decide(copy)
        if decision.node_name is None:
            return placed, decision.diagnosis.fit_error
        placed.append(decision.node_name)
        engine.scheduler.cluster.add_pod(copy.placed_on(decision.node_name))
    return placed, ""


def _renamed(pod, name: str) -> dict:
    return {"name": name, "namespace": pod.namespace, "uid": name, "labels": pod.labels}


@given(st.integers(0, 2**32), st.sampled_from((1, 7, 200)))
def test_all_at_once_they_go_where_they_go_one_at_a_time(seed, most):
    engine = a_cluster(random.Random(seed))
    number = random.Random(seed).randrange(len(SHAPES))
    pod = SHAPES[number]("copied")

    placed = engine.scheduler.place_copies(pod, most)

    if number not in ALONE:
        assert placed is None or not placed.node_names
    elif not engine.scheduler.cluster.snapshot().held_terms:
        assert placed is not None
    event("at once" if placed is not None else "one by one")
    if placed is not None:
        expected = one_at_a_time(engine, pod, most)
        assert (placed.node_names, placed.fit_error) == expected
        event("full" if placed.fit_error else "limited")


def test_nothing_is_placed_by_asking():
    engine = Engine(make_node("n", cpu=2))

    placed = engine.scheduler.place_copies(make_pod(cpu=1), 5)

    assert placed.node_names == ["n", "n"]
    assert placed.fit_error == "0/1 nodes are available: 1 Insufficient cpu."
    assert not engine.scheduler.cluster.pods
    engine.scheduler.validate()


def test_scores_are_normalised_again_when_the_last_node_with_an_extreme_score_is_full():
    """Without its taint, the worst node is as good as the others: only then ties decide."""
    taints = [Taint(key=key, effect="PreferNoSchedule") for key in "xyz"]
    nodes = [make_node(f"n{i}", cpu=9 - i, pods=2 + i, taints=taints[:i]) for i in range(4)]
    engine = Engine(*nodes)
    pod = make_pod(cpu="100m")

    placed = engine.scheduler.place_copies(pod, 99)

    assert (placed.node_names, placed.fit_error) == one_at_a_time(engine, pod, 99)
    assert len(placed.node_names) == 2 + 3 + 4 + 5


@pytest.mark.parametrize("why", ["a held node", "device classes", "an unknown resource", "nodes"])
def test_other_pods_are_decided_one_at_a_time(why):
    engine, pod = Engine(make_node("n", cpu=2)), make_pod(cpu=1)
    match why:
        case "a held node":
            engine.handlers.added(make_pod("other", nominated="n"))
        case "device classes":
            engine.handlers.added(DeviceClass(metadata=ObjectMeta(name="gpu")))
        case "an unknown resource":
            pod = make_pod(cpu=1, requests={"example.com/gpu": 1})
        case "nodes":
            engine = Engine()

    assert engine.scheduler.place_copies(pod, 5) is None


class LooksAround:
    """A plugin that skips pods as long as it likes."""

    name = "LooksAround"

    def __init__(self, args, handle) -> None:
        pass

    def pre_filter(self, state, pod, snapshot):
        return SKIP

    def filter(self, state, pod, node):
        return None

    def depends_on(self, pod) -> Depends:
        return Depends.CLUSTER


def test_a_plugin_that_does_not_say_that_it_skips_copies_is_asked_each_time():
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "LooksAround"}]}}}],
        }
    )
    engine = Engine(make_node("n", cpu=2), config=config, plugins={"LooksAround": LooksAround})

    assert engine.scheduler.place_copies(make_pod(cpu=1), 5) is None
