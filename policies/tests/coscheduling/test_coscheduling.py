"""Coscheduling decides as the plugin of scheduler-plugins: its tables, with its numbers."""

from types import SimpleNamespace

import pytest

from mooring.plugin import Code, CycleState, Status, unschedulable, wait
from mooring_policies.coscheduling import Coscheduling
from mooring_policies.coscheduling.plugin import GROUP_NOT_FOUND
from mooring_policies.coscheduling.resources import gap_text, missing_resources
from policies.tests.coscheduling.makers import make_member, make_pod_group
from policies.tests.world import World
from tests.makers import make_node, make_pod, resources

LOW, HIGH = 10, 100
REJECTED = unschedulable(
    "PodGroup ns/pg1 gets rejected due to Pod p is unschedulable even after PostFilter"
)
NOT_REJECTED = unschedulable()


def world(*objects, nodes=(), args=None):
    return World(Coscheduling, *nodes, *objects, args=args, sorts_queue=True)


def queued(pod, at=0.0):
    return SimpleNamespace(pod=pod, timestamp=at, initial_attempt_timestamp=at)


def in_ns1(name, group="", **more):
    return make_member(name, group, namespace="ns1", **more)


def in_ns2(name, group="", **more):
    return make_member(name, group, namespace="ns2", **more)


def group(name, namespace, created_s=None):
    return make_pod_group(name, namespace=namespace, created_s=created_s)


# The queue


@pytest.mark.parametrize(
    ("first", "second", "groups", "before"),
    [
        pytest.param(
            queued(in_ns1("p1", priority=LOW)),
            queued(in_ns2("p2", priority=HIGH)),
            [],
            False,
            id="a lower priority",
        ),
        pytest.param(
            queued(in_ns1("p1", priority=HIGH)),
            queued(in_ns2("p2", priority=LOW)),
            [],
            True,
            id="a higher priority",
        ),
        pytest.param(
            queued(in_ns1("p1", priority=HIGH), 1),
            queued(in_ns2("p2", priority=HIGH), 2),
            [],
            True,
            id="an earlier pod",
        ),
        pytest.param(
            queued(in_ns1("p1", priority=HIGH), 2),
            queued(in_ns2("p2", priority=HIGH), 1),
            [],
            False,
            id="a later pod",
        ),
        pytest.param(
            queued(in_ns1("p1", "pg1", priority=LOW)),
            queued(in_ns2("p2", priority=HIGH)),
            [group("pg1", "ns1")],
            False,
            id="a lower priority in a group",
        ),
        pytest.param(
            queued(in_ns1("p1", "pg1", priority=HIGH)),
            queued(in_ns2("p2", priority=LOW)),
            [group("pg1", "ns1")],
            True,
            id="a higher priority in a group",
        ),
        pytest.param(
            queued(in_ns1("p1", "pg1", priority=HIGH), 1),
            queued(in_ns2("p2", priority=HIGH), 2),
            [group("pg1", "ns1", 1)],
            True,
            id="an earlier group",
        ),
        pytest.param(
            queued(in_ns1("p1", "pg1", priority=HIGH), 2),
            queued(in_ns2("p2", priority=HIGH), 1),
            [group("pg1", "ns1", 2)],
            False,
            id="a later group",
        ),
        pytest.param(
            queued(in_ns1("p1", "pg1", priority=LOW)),
            queued(in_ns2("p2", "pg2", priority=HIGH)),
            [group("pg1", "ns1", 1), group("pg2", "ns2", 2)],
            False,
            id="a lower priority in an earlier group",
        ),
        pytest.param(
            queued(in_ns1("p1", "pg1", priority=HIGH)),
            queued(in_ns2("p2", "pg1", priority=LOW)),
            [group("pg1", "ns1", 1), group("pg2", "ns2", 2)],
            True,
            id="a higher priority, groups in two namespaces",
        ),
        pytest.param(
            queued(in_ns1("p1", "pg1", priority=HIGH), 1),
            queued(in_ns2("p2", "pg2", priority=HIGH), 2),
            [group("pg1", "ns1", 1), group("pg2", "ns2", 2)],
            True,
            id="the earlier of two groups",
        ),
        pytest.param(
            queued(make_member("p1", "pg2", priority=LOW), 1),
            queued(make_member("p2", "pg1", priority=HIGH), 2),
            [group("pg1", "ns", 1), group("pg2", "ns", 2)],
            False,
            id="a lower priority in the later group",
        ),
        pytest.param(
            queued(in_ns1("p1", "pg2", priority=HIGH), 1),
            queued(in_ns2("p2", "pg2", priority=HIGH), 1),
            [group("pg1", "ns1", 1), group("pg2", "ns2", 2)],
            True,
            id="a pod whose group is missing counts with its own time",
        ),
        pytest.param(
            queued(in_ns1("p1", priority=HIGH), 1),
            queued(in_ns2("p2", "pg2", priority=HIGH), 1),
            [group("pg2", "ns2", 2)],
            True,
            id="a pod before a group",
        ),
        pytest.param(
            queued(in_ns1("p1", priority=HIGH), 1),
            queued(in_ns2("p2", priority=HIGH), 1),
            [],
            True,
            id="equal times: by name",
        ),
    ],
)
def test_the_queue_is_sorted_by_priority_age_of_the_group_and_name(first, second, groups, before):
    assert world(*groups).policy.less(first, second) is before


def test_a_group_that_failed_queues_behind_the_groups_that_came_before_the_failure():
    members = [make_member(f"m{i}", "pg1") for i in range(3)]
    it = world(
        make_pod_group("pg1", min_member=3, created_s=990),
        make_pod_group("pg2", min_member=3, created_s=995),
        *members,
    )
    first = queued(make_member("p1", "pg1", priority=HIGH))
    second = queued(make_member("p2", "pg2", priority=HIGH))
    assert it.policy.less(first, second)

    it.policy.post_filter(CycleState(), members[0], None)
    assert not it.policy.less(first, second)
    assert it.policy.less(second, first)

    for member in members:
        it.policy.permit(CycleState(), member, "n")
    assert it.policy.less(first, second)


# PreFilter

TWO_NODES = [make_node("node-a", cpu=4, pods=32), make_node("node-b", cpu=4, pods=32)]


def sibling(name, group="pg1", gated=False):
    return make_member(name, group, gates=["example-gate"] if gated else [])


@pytest.mark.parametrize(
    ("pod", "siblings", "groups", "refusal"),
    [
        pytest.param(
            make_pod("p"),
            [sibling("p1"), sibling("p2", "pg2")],
            [make_pod_group("pg1", min_member=1), make_pod_group("pg2", min_member=1)],
            "",
            id="in no group",
        ),
        pytest.param(
            sibling("p", "missing"), [], [make_pod_group(min_member=1)], "", id="a group is missing"
        ),
        pytest.param(
            sibling("p"),
            [sibling("p2-1", "pg2")],
            [make_pod_group("pg1", min_member=2), make_pod_group("pg2", min_member=2)],
            "pre-filter pod p cannot find enough sibling pods, "
            "current pods number: 1, minMember of group: 2",
            id="fewer pods than minMember",
        ),
        pytest.param(
            sibling("a"),
            [sibling("b")],
            [make_pod_group(min_member=2)],
            "",
            id="as many pods as minMember",
        ),
        pytest.param(
            sibling("a"),
            [sibling("b"), sibling("c")],
            [make_pod_group(min_member=2)],
            "",
            id="more pods than minMember",
        ),
        pytest.param(
            sibling("a"),
            [sibling("b"), sibling("c", gated=True)],
            [make_pod_group(min_member=2)],
            "",
            id="enough pods without gates",
        ),
        pytest.param(
            sibling("a"),
            [sibling("b", gated=True), sibling("c")],
            [make_pod_group(min_member=3)],
            "pre-filter pod a cannot proceed due to gated pods in the same PodGroup",
            id="gates keep back too many",
        ),
        pytest.param(
            sibling("a"),
            [sibling("b", gated=True), sibling("c", gated=True)],
            [make_pod_group(min_member=2)],
            "pre-filter pod a cannot proceed due to gated pods in the same PodGroup",
            id="all siblings have gates",
        ),
        pytest.param(
            sibling("a"),
            [sibling("b"), sibling("c")],
            [make_pod_group(min_member=2, min_resources={"cpu": 6})],
            "",
            id="all nodes together have enough",
        ),
        pytest.param(
            sibling("a"),
            [sibling("b"), sibling("c")],
            [make_pod_group(min_member=2, min_resources={"cpu": 10})],
            "resource gap: map[cpu:{{2000 -3} {<nil>}  DecimalSI}]",
            id="all nodes together have too little",
        ),
    ],
)
def test_a_group_that_cannot_be_complete_is_not_tried(pod, siblings, groups, refusal):
    it = world(*groups, *siblings, pod, nodes=TWO_NODES)

    status = it.policy.pre_filter(CycleState(), pod, it.snapshot)

    expected = Status(Code.UNRESOLVABLE, (refusal,)) if refusal else Status()
    assert status == expected


@pytest.mark.parametrize(
    ("pods", "missing"),
    [
        pytest.param([make_pod("p1", node="node-a", cpu=2)], "map[]", id="enough"),
        pytest.param(
            [make_pod("p1", node="node-a", cpu=2), make_pod("p2", node="node-b", cpu=1)],
            "map[cpu:{{1000 -3} {<nil>}  DecimalSI}]",
            id="not enough",
        ),
        pytest.param(
            [make_member("p1", node="node-a", cpu=2), make_pod("p2", node="node-b", cpu=1)],
            "map[]",
            id="what the group holds counts as free",
        ),
    ],
)
def test_the_free_resources_of_all_nodes_count_together(pods, missing):
    nodes = [make_node("node-a", cpu=3), make_node("node-b", cpu=3)]
    it = world(*pods, nodes=nodes)

    found = missing_resources(it.snapshot, resources(cpu=4), "ns/pg1")

    assert gap_text(found) == missing


# Permit


@pytest.mark.parametrize(
    ("pod", "existing", "expected"),
    [
        pytest.param(make_pod("p"), [], (Status(), 0.0), id="in no group"),
        pytest.param(make_member("p", "missing"), [], (GROUP_NOT_FOUND, 0.0), id="no such group"),
        pytest.param(make_member("p"), [], (wait(), 60.0), id="too few"),
        pytest.param(
            make_member("a"), [make_member("b", node="n")], (Status(), 0.0), id="a node for each"
        ),
    ],
)
def test_a_pod_waits_until_enough_of_its_group_have_a_node(pod, existing, expected):
    it = world(make_pod_group(min_member=2), *existing, nodes=[make_node("n")])

    assert it.policy.permit(CycleState(), pod, "n") == expected


@pytest.mark.parametrize(
    ("timeout_s", "args", "waits_s"),
    [
        pytest.param(None, {}, 60.0, id="neither says it"),
        pytest.param(None, {"permitWaitingTimeSeconds": 10}, 10.0, id="the arguments"),
        pytest.param(7, {"permitWaitingTimeSeconds": 10}, 7.0, id="the group"),
        pytest.param(0, {"permitWaitingTimeSeconds": 10}, 10.0, id="a group without a time"),
        pytest.param(None, {"permitWaitingTimeSeconds": 0}, 60.0, id="no time at all"),
    ],
)
def test_the_group_or_the_arguments_say_how_long_a_pod_waits(timeout_s, args, waits_s):
    it = world(make_pod_group(min_member=2, timeout_s=timeout_s), args=args)

    assert it.policy.permit(CycleState(), make_member("p"), "n") == (wait(), waits_s)


def test_the_first_pod_calls_its_siblings_and_a_rejected_group_is_left_alone_for_a_while():
    """Otherwise one pod of the group after the other would be tried, over and over."""
    pods = [make_member(f"pod{i}") for i in (1, 2, 3)]
    it = world(make_pod_group(min_member=3), *pods, args={"podGroupBackoffSeconds": 1})
    state = CycleState()

    status, _ = it.policy.permit(state, pods[0], "n")
    assert status.code is Code.WAIT
    assert sorted(state.pods_to_activate) == ["ns/pod2", "ns/pod3"]

    it.policy.post_filter(CycleState(), pods[1], None)
    status = it.policy.pre_filter(CycleState(), pods[2], it.snapshot)
    assert status == Status(Code.UNRESOLVABLE, ("podGroup ns/pg1 failed recently",))

    it.clock.advance(1.1)
    assert it.policy.pre_filter(CycleState(), pods[2], it.snapshot).ok


# PostFilter


@pytest.mark.parametrize(
    ("pod", "least", "assigned", "percentage", "expected"),
    [
        pytest.param(
            make_pod("p"), 2, 0, 10, unschedulable("can not find pod group"), id="in no group"
        ),
        pytest.param(make_member("p"), 1, 1, 10, NOT_REJECTED, id="enough have a node"),
        pytest.param(make_member("p"), 2, 1, 10, REJECTED, id="half is missing"),
        pytest.param(make_member("p"), 10, 9, 10, NOT_REJECTED, id="10 %, of 10 % allowed"),
        pytest.param(make_member("p"), 10, 8, 10, REJECTED, id="20 %, of 10 % allowed"),
        pytest.param(make_member("p"), 10, 9, 0, REJECTED, id="10 %, of 0 % allowed"),
        pytest.param(make_member("p"), 10, 0, 100, NOT_REJECTED, id="100 %, of 100 % allowed"),
        pytest.param(make_member("p"), 10, 6, 50, NOT_REJECTED, id="40 %, of 50 % allowed"),
        pytest.param(make_member("p"), 10, 4, 50, REJECTED, id="60 %, of 50 % allowed"),
    ],
)
def test_a_group_is_rejected_as_a_whole_if_too_many_are_missing(
    pod, least, assigned, percentage, expected
):
    existing = [make_member(f"assigned-{i}", node="n") for i in range(assigned)]
    it = world(
        make_pod_group(min_member=least),
        *existing,
        nodes=[make_node("n")],
        args={"podGroupRejectPercentage": percentage},
    )

    _, status = it.policy.post_filter(CycleState(), pod, None)

    assert status == expected


# Arguments


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"permitWaitingTimeSeconds": -1}, "permitWaitingTimeSeconds: Invalid value: -1"),
        ({"podGroupBackoffSeconds": -1}, "podGroupBackoffSeconds: Invalid value: -1"),
        ({"podGroupRejectPercentage": 101}, "must be between 0 and 100"),
        ({"podGroupBackoff": 3}, "podGroupBackoff"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(args, problem):
    with pytest.raises(Exception, match=problem):
        world(args=args)
