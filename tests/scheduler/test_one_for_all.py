"""One pod is tried for all that are alike: the same placements and conditions, with fewer attempts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.config import load_config
from mooring.framework.api import PodStatusPatch
from mooring.framework.cycle_state import CycleState
from mooring.framework.events import EventWithHint
from mooring.framework.status import Status, wait
from mooring.objects.node import Node
from mooring.objects.pod import Pod
from mooring.sim.api import SimApi
from mooring.sim.simulation import SimOptions, Simulation
from tests.engine import Engine, registry_with
from tests.makers import make_node, make_pod


class World:
    """A simulation that goes on step by step."""

    def __init__(self, *, one_for_all: bool) -> None:
        self.attempts: list[str] = []
        options = SimOptions(
            one_for_all=one_for_all,
            on_decision=lambda decision: self.attempts.append(decision.pod.name),
        )
        self.sim = Simulation(options)
        # Without any node, pods fail without a rejection.
        self.sim.load([make_node("small", cpu="10m")])

    def settle(self) -> None:
        self.sim.settle()
        assert not self.sim.errors
        self.sim.scheduler.validate()

    def pods(self) -> list[Pod]:
        return sorted(self.sim.api.all(Pod), key=lambda pod: pod.name)

    def placed(self) -> Counter[tuple[str, str]]:
        """How many pods of each kind are on each node: which of them is a matter of taste."""
        return Counter((pod.labels["app"], pod.node_name) for pod in self.pods())

    def told(self) -> Counter[tuple[str, str]]:
        """What pods that wait are told."""
        return Counter(
            (pod.labels["app"], condition.message)
            for pod in self.pods()
            if not pod.node_name and (condition := pod.condition("PodScheduled")) is not None
        )


def make(app: str, name: str, pool: dict[str, str] | None = None) -> Pod:
    more: dict[str, Any] = {
        "plain": {"cpu": "1"},
        "large": {"cpu": "3"},
        "hopeless": {"cpu": "64"},
        "picky": {"cpu": "100m", "node_selector": {"disk": "ssd"}},
        "important": {"cpu": "2", "priority": 10},
    }[app]
    selector = {**more.pop("node_selector", {}), **(pool or {})}
    return make_pod(name, labels={"app": app}, node_selector=selector, **more)


def test_a_freed_place_costs_an_attempt_and_not_one_for_each_pod_that_waits():
    world = World(one_for_all=True)
    with world.sim as sim:
        sim.load([make_node("n", cpu="4"), *(make("plain", f"p{i}") for i in range(50))])
        world.settle()
        assert world.placed() == {("plain", "n"): 4, ("plain", ""): 46}
        world.attempts.clear()

        for pod in world.pods():
            if pod.node_name == "n" and pod.name != "p0":
                sim.api.delete(pod)
        world.settle()

        assert world.placed() == {("plain", "n"): 4, ("plain", ""): 43}
        # Three that are placed, and the one that is not speaks for all others.
        assert len(world.attempts) == 4


def test_pods_that_another_one_was_tried_for_are_told_what_that_one_was_told():
    world = World(one_for_all=True)
    with world.sim as sim:
        sim.load([make_node("n", cpu="4"), *(make("hopeless", f"p{i}") for i in range(9))])
        world.settle()

        # Large enough for one of them, which is why they are tried again.
        sim.api.create(make_node("m", cpu="100", unschedulable=True))
        world.settle()

        assert len(world.attempts) == 10
        ((told, count),) = world.told().items()
        assert (count, told[1].partition(":")[0]) == (9, "0/3 nodes are available")


class Holds:
    """A Permit that lets every pod wait for a minute, in vain."""

    name = "Holds"

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        return wait(), 60.0

    def events_to_register(self) -> list[EventWithHint]:
        """Nothing that happens helps."""
        return []


class WithoutPatches:
    """A writer whose status patches take longer than the test."""

    def __init__(self, api: SimApi) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def patch_pod_status(self, pod: Pod, patch: PodStatusPatch) -> None:
        pass


def test_a_pod_that_changes_while_it_is_tried_comes_back_as_what_it_is_now():
    """Seed 226 of the random worlds.

    1. A pod waits for Permit, so it is in flight.
    2. Meanwhile it becomes another kind of pod: somebody changes its annotations, or the scheduler names in
       its status the node that it waits for.
    3. Permit refuses it. It came back with its new annotations, but in the class of its old ones, and so was
       refused with pods that it had nothing in common with.
    """
    profile = {"plugins": {"multiPoint": {"enabled": [{"name": "Holds"}]}}}
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [profile],
        }
    )
    options = SimOptions(
        config=config,
        registry=registry_with({"Holds": Holds}),
        writer=WithoutPatches,
        one_for_all=True,
    )
    with Simulation(options) as sim:
        sim.load([make_node("n", cpu="4"), make("plain", "p")])
        sim.run(until_s=30.0)
        (pod,) = sim.api.all(Pod)
        annotations = {"another": "kind"}
        sim.api.update(replace(pod, metadata=replace(pod.metadata, annotations=annotations)))

        sim.run(until_s=60.5)

        queued = sim.scheduler.queue.get("default/p")
        assert queued is not None
        assert queued.pod.metadata.annotations == annotations
        sim.scheduler.validate()


def test_a_pod_that_preempts_does_not_speak_for_the_others():
    """Each of them is to have its own victims."""
    world = World(one_for_all=True)
    with world.sim as sim:
        sim.load([make_node("n", cpu="4"), make_node("m", cpu="4")])
        sim.load([make("plain", f"low{i}") for i in range(8)])
        world.settle()

        sim.load([make("important", f"high{i}") for i in range(4)])
        world.settle()

        placed = world.placed()
        assert placed[("important", "n")] + placed[("important", "m")] == 4


@pytest.mark.long
@given(seed=st.integers(0, 2**32))
def test_placements_and_conditions_are_those_of_trying_every_pod(seed):
    """Each kind has nodes of its own, so that it does not matter which kind is tried first."""
    plain, one = World(one_for_all=False), World(one_for_all=True)
    chance = random.Random(seed)
    with plain.sim, one.sim:
        for number in range(25):
            happens = _something(chance, number, own_nodes=True)
            for world in (plain, one):
                happens(world)
                world.settle()
            assert one.placed() == plain.placed()
            # Those that another one was tried for may know more than those that were not tried.
            assert one.told().keys() <= plain.told().keys()
            assert one.told().total() == plain.told().total()
    assert len(one.attempts) <= len(plain.attempts)


@pytest.mark.long
@given(seed=st.integers(0, 2**32))
def test_no_pod_waits_that_fits(seed):
    """Kinds compete for nodes. Whoever gets a place, none is left free that a waiting pod could take."""
    world = World(one_for_all=True)
    chance = random.Random(seed)
    with world.sim as sim:
        for number in range(25):
            _something(chance, number, own_nodes=False)(world)
            world.settle()
            fresh = Engine(*sim.api.all(Node), *(p for p in world.pods() if p.node_name))
            # But for their names, pods of one kind are equal: if one of them fits nowhere, none fits.
            waiting = {pod.labels["app"]: pod for pod in world.pods() if not pod.node_name}
            for pod in waiting.values():
                if len(fresh.scheduler.cluster.snapshot()):
                    fresh.handlers.added(pod)
                    assert fresh.scheduler.schedule_one()
                    assert fresh.decisions[-1].node_name is None, pod.name


def _something(chance: random.Random, number: int, *, own_nodes: bool) -> Callable[[World], None]:
    what = chance.choices(("pods", "node", "leave", "taint"), weights=(8, 3, 4, 2))[0]
    size, place = chance.choice(("2", "4", "8")), chance.random()
    app, count = chance.choice(("plain", "large", "hopeless", "picky")), chance.randrange(1, 6)
    pool = {"pool": app} if own_nodes else {}

    def happen(world: World) -> None:
        api = world.sim.api
        nodes = sorted(api.all(Node), key=lambda node: node.name)
        match what:
            case "pods":
                for i in range(count):
                    api.create(make(app, f"{app}-{number}-{i}", pool))
            case "node":
                disk = {"disk": "ssd"} if place < 0.5 else {}
                api.create(make_node(f"n{number}", cpu=size, labels=pool | disk))
            case "leave":
                placed = [(pod.labels["app"], pod.node_name) for pod in world.pods()]
                taken = sorted({kind for kind in placed if kind[1]})
                if taken:
                    # Pods of one kind on one node are as good as each other.
                    kind = taken[int(place * len(taken))]
                    api.delete(world.pods()[placed.index(kind)])
            case "taint" if nodes:
                node = nodes[int(place * len(nodes))]
                spec = replace(node.spec, unschedulable=not node.spec.unschedulable)
                api.update(replace(node, spec=spec))

    return happen
