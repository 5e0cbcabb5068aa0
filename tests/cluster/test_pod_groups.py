"""The books of pod groups."""

from __future__ import annotations

import pytest

from mooring.cluster.cache import Cluster
from mooring.cluster.pod_groups import NoGroupError, PodGroupStates
from mooring.errors import InvariantError
from tests.groups import members
from tests.makers import make_group, make_node, make_pod

ONE, TWO = members(2, cpu=1)
KEY = "default/gang"


def parts(states: PodGroupStates) -> tuple[list[str], ...]:
    """Names of the pods that are waiting, trying, assumed, assigned."""
    state = states.get(KEY)
    return tuple(
        [pod.name for pod in part.values()]
        for part in (state.waiting, state.trying, state.assumed, state.assigned)
    )


def test_a_pod_goes_from_the_queue_through_the_cycle_to_its_node():
    states = PodGroupStates()
    states.put(ONE)
    states.put(TWO)
    assert parts(states) == (["gang-1", "gang-2"], [], [], [])

    states.begin([ONE, TWO])
    states.assume(ONE.placed_on("n"))
    assert parts(states) == ([], ["gang-2"], ["gang-1"], [])

    states.forget(ONE.placed_on("n"), trying=True)
    assert parts(states) == ([], ["gang-2", "gang-1"], [], [])

    states.end(TWO)
    states.assume(ONE.placed_on("n"))
    states.put(ONE.placed_on("n"))
    assert parts(states) == (["gang-2"], [], [], ["gang-1"])
    assert states.get(KEY).all_count == 2
    assert states.get(KEY).scheduled_count == 1


def test_a_group_is_gone_with_its_last_pod():
    states = PodGroupStates()
    states.put(ONE)
    states.remove(ONE)

    assert KEY not in states
    with pytest.raises(NoGroupError, match="pod group state not found for pod group default/gang"):
        states.get(KEY)


def test_an_assumed_pod_that_is_deleted_is_not_remembered():
    states = PodGroupStates()
    states.put(ONE)
    states.put(TWO)
    states.assume(ONE.placed_on("n"))
    states.remove(ONE)
    states.forget(ONE.placed_on("n"))

    assert parts(states) == (["gang-2"], [], [], [])


def test_pods_without_a_group_are_not_noted():
    states = PodGroupStates()
    pod = make_pod()
    states.put(pod)
    states.assume(pod)
    states.forget(pod)
    states.remove(pod)

    assert "" not in states


@pytest.mark.parametrize(("least", "enough"), [(None, True), (1, True), (2, False)])
def test_a_gang_has_its_minimum_when_that_many_pods_are_known(least, enough):
    states = PodGroupStates()
    states.put(ONE)

    assert states.has_minimum(make_group(min_count=least)) is enough


def test_what_is_left_out_for_a_dry_run_still_counts_in_its_group():
    cluster = Cluster(has_pod_groups=True)
    cluster.add_node(make_node("n"))
    placed = ONE.placed_on("n")
    cluster.pod_groups.put(ONE)
    cluster.assume_pod(placed)

    assumed = cluster.take_out(placed)
    assert not cluster.pods
    assert cluster.pod_groups.get(KEY).scheduled_count == 1
    cluster.put_back(placed, assumed=assumed)

    assert cluster.is_assumed(placed)
    cluster.validate()
    cluster.pod_groups.validate([ONE], cluster.assumed_pods())


def test_a_spoiled_book_is_noticed():
    states = PodGroupStates()
    states.put(ONE)
    states.get(KEY).assigned["x"] = TWO

    with pytest.raises(InvariantError, match="the pods of groups"):
        states.validate([ONE], [])
