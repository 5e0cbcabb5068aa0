"""What an attempt leaves behind, whichever way it ends (the failure table of the scheduling cycle)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mooring.config import load_config
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import Nomination, PostFilterResult
from mooring.framework.status import Status, unresolvable, unschedulable
from mooring.objects.pod import Pod
from mooring.scheduler.choosing import SeededSpread, first_by_name
from mooring.scheduler.failure import cut_note
from tests.makers import make_pod
from tests.scheduler.world import World, config_with

#: What plugins did, in order, over all tests; each test clears it.
DONE: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done():
    DONE.clear()


class Reserves:
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        DONE.append("reserve")

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        DONE.append("unreserve")


class RefusesReserve(Reserves):
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return unschedulable("no room in the harbour")


class BreaksInReserve(Reserves):
    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        raise RuntimeError("boom")


class RefusesPermit:
    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return unschedulable("not today")


class BreaksInFilter:
    def filter(self, state: CycleState, pod: Pod, node: object) -> Status:
        raise RuntimeError("boom")


class BreaksInScore:
    def score(self, state: CycleState, pod: Pod, node: object) -> int:
        raise RuntimeError("boom")


class ScoresTooHigh:
    def score(self, state: CycleState, pod: Pod, node: object) -> int:
        return 101


class RefusesBind:
    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return unschedulable("the pier is closed")


class BreaksInPreBind:
    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        raise RuntimeError("boom")


class RefusesEveryPod:
    def pre_filter(self, state: CycleState, pod: Pod, snapshot: object) -> Status:
        return unresolvable("closed for the season")


class Nominates:
    def post_filter(self, state: CycleState, pod: Pod, statuses: object) -> Any:
        return PostFilterResult(Nomination("n")), Status()


RULES = [
    # plugin, the condition's reason, a part of its message, where the pod goes
    pytest.param(
        RefusesReserve,
        "Unschedulable",
        "0/1 nodes are available: 1 no room in the harbour.",
        "unschedulable",
        id="Reserve refuses",
    ),
    pytest.param(
        BreaksInReserve,
        "SchedulerError",
        'running Reserve plugin "BreaksInReserve": RuntimeError: boom',
        "backoff",
        id="Reserve breaks",
    ),
    pytest.param(
        RefusesPermit,
        "Unschedulable",
        "0/1 nodes are available: 1 not today.",
        "unschedulable",
        id="Permit refuses",
    ),
    pytest.param(
        BreaksInFilter,
        "SchedulerError",
        'running "BreaksInFilter" filter plugin: RuntimeError: boom',
        "backoff",
        id="Filter breaks",
    ),
    pytest.param(
        BreaksInScore,
        "SchedulerError",
        'running Score plugins: plugin "BreaksInScore" failed with: RuntimeError: boom',
        "backoff",
        id="Score breaks",
    ),
    pytest.param(
        ScoresTooHigh,
        "SchedulerError",
        'plugin "ScoresTooHigh" returns an invalid score 101',
        "backoff",
        id="Score out of range",
    ),
    pytest.param(
        BreaksInPreBind,
        "SchedulerError",
        'running PreBind plugin "BreaksInPreBind": RuntimeError: boom',
        "backoff",
        id="PreBind breaks",
    ),
    pytest.param(
        RefusesEveryPod,
        "Unschedulable",
        "0/2 nodes are available: closed for the season.",
        "unschedulable",
        id="PreFilter refuses",
    ),
]


@pytest.mark.parametrize(("plugin", "reason", "message", "place"), RULES)
def test_a_failed_attempt_is_undone_told_and_requeued(plugin, reason, message, place):
    world = World(Reserves, plugin).with_node("n").with_node("m")
    pod = make_pod("p", cpu="1")

    world.attempt(pod)

    assert world.condition[0] == reason
    assert message in world.condition[1]
    assert world.where(pod) == place
    assert world.scheduler.cluster.pods == {}
    assert world.writer.bound == []
    assert [(e.type, e.reason, e.action) for e in world.writer.events] == [
        ("Warning", "FailedScheduling", "Scheduling")
    ]
    assert DONE.count("unreserve") >= DONE.count("reserve")
    world.scheduler.validate()


def test_a_bind_plugin_that_refuses_sends_the_pod_through_the_error_backoff():
    """It carries no fit error, so there is nobody whose event could help."""
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": {
                        "bind": {"enabled": [{"name": "RefusesBind"}], "disabled": [{"name": "*"}]}
                    }
                }
            ],
        }
    )
    world = World(RefusesBind, config=config).with_node()
    pod = make_pod("p")

    world.attempt(pod)

    assert world.condition == ("Unschedulable", "the pier is closed")
    assert world.where(pod) == "backoff"


def test_without_nodes_a_pod_backs_off_and_no_post_filter_runs():
    world = World(Nominates)
    pod = make_pod("p")

    world.attempt(pod)

    assert world.condition == ("Unschedulable", "no nodes available to schedule pods")
    assert world.where(pod) == "backoff"
    assert not world.scheduler.nominator.has_any


def test_a_pod_that_fits_nowhere_stays_unschedulable_though_a_post_filter_helped():
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "plugins": {
                        "postFilter": {
                            "enabled": [{"name": "Nominates"}],
                            "disabled": [{"name": "*"}],
                        }
                    }
                }
            ],
        }
    )
    world = World(Nominates, config=config).with_node("n", cpu="1")
    pod = make_pod("p", cpu="2")

    world.attempt(pod)

    assert world.condition == ("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
    assert world.scheduler.nominator.nominated_node(pod.uid) == "n"
    assert world.writer.patches[-1][1].nominated_node_name == "n"


def test_a_pod_is_bound_and_told_of_once():
    world = World(Reserves).with_node()

    world.attempt(make_pod("p"))

    assert world.writer.bound == [("default/p", "n")]
    (event,) = world.writer.events
    assert (event.type, event.reason, event.action) == ("Normal", "Scheduled", "Binding")
    assert event.note == "Successfully assigned default/p to n"
    assert event.reporting_controller == "default-scheduler"
    assert DONE == ["reserve"]
    assert [pod.node_name for pod in world.scheduler.cluster.assumed_pods()] == ["n"]


def test_a_pod_that_is_being_deleted_is_passed_over_with_an_event():
    from datetime import UTC, datetime

    world = World().with_node()

    world.attempt(make_pod("p", deleting=datetime(2026, 1, 1, tzinfo=UTC)))

    assert [event.note for event in world.writer.events] == [
        "skip schedule deleting pod: default/p"
    ]
    assert world.scheduler.cluster.pods == {}


def test_a_failed_pod_that_is_gone_by_then_is_not_requeued():
    world = World(BreaksInFilter).with_node()
    pod = make_pod("p")
    world.handlers.added(pod)
    del world.scheduler.observed_pods[pod.key]

    world.schedule_one()

    assert world.where(pod) == "nowhere"
    assert world.scheduler.queue.in_flight_pods() == []


def test_a_failed_pod_that_was_made_again_under_its_name_is_left_alone():
    """No event, no condition: they would be about another pod."""
    world = World(BreaksInFilter).with_node()
    world.handlers.added(make_pod("p", uid="first"))
    world.scheduler.observed_pods["default/p"] = make_pod("p", uid="second")

    world.schedule_one()

    assert world.writer.events == []
    assert world.writer.patches == []
    assert world.scheduler.queue.in_flight_pods() == []


def test_a_condition_that_is_there_already_is_not_written_again():
    world = World().with_node("n", cpu="1")
    pod = make_pod("p", cpu="2")
    world.attempt(pod)
    ((_, patch),) = world.writer.patches
    assert patch.condition is not None
    known = pod.with_status(conditions=[patch.condition])
    world.handlers.updated(pod, known)
    world.clock.advance(20)
    world.scheduler.queue.activate({known.key: known})

    world.schedule_one()

    assert len(world.writer.patches) == 1


@pytest.mark.parametrize(
    ("length", "shown"),
    [(1024, "x" * 1024), (1025, "x" * 1020 + " ..."), (5000, "x" * 1020 + " ...")],
)
def test_a_note_is_cut_at_1024_bytes(length, shown):
    assert cut_note("x" * length) == shown


def test_each_profile_schedules_the_pods_that_name_it():
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [
                {
                    "schedulerName": "strict",
                    "plugins": {"multiPoint": {"enabled": [{"name": "RefusesPermit"}]}},
                },
                {"schedulerName": "easy"},
            ],
        }
    )
    world = World(RefusesPermit, config=config).with_node()

    world.attempt(make_pod("a", scheduler="strict"))
    world.attempt(make_pod("b", scheduler="easy"))
    world.handlers.added(make_pod("c", scheduler="nobody"))

    assert world.writer.bound == [("default/b", "n")]
    assert not world.schedule_one()


# Where to look, and which of the best to take


def scheduler_of(nodes: int, percentage: int) -> World:
    world = World(config=config_with(percentageOfNodesToScore=percentage))
    for i in range(nodes):
        world.with_node(f"n{i:04d}")
    return world


@pytest.mark.parametrize(
    ("nodes", "percentage", "feasible"),
    [
        pytest.param(99, 10, 99, id="below a hundred nodes, all"),
        pytest.param(400, 10, 100, id="never fewer than a hundred"),
        pytest.param(400, 50, 200, id="half of them"),
        pytest.param(400, 100, 400, id="all of them"),
        pytest.param(400, 0, 400, id="unset: all of them"),
    ],
)
def test_as_many_feasible_nodes_are_looked_for_as_the_percentage_says(nodes, percentage, feasible):
    world = scheduler_of(nodes, percentage)
    search = world.scheduler.searches["default-scheduler"]
    framework = world.scheduler.frameworks["default-scheduler"]
    snapshot = world.scheduler.cluster.snapshot()

    decision = search.schedule_pod(framework, CycleState(), make_pod(), snapshot)

    assert decision.feasible_count == feasible


def test_the_next_search_starts_where_the_last_one_ended():
    world = scheduler_of(300, 40)
    search = world.scheduler.searches["default-scheduler"]
    framework = world.scheduler.frameworks["default-scheduler"]
    snapshot = world.scheduler.cluster.snapshot()

    firsts = []
    for _ in range(3):
        decision = search.schedule_pod(framework, CycleState(), make_pod(), snapshot)
        firsts.append(snapshot.columns.names[int(decision.feasible[0])])

    assert firsts == ["n0000", "n0120", "n0240"]


def test_a_node_held_for_a_pod_is_taken_though_others_score_higher():
    world = World().with_node("empty", cpu="64").with_node("held", cpu="2")
    world.handlers.added(make_pod("other", cpu="1", node="held"))

    world.attempt(make_pod("p", cpu="1").with_status(nominated_node_name="held"))

    assert world.writer.bound == [("default/p", "held")]


def test_ties_go_to_the_first_name_or_where_the_seed_says():
    world = World().with_node("b").with_node("a").with_node("c")
    snapshot = world.scheduler.cluster.snapshot()
    rows = np.arange(3)
    names = snapshot.columns.names

    assert names[first_by_name(rows, snapshot)] == "a"
    orders = {
        seed: [names[SeededSpread(seed)(rows, snapshot)] for _ in range(2)] for seed in range(9)
    }
    assert all(first == again for first, again in orders.values())
    assert {first for first, _ in orders.values()} == {"a", "b", "c"}
