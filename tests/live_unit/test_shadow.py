"""A shadow compares without touching anything."""

from __future__ import annotations

import pytest

from mooring.config import default_config
from mooring.errors import ApiError
from mooring.live.clock import WallClock
from mooring.live.driver import Driver, DriverParts
from mooring.live.metrics import LiveMetrics
from mooring.live.shadow import Comparison, ReadOnlyWriter, Shadow, Verdict
from mooring.objects.pod import PodCondition
from tests.engine import registry_with
from tests.makers import make_node, make_pod

UNSCHEDULABLE = PodCondition(
    type="PodScheduled", status="False", reason="Unschedulable", message="0/1 nodes"
)


class Watched:
    """A shadow, what it told, and what it is told of."""

    def __init__(self, *nodes) -> None:
        parts = DriverParts(
            clock=WallClock(),
            writer=ReadOnlyWriter(),
            metrics=LiveMetrics(),
            make_registry=registry_with,
        )
        self.driver = Driver(default_config(), parts)
        self.told: list[Comparison] = []
        self.shadow = Shadow(self.driver, self.told.append)
        self.shadow.ready = True
        for node in nodes:
            self.shadow.added(node)

    def bound(self, pod, node: str) -> Comparison:
        """Another scheduler binds a pod."""
        self.shadow.added(pod)
        self.shadow.updated(pod, pod.stored_as("2").placed_on(node))
        return self.told[-1]

    def refused(self, pod) -> Comparison:
        self.shadow.added(pod)
        said = pod.stored_as("2").with_status(conditions=[UNSCHEDULABLE])
        self.shadow.updated(pod, said)
        return self.told[-1]


async def test_the_same_node_and_equally_good_nodes_agree():
    watched = Watched(make_node("a"), make_node("b"), make_node("c", cpu=1))

    tie = watched.bound(make_pod("p", cpu=2), "b")
    same = watched.bound(make_pod("q", cpu=2), "a")

    assert (tie.verdict, tie.best, tie.best_count) == (Verdict.TIE, ("a", "b"), 2)
    assert same.verdict == Verdict.SAME
    assert watched.shadow.agreed == watched.shadow.compared == 2


async def test_a_worse_node_is_explained_by_the_scores_that_differ():
    watched = Watched(make_node("a"), make_node("b"))
    watched.bound(make_pod("first", cpu=2), "a")

    worse = watched.bound(make_pod("p", cpu=1), "a")

    assert worse.verdict == Verdict.LESS_GOOD
    assert worse.best == ("b",)
    theirs, ours = worse.scores["NodeResourcesFit"]
    assert theirs < ours
    assert "NodeResourcesFit" in worse.explanation


async def test_a_node_that_a_rule_refuses_is_explained_by_the_rule():
    watched = Watched(make_node("a", cpu=1), make_node("b", cpu=64))

    comparison = watched.bound(make_pod("p", cpu=8), "a")

    assert comparison.verdict == Verdict.REFUSED
    assert comparison.explanation == "a: NodeResourcesFit: Insufficient cpu"
    assert comparison.to_data()["agrees"] is False


async def test_what_is_really_bound_counts_whatever_was_thought_of_it():
    watched = Watched(make_node("a"), make_node("b"))

    for number in range(3):
        watched.bound(make_pod(f"p{number}", cpu=1), "a")

    assert len(watched.driver.scheduler.cluster.infos["a"].pods) == 3
    assert watched.driver.scheduler.cluster.assumed_pods() == []


async def test_a_refused_pod_that_has_a_place_is_a_difference_and_one_without_is_not():
    watched = Watched(make_node("a", cpu=4))

    assert watched.refused(make_pod("small", cpu=1)).verdict == Verdict.HAS_A_PLACE
    assert watched.refused(make_pod("big", cpu=64)).verdict == Verdict.BOTH_REFUSE


async def test_pods_of_other_schedulers_and_pods_that_came_with_a_node_are_not_compared():
    watched = Watched(make_node("a"))
    foreign = make_pod("foreign", scheduler="other")
    watched.shadow.added(foreign)
    watched.shadow.updated(foreign, foreign.stored_as("2").placed_on("a"))
    watched.shadow.added(make_pod("static", node="a"))

    assert watched.told == []


async def test_nothing_can_be_written():
    writer = ReadOnlyWriter()

    with pytest.raises(ApiError):
        await writer.bind(make_pod("p"), "a")
    with pytest.raises(ApiError):
        await writer.delete_pod(make_pod("p"))
