"""Pod groups rule by rule, each with a small example."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mooring.framework.placements import PodGroupInfo
from mooring.objects.pod import PodCondition
from mooring.objects.selectors import LabelSelector, SelectorRequirement
from mooring.plugins.pod_group_pods_count import PodGroupPodsCount
from tests.groups import (
    BY_RACK,
    GANGS,
    PREEMPTING,
    SCHEDULED,
    UNSCHEDULABLE,
    WAITS,
    condition,
    gated,
    members,
    messages,
    nodes,
    nominated,
    start,
)
from tests.makers import (
    HOSTNAME,
    make_affinity_term,
    make_group,
    make_node,
    make_pod,
    make_pod_affinity,
    make_spread,
)

RACK = "example.com/rack"
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
NO_ROOM = "0/{0} nodes are available: {0} Insufficient cpu."
NO_VICTIMS = (
    " no new claims to deallocate, preemption: 0/{0} nodes are available:"
    " {0} No preemption victims found for incoming pod."
)


def test_a_gang_waits_for_enough_pods_and_the_last_one_lets_all_go():
    run = start(make_node("n", cpu=9), make_group(min_count=3), *members(2, cpu=1))
    queue = run.scheduler.queue

    assert [gated(run, "gang-1"), gated(run, "gang-2")] == [TOO_FEW, TOO_FEW]
    assert queue.counts().active == 0

    run.create(*members(1, first=3, cpu=1))

    assert queue.counts().active == 3


def test_a_gang_that_does_not_fit_binds_nobody():
    gang = [make_pod(f"gang-{n}", group="gang", cpu=1, priority=-n) for n in (1, 2, 3)]
    run = start(make_node("n", cpu=2), make_group(min_count=3), *gang)

    state = run.round()

    assert set(nodes(state).values()) == {""}
    assert messages(state) == {
        "gang-1": WAITS,
        "gang-2": WAITS,
        "gang-3": NO_ROOM.format(1) + NO_VICTIMS.format(1),
    }
    assert condition(state) == UNSCHEDULABLE
    assert run.scheduler.queue.counts().backoff == 3


def test_what_a_gang_has_beyond_its_minimum_does_not_hold_it_up():
    run = start(make_node("n", cpu=2), make_group(min_count=2), *members(3, cpu=1, priority=1))

    state = run.settle()

    assert sorted(nodes(state).values()) == ["", "n", "n"]
    assert condition(state) == SCHEDULED


def test_a_gang_that_fits_once_victims_are_gone_has_its_nodes_held():
    run = start(
        make_node("n1", cpu=1),
        make_node("n2", cpu=1),
        make_pod("victim", cpu=1, node="n1", priority=0),
        make_group(min_count=2),
        make_pod("gang-1", group="gang", cpu=1, priority=10),
        make_pod("gang-2", group="gang", cpu=1, priority=9),
    )

    state = run.round()

    waits = "pod group is unschedulable, pod group is waiting for preemption to complete"
    assert nominated(state) == {"gang-1": "n2", "gang-2": "n1"}
    assert messages(state) == {"gang-1": waits, "gang-2": NO_ROOM.format(2)}
    assert condition(state) == ("False", "Unschedulable", waits)
    assert state["evicted"] == ["default/victim"]
    assert nodes(run.settle()) == {"gang-1": "n2", "gang-2": "n1"}


def test_preemption_for_one_member_holds_no_node_if_the_gang_is_not_complete():
    """The victim is gone all the same: the reference evicts for each member on its own."""
    run = start(
        make_node("n1", cpu=1),
        make_pod("victim", cpu=1, node="n1", priority=0),
        make_group(min_count=3),
        make_pod("gang-1", group="gang", cpu=1, priority=10),
        make_pod("gang-2", group="gang", cpu=5, priority=9),
        make_pod("gang-3", group="gang", cpu=5, priority=8),
    )

    state = run.round()

    assert nominated(state) == {}
    assert messages(state)["gang-1"] == WAITS
    assert condition(state) == UNSCHEDULABLE
    assert state["evicted"] == ["default/victim"]


AWAY_FROM_WORKERS = make_affinity_term({"role": "worker"}, HOSTNAME)


@pytest.mark.parametrize(
    ("beside", "nodes_of_gang"),
    [
        pytest.param(None, ["n1", "n1"], id="the node has no pods with terms"),
        pytest.param(
            make_pod_affinity(anti=[make_affinity_term({"role": "none"}, HOSTNAME)]),
            ["n1", ""],
            id="a pod of the node has required anti-affinity",
        ),
        pytest.param(
            make_pod_affinity(anti_preferred=[(1, make_affinity_term({"role": "none"}, HOSTNAME))]),
            ["n1", "n1"],
            id="a pod of the node has a preference only",
        ),
    ],
)
def test_anti_affinity_of_a_member_is_missed_on_a_node_that_had_no_such_pods(beside, nodes_of_gang):
    """The reference lists the nodes that have such pods before it tries the members."""
    run = start(
        make_node("n1", cpu=9),
        make_pod("old", node="n1", affinity=beside),
        make_group(min_count=1),
        make_pod(
            "gang-1", group="gang", priority=2, affinity=make_pod_affinity(anti=[AWAY_FROM_WORKERS])
        ),
        make_pod("gang-2", group="gang", priority=1, labels={"role": "worker"}),
    )

    state = run.round()

    assert [nodes(state)[name] for name in ("gang-1", "gang-2")] == nodes_of_gang
    run.create(make_pod("later", labels={"role": "worker"}))
    assert nodes(run.round())["later"] == ""


@pytest.mark.parametrize(
    ("own", "node"),
    [
        pytest.param({}, "n1", id="the member has no preference"),
        pytest.param(
            {"anti_preferred": [(1, make_affinity_term({"role": "none"}, HOSTNAME))]},
            "n2",
            id="the member has one, so the reference goes through all pods",
        ),
    ],
)
def test_preferences_of_a_member_are_missed_by_members_without_preferences(own, node):
    away = make_pod_affinity(anti_preferred=[(100, AWAY_FROM_WORKERS)])
    run = start(
        make_node("n1", cpu=9),
        make_node("n2", cpu=8),
        make_group(min_count=1),
        make_pod("gang-1", group="gang", cpu=1, priority=2, affinity=away),
        make_pod(
            "gang-2",
            group="gang",
            cpu="1m",
            priority=1,
            labels={"role": "worker"},
            affinity=make_pod_affinity(**own) if own else None,
        ),
        profiles=[
            {
                "plugins": {
                    "score": {
                        "disabled": [{"name": "*"}],
                        "enabled": [{"name": "InterPodAffinity"}],
                    }
                }
            }
        ],
    )

    state = run.round()

    assert [nodes(state)[name] for name in ("gang-1", "gang-2")] == ["n1", node]


def test_an_error_at_one_member_fails_the_whole_group():
    requirement = SelectorRequirement(key="app", operator="Is", values=["x"])
    broken = make_spread(labels=LabelSelector(match_expressions=[requirement]))
    run = start(
        make_node("n", cpu=9),
        make_group(min_count=2),
        make_pod("gang-1", group="gang", cpu=1, priority=3),
        make_pod("gang-2", group="gang", cpu=1, priority=2, spread=[broken]),
        make_pod("gang-3", group="gang", cpu=1, priority=1),
    )

    state = run.round()

    error = (
        'running PreFilter plugin "PodTopologySpread": get constraints from pod: obtaining pod\'s hard'
        ' topology spread constraints: "Is" is not a valid label selector operator'
    )
    of_group = f"failed to schedule other pod from a pod group: {error}"
    assert messages(state) == {"gang-1": of_group, "gang-2": error, "gang-3": of_group}
    assert {pod["reason"] for pod in state["pods"].values()} == {"SchedulerError"}
    assert condition(state) == ("False", "SchedulerError", of_group)


def test_a_group_that_was_scheduled_stays_so():
    scheduled = PodCondition(
        type="PodGroupScheduled", status="True", reason="Scheduled", observed_generation=1
    )
    run = start(
        make_node("n", cpu=1),
        make_group(min_count=1, conditions=[scheduled]),
        *members(1, cpu=2),
    )

    state = run.settle()

    assert nodes(state) == {"gang-1": ""}
    assert condition(state) == SCHEDULED


def test_of_a_basic_group_each_pod_that_fits_is_bound():
    run = start(make_node("n", cpu=1), make_group(), *members(2, cpu=1))

    state = run.settle()

    assert sorted(nodes(state).values()) == ["", "n"]
    assert condition(state) == SCHEDULED


def racks(**sizes: int) -> list:
    """`racks(a=2)`: nodes a1 and a2 with 1 cpu each, in rack a."""
    return [
        make_node(f"{rack}{n}", cpu=1, labels={RACK: rack})
        for rack, size in sizes.items()
        for n in range(1, size + 1)
    ]


def test_members_go_where_others_of_their_group_are():
    run = start(
        *racks(a=2, b=1),
        make_group(min_count=1, rack_key=RACK),
        make_pod("gang-0", group="gang", cpu=1, node="a1"),
        *members(2, cpu=1),
        on=BY_RACK,
    )

    state = run.settle()

    assert sorted(nodes(state).values()) == ["", "a2"]


def test_placements_are_scored_by_the_pods_that_they_take():
    info = PodGroupInfo("default", "gang")

    assert PodGroupPodsCount(None, None).normalize_placement_scores(info, [10, 50, 110]) == [
        9,
        45,
        100,
    ]


def test_a_group_that_fits_in_no_placement_says_how_many_there_are():
    run = start(
        *racks(a=1, b=1, c=1),
        make_group(min_count=2, rack_key=RACK),
        *members(2, cpu=1),
        on=BY_RACK,
    )

    state = run.settle()

    text = "0/3 placements are available, first placement status: pod group is unschedulable"
    assert condition(state) == ("False", "Unschedulable", text)
    assert sorted(messages(state).values()) == [
        NO_ROOM.format(1) + " no new claims to deallocate, preemption: not eligible due to"
        " placement-based pod group scheduling limitation",
        WAITS,
    ]


def test_all_members_have_the_same_scheduler():
    run = start(
        make_node("n", cpu=9),
        make_group(min_count=2),
        make_pod("gang-1", group="gang", scheduler="a", priority=2),
        make_pod("gang-2", group="gang", scheduler="b", priority=1),
        profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}],
    )

    state = run.round()

    text = (
        "all pods in a single pod group should have the same .spec.schedulerName set,"
        ' got: "b" and "a"'
    )
    assert set(messages(state).values()) == {text}
    assert condition(state) is None


def test_a_member_may_evict_a_less_important_one_and_is_then_held_back():
    run = start(
        make_node("n", cpu=3),
        make_group(min_count=3),
        make_pod("gang-1", group="gang", cpu=1, priority=9),
        make_pod("gang-2", group="gang", cpu=1, priority=1),
        make_pod("gang-3", group="gang", cpu=1, priority=1),
    )
    assert condition(run.settle()) == SCHEDULED
    run.create(make_pod("other", cpu=1, priority=100))
    run.delete("Pod/default/gang-3")
    run.settle()
    run.create(make_pod("r", group="gang", cpu=1, priority=5))

    state = run.settle()

    assert state["evicted"] == ["default/gang-2"]
    assert nominated(state) == {"r": "n"}
    assert gated(run, "r") == TOO_FEW
    assert condition(state) == SCHEDULED


def test_a_topology_key_that_no_node_has_leaves_no_placement():
    run = start(
        make_node("n", cpu=9),
        make_group(min_count=2, rack_key=RACK),
        *members(2, cpu=1),
        on=BY_RACK,
    )

    state = run.settle()

    assert set(messages(state).values()) == {"no feasible placements found"}
    assert condition(state) == ("False", "Unschedulable", "no feasible placements found")


def test_a_pod_that_is_being_deleted_counts_until_it_is_gone():
    leaving = make_pod("gang-4", group="gang", cpu=1, deleting=datetime(2026, 1, 1, tzinfo=UTC))
    run = start(make_node("n", cpu=9), make_group(min_count=4), *members(3, cpu=1), leaving)

    state = run.round()

    assert {name: text for name, text in messages(state).items() if text} == dict.fromkeys(
        ("gang-1", "gang-2", "gang-3"), WAITS
    )
    assert condition(state) == UNSCHEDULABLE
    assert run.scheduler.queue.counts().backoff == 3

    run.delete("Pod/default/gang-4")
    assert run.scheduler.queue.counts().backoff == 3, "they are tried once more"
    state = run.round()

    assert {gated(run, f"gang-{n}") for n in (1, 2, 3)} == {TOO_FEW}
    assert set(messages(state).values()) == {WAITS}


@pytest.mark.parametrize("keep_answers", [True, False])
def test_the_same_group_is_placed_the_same_way_with_and_without_kept_answers(keep_answers):
    from mooring.config import default_config
    from mooring.conformance.pod_groups import GroupRun
    from tests.groups import gates

    run = GroupRun(default_config(gates(BY_RACK)), keep_answers=keep_answers)
    run.create(*racks(a=2, b=3), make_group(min_count=2, rack_key=RACK), *members(3, cpu=1))

    assert sorted(nodes(run.settle()).values()) == ["b1", "b2", "b3"]


@pytest.mark.parametrize("first", ["free", "full", ""])
@pytest.mark.parametrize("second", ["free", "full", ""])
@pytest.mark.parametrize("on", [GANGS, PREEMPTING, BY_RACK], ids="+".join)
def test_a_refused_gang_gives_back_the_nodes_that_a_dead_scheduler_held_for_it(on, first, second):
    """One of three is bound. The scheduler died before the other binds, and another pod took a place."""
    run = start(
        *(make_node(name, cpu=1) for name in ("bound", "full", "free")),
        make_group(min_count=3),
        make_pod("gang-1", group="gang", cpu=1, node="bound"),
        make_pod("thief", cpu=1, node="full"),
        make_pod("gang-2", group="gang", cpu=1, nominated=first),
        make_pod("gang-3", group="gang", cpu=1, nominated=second),
        on=on,
    )

    state = run.round()
    assert nominated(state) == {}
    run.create(make_pod("single", cpu=1))

    assert nodes(run.round())["single"] == "free"


def test_a_refused_member_keeps_its_nomination_while_a_victim_leaves_the_node():
    run = start(
        make_node("n1", cpu=1),
        make_pod("victim", cpu=1, node="n1", deleting=datetime(2026, 1, 1, tzinfo=UTC)),
        make_group(min_count=2),
        make_pod("gang-1", group="gang", cpu=1, priority=1, nominated="n1"),
        make_pod("gang-2", group="gang", cpu=1, priority=1),
        on=PREEMPTING,
    )

    assert nominated(run.round()) == {"gang-1": "n1"}


@pytest.mark.parametrize("on", [GANGS, PREEMPTING, BY_RACK], ids="+".join)
def test_a_member_whose_gang_lost_a_pod_holds_no_node_while_it_is_held_back(on):
    """The scheduler died before it bound two of three, and one of the two was deleted meanwhile."""
    run = start(
        make_node("bound", cpu=1),
        make_node("held", cpu=1),
        make_group(min_count=3),
        make_pod("gang-1", group="gang", cpu=1, node="bound"),
        make_pod("gang-2", group="gang", cpu=1, nominated="held"),
        make_pod("single", cpu=1),
        on=on,
    )

    assert nodes(run.round())["single"] == "held"
