"""A cluster that is put together leads to the decision that was taken on the real one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mooring.config import load_config
from mooring.objects.defaults import Defaults
from mooring.web.moment import _put_together, _run_again, look_at
from mooring.web.pod_page import pod_data
from mooring.web.premise import Premise
from tests.makers import make_node, make_owner, make_pod, make_spread
from tests.web_unit.clusters import WEB, premise, run_of, trace_premise
from tests.web_unit.test_what_if import MOST_ALLOCATED


def crowd():
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
    return Premise(tuple(defaults.of(obj) for obj in objects))


@pytest.mark.parametrize(
    "given",
    [crowd(), replace(crowd(), config=load_config(MOST_ALLOCATED))],
    ids=["default", "most allocated"],
)
def test_every_decision_of_a_run_is_found_again(given):
    run = run_of(given)
    assert run.only_placing
    placed = [each.pod for each in run.report.placements]
    assert len(placed) == 24
    for key in placed:
        moment = run.placed_by(key)
        assert moment is not None
        together = _put_together(given, moment)
        assert together is not None
        assert pod_data(run, key, together) == pod_data(run, key, _run_again(given, moment))
    run.close()


def test_ties_that_were_broken_otherwise_are_run_again():
    given = replace(crowd(), seed=7)
    run = run_of(given)
    for key in (each.pod for each in run.report.placements):
        moment = run.placed_by(key)
        assert moment is not None
        look = look_at(given, moment)
        assert look is not None
        assert look.chosen == moment.node
    run.close()


@pytest.mark.parametrize(
    ("given", "key"),
    [
        pytest.param(premise(), WEB, id="a pod finishes"),
        pytest.param(trace_premise(), "default/second", id="a trace"),
        pytest.param(
            premise(
                make_pod("low", cpu=4, node="n2", priority=0), make_pod("high", cpu=4, priority=9)
            ),
            "default/high",
            id="preemption",
        ),
    ],
)
def test_where_more_has_happened_it_is_run_again(given, key):
    run = run_of(given)

    moment = run.placed_by(key)
    assert moment is not None
    assert moment.before is None
    look = look_at(given, moment)
    assert look is not None
    assert look.chosen == moment.node
    run.close()


def test_a_decision_that_does_not_come_out_the_same_is_not_taken():
    given = crowd()
    run = run_of(given)
    moment = run.placed_by("default/web-5")
    run.close()
    assert moment is not None

    assert _put_together(given, replace(moment, feasible=moment.feasible + 1)) is None
    assert _put_together(given, replace(moment, node="n8x")) is None
