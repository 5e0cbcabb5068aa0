"""Every decision of a run can be shown again from the journal, and is checked against what was recorded."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from mooring.config import load_config
from mooring.explain.past_decision import (
    DecidedOtherwise,
    PastDecision,
    RunInput,
    decide_again,
    past_decision,
    placed_by,
    run_again,
)
from mooring.explain.what_if import WhatIf
from mooring.framework.status import unschedulable
from mooring.objects.defaults import Defaults
from mooring.sim.simulation import SimOptions, Simulation
from tests.engine import registry_with
from tests.makers import make_node, make_owner, make_pod, make_spread
from tests.web_unit.clusters import run_spec, trace_run_spec
from tests.web_unit.test_what_if import MOST_ALLOCATED


def crowd(**fields) -> RunInput:
    """Pods of two workloads, of different sizes, that look at each other; and one that fits nowhere."""
    spread = make_spread(labels={"app": "web"})
    nodes = [make_node(f"n{i}", cpu=2 + i % 3, zone="abc"[i % 3]) for i in range(9)]
    web = [
        make_pod(f"web-{i}", cpu="300m", labels={"app": "web"}, spread=[spread]) for i in range(12)
    ]
    owner = make_owner("ReplicaSet", "api")
    api = [
        make_pod(f"api-{i}", cpu=f"{100 + 50 * (i % 4)}m", owner=owner, labels={"app": "api"})
        for i in range(12)
    ]
    mixed = [pod for pair in zip(web, api, strict=True) for pod in pair]
    objects = [*nodes, make_pod("there", cpu=1, node="n1"), *mixed, make_pod("big", cpu=50)]
    defaults = Defaults(objects)
    return RunInput(tuple(defaults.of(obj) for obj in objects), **fields)


def looked_on(source: RunInput) -> tuple[Simulation, dict]:
    """A run, and each of its decisions as it was seen when it was made."""
    seen = {}

    def watch(decision):
        fact = simulation.summary.last_decision
        seen[fact] = WhatIf(simulation).look(decision.pod, decision)

    simulation = source.simulation(watch)
    simulation.run(until_s=source.until_s)
    simulation.close()
    return simulation, seen


def assert_same(look, seen) -> None:
    assert (look.pod.key, look.chosen, look.fit_error) == (
        seen.pod.key,
        seen.chosen,
        seen.fit_error,
    )
    matrix, other = look.matrix, seen.matrix
    assert (matrix.nodes, matrix.statuses) == (other.nodes, other.statuses)
    assert [each.plugin for each in matrix.scores] == [each.plugin for each in other.scores]
    pairs = [(matrix.verdicts, other.verdicts), (matrix.totals, other.totals)]
    pairs += [(matrix.scored, other.scored)]
    pairs += [(a.codes, b.codes) for a, b in zip(matrix.filters, other.filters, strict=True)]
    pairs += [
        (a.normalized, b.normalized) for a, b in zip(matrix.scores, other.scores, strict=True)
    ]
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(crowd(), id="default"),
        pytest.param(crowd(config=load_config(MOST_ALLOCATED)), id="most allocated"),
    ],
)
def test_every_decision_of_a_run_is_shown_as_it_was_made(source):
    simulation, seen = looked_on(source)
    decisions = simulation.journal.decisions
    assert decisions == list(seen)
    assert {each.node == "" for each in decisions} == {True, False}

    for decided in decisions:
        past = past_decision(simulation, decided)
        assert past.before is not None
        assert_same(decide_again(source, past), seen[decided])
        assert_same(run_again(source, (decided,))[decided], seen[decided])


def test_several_decisions_are_shown_by_one_run():
    source = crowd()
    simulation, seen = looked_on(source)
    wanted = simulation.journal.decisions[3:20:4]

    looks = run_again(source, wanted)

    assert list(looks) == wanted
    for decided in wanted:
        assert_same(looks[decided], seen[decided])


def test_ties_that_were_broken_otherwise_are_run_again():
    source = crowd(seed=7)
    simulation, _ = looked_on(source)

    for decided in simulation.journal.decisions:
        look = decide_again(source, past_decision(simulation, decided))
        assert (look.chosen or "") == decided.node


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(run_spec(), id="a pod finishes"),
        pytest.param(trace_run_spec(), id="a trace"),
        pytest.param(
            run_spec(
                make_pod("low", cpu=4, node="n2", priority=0), make_pod("high", cpu=4, priority=9)
            ),
            id="preemption",
        ),
    ],
)
def test_where_more_has_happened_the_run_is_repeated(source):
    simulation, seen = looked_on(source)

    for decided in simulation.journal.decisions:
        past = past_decision(simulation, decided)
        assert past.before is None
        assert_same(decide_again(source, past), seen[decided])


def test_a_pod_is_placed_by_its_last_choice():
    simulation, _ = looked_on(trace_run_spec())
    second = [each for each in simulation.journal.decisions if each.pod == "default/second"]

    past = placed_by(simulation, "default/second")

    assert past is not None
    assert past.decided is second[-1]
    assert past.decided.number == len(second) > 1
    assert placed_by(simulation, "default/never") is None


@pytest.mark.parametrize("put_together", [True, False])
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"feasible": 77},
            r"chose n\d of 77 that fit, but n\d of 3 that fit when the run was repeated",
        ),
        ({"node": "n8x"}, "chose n8x of"),
        ({"node": "", "feasible": 0}, "chose no node of 0 that fit, but n"),
    ],
)
def test_a_choice_that_is_not_the_recorded_one_is_told(changes, said, put_together):
    source = crowd()
    simulation, _ = looked_on(source)
    past = placed_by(simulation, "default/web-5")
    assert past is not None
    other = msgspec.structs.replace(past.decided, **changes)

    with pytest.raises(DecidedOtherwise, match=said) as told:
        decide_again(source, PastDecision(other, past.before if put_together else None))

    assert str(told.value).startswith("attempt 1 at pod default/web-5 chose")


def test_a_decision_that_is_not_made_again_is_told():
    source = crowd()
    simulation, _ = looked_on(source)
    past = placed_by(simulation, "default/web-5")
    assert past is not None
    other = msgspec.structs.replace(past.decided, number=2)

    with pytest.raises(DecidedOtherwise, match="but nothing when the run was repeated"):
        decide_again(source, PastDecision(other, None))


def test_a_plugin_that_does_not_answer_the_same_each_time_is_found_out():
    refuses = []

    class Moody:
        name = "Moody"

        def filter(self, state, pod, node):
            return unschedulable("not today") if node.name in refuses else None

    registry = registry_with({"Moody": Moody})
    config = load_config(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Moody"}]}}}],
        }
    )

    class WithMoody(RunInput):
        def options(self, *args, **kwargs) -> SimOptions:
            return replace(super().options(*args, **kwargs), registry=registry)

    source = WithMoody((make_node("a"), make_node("b"), make_pod("p")), config)
    simulation, _ = looked_on(source)
    past = placed_by(simulation, "default/p")
    assert past is not None
    assert past.before is None, "nobody knows what such a plugin remembers"
    assert decide_again(source, past).chosen == "a"

    refuses.append("a")
    with pytest.raises(DecidedOtherwise, match="chose a of 2 that fit, but b of 1 that fit"):
        decide_again(source, past)
