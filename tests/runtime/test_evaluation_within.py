"""Kept answers for some of the nodes: a group in a placement is decided on as if nothing were kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.config import default_config
from mooring.explain.matrix import matrix_of
from mooring.objects.meta import KubeObject
from mooring.objects.taints import Toleration
from tests.engine import Engine
from tests.groups import BY_RACK, gates
from tests.makers import make_group, make_node, make_pod

RACK = "example.com/rack"
TAINTS = ((), ("dedicated=x:NoSchedule",), ("spot=y:PreferNoSchedule",))

nodes = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=8
)
gangs = st.lists(
    st.tuples(st.integers(2, 5), st.integers(1, 2), st.booleans(), st.booleans()),
    min_size=1,
    max_size=3,
)


def world(drawn_nodes: Any, used: list[int], drawn_gangs: Any) -> list[KubeObject]:
    objects: list[KubeObject] = [
        make_node(f"n{n}", cpu=cpu, labels={RACK: f"r{rack}"}, taints=TAINTS[taint])
        for n, (cpu, rack, taint) in enumerate(drawn_nodes)
    ]
    places = {at % len(drawn_nodes) for at in used}
    objects += [make_pod(f"old-{at}", cpu=1, node=f"n{at}") for at in places]
    for g, (size, cpu, tolerates, in_rack) in enumerate(drawn_gangs):
        objects.append(make_group(f"g{g}", min_count=2, rack_key=RACK if in_rack else None))
        tolerations = [Toleration(key="dedicated", operator="Exists")] if tolerates else []
        objects += [
            make_pod(f"g{g}-{n}", group=f"g{g}", cpu=cpu, tolerations=tolerations)
            for n in range(size)
        ]
    return objects


def decided(objects: list[KubeObject], *, keep_answers: bool) -> list[Any]:
    config = default_config(gates(BY_RACK))
    engine = Engine(*objects, config=config, keep_answers=keep_answers, keeps_reasons=True)
    for _ in objects:
        engine.scheduler.schedule_one()
    if keep_answers:
        engine.scheduler.validate()
    return [
        (each.pod.key, each.node_name, each.feasible_count, matrix_of(each).to_data())
        for each in engine.decisions
    ]


@pytest.mark.long
@settings(max_examples=40)
@given(drawn_nodes=nodes, used=st.lists(st.integers(0, 7), max_size=4), drawn_gangs=gangs)
def test_decisions_within_placements_are_those_of_a_scheduler_that_keeps_nothing(
    drawn_nodes, used, drawn_gangs
):
    objects = world(drawn_nodes, used, drawn_gangs)

    assert decided(objects, keep_answers=True) == decided(objects, keep_answers=False)
