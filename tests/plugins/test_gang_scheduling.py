"""GangScheduling and TopologyPlacementGenerator, asked one by one."""

from __future__ import annotations

import pytest

from mooring.framework.cycle_state import CycleState
from mooring.framework.events import Hint
from mooring.framework.placements import PodGroupInfo
from tests.groups import BY_RACK, members, start
from tests.makers import make_group, make_node, make_pod

MISSING = 'podgroup.scheduling.k8s.io "gang" not found'


def plugin(run, name: str):
    return run.scheduler.frameworks["default-scheduler"].plugins[name].plugin


def test_a_pod_without_its_group_waits_for_it():
    run = start(make_node("n"), *members(1))
    gate = run.scheduler.gate(members(1)[0])

    assert gate.message == 'waiting for pods\'s pod group "gang" to appear in scheduling queue'

    run.create(make_group())
    assert run.scheduler.queue.counts().active == 1


def test_permit_fails_if_the_group_is_gone():
    run = start(make_node("n"), make_group(min_count=1), *members(1))
    run.delete("PodGroup/default/gang")

    state = run.round()

    text = f'running Permit plugin "GangScheduling": failed to get podGroup default/gang: {MISSING}'
    assert state["pods"]["default/gang-1"]["message"] == text


@pytest.mark.parametrize(
    ("other", "hint"),
    [
        pytest.param(make_pod("b", group="gang"), Hint.QUEUE, id="the same group"),
        pytest.param(make_pod("b", group="other"), Hint.SKIP, id="another group"),
        pytest.param(make_pod("b", group="gang", namespace="x"), Hint.SKIP, id="other namespace"),
        pytest.param(make_pod("b"), Hint.SKIP, id="no group"),
    ],
)
def test_a_pod_helps_those_of_its_group(other, hint):
    run = start(make_node("n"))
    on_pod, _ = plugin(run, "GangScheduling").events_to_register()

    assert on_pod.hint(make_pod("a", group="gang"), None, other) == hint


def test_pods_without_a_group_are_let_through():
    gangs = plugin(start(make_node("n")), "GangScheduling")

    assert gangs.pre_enqueue(make_pod()).ok
    assert gangs.permit(CycleState(), make_pod(), "n").ok


RACK = "rack"
INFO = PodGroupInfo("default", "gang")


@pytest.mark.parametrize(
    ("placed", "text"),
    [
        pytest.param(["a"], None, id="one domain"),
        pytest.param(["bare"], "no topology domain found for pod default/gang-1", id="no label"),
        pytest.param(["a", "b"], "more than 1 domain found for pod group: r1, r2", id="two"),
        pytest.param(
            ["gone"],
            'getting node for pod default/gang-1: nodeinfo not found for node name "gone"',
            id="no node",
        ),
    ],
)
def test_members_that_have_a_node_decide_the_domain(placed, text):
    run = start(
        make_node("a", labels={RACK: "r1"}),
        make_node("b", labels={RACK: "r2"}),
        make_node("bare"),
        make_group(rack_key=RACK),
        *(make_pod(f"gang-{n}", group="gang", node=node) for n, node in enumerate(placed, 1)),
        on=BY_RACK,
    )
    generator = plugin(run, "TopologyPlacementGenerator")

    found = generator.generate_placements(INFO, run.scheduler.cluster.snapshot())

    if text is None:
        assert [placement.name for placement in found] == ["r1"]
    else:
        error = f"cannot determine domain for already scheduled pods: {text}"
        assert found.message == error


def test_placements_follow_the_nodes():
    run = start(make_node("a", labels={RACK: "r1"}), make_group(rack_key=RACK), on=BY_RACK)
    run.create(*members(1))
    generator, cluster = plugin(run, "TopologyPlacementGenerator"), run.scheduler.cluster
    first = generator.generate_placements(INFO, cluster.snapshot())
    again = generator.generate_placements(INFO, cluster.snapshot())
    run.create(make_node("b", labels={RACK: "r2"}), make_node("c", labels={RACK: "r1"}))

    then = generator.generate_placements(INFO, cluster.snapshot())

    assert again is first
    assert {each.name: set(each.nodes) for each in then} == {"r1": {"a", "c"}, "r2": {"b"}}


def test_a_generator_without_its_group_fails():
    run = start(make_node("n"), *members(1), on=BY_RACK)
    generator = plugin(run, "TopologyPlacementGenerator")

    assert generator.generate_placements(INFO, run.scheduler.cluster.snapshot()).message == MISSING
