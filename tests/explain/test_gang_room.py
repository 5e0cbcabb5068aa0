"""How many more whole gangs fit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mooring.config import default_config
from mooring.explain.gang_room import GangTemplates, how_many_more_gangs
from mooring.explain.room import Room, Template
from mooring.explain.settled import settle
from mooring.objects.meta import KubeObject
from mooring.sim.simulation import SimOptions
from tests.groups import BY_RACK, GANGS, PREEMPTING, gates, members
from tests.makers import make_group, make_node, make_pod

RACK = "example.com/rack"


def gang(count: int, *, least: int | None = None, rack: bool = False, times: int = 1, **spec):
    group = make_group("gang", min_count=least or count, rack_key=RACK if rack else None)
    pods = members(count, **spec)
    return GangTemplates(tuple(Template(pod) for pod in pods), (group,), times)


def room(objects: list[KubeObject], *gangs: GangTemplates, on=GANGS, limit: int = 100) -> Room:
    settled = settle(objects, SimOptions(config=default_config(gates(on))))
    return how_many_more_gangs(settled, gangs, limit=limit)


def rack(name: str, *cpus: int) -> list[KubeObject]:
    return [make_node(f"{name}-{n}", cpu=cpu, labels={RACK: name}) for n, cpu in enumerate(cpus)]


@pytest.mark.parametrize(
    ("objects", "templates", "on", "rounds"),
    [
        pytest.param(rack("a", 4, 4), [gang(3, cpu=1)], GANGS, 2, id="two pods are left over"),
        pytest.param(rack("a", 4, 4), [gang(9, cpu=1)], GANGS, 0, id="too large"),
        pytest.param(
            [*rack("a", 4), *rack("b", 4)], [gang(3, cpu=1, rack=True)], BY_RACK, 2, id="in racks"
        ),
        pytest.param(
            rack("a", 4, 4), [gang(4, least=2, cpu=1)], GANGS, 2, id="all pods, not only minCount"
        ),
        pytest.param(rack("a", 4, 4), [gang(2, cpu=1, times=2)], GANGS, 2, id="two in a round"),
        pytest.param(
            rack("a", 4, 4),
            [gang(2, cpu=1), GangTemplates((Template(make_pod("alone", cpu=1)),), ())],
            GANGS,
            2,
            id="beside a pod without a group",
        ),
    ],
)
def test_whole_gangs_are_counted(objects, templates, on, rounds):
    found = room(objects, *templates, on=on)

    assert found.rounds == rounds
    assert not found.limited
    assert "Insufficient cpu" in found.stopped_by


def test_a_gang_that_runs_already_does_not_make_its_copies_larger():
    running = [make_group("gang", min_count=2), *members(2, cpu=1)]

    assert room([*rack("a", 4), *running], gang(2, cpu=1)).rounds == 1


def test_copies_preempt_nobody():
    low = [make_pod(f"low-{n}", cpu=1, priority=0) for n in range(4)]

    found = room([*rack("a", 4), *low], gang(2, cpu=1, priority=9), on=PREEMPTING)

    assert found.rounds == 0


def test_the_search_ends_at_its_limit():
    found = room(rack("a", 10), gang(2, cpu=1), limit=3)

    assert (found.rounds, found.limited) == (3, True)
    assert found.pods == {"default/gang-1": 3, "default/gang-2": 3}


@settings(max_examples=20)
@given(
    racks=st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=3),
    size=st.integers(1, 4),
)
def test_in_racks_of_single_cores_the_number_is_the_sum_of_quotients(racks, size):
    nodes = [node for n, cpus in enumerate(racks) for node in rack(f"r{n}", *cpus)]

    found = room(nodes, gang(size, cpu=1, rack=True), on=BY_RACK)

    assert found.rounds == sum(sum(cpus) // size for cpus in racks)
