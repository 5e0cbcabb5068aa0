"""Kept rankings choose what a full evaluation chooses, whatever happened in between."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Depends
from mooring.objects.node import Node
from mooring.objects.pod import (
    Affinity,
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from mooring.objects.selectors import LabelSelector, NodeSelectorTerm, SelectorRequirement
from mooring.objects.taints import Taint, Toleration
from mooring.scheduler.choosing import SeededSpread, first_by_name
from mooring.scheduler.scheduling_cycle import Decision, NodeSearch
from tests.engine import Engine
from tests.makers import HOSTNAME, ZONE, make_node, make_pod

#: Pods come as copies of a few shapes, as controllers make them.
SHAPES: list[Callable[[str], Pod]] = [
    lambda name: make_pod(name, cpu="500m", memory="512Mi", labels={"app": "a"}),
    lambda name: make_pod(name, cpu="1", memory="128Mi", labels={"app": "b"}, image="app:1"),
    lambda name: make_pod(name, labels={"app": "c"}),
    lambda name: make_pod(
        name, cpu="250m", labels={"app": "d"}, tolerations=[Toleration(operator="Exists")]
    ),
    lambda name: make_pod(name, cpu="250m", node_selector={"disk": "ssd"}, ports=[80]),
    lambda name: make_pod(
        name,
        cpu="100m",
        affinity=Affinity(
            node_affinity=NodeAffinity(
                preferred=[
                    PreferredSchedulingTerm(
                        weight=7,
                        preference=NodeSelectorTerm(
                            match_expressions=[
                                SelectorRequirement(key="disk", operator="In", values=["ssd"])
                            ]
                        ),
                    )
                ]
            )
        ),
    ),
    lambda name: make_pod(
        name,
        cpu="100m",
        labels={"app": "spread"},
        spread=[_spread(ZONE, "DoNotSchedule"), _spread(HOSTNAME, "ScheduleAnyway")],
    ),
    lambda name: make_pod(
        name,
        cpu="100m",
        labels={"app": "apart"},
        affinity=Affinity(
            pod_anti_affinity=PodAffinity(required=[_term(HOSTNAME, "apart")]),
            pod_affinity=PodAffinity(
                preferred=[WeightedPodAffinityTerm(weight=30, pod_affinity_term=_term(ZONE, "a"))]
            ),
        ),
    ),
]


def _spread(key: str, when: str) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=1,
        topology_key=key,
        when_unsatisfiable=when,
        label_selector=LabelSelector(match_labels={"app": "spread"}),
    )


def _term(key: str, app: str) -> PodAffinityTerm:
    return PodAffinityTerm(
        topology_key=key, label_selector=LabelSelector(match_labels={"app": app})
    )


class Story:
    """A random life of a cluster, told to an engine that keeps rankings and decided twice."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        tie_break = first_by_name if self.random.random() < 0.5 else SeededSpread(seed)
        self.engine = Engine(tie_break=tie_break)
        self.count = 0
        for _ in range(self.random.randrange(1, 8)):
            self.engine.handlers.added(self._node(self._new_name("node")))

    def step(self) -> None:
        act = self.random.choices(
            [
                self.place,
                self.remove_pod,
                self.add_node,
                self.change_node,
                self.remove_node,
                self.place_out_of_sight,
            ],
            weights=[12, 3, 1, 1, 0.5, 0.5],
        )[0]
        act()

    def validate(self) -> None:
        """Not after each step: what is kept is to follow whether or not somebody looks at it."""
        self.engine.scheduler.cluster.validate()
        self.engine.scheduler.queue.validate()

    def place(self) -> None:
        shape = self.random.choice(SHAPES)
        pod = shape(self._new_name("pod"))
        scheduler = self.engine.scheduler
        snapshot = scheduler.cluster.snapshot()
        if not len(snapshot):
            return
        framework = scheduler.frameworks["default-scheduler"]
        keeping = scheduler.searches["default-scheduler"]
        full = NodeSearch(keeping.tie_break)
        expected = full.schedule_pod(framework, CycleState(), pod, snapshot)
        got = keeping.schedule_pod(framework, CycleState(), pod, snapshot)
        assert got.node_name == expected.node_name
        assert got.feasible_count == expected.feasible_count
        self._check_scores(keeping, pod, expected)
        if got.node_name is None:
            assert got.diagnosis.message == expected.diagnosis.message
        else:
            self.engine.handlers.added(pod.placed_on(got.node_name))

    def _check_scores(self, keeping: NodeSearch, pod: Pod, expected: Decision) -> None:
        """What is kept of each plugin is what it says when asked; if all plugins' is kept, the total."""
        assert keeping.rankings is not None
        kept = keeping.rankings.scores(pod)
        if kept is None or expected.scores is None:
            return
        scores = expected.scores
        positions = np.searchsorted(kept.rows, scores.rows)
        for name, raw in zip(kept.plugins, kept.raw, strict=True):
            if name in scores.plugins:
                asked = scores.raw[scores.plugins.index(name)]
                assert raw[positions].tolist() == asked.tolist(), name
        if set(kept.plugins) == set(scores.plugins) and len(kept.rows) == len(scores.rows):
            assert kept.total.tolist() == scores.total.tolist()

    def remove_pod(self) -> None:
        pods = list(self.engine.scheduler.cluster.pods.values())
        if pods:
            self.engine.handlers.deleted(self.random.choice(pods))

    def place_out_of_sight(self) -> None:
        """A pod is seen before its node."""
        pod = self.random.choice(SHAPES)(self._new_name("pod"))
        self.engine.handlers.added(pod.placed_on(self._new_name("unseen")))

    def add_node(self) -> None:
        self.engine.handlers.added(self._node(self._new_name("node")))

    def change_node(self) -> None:
        if old := self._some_node():
            self.engine.handlers.updated(old, self._node(old.name))

    def remove_node(self) -> None:
        if node := self._some_node():
            self.engine.handlers.deleted(node)

    def _some_node(self) -> Node | None:
        nodes = [info.node for info in self.engine.scheduler.cluster.infos.values() if info.node]
        return self.random.choice(nodes) if nodes else None

    def _node(self, name: str) -> Node:
        chance = self.random.random
        labels = {HOSTNAME: name}
        if chance() < 0.8:
            labels[ZONE] = self.random.choice("xyz")
        if chance() < 0.5:
            labels["disk"] = self.random.choice(["ssd", "hdd"])
        taints = []
        if chance() < 0.3:
            taints.append(
                Taint(key="k", effect=self.random.choice(["NoSchedule", "PreferNoSchedule"]))
            )
        node = make_node(
            name, cpu=str(self.random.randrange(1, 5)), memory="4Gi", labels=labels, taints=taints
        )
        spec = msgspec.structs.replace(node.spec, unschedulable=chance() < 0.1)
        return msgspec.structs.replace(node, spec=spec)

    def _new_name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}-{self.count}"


@given(seed=st.integers(0, 2**32))
def test_a_kept_ranking_chooses_what_a_full_evaluation_chooses(seed):
    story = Story(seed)

    for _ in range(40):
        story.step()
        if story.random.random() < 0.5:
            story.validate()
    story.validate()


def test_rankings_are_used_for_ordinary_pods_and_not_merely_allowed():
    engine = Engine(*(make_node(f"n{i}") for i in range(3)))

    for i in range(4):
        engine.handlers.added(make_pod(f"p{i}", cpu="100m"))
        engine.scheduler.schedule_one()

    rankings = engine.scheduler.searches["default-scheduler"].rankings
    assert rankings is not None
    assert rankings.scores(make_pod("another", cpu="100m")) is not None
    # The first pod of its kind is evaluated in full: it may never have a twin.
    assert [decision.scores is None for decision in engine.decisions] == [False, True, True, True]


class CountsCalls:
    """A third-party plugin that depends on whatever it says it does."""

    name = "CountsCalls"
    depends = Depends.CLUSTER
    calls = 0

    def depends_on(self, pod: Pod) -> Depends:
        return self.depends

    def sign(self, pod: Pod) -> dict[str, object]:
        return {}

    def filter(self, state: CycleState, pod: Pod, node: object) -> None:
        type(self).calls += 1


@pytest.mark.parametrize(
    ("depends", "calls"),
    [
        pytest.param(Depends.CLUSTER, 12, id="anything: all nodes, for each pod"),
        pytest.param(Depends.USAGE, 9, id="its pods too: all for two pods, then one that changed"),
        pytest.param(Depends.NODE, 8, id="the node: all for two pods, then none"),
    ],
)
def test_a_plugin_is_asked_again_only_where_what_it_depends_on_changed(depends, calls):
    from mooring.config import load_config

    plugin = type("CountsCalls", (CountsCalls,), {"depends": depends, "calls": 0})
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "CountsCalls"}]}}}],
        }
    )
    nodes = [make_node(f"n{i}") for i in range(4)]
    engine = Engine(*nodes, config=config, plugins={"CountsCalls": plugin})

    for i in range(3):
        engine.handlers.added(make_pod(f"p{i}", cpu="100m"))
        engine.scheduler.schedule_one()

    assert plugin.calls == calls


def test_an_attempt_that_a_ranking_gives_up_leaves_nothing_in_the_state():
    """1. Two pods are ranked and fill the node. 2. A third one asks the ranking, which runs the
    plugins it always runs and finds no room. 3. The full evaluation must start from a clean state,
    or a PostFilter sees what a PreFilter wrote that never ran in it.
    """
    engine = Engine(make_node("n", cpu="2"))
    for i in range(2):
        engine.handlers.added(make_pod(f"p{i}", cpu="1"))
        engine.scheduler.schedule_one()
    scheduler = engine.scheduler
    search = scheduler.searches["default-scheduler"]
    state, third = CycleState(), make_pod("p2", cpu="1")

    assert search._from_ranking(state, third, scheduler.cluster.snapshot()) is None

    fresh = CycleState()
    assert state._values.keys() == fresh._values.keys()
