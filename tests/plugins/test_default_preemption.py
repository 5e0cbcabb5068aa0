from datetime import timedelta

import numpy as np
import pytest

from mooring.config.args import DefaultPreemptionArgs
from mooring.errors import MooringError
from mooring.framework.events import Action, EventResource, Hint
from mooring.framework.interface import CLEAR_NOMINATION, Nomination
from mooring.framework.status import Code, Status, failure, unresolvable, unschedulable
from mooring.objects.pod import PodCondition
from mooring.plugins.default_preemption import Candidate, DefaultPreemption
from mooring.plugins.default_preemption.budgets import Budgets
from mooring.plugins.default_preemption.candidates import candidates_wanted
from mooring.plugins.default_preemption.choice import best
from mooring.plugins.default_preemption.many_nodes import ManyNodes, Tried
from mooring.plugins.default_preemption.outcomes import Outcomes
from tests.makers import (
    make_affinity_term,
    make_node,
    make_node_affinity,
    make_node_term,
    make_pdb,
    make_pod,
    make_pod_affinity,
    make_selector,
)
from tests.plugins.preemption_world import EPOCH, World, at, names

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
NOW = EPOCH + timedelta(hours=1)
EVICTED = PodCondition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI")


def small_node(name="n1", cpu="500m"):
    return make_node(name, cpu=cpu)


def high(cpu="300m", **fields):
    return make_pod("high", cpu=cpu, priority=1000, **fields)


def placed(name, node="n1", *, cpu="200m", priority=0, started=0, **fields):
    return make_pod(name, node=node, cpu=cpu, priority=priority, started=at(started), **fields)


# Who may preempt


class TestEligibility:
    def test_a_pod_whose_policy_is_never_does_not_preempt(self):
        world = World([small_node()], [placed("a", cpu="500m")])

        result, status = world.decide(high(preemption_policy="Never"))

        assert result is None
        assert status == unschedulable("preemption: not eligible due to preemptionPolicy=Never.")

    @pytest.mark.parametrize(
        ("condition", "priority", "eligible"),
        [
            pytest.param(PREEMPTED, 0, False, id="a victim is on its way out"),
            pytest.param(EVICTED, 0, True, id="it is, but not by preemption"),
            pytest.param(None, 0, True, id="it is, nobody knows why"),
            pytest.param(PREEMPTED, 1000, True, id="it is no victim of this pod"),
        ],
    )
    def test_a_pod_waits_for_the_victims_on_its_nominated_node(self, condition, priority, eligible):
        leaving = placed(
            "leaving",
            priority=priority,
            deleting=EPOCH,
            conditions=[condition] if condition else [],
        )
        world = World([small_node()], [leaving, placed("a", cpu="300m")])

        result, status = world.decide(high(nominated="n1"))

        if eligible:
            assert status.ok
        else:
            assert result is None
            assert status == unschedulable(
                "preemption: not eligible due to a terminating pod on the nominated node."
            )

    def test_a_pod_does_not_wait_for_a_node_it_cannot_have(self):
        leaving = placed("leaving", deleting=EPOCH, conditions=[PREEMPTED])
        world = World(
            [make_node("n1", cpu="500m", unschedulable=True), small_node("n2")],
            [leaving, placed("a", "n2", cpu="500m")],
        )

        result, status = world.decide(high(nominated="n1"))

        assert status.ok
        assert result.nomination == Nomination("n2")

    def test_only_the_first_of_several_conditions_of_the_type_counts(self):
        leaving = placed("leaving", deleting=EPOCH, conditions=[EVICTED, PREEMPTED])
        world = World([small_node()], [leaving, placed("a", cpu="300m")])

        assert world.decide(high(nominated="n1"))[1].ok

    def test_the_pod_is_taken_as_the_api_server_shows_it(self):
        world = World([small_node()], [placed("a", cpu="500m")])
        world.add(high(preemption_policy="Never"))

        _, status = world.decide(high())

        assert "preemptionPolicy=Never" in status.message

    def test_a_pod_that_is_gone_is_an_error(self):
        world = World([small_node()], [placed("a", cpu="500m")])
        decision, state = world.attempt(high())
        del world.scheduler.observed_pods["default/high"]

        result, status = world.plugin.decide(state, high(), decision.diagnosis)

        assert result is None
        assert status == Status(Code.ERROR, ('preemption: pod "high" not found',))

    def test_a_cluster_without_nodes_is_an_error(self):
        world = World([small_node()], [placed("a", cpu="500m")])
        decision, state = world.attempt(high())
        world.scheduler.cluster.remove_node("n1")

        result, status = world.plugin.decide(state, high(), decision.diagnosis)

        assert result is None
        assert status == Status(Code.ERROR, ("preemption: no nodes available",))


# Victims


class TestVictims:
    def test_whoever_still_fits_beside_the_pod_stays(self):
        """500m - 300m leaves 200m: the more important B (300m) does not fit back, A (100m) does."""
        pods = [placed("a", cpu="100m"), placed("b", cpu="300m", priority=100)]
        world = World([small_node()], pods)

        assert names(world.detail(high("300m")).victims) == ["b"]

    def test_the_most_important_get_their_place_back_first(self):
        """500m - 300m leaves 200m, which is room for one of the three."""
        pods = [
            placed("young", cpu="160m", priority=5, started=9),
            placed("low", cpu="160m", started=0),
            placed("old", cpu="160m", priority=5, started=3),
        ]
        world = World([small_node()], pods)

        assert names(world.detail(high("300m")).victims) == ["young", "low"]

    def test_equally_important_pods_get_their_place_back_in_the_order_of_the_node(self):
        """When "a" leaves, the last pod, "d", takes its place: so "d" comes before "b" and "c"."""
        pods = {name: placed(name, cpu="120m") for name in "abcd"}
        world = World([small_node()], pods.values())
        assert names(world.detail(high("260m")).victims) == ["c", "d"]

        world.scheduler.cluster.remove_pod(pods["a"])

        assert names(world.detail(high("260m")).victims) == ["c"]
        assert names(world.detail(high("300m")).victims) == ["b", "c"]

    def test_a_pod_that_has_not_started_is_the_youngest(self):
        pods = [make_pod("new", node="n1", cpu="250m"), placed("old", cpu="250m", started=5)]
        world = World([small_node()], pods)

        assert names(world.detail(high("250m")).victims) == ["new"]

    def test_a_pod_without_priority_has_priority_0(self):
        world = World([small_node()], [make_pod("a", node="n1", cpu="500m")])

        assert names(world.detail(make_pod("high", cpu="1m", priority=1)).victims) == ["a"]
        assert world.detail(make_pod("p", cpu="1m")).rejected == {"n1": NO_VICTIMS}
        assert names(world.detail(make_pod("q", cpu="1m", priority=-1)).victims) == []

    def test_assumed_and_terminating_pods_can_be_victims(self):
        world = World([small_node()], [placed("leaving", cpu="250m", deleting=EPOCH)])
        world.scheduler.cluster.assume_pod(placed("assumed", cpu="250m"))

        assert sorted(names(world.detail(high("500m")).victims)) == ["assumed", "leaving"]

    def test_host_ports_can_be_what_makes_room(self):
        pods = [
            placed("web", cpu="10m", ports=[80]),
            placed("other", cpu="10m", ports=[81]),
        ]
        world = World([make_node("n1")], pods)

        assert names(world.detail(high(ports=[80])).victims) == ["web"]

    def test_pod_counts_can_be_what_makes_room(self):
        pods = [placed("a", cpu="1m", priority=7), placed("b", cpu="1m", priority=6)]
        world = World([make_node("n1", pods=2)], pods)

        assert names(world.detail(high("1m")).victims) == ["b"]

    def test_anti_affinity_can_be_what_makes_room(self):
        apart = make_pod_affinity(anti=[make_affinity_term({"app": "db"})])
        pods = [
            placed("db", cpu="1m", labels={"app": "db"}),
            placed("web", cpu="1m", labels={"app": "web"}),
        ]
        world = World([make_node("n1")], pods)

        assert names(world.detail(high(affinity=apart)).victims) == ["db"]

    @pytest.mark.parametrize("nominated_priority", [1000, 2000])
    def test_the_node_must_do_with_the_pods_nominated_to_it_too(self, nominated_priority):
        """500m: 200m are held for a pod that matters as much, so 300m are left and both have to go."""
        held = make_pod("held", cpu="200m", priority=nominated_priority, nominated="n1")
        world = World([small_node()], [placed("a", cpu="250m"), placed("b", cpu="250m"), held])
        world.scheduler.nominator.queued_pod = world.scheduler.observed_pods.get

        assert sorted(names(world.detail(high("300m")).victims)) == ["a", "b"]

    def test_pods_nominated_to_the_node_that_matter_less_do_not_count(self):
        held = make_pod("held", cpu="200m", priority=999, nominated="n1")
        world = World([small_node()], [placed("a", cpu="250m"), placed("b", cpu="200m"), held])
        world.scheduler.nominator.queued_pod = world.scheduler.observed_pods.get

        assert names(world.detail(high("300m")).victims) == ["a"]

    def test_room_without_victims_is_an_error(self):
        """The node was refused for the sake of a nominated pod that is gone when it is tried."""
        held = make_pod("held", cpu="400m", priority=2000, nominated="n1")
        world = World([small_node()], [placed("a", cpu="10m"), held])
        world.scheduler.nominator.queued_pod = world.scheduler.observed_pods.get
        decision, state = world.attempt(high("300m"))
        world.scheduler.nominator.delete(held)

        result, status = world.plugin.decide(state, high("300m"), decision.diagnosis)

        assert result is None
        assert status == Status(
            Code.ERROR, ('preemption: expected at least one victim pod on node "n1"',)
        )


# Disruption budgets


class TestBudgets:
    @pytest.mark.parametrize(
        ("disrupted", "violations"),
        [
            pytest.param({}, 1, id="one may go, two have to"),
            pytest.param({"b": EPOCH}, 0, id="one of them is counted already"),
        ],
    )
    def test_more_victims_than_a_budget_allows_violate_it(self, disrupted, violations):
        pods = [placed(name, priority=100, labels={"app": "foo"}) for name in ("a", "b")]
        budget = make_pdb(labels={"app": "foo"}, allowed=1, disrupted=disrupted)
        world = World([small_node()], pods, [budget])

        (candidate,) = world.detail(high("500m")).candidates.values()

        assert sorted(names(candidate.victims)) == ["a", "b"]
        assert candidate.violations == violations

    def test_protected_pods_get_their_place_back_before_more_important_ones(self):
        """500m - 300m leaves room for one of two."""
        pods = [
            placed("important", priority=100),
            placed("protected", labels={"app": "foo"}),
        ]
        world = World([small_node(cpu="500m")], pods, [make_pdb(labels={"app": "foo"})])

        (candidate,) = world.detail(high("300m")).candidates.values()

        assert names(candidate.victims) == ["important"]
        assert candidate.violations == 0

    def test_victims_are_in_order_of_importance_whoever_protects_them(self):
        pods = [
            placed("low", labels={"app": "foo"}),
            placed("high-one", priority=100),
        ]
        world = World([small_node()], pods, [make_pdb(labels={"app": "foo"})])

        (candidate,) = world.detail(high("500m")).candidates.values()

        assert names(candidate.victims) == ["high-one", "low"]
        assert candidate.violations == 1

    @pytest.mark.parametrize(
        ("budget", "violating"),
        [
            pytest.param(make_pdb(labels={"app": "foo"}), ["a", "b"], id="none may go"),
            pytest.param(make_pdb(labels={"app": "foo"}, allowed=1), ["b"], id="one may go"),
            pytest.param(make_pdb(labels={"app": "foo"}, allowed=2), [], id="two may go"),
            pytest.param(make_pdb(labels={"app": "foo"}, allowed=-3), ["a", "b"], id="overdrawn"),
            pytest.param(make_pdb(labels={"app": "bar"}), [], id="other labels"),
            pytest.param(make_pdb(labels={"app": "foo"}, namespace="x"), [], id="other namespace"),
            pytest.param(make_pdb(labels=None), [], id="no selector"),
            pytest.param(make_pdb(labels={}), [], id="an empty selector covers nothing"),
            pytest.param(make_pdb(labels={"app": "-"}), [], id="a malformed selector"),
            pytest.param(
                make_pdb(labels=make_selector(None, ("tier", "DoesNotExist", []))),
                ["a", "b"],
                id="a pod without labels is not covered even so",
            ),
        ],
    )
    def test_who_violates_a_budget(self, budget, violating):
        pods = [
            make_pod("a", labels={"app": "foo"}),
            make_pod("bare"),
            make_pod("b", labels={"app": "foo"}),
        ]

        violators, others = Budgets([budget]).split(pods)

        assert names(violators) == violating
        assert names(others) == [name for name in ("a", "bare", "b") if name not in violating]

    def test_a_pod_takes_one_from_every_budget_that_covers_it(self):
        """The first budget has one left after `a`, though the second is what `a` violates."""
        budgets = Budgets(
            [make_pdb("x", labels={"app": "foo"}, allowed=1), make_pdb("y", labels={"tier": "1"})]
        )
        pods = [
            make_pod("a", labels={"app": "foo", "tier": "1"}),
            make_pod("b", labels={"app": "foo"}),
        ]

        assert names(budgets.split(pods)[0]) == ["a", "b"]

    def test_a_budget_that_changes_counts_at_once(self):
        world = World([small_node()], [placed("a", cpu="500m", labels={"app": "foo"})])
        assert world.detail(high()).candidates["n1"].violations == 0

        world.scheduler.cluster.listers.put(make_pdb(labels={"app": "foo"}))

        assert world.detail(high()).candidates["n1"].violations == 1


# The search


class TestSearch:
    @pytest.mark.parametrize(
        ("nodes", "args", "wanted"),
        [
            pytest.param(5000, {}, 500, id="ten percent"),
            pytest.param(500, {}, 100, id="a hundred at least"),
            pytest.param(50, {}, 50, id="no more than there are"),
            pytest.param(999, {"min_candidate_nodes_absolute": 0}, 99, id="rounded down"),
            pytest.param(
                9, {"min_candidate_nodes_absolute": 0}, 0, id="as the reference: none at all"
            ),
        ],
    )
    def test_how_many_candidates_are_wanted(self, nodes, args, wanted):
        assert candidates_wanted(nodes, DefaultPreemptionArgs(**args)) == wanted

    def test_the_search_goes_on_until_a_candidate_violates_no_budget(self):
        """Two are wanted; n5, n1 and n2 violate a budget, n3 is clean, n4 is not looked at."""
        trials = [("n5", 1), ("n1", 1), ("n2", 1), ("n3", 0), ("n4", 0)]
        tried = []

        def try_rows(rows):
            tried.extend(trials[row][0] for row in rows)
            return Tried(
                alone={
                    row: Candidate(trials[row][0], (make_pod(),), trials[row][1]) for row in rows
                }
            )

        names = [name for name, _ in trials]
        found = Outcomes(5).search(np.arange(5), 2, 1, try_rows, NOW, names)

        assert list(found.candidates) == ["n3", "n5", "n1"]
        assert tried == ["n5", "n1", "n2", "n3"]

    def test_the_search_begins_at_the_offset(self):
        """The same, through the plugin."""

        class FromTheLast(DefaultPreemption):
            def offset(self, nodes):
                return nodes - 1

        nodes = [small_node(f"n{i}") for i in range(1, 6)]
        pods = [
            placed(f"p{i}", f"n{i}", cpu="500m", labels={"app": "clean" if i == 3 else "foo"})
            for i in range(1, 6)
        ]
        args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 2}
        world = World(
            nodes, pods, [make_pdb(labels={"app": "foo"})], args=args, preemption=FromTheLast
        )

        detail = world.detail(high())

        assert list(detail.candidates) == ["n3", "n5", "n1"]
        assert detail.nominated_node == "n3"

    def test_nodes_after_enough_candidates_are_not_looked_at(self):
        nodes = [small_node(f"n{i}") for i in range(8)]
        pods = [placed(f"p{i}", f"n{i}", cpu="500m", priority=8 - i) for i in range(8)]
        args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 3}

        detail = World(nodes, pods, args=args).detail(high())

        assert list(detail.candidates) == ["n0", "n1", "n2"]
        assert detail.nominated_node == "n2"

    def test_errors_do_not_matter_where_there_is_a_candidate(self):
        error = failure(MooringError("broken"))
        candidate = Candidate("n2", (make_pod(),), 0)

        tried = Tried(alone={0: error, 1: candidate})

        found = Outcomes(2).search(np.arange(2), 5, 5, lambda _: tried, NOW, ["n1", "n2"])

        assert found.best(NOW).first == candidate
        assert found.best(NOW).names() == ("n2",)
        assert found.candidates == {"n2": candidate}
        assert found.rejected == {"n1": error}

    @pytest.mark.parametrize(
        "messages",
        [
            pytest.param(["a"], id="one"),
            pytest.param(["a", "b"], id="two"),
            pytest.param(["a", "b", "a"], id="each once"),
            pytest.param(["a", "a"], id="the same twice"),
        ],
    )
    def test_errors_are_told_together(self, messages):
        class Broken:
            name = "Broken"

            def filter(self, state, pod, node):
                if not node.pods:
                    raise MooringError(messages[int(node.name[1:])])
                return unschedulable("no")

        nodes = [small_node(f"n{i}") for i in range(len(messages))]
        pods = [placed(f"p{i}", node.name) for i, node in enumerate(nodes)]

        result, status = World(nodes, pods, extra={"Broken": Broken}).decide(high())

        assert result is None
        said = [f'running "Broken" filter plugin: {message}' for message in messages]
        each_once = list(dict.fromkeys(said))
        expected = each_once[0] if len(each_once) == 1 else f"[{', '.join(each_once)}]"
        assert status == Status(Code.ERROR, (f"preemption: {expected}",))

    def test_a_filter_that_fails_on_a_node_makes_the_attempt_fail(self):
        class Broken:
            name = "Broken"

            def __init__(self):
                self.asked = 0

            def filter(self, state, pod, node):
                if not node.pods:
                    raise MooringError(f"cannot judge {node.name}")
                return unschedulable("no")

        world = World([small_node()], [placed("a", cpu="100m")], extra={"Broken": Broken})

        result, status = world.decide(high())

        assert result is None
        assert status == Status(
            Code.ERROR, ('preemption: running "Broken" filter plugin: cannot judge n1',)
        )


class TestKeptOutcomes:
    """What was found for a pod holds for the next one that is alike, unless a node changed."""

    NODES = ("n1", "n2")

    def next(self, world, name="next"):
        return world.detail(make_pod(name, cpu="300m", priority=1000))

    def test_a_node_that_did_not_change_is_not_tried_again(self, monkeypatch):
        pods = [placed(f"on-{name}", name, cpu="500m") for name in self.NODES]
        world = World([small_node(name) for name in self.NODES], pods)
        first = self.next(world, "first")
        monkeypatch.setattr(ManyNodes, "on_rows", None)

        second = self.next(world)

        assert (second.victims, dict(second.candidates)) == (first.victims, dict(first.candidates))

    def test_pods_of_two_sizes_that_take_turns_keep_theirs_apart(self, monkeypatch):
        """They have the same labels, namely none. What was kept for one was lost to the other."""
        pods = [placed(f"on-{name}", name, cpu="500m") for name in self.NODES]
        world = World([small_node(name) for name in self.NODES], pods)
        little, much = ({"cpu": cpu, "priority": 1000} for cpu in ("300m", "400m"))
        world.detail(make_pod("little-1", **little))
        world.detail(make_pod("much-1", **much))
        monkeypatch.setattr(ManyNodes, "on_rows", None)

        assert names(world.detail(make_pod("little-2", **little)).victims) == ["on-n1"]
        assert names(world.detail(make_pod("much-2", **much)).victims) == ["on-n1"]

    @pytest.mark.parametrize(
        ("change", "nominated"),
        [
            pytest.param(lambda w: w.scheduler.cluster.remove_node("n1"), "n2", id="a node goes"),
            pytest.param(
                lambda w: w.add(make_pod("held", cpu="300m", priority=2000, nominated="n1")),
                "n2",
                id="a pod is nominated to the node",
            ),
            pytest.param(
                lambda w: w.scheduler.cluster.listers.put(make_pdb(labels={"on": "n1"})),
                "n2",
                id="a budget comes",
            ),
            pytest.param(
                lambda w: w.scheduler.cluster.update_node(small_node("n1", cpu="250m")),
                "n2",
                id="the node shrinks",
            ),
        ],
    )
    def test_a_node_that_changed_is_tried_again(self, change, nominated):
        pods = [placed(f"on-{n}", n, cpu="500m", labels={"on": n}) for n in self.NODES]
        world = World([small_node(name) for name in self.NODES], pods)
        world.scheduler.nominator.queued_pod = world.scheduler.observed_pods.get
        assert self.next(world, "first").nominated_node == "n1"

        change(world)

        assert self.next(world).nominated_node == nominated

    def test_a_victim_that_had_not_started_counts_as_started_now_and_not_then(self):
        """At first n1's victim, not started, counts as the latest start; n2's is still to come."""
        now = EPOCH + timedelta(hours=1)
        world = World(
            [small_node(name) for name in self.NODES],
            [
                make_pod("a", node="n1", cpu="500m", priority=0),
                make_pod(
                    "b", node="n2", cpu="500m", priority=0, started=now + timedelta(minutes=5)
                ),
            ],
        )
        assert self.next(world, "first").nominated_node == "n2"

        world.clock.advance(600)

        assert self.next(world).nominated_node == "n1"

    @pytest.mark.parametrize("minutes", [5, 0])
    def test_a_start_that_was_still_to_come_may_change_the_order_of_victims(self, minutes):
        """A pod that starts at this very moment is as important as one that has not started; a moment later
        it is more important.
        """
        soon = EPOCH + timedelta(hours=1, minutes=minutes)
        pods = [
            make_pod("not-started", node="n1", cpu="250m", priority=0),
            make_pod("soon", node="n1", cpu="250m", priority=0, started=soon),
        ]
        world = World([small_node("n1")], pods)
        little = {"cpu": "250m", "priority": 1000}
        assert names(world.detail(make_pod("first", **little)).victims) == ["soon"]

        world.clock.advance(600)

        assert names(world.detail(make_pod("next", **little)).victims) == ["not-started"]


# The choice


def candidate(name, *victims, violations=0):
    """Victims as (priority, start), from most to least important."""
    return Candidate(
        name,
        tuple(
            make_pod(f"{name}-{i}", priority=priority, started=None if start is None else at(start))
            for i, (priority, start) in enumerate(victims)
        ),
        violations,
    )


def of_priority(name, *priorities, violations=0):
    return candidate(name, *((priority, 0) for priority in priorities), violations=violations)


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        pytest.param([], [], id="none"),
        pytest.param([of_priority("n1", 9)], ["n1"], id="only one"),
        pytest.param(
            [
                of_priority("n1", 100, 100),
                of_priority("n2", 100, 0),
                of_priority("n3", 100, 100),
            ],
            ["n2"],
            id="the smallest sum of priorities",
        ),
        pytest.param(
            # Each with 2**31 added: 3 * 2**31 - 100, 2 * 2**31 and 3 * 2**31.
            [
                of_priority("n1", 100, -100, -100),
                of_priority("n2", 100, -100),
                of_priority("n3", 100, -100, 0),
            ],
            ["n2"],
            id="negative priorities are no discount",
        ),
        pytest.param(
            [
                candidate("n1", (0, 2), (0, 4)),
                candidate("n2", (0, 1), (0, 5)),
                candidate("n3", (0, 3), (0, 6)),
            ],
            ["n3"],
            id="the earliest of them started last",
        ),
        pytest.param(
            [of_priority("n1", 0, violations=1), of_priority("n2", 900, 900, 900)],
            ["n2"],
            id="budgets come first",
        ),
        pytest.param(
            [of_priority("n1", 10), of_priority("n2", 9, 9, 9, 9)],
            ["n2"],
            id="the highest priority comes before the sum",
        ),
        pytest.param(
            [of_priority("n1", 2, 0), of_priority("n2", 2)],
            ["n2"],
            id="fewer victims",
        ),
        pytest.param(
            [candidate("n1", (5, 9), (0, 1)), candidate("n2", (5, 8), (0, 7))],
            ["n1"],
            id="only starts of the most important victims count",
        ),
        pytest.param(
            [candidate("n1", (5, 9)), candidate("n2", (5, None))],
            ["n2"],
            id="a pod that has not started would start now",
        ),
        pytest.param(
            [of_priority("n2", 5), of_priority("n10", 5), of_priority("n1", 6)],
            ["n10", "n2"],
            id="equally good: by name",
        ),
    ],
)
def test_which_nodes_are_best(candidates, chosen):
    now = EPOCH + timedelta(days=1)

    assert [each.node_name for each in best(candidates, now)] == chosen


def test_of_equally_good_nodes_the_first_by_name_is_taken():
    nodes = [small_node(name) for name in ("n2", "n10", "n3")]
    pods = [placed(f"p{node.name}", node.name, cpu="500m", started=1) for node in nodes]

    detail = World(nodes, pods).detail(high())

    assert detail.tied == ("n10", "n2", "n3")
    assert detail.nominated_node == "n10"
    assert names(detail.victims) == ["pn10"]


# What is said


class TestMessages:
    def test_nodes_that_were_tried_say_why_and_the_others_that_it_cannot_help(self):
        """On n1 and n2 a pod that matters more stays; n3 is left out by PreFilter, n4 is cordoned."""
        nodes = [
            small_node("n1"),
            small_node("n2"),
            small_node("n3"),
            make_node("n4", cpu="500m", unschedulable=True),
        ]
        pods = [
            pod
            for name in ("n1", "n2")
            for pod in (
                placed(f"a{name}", name, cpu="400m", priority=2000),
                placed(f"b{name}", name, cpu="50m"),
            )
        ]
        terms = [
            make_node_term(fields=[("metadata.name", "In", [name])]) for name in ("n1", "n2", "n4")
        ]

        result, status = World(nodes, pods).decide(high(affinity=make_node_affinity(*terms)))

        assert result.nomination == CLEAR_NOMINATION
        assert status == unschedulable(
            "preemption: 0/4 nodes are available: 2 Insufficient cpu,"
            " 2 Preemption is not helpful for scheduling."
        )
        insufficient = unschedulable("Insufficient cpu").by("NodeResourcesFit")
        assert result.detail.rejected == {"n1": insufficient, "n2": insufficient}

    def test_a_node_without_victims_says_so(self):
        world = World([small_node()], [placed("a", cpu="500m", priority=1000)])

        result, status = world.decide(high())

        assert result.nomination == CLEAR_NOMINATION
        assert result.detail.rejected == {"n1": NO_VICTIMS}
        assert status == unschedulable(
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )

    def test_where_no_node_can_be_helped_nothing_is_tried(self):
        world = World([make_node("n1", taints=["a:NoSchedule"])], [placed("a")])

        result, status = world.decide(high())

        assert result.detail.rejected == {}
        assert status.message == (
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )

    def test_counts_are_sorted_as_text(self):
        nodes = [small_node(f"n{i}") for i in range(12)]
        pods = [placed(f"p{i}", f"n{i}", cpu="500m", priority=1000) for i in range(10)]
        more = [
            placed(f"{kind}{i}", f"n{i}", cpu=cpu, priority=priority)
            for i in (10, 11)
            for kind, cpu, priority in (("a", "400m", 2000), ("b", "50m", 0))
        ]

        _, status = World(nodes, [*pods, *more]).decide(high())

        assert status.message == (
            "preemption: 0/12 nodes are available:"
            " 10 No preemption victims found for incoming pod, 2 Insufficient cpu."
        )

    def test_success_has_nothing_to_say(self):
        world = World([small_node()], [placed("a", cpu="500m")])

        result, status = world.decide(high())

        assert status == Status()
        assert result.nomination == Nomination("n1")

    def test_the_pod_is_told_all_that_was_tried(self):
        world = World([small_node()], [placed("a", cpu="500m", priority=1000)])
        decision, state = world.attempt(high())

        _, status = world.framework.run_post_filters(state, high(), decision.diagnosis)
        decision.diagnosis.post_filter_message = status.message

        assert decision.diagnosis.message == (
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption:"
            " 0/1 nodes are available: 1 No preemption victims found for incoming pod."
        )
        assert status.plugin == "DynamicResources"


# Hooks


class TestHooks:
    def test_pods_that_are_not_eligible_stay(self):
        class SpareTheWeb(DefaultPreemption):
            def is_eligible_pod(self, node, victim, preemptor):
                return victim.labels.get("app") != "web"

        pods = [
            placed("web", cpu="250m", labels={"app": "web"}),
            placed("batch", cpu="250m", priority=9),
        ]
        world = World([small_node()], pods, preemption=SpareTheWeb)

        assert names(world.detail(high("250m")).victims) == ["batch"]
        assert world.detail(high("500m")).rejected["n1"].reasons == ("Insufficient cpu",)

    def test_importance_can_be_redefined(self):
        class YoungestFirst(DefaultPreemption):
            def more_important_pod(self, a, b):
                return a.status.start_time > b.status.start_time

        pods = [placed("old", cpu="250m", started=1), placed("young", cpu="250m", started=2)]
        world = World([small_node()], pods, preemption=YoungestFirst)

        assert names(world.detail(high("250m")).victims) == ["old"]

    def test_the_default_prefers_priority_then_age(self):
        plugin = World().plugin
        old, young = placed("a", started=1), placed("b", started=2)
        high_young = placed("c", started=9, priority=1)

        assert plugin.more_important_pod(old, young)
        assert not plugin.more_important_pod(young, old)
        assert plugin.more_important_pod(high_young, old)
        assert plugin.more_important_pod(young, make_pod("not-started"))

    @pytest.mark.parametrize(
        ("answer", "expected"),
        [
            pytest.param(
                {}, unschedulable("preemption: no candidate node for preemption"), id="all dropped"
            ),
            pytest.param(
                MooringError('expected at least one victim pod on node "n1"'),
                Status(Code.ERROR, ('preemption: expected at least one victim pod on node "n1"',)),
                id="an error",
            ),
        ],
    )
    def test_others_can_object_to_all_candidates(self, answer, expected):
        class Strict(DefaultPreemption):
            def narrow_candidates(self, pod, candidates):
                if isinstance(answer, MooringError):
                    raise answer
                return answer

        world = World([small_node()], [placed("a", cpu="500m")], preemption=Strict)

        assert world.decide(high()) == (None, expected)

    def test_others_can_change_the_candidates(self):
        class NotTheFirst(DefaultPreemption):
            def narrow_candidates(self, pod, candidates):
                return {name: each for name, each in candidates.items() if name != "n1"}

        nodes = [small_node("n1"), small_node("n2")]
        pods = [placed("a", "n1", cpu="500m"), placed("b", "n2", cpu="500m", priority=5)]
        world = World(nodes, pods, preemption=NotTheFirst)

        detail = world.detail(high())

        assert (detail.nominated_node, detail.tied) == ("n2", ("n2",))
        assert list(detail.candidates) == ["n2"]


def test_events_never_queue_a_pod_that_preempts():
    (registered,) = World().plugin.events_to_register()

    assert registered.event.resource == EventResource.POD
    assert registered.event.action == Action.DELETE
    assert registered.hint(high(), placed("a"), None) == Hint.SKIP
