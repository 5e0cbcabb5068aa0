"""Preemption for a whole pod group, and groups as victims."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.groups import (
    PREEMPTING,
    SCHEDULED,
    UNSCHEDULABLE,
    condition,
    gated,
    members,
    messages,
    nodes,
    nominated,
    start,
)
from tests.makers import make_group, make_node, make_pdb, make_pod

MEMBER = (
    "0/{0} nodes are available: {0} Insufficient cpu. no new claims to deallocate, preemption: not"
    " eligible due to workload aware preemption enabled"
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def running(name: str, *, node: str = "n", priority: int = 0, after_s: int = 0, **spec):
    started = START + timedelta(seconds=after_s)
    return make_pod(name, cpu=1, node=node, priority=priority, started=started, **spec)


def test_all_victims_are_evicted_at_once_and_the_group_fits_then():
    run = start(
        make_node("n", cpu=3),
        *(running(f"old-{n}") for n in (1, 2, 3)),
        make_group(min_count=2, priority=10),
        *members(2, cpu=1, priority=10),
        on=PREEMPTING,
    )

    state = run.round()

    assert len(state["evicted"]) == 2
    assert set(messages(state).values()) == {MEMBER.format(1)}
    assert condition(state) == UNSCHEDULABLE
    assert nominated(state) == {}
    state = run.settle()
    assert set(nodes(state).values()) == {"n"}
    assert condition(state) == SCHEDULED
    assert "evicted" not in state


def test_nobody_is_evicted_for_a_group_that_does_not_fit_even_then():
    run = start(
        make_node("n", cpu=3),
        *(running(f"old-{n}") for n in (1, 2, 3)),
        make_group(min_count=4, priority=10),
        *members(4, cpu=1, priority=10),
        on=PREEMPTING,
    )

    state = run.settle()

    assert "evicted" not in state
    text = "pod group is unschedulable, pod group is unschedulable"
    assert condition(state) == ("False", "Unschedulable", text)
    assert len(run.scheduler.cluster.pods) == 3


def test_members_that_find_a_node_are_nominated_while_room_is_made_for_the_others():
    run = start(
        make_node("n1", cpu=1),
        make_node("n2", cpu=1),
        running("old", node="n1"),
        make_group(min_count=2, priority=10),
        make_pod("gang-1", group="gang", cpu=1, priority=10),
        make_pod("gang-2", group="gang", cpu=1, priority=9),
        on=PREEMPTING,
    )

    state = run.round()

    assert nominated(state) == {"gang-1": "n2"}
    assert state["evicted"] == ["default/old"]


@pytest.mark.parametrize(
    ("group", "pods", "text"),
    [
        pytest.param(
            make_group(min_count=2, priority=0),
            members(2, cpu=1, priority=10),
            "No preemption victims found for incoming preemptor",
            id="the group's priority counts, not that of its pods",
        ),
        pytest.param(
            make_group(min_count=2, priority=10),
            members(2, cpu=1, priority=10, preemption_policy="Never"),
            "not eligible due to preemptionPolicy=Never.",
            id="a member may not preempt",
        ),
        pytest.param(
            make_group(min_count=2, priority=10, rack_key="rack"),
            members(2, cpu=1, priority=10),
            "workload aware preemption is not supported for pod groups with scheduling constraints",
            id="the group must be in one place",
        ),
    ],
)
def test_the_condition_says_why_nobody_is_evicted(group, pods, text):
    run = start(make_node("n", cpu=1), running("old"), group, *pods, on=PREEMPTING)

    state = run.settle()

    assert condition(state) == ("False", "Unschedulable", f"pod group is unschedulable, {text}")
    assert "evicted" not in state


def test_without_default_preemption_no_group_preempts():
    off = {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}
    run = start(
        make_node("n", cpu=1),
        running("old"),
        make_group(min_count=1, priority=10),
        *members(1, cpu=1, priority=10),
        on=PREEMPTING,
        profiles=[{"plugins": off}],
    )

    assert condition(run.settle()) == (
        "False",
        "Unschedulable",
        "pod group is unschedulable, default preemption plugin is not registered, workload aware"
        " preemption is disabled",
    )


def test_a_group_is_evicted_whole_if_its_disruption_mode_says_so():
    run = start(
        make_node("n", cpu=3),
        make_group("whole", min_count=1, priority=0, evicted_whole=True),
        running("whole-1", group="whole"),
        running("whole-2", group="whole"),
        make_group("single", min_count=1, priority=0),
        running("single-1", group="single", priority=5),
        make_group(min_count=1, priority=10),
        *members(1, cpu=1, priority=10),
        on=PREEMPTING,
    )

    assert run.settle()["evicted"] == ["default/whole-1", "default/whole-2"]


@pytest.mark.parametrize(
    ("victims", "evicted"),
    [
        pytest.param([running("a", priority=1), running("b", priority=2)], ["a"], id="priority"),
        pytest.param([running("a", after_s=9), running("b")], ["a"], id="started later"),
        pytest.param(
            [running("a", group="g"), running("b", after_s=9)], ["b"], id="a pod before a group"
        ),
    ],
)
def test_the_least_important_victim_goes(victims, evicted):
    run = start(
        make_node("n", cpu=2),
        make_group("g", priority=0),
        *victims,
        make_group(min_count=1, priority=10),
        *members(1, cpu=1, priority=10),
        on=PREEMPTING,
    )

    assert run.settle()["evicted"] == [f"default/{name}" for name in evicted]


def test_a_disruption_budget_protects_a_less_important_victim():
    run = start(
        make_node("n", cpu=2),
        make_pdb("b", labels={"app": "a"}, allowed=0),
        running("a", priority=0, labels={"app": "a"}),
        running("b", priority=5),
        make_group(min_count=1, priority=10),
        *members(1, cpu=1, priority=10),
        on=PREEMPTING,
    )

    assert run.settle()["evicted"] == ["default/b"]


def test_members_are_held_back_while_evictions_are_under_way():
    run = start(
        make_node("n", cpu=1),
        running("old"),
        make_group(min_count=1, priority=10),
        *members(1, cpu=1, priority=10),
        on=PREEMPTING,
    )
    queued = run.scheduler.queue.pop()
    run.scheduler.try_pod(queued)

    assert gated(run, "gang-1") == ("waiting for the preemption for this pod group to be finished")


def test_a_lower_member_of_the_same_group_is_a_victim_like_any_other():
    """It still counts in its group during the dry run, as in the reference."""
    run = start(
        make_node("n", cpu=1),
        make_group(min_count=2, priority=10),
        running("gang-0", group="gang", priority=0),
        *members(1, cpu=1, priority=10),
        on=PREEMPTING,
    )

    assert run.round()["evicted"] == ["default/gang-0"]
