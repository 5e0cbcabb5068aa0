"""What holds for groups in every cluster."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.framework.placements import PodGroupAssignments, PodGroupInfo
from mooring.plugins.node_resources_fit import NodeResourcesFit
from mooring.runtime.placements import generate_placements
from tests.groups import BY_RACK, GANGS, PREEMPTING, SCHEDULED, condition, nodes, start
from tests.makers import make_group, make_node, make_pod

pytestmark = pytest.mark.long

RACK = "example.com/rack"

sizes = st.lists(st.integers(1, 4), min_size=1, max_size=5)


@st.composite
def gangs(draw) -> list[tuple[int, int, int, bool]]:
    """(pods, minCount, cpu of each, whether it needs one rack) of each gang."""
    count = draw(st.integers(1, 4))
    found = []
    for _ in range(count):
        pods = draw(st.integers(1, 5))
        found.append(
            (pods, draw(st.integers(1, pods)), draw(st.integers(1, 2)), draw(st.booleans()))
        )
    return found


def cluster(cpus: list[int]) -> list:
    return [make_node(f"n{n}", cpu=cpu, labels={RACK: f"r{n % 2}"}) for n, cpu in enumerate(cpus)]


@given(cpus=sizes, wanted=gangs(), by_rack=st.booleans(), shuffle=st.randoms(use_true_random=False))
def test_a_gang_is_bound_with_at_least_its_minimum_or_not_at_all(cpus, wanted, by_rack, shuffle):
    """Nobody may preempt here, and no bind fails."""
    pods = [
        make_pod(f"g{g}-{n}", group=f"g{g}", cpu=cpu, preemption_policy="Never", priority=0)
        for g, (count, _, cpu, _) in enumerate(wanted)
        for n in range(count)
    ]
    shuffle.shuffle(pods)
    groups = [
        make_group(f"g{g}", min_count=least, rack_key=RACK if one_rack and by_rack else None)
        for g, (_, least, _, one_rack) in enumerate(wanted)
    ]
    run = start(*cluster(cpus), *groups, *pods, on=BY_RACK if by_rack else GANGS)

    state = run.settle()
    run.scheduler.validate()

    placed = {name: node for name, node in nodes(state).items() if node}
    bound = Counter(name.partition("-")[0] for name in placed)
    for group, (_, least, _, one_rack) in zip(groups, wanted, strict=True):
        assert bound[group.name] == 0 or bound[group.name] >= least
        assert (condition(state, group.name) == SCHEDULED) == (bound[group.name] > 0)
        if one_rack and by_rack:
            racks = {
                int(node[1:]) % 2 for name, node in placed.items() if name.startswith(group.name)
            }
            assert len(racks) <= 1
    assert "waiting" not in state


@given(size=st.integers(1, 6), others=st.integers(2, 4))
def test_of_gangs_that_need_the_same_room_one_gets_it(size, others):
    """Their pods come in turns, so each gang could hold a part of it for ever."""
    groups = [make_group(f"g{g}", min_count=size) for g in range(others)]
    pods = [make_pod(f"g{g}-{n}", group=f"g{g}", cpu=1) for n in range(size) for g in range(others)]
    run = start(make_node("n", cpu=size), *groups, *pods)

    state = run.settle()
    run.scheduler.validate()

    bound = Counter(name.partition("-")[0] for name, node in nodes(state).items() if node)
    assert list(bound.values()) == [size]


@given(
    cpus=sizes,
    running=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 12)), max_size=8),
    count=st.integers(1, 5),
    least=st.integers(1, 5),
)
def test_nobody_is_evicted_for_a_group_that_does_not_fit_then(cpus, running, count, least):
    """With WorkloadAwarePreemption. Without it the reference, and so mooring, does evict in vain: see G5."""
    free = list(cpus)
    victims = []
    for n, (node, priority) in enumerate(running):
        node %= len(cpus)
        if free[node]:
            free[node] -= 1
            victims.append(make_pod(f"old-{n}", cpu=1, node=f"n{node}", priority=priority))
    run = start(
        *cluster(cpus),
        *victims,
        make_group("g", min_count=min(least, count), priority=10),
        *(make_pod(f"g-{n}", group="g", cpu=1, priority=10) for n in range(count)),
        on=PREEMPTING,
    )

    state = run.settle()
    run.scheduler.validate()

    evicted = state.get("evicted", [])
    by_key = {pod.key: pod for pod in victims}
    assert all(by_key[key].priority < 10 for key in evicted)
    if evicted:
        assert condition(state, "g") == SCHEDULED
        assert sum(map(bool, nodes(state).values())) >= min(least, count)


class TriesAllPlacements(NodeResourcesFit):
    """Does not say how much a placement can score."""

    placement_score_bounds = None


@given(
    cpus=st.lists(st.integers(1, 6), min_size=2, max_size=9),
    racks=st.integers(1, 4),
    used=st.lists(st.tuples(st.integers(0, 8), st.integers(1, 3)), max_size=6),
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=4),
    least=st.integers(1, 4),
)
def test_placements_that_cannot_be_the_best_need_not_be_tried(cpus, racks, used, sizes, least):
    def after(**plugins):
        run = start(
            *(
                make_node(f"n{n}", cpu=cpu, memory=f"{1 + n % 3}Gi", labels={RACK: f"r{n % racks}"})
                for n, cpu in enumerate(cpus)
            ),
            *(
                make_pod(f"old-{n}", cpu=cpu, node=f"n{node % len(cpus)}")
                for n, (node, cpu) in enumerate(used)
            ),
            on=BY_RACK,
            plugins=plugins,
        )
        for g, (count, cpu) in enumerate(sizes):
            run.create(
                make_group(f"g{g}", min_count=min(least, count), rack_key=RACK),
                *(make_pod(f"g{g}-{n}", group=f"g{g}", cpu=cpu) for n in range(count)),
            )
            run.round()
        return run.settle()

    assert after() == after(NodeResourcesFit=TriesAllPlacements)


@given(
    cpus=st.lists(st.integers(1, 6), min_size=2, max_size=6),
    used=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), max_size=6),
    count=st.integers(1, 4),
)
def test_the_bound_of_a_placement_is_its_score_with_all_pods_placed(cpus, used, count):
    run = start(*cluster(cpus), on=BY_RACK)
    for n, (node, cpu) in enumerate(used):
        run.create(make_pod(f"old-{n}", cpu=cpu, node=f"n{node % len(cpus)}"))
    pods = tuple(make_pod(f"g-{n}", group="g", cpu=1) for n in range(count))
    run.create(make_group("g", min_count=count, rack_key=RACK), *pods)
    framework = run.scheduler.frameworks["default-scheduler"]
    fit, snapshot = framework.plugins["NodeResourcesFit"].plugin, run.scheduler.cluster.snapshot()
    info = PodGroupInfo("default", "g", pods)
    placements = generate_placements(framework, info, snapshot)

    scores = [
        fit.score_placement(
            info,
            PodGroupAssignments(
                placement,
                [snapshot.get(name) for name in placement.nodes],
                {pod.uid: (pod, placement.nodes[0]) for pod in pods},
            ),
        )
        for placement in placements
    ]

    assert fit.placement_score_bounds(info, placements, snapshot) == scores
