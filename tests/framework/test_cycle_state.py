"""What plugins leave for each other within one attempt."""

from __future__ import annotations

from mooring.framework.cycle_state import PODS_TO_ACTIVATE, CycleState
from tests.makers import make_pod


class Counter:
    """Something that dry runs change."""

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def clone(self) -> Counter:
        return Counter(self.count)


def test_what_was_written_is_read_until_it_is_deleted():
    state = CycleState()
    assert state.read("key", str) is None

    state.write("key", "value")
    assert state.read("key", str) == "value"

    state.delete("key")
    state.delete("key")
    assert state.read("key", str) is None


def test_something_of_another_type_is_not_what_was_asked_for():
    state = CycleState()
    state.write("key", "value")

    assert state.read("key", int) is None


def test_a_clone_has_clones_of_what_can_be_cloned_and_shares_the_rest():
    state, shared = CycleState(record_plugin_metrics=True), ["as it is"]
    state.write("counter", Counter(1))
    state.write("list", shared)
    state.skip_filter = frozenset({"A"})
    state.skip_score = frozenset({"B"})
    state.skip_pre_bind = frozenset({"C"})
    state.parallel_pre_bind = frozenset({"D"})

    clone = state.clone()
    clone.read("counter", Counter).count = 5
    clone.write("new", "value")

    assert state.read("counter", Counter).count == 1
    assert state.read("new", str) is None
    assert clone.read("list", list) is shared
    assert clone.record_plugin_metrics
    assert (clone.skip_filter, clone.skip_score) == ({"A"}, {"B"})
    assert (clone.skip_pre_bind, clone.parallel_pre_bind) == ({"C"}, {"D"})


def test_pods_to_activate_are_shared_with_every_clone():
    state, pod = CycleState(), make_pod("p")

    state.clone().pods_to_activate[pod.key] = pod

    assert state.pods_to_activate == {"default/p": pod}
    assert state.read(PODS_TO_ACTIVATE, dict) is state.pods_to_activate


def test_a_state_adopts_an_earlier_attempt_but_not_the_pods_to_activate():
    earlier, state = CycleState(), CycleState()
    earlier.write("key", "value")
    earlier.skip_filter, earlier.skip_score = frozenset({"A"}), frozenset({"B"})
    earlier.pods_to_activate["default/q"] = make_pod("q")
    state.write("mine", "kept")

    state.adopt(earlier)

    assert (state.read("key", str), state.read("mine", str)) == ("value", "kept")
    assert (state.skip_filter, state.skip_score) == ({"A"}, {"B"})
    assert state.pods_to_activate == {}
