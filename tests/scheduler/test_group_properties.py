"""What holds for groups in every cluster."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tests.groups import BY_RACK, GANGS, PREEMPTING, SCHEDULED, condition, nodes, start
from tests.makers import make_group, make_node, make_pod

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

    evicted = state.get("evicted", [])
    by_key = {pod.key: pod for pod in victims}
    assert all(by_key[key].priority < 10 for key in evicted)
    if evicted:
        assert condition(state, "g") == SCHEDULED
        assert sum(map(bool, nodes(state).values())) >= min(least, count)
