"""Why a pod group is scheduled or pending, and what would make all of it fit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.config import default_config
from mooring.explain.explanation import CannotAnswer, Explainer, explainer_for
from mooring.explain.group_counterfactuals import (
    CreatePods,
    DropTopology,
    EvictPods,
    GroupCounterfactuals,
    LowerMinCount,
    find_group_counterfactuals,
)
from mooring.explain.pod_group import GroupExplanation, GroupName, GroupTrial
from mooring.framework.node_changes import AddNodes, Uncordon
from mooring.framework.pod_changes import LowerRequest, Tolerate
from mooring.objects.gangs import GANG
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod
from mooring.sim.simulation import SimOptions
from tests.groups import BY_RACK, GANGS, PREEMPTING, WAITS, gates, members
from tests.makers import make_group, make_node, make_owner, make_pod

RACK = "example.com/rack"
GROUP = GroupName("gang", None)


def explainer(*objects: KubeObject, on=GANGS, as_read: bool = False) -> Explainer:
    return explainer_for(objects, SimOptions(config=default_config(gates(on))), as_read=as_read)


def explain(*objects: KubeObject, on=GANGS, as_read: bool = False) -> GroupExplanation:
    with explainer(*objects, on=on, as_read=as_read) as asked:
        return GroupTrial(asked.what_if, GROUP).explain()


def changes(*objects: KubeObject, on=GANGS) -> GroupCounterfactuals:
    """What would help; the books add up afterwards, and the same question has the same answer."""
    with explainer(*objects, on=on) as asked:
        trial = GroupTrial(asked.what_if, GROUP)
        explanation = trial.explain()
        found = find_group_counterfactuals(trial, explanation, budget_s=60)
        asked.what_if.scheduler.validate()
        assert trial.explain() == explanation
        return found


def racks(*sizes: int) -> list[KubeObject]:
    """A rack of nodes with one core each for each size: r0-0, r0-1, r1-0 …"""
    return [
        make_node(f"r{rack}-{n}", cpu=1, labels={RACK: f"r{rack}"})
        for rack, size in enumerate(sizes)
        for n in range(size)
    ]


def test_it_says_how_many_members_fit_and_which_one_stops_the_group():
    told = explain(*racks(2), make_group("gang", min_count=3), *members(3, cpu=1))

    assert (told.state, told.fits) == ("unschedulable", False)
    assert told.message == "pod group is unschedulable"
    (tried,) = told.placements
    assert [(m.pod.name, m.node) for m in tried.members] == [
        ("gang-3", "r0-0"),
        ("gang-1", "r0-1"),
        ("gang-2", ""),
    ]
    assert told.stopped_by is not None
    assert told.stopped_by.message == "0/2 nodes are available: 2 Insufficient cpu."


def test_every_rack_is_tried_and_the_best_one_named():
    told = explain(
        *racks(2, 3, 1),
        make_group("gang", min_count=2, rack_key=RACK),
        *members(2, cpu=1),
        on=BY_RACK,
    )

    assert told.state == "scheduled"
    assert {each.name: (each.placed, each.fits) for each in told.placements} == {
        "r0": (2, True),
        "r1": (2, True),
        "r2": (1, False),
    }
    assert told.chosen is not None
    assert {node.partition("-")[0] for node in told.scheduled.values()} == {told.chosen.name}


@pytest.mark.parametrize(
    ("objects", "on", "state"),
    [
        pytest.param(
            [make_group("gang", min_count=3), *members(2, cpu=1)], GANGS, "gated", id="too few pods"
        ),
        pytest.param(
            [make_group("gang", min_count=2), *members(2, cpu=1)],
            GANGS,
            "scheduled",
            id="all have room",
        ),
        pytest.param(
            [make_group("gang", min_count=1), *members(3, cpu=1)],
            GANGS,
            "scheduled",
            id="more than minCount",
        ),
        pytest.param(
            [
                make_group("gang", min_count=1),
                *members(1, cpu=1, annotations={"mooring.dev/run-seconds": "5"}),
            ],
            GANGS,
            "finished",
            id="it has run",
        ),
        pytest.param(
            [make_group("gang"), *members(3, cpu=3)], GANGS, "unschedulable", id="no gang, no room"
        ),
    ],
)
def test_the_state_of_a_group(objects, on, state):
    assert explain(*racks(2), *objects, on=on).state == state


def test_as_the_files_say_nothing_is_placed_first():
    told = explain(
        *racks(2),
        make_pod("other", cpu=1),
        make_group("gang", min_count=2),
        *members(2, cpu=1),
        as_read=True,
    )

    assert told.state == "schedulable"
    assert told.scheduled == {}


def test_a_gang_by_annotation_has_the_name_of_its_job():
    owner = make_owner("Job", "gang")
    pods = [make_pod(f"p{n}", cpu=1, owner=owner, annotations={GANG: "true"}) for n in range(3)]

    for as_read in (True, False):
        told = explain(*racks(2), *pods, as_read=as_read)
        assert (told.state, told.min_count) == ("unschedulable", 3)


def test_preemption_names_the_victims_of_the_whole_group_and_evicts_nobody():
    low = [make_pod(f"low-{n}", cpu=1, node=f"r0-{n}", priority=1) for n in range(2)]
    group = make_group("gang", min_count=2, priority=10)
    pods = members(2, cpu=1, priority=10)

    with explainer(*racks(2), *low, group, *pods, on=GANGS, as_read=True) as asked:
        told = GroupTrial(asked.what_if, GROUP).explain()
        assert len(asked.what_if.cluster.pods) == 2

    assert told.preemption is not None
    assert [pod for pod, _ in told.preemption.victims] == ["default/low-0", "default/low-1"]
    assert not told.preemption.enabled
    assert explain(*racks(2), *low, group, *pods, on=PREEMPTING).state == "scheduled"


@pytest.mark.parametrize(
    ("objects", "on", "change"),
    [
        pytest.param(
            [*racks(2), make_group("gang", min_count=3), *members(3, cpu=1)],
            GANGS,
            LowerMinCount(3, 2),
            id="a lower minCount",
        ),
        pytest.param(
            [*racks(2), make_group("gang", min_count=4), *members(4, cpu=1)],
            GANGS,
            AddNodes("r0-0", 2),
            id="more nodes",
        ),
        pytest.param(
            [*racks(1, 2), make_group("gang", min_count=3, rack_key=RACK), *members(3, cpu=1)],
            BY_RACK,
            DropTopology(RACK),
            id="no rack",
        ),
        pytest.param(
            [*racks(1, 2), make_group("gang", min_count=3, rack_key=RACK), *members(3, cpu=1)],
            BY_RACK,
            AddNodes("r1-0", 1),
            id="a node in the larger rack",
        ),
        pytest.param(
            [
                *racks(1, 2),
                make_pod("y", cpu=1, node="r1-0"),
                make_pod("z", cpu=1, node="r0-0"),
                make_group("gang", min_count=2, rack_key=RACK),
                *members(2, cpu=1),
            ],
            BY_RACK,
            EvictPods(("default/y",), "r1"),
            id="one pod leaves its rack",
        ),
        pytest.param(
            [*racks(3), make_group("gang", min_count=3), *members(1, cpu=1)],
            GANGS,
            CreatePods(2),
            id="pods are missing",
        ),
        pytest.param(
            [
                *racks(1),
                make_node("n", cpu=1, unschedulable=True),
                make_group("gang", min_count=2),
                *members(2, cpu=1),
            ],
            GANGS,
            Uncordon("n"),
            id="a cordoned node",
        ),
        pytest.param(
            [
                *racks(1),
                make_node("n", cpu=1, taints=["gpu=true:NoSchedule"]),
                make_group("gang", min_count=2),
                *members(2, cpu=1),
            ],
            GANGS,
            Tolerate(("gpu=true:NoSchedule",)),
            id="a taint",
        ),
        pytest.param(
            [*racks(1), make_group("gang", min_count=4), *members(4, cpu=1)],
            GANGS,
            LowerRequest("cpu", 1000, 250),
            id="a smaller request of every member",
        ),
    ],
)
def test_a_change_that_helps_is_found_and_is_as_small_as_it_can_be(objects, on, change):
    found = changes(*objects, on=on)

    assert found.complete
    assert change in [answer.change for answer in found.answers]
    assert [answer.change.size for answer in found.answers] == sorted(
        answer.change.size for answer in found.answers
    )


@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3),
    used=st.lists(st.integers(0, 5), max_size=4),
    count=st.integers(2, 5),
)
def test_what_is_said_to_help_does_when_it_is_done(sizes, used, count):
    """The changes of a group and of other pods, made in the files."""
    nodes = racks(*sizes)
    names = [node.name for node in nodes]
    busy = [
        make_pod(f"b{n}", cpu=1, node=names[at % len(names)])
        for n, at in enumerate({u % len(names) for u in used})
    ]
    group = make_group("gang", min_count=count, rack_key=RACK)
    pods = members(count, cpu=1)
    objects = [*nodes, *busy, group, *pods]
    if explain(*objects, on=BY_RACK).fits:
        return

    for answer in changes(*objects, on=BY_RACK).answers:
        match answer.change:
            case LowerMinCount(new=new):
                done = [*nodes, *busy, make_group("gang", min_count=new, rack_key=RACK), *pods]
            case DropTopology():
                done = [*nodes, *busy, make_group("gang", min_count=count), *pods]
            case EvictPods(victims=victims):
                left = [pod for pod in busy if pod.key not in victims]
                done = [*nodes, *left, group, *pods]
            case AddNodes(like=like, count=more):
                (template,) = [node for node in nodes if node.name == like]
                copies = [
                    replace(
                        template,
                        metadata=replace(template.metadata, name=f"new-{n}", uid=f"new-{n}"),
                    )
                    for n in range(more)
                ]
                done = [*nodes, *copies, *busy, group, *pods]
            case _:
                continue
        assert explain(*done, on=BY_RACK).state == "scheduled", answer.change.text


@pytest.mark.parametrize(
    ("wanted", "on", "problem"),
    [
        pytest.param(GroupName("gank", None), GANGS, "did you mean default/gang", id="misspelt"),
        pytest.param(
            GroupName("gang", "other"), GANGS, "no pod group 'other/gang'", id="elsewhere"
        ),
        pytest.param(GROUP, (), "--feature-gates GenericWorkload=true", id="the gates are off"),
    ],
)
def test_what_cannot_be_answered(wanted, on, problem):
    with (
        explainer(*racks(1), make_group("gang", min_count=1), *members(1, cpu=1), on=on) as asked,
        pytest.raises(CannotAnswer, match=problem),
    ):
        GroupTrial(asked.what_if, wanted).explain()


def test_a_group_without_pods_cannot_be_explained():
    with (
        explainer(*racks(1), make_group("gang", min_count=1), make_pod("p")) as asked,
        pytest.raises(CannotAnswer, match="has no pods"),
    ):
        GroupTrial(asked.what_if, GROUP).explain()


def test_pods_of_another_scheduler_are_not_tried():
    told_pods: list[Pod] = members(2, cpu=1, scheduler="other")
    with (
        explainer(*racks(2), make_group("gang", min_count=2), *told_pods) as asked,
        pytest.raises(CannotAnswer, match="has no pods"),
    ):
        GroupTrial(asked.what_if, GROUP).explain()


def test_a_member_that_would_fit_alone_is_said_to_wait_for_its_group():
    with explainer(*racks(2), make_group("gang", min_count=3), *members(3, cpu=1)) as asked:
        told = [asked.explain(f"default/gang-{n}") for n in (1, 2, 3)]

    assert {each.state for each in told} == {"unschedulable"}
    assert all(each.waits_for_group for each in told)
    (no_room,) = [each.message for each in told if each.message != WAITS]
    assert no_room.startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert "see podgroup/default/gang" in told[0].story[-1].text
