"""Expectations as a line of text: what each line means, and what is said of lines that mean nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mooring.objects.taints import Taint
from mooring.objects.well_known import ZONE
from mooring.sim.scenarios.expectation_text import parse_expectation
from mooring.sim.scenarios.expectations import (
    Gone,
    HowMany,
    PodsMeet,
    Preempted,
    Spread,
    Utilisation,
)
from mooring.sim.scenarios.fields import FieldError
from mooring.sim.scenarios.pod_conditions import Exists, HasFinished, OnNodes, PendingFor, Placed
from mooring.sim.scenarios.references import parse_reference
from mooring.sim.scenarios.selector_text import parse_selector
from mooring.sim.scenarios.view import Subject

WEB = Subject(selector=parse_selector("app=web"))
ANY = Subject()
ALL, NO, THREE = HowMany(), HowMany(0, 0), HowMany(3, 3)


@pytest.mark.parametrize(
    ("line", "subject", "how_many", "conditions"),
    [
        ("all pods of app=web placed", WEB, ALL, [Placed()]),
        ("pods of app=web are placed", WEB, ALL, [Placed()]),
        ("All pods of app=web are placed", WEB, ALL, [Placed()]),
        ("all pods of app=web placed within 1m30s", WEB, ALL, [Placed(90.0)]),
        ("no pods pending", ANY, NO, [PendingFor()]),
        ("3 pods of app=web pending", WEB, THREE, [PendingFor()]),
        ("1 pod of app=web placed", WEB, HowMany(1, 1), [Placed()]),
        ("at least 3 pods placed", ANY, HowMany(least=3), [Placed()]),
        ("at most 3 pods pending", ANY, HowMany(most=3), [PendingFor()]),
        (
            'all pods pending by NodePorts because "free ports"',
            ANY,
            ALL,
            [PendingFor("free ports", "NodePorts")],
        ),
        ("3 pods of app=web exist", WEB, THREE, [Exists()]),
        ("all pods of app=web finished", WEB, ALL, [HasFinished()]),
        ("pod shop/web-0 is placed", Subject(pod="shop/web-0"), ALL, [Placed()]),
        ("pod web-0 placed", Subject(pod="default/web-0"), ALL, [Placed()]),
        (
            "no pods of app=web in shop pending",
            Subject(selector=parse_selector("app=web"), namespace="shop"),
            NO,
            [PendingFor()],
        ),
        (
            "all pods of deployment/shop/web placed",
            Subject(owner=parse_reference("deployment/shop/web")),
            ALL,
            [Placed()],
        ),
        (
            "all pods of 'app in (web, cart)' placed",
            Subject(selector=parse_selector("app in (web,cart)")),
            ALL,
            [Placed()],
        ),
        (
            "all pods of app.kubernetes.io/name=web placed",
            Subject(selector=parse_selector("app.kubernetes.io/name=web")),
            ALL,
            [Placed()],
        ),
        ("all pods on node a-1", ANY, ALL, [OnNodes(names=("a-1",))]),
        ("all pods on nodes a-1,a-2", ANY, ALL, [OnNodes(names=("a-1", "a-2"))]),
        (
            "no pods on nodes with pool=gpu",
            ANY,
            NO,
            [OnNodes(labels="pool=gpu", selector=parse_selector("pool=gpu"))],
        ),
        (
            "all pods not on nodes with taint gpu=yes:NoSchedule",
            ANY,
            ALL,
            [OnNodes(taint=Taint(key="gpu", value="yes", effect="NoSchedule"), negated=True)],
        ),
        (
            "no pods in zone zone-a",
            ANY,
            NO,
            [OnNodes(labels=f"{ZONE}=zone-a", selector=parse_selector(f"{ZONE}=zone-a"))],
        ),
        (
            "all pods of app=web placed within 5s and not on node a-1",
            WEB,
            ALL,
            [Placed(5.0), OnNodes(names=("a-1",), negated=True)],
        ),
    ],
)
def test_a_line_about_pods(line, subject, how_many, conditions):
    assert parse_expectation(line) == PodsMeet(line, subject, how_many, tuple(conditions))


@pytest.mark.parametrize(
    ("line", "expectation"),
    [
        ("all pods of app=web spread over 3 zones", Spread("", WEB, ZONE, THREE)),
        (
            "all pods of app=web spread over at least 3 zones with skew at most 1",
            Spread("", WEB, ZONE, HowMany(least=3), 1),
        ),
        ("pods of app=web spread over nodes with skew 2", Spread("", WEB, "", None, 2)),
        (
            "all pods spread over 2 example.com/rack",
            Spread("", ANY, "example.com/rack", HowMany(2, 2)),
        ),
        ("all pods of app=web on distinct nodes", Spread("", WEB, "", distinct=True)),
        ("all pods of app=web on distinct zones", Spread("", WEB, ZONE, distinct=True)),
        ("2 pods preempted", Preempted("", ANY, HowMany(2, 2))),
        ("no pods of app=web preempted by ops/debug", Preempted("", WEB, NO, "ops/debug")),
        ("pod a/b gone", Gone("", "a/b")),
        ("cpu of the cluster at most 80%", Utilisation("", "cpu", None, 80.0)),
        (
            "memory of every node between 10% and 90%",
            Utilisation("", "memory", 10.0, 90.0, each_node=True),
        ),
        ("cpu of node a-1 at least 5%", Utilisation("", "cpu", 5.0, node="a-1")),
        (
            "cpu of nodes with pool=gpu at least 50%",
            Utilisation("", "cpu", 50.0, selector=parse_selector("pool=gpu")),
        ),
        (
            "nvidia.com/gpu of every node with pool=gpu at most 50%",
            Utilisation(
                "", "nvidia.com/gpu", None, 50.0, parse_selector("pool=gpu"), each_node=True
            ),
        ),
    ],
)
def test_a_line_about_how_things_lie(line, expectation):
    assert parse_expectation(line) == replace(expectation, text=line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "expected all, no, a number, pods, pod, or a resource"),
        ("al pods placed", "must start with pods"),
        ("all pod placed", "expected pods after 'all', found 'pod'; did you mean 'pods'?"),
        (
            "all pods of",
            "expected a label selector such as app=web, or KIND/NAME after 'all pods of'",
        ),
        ("all pods of app==", "'all pods of app==': expected placed"),
        ("all pods of app=web", "found the end of the line"),
        ("all pods of app=web plcaed", "did you mean 'placed'?"),
        ("all pods placed in 5s", "unexpected 'in 5s' after 'all pods placed'"),
        (
            "all pods placed within soon",
            "must be a duration such as 30s or 1h30m, not 'soon'",
        ),
        (
            "all pods of deploymint/web placed",
            "unknown kind 'deploymint'; did you mean 'deployment'?",
        ),
        ("all pods of a=b=c placed", "'a=b=c' is not a label selector"),
        ("all pods spread on 3 zones", "expected over after 'all pods spread', found 'on'"),
        ("all pods spread over 3 zoness", "'zoness' is not a topology key; did you mean 'zones'?"),
        ("3 pods spread over 3 zones", "'spread' applies to all pods, not to 3 of them"),
        ("all pods placed and preempted", "'preempted' cannot be combined"),
        ("pods of app=web gone", "'gone' works for one pod"),
        (
            "all pods of deployment/web preempted",
            "preempted pods no longer have an owner; select them by labels",
        ),
        ("cpu of the clster at most 8%", "did you mean 'cluster'?"),
        (
            "cpu of the cluster at most much",
            "expected a percentage such as 80% after 'cpu of the cluster at most', found 'much'",
        ),
        ("cpu of nodes at most 8%", "expected with after 'cpu of nodes', found 'at'"),
        ("all pods on gpu", "expected nodes, node or distinct after 'all pods on', found 'gpu'"),
    ],
)
def test_a_line_that_means_nothing_says_where_and_what_was_expected(line, said):
    with pytest.raises(FieldError) as error:
        parse_expectation(line)

    assert said in str(error.value)
