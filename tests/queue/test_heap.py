"""The heap: order, names, lazy deletion."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.errors import InvariantError
from mooring.queue.heap import KeyedHeap, order_by
from mooring.queue.queued_pod import QueuedPodInfo
from tests.makers import make_pod
from tests.queue.world import ByPriority, ByPriorityKey


@dataclass
class Item:
    key: str
    rank: int


def heap_of(*items: Item) -> KeyedHeap[Item]:
    heap: KeyedHeap[Item] = KeyedHeap(lambda item: item.rank)
    for item in items:
        heap.put(item)
    return heap


def drain(heap: KeyedHeap[Item]) -> list[str]:
    keys = []
    while (item := heap.pop()) is not None:
        heap.validate()
        keys.append(item.key)
    return keys


def test_the_least_comes_first():
    assert drain(heap_of(Item("b", 2), Item("a", 1), Item("c", 3))) == ["a", "b", "c"]


def test_of_equals_the_one_that_came_first_goes_first():
    assert drain(heap_of(Item("z", 1), Item("y", 1), Item("x", 1))) == ["z", "y", "x"]


def test_an_empty_heap_has_nothing_to_give():
    heap = heap_of()

    assert heap.pop() is None
    assert heap.peek() is None
    assert len(heap) == 0


def test_an_item_is_found_by_its_name_until_it_leaves():
    item = Item("a", 1)
    heap = heap_of(item)

    assert heap.get("a") is item
    assert "a" in heap
    assert heap.remove("a") is item
    assert heap.get("a") is None
    assert "a" not in heap
    assert heap.remove("a") is None


def test_a_removed_item_does_not_come_up():
    heap = heap_of(Item("a", 1), Item("b", 2))

    heap.remove("a")

    assert drain(heap) == ["b"]


def test_an_item_put_in_again_has_one_entry_the_latest():
    heap = heap_of(Item("a", 1), Item("b", 2))

    heap.put(Item("a", 3))

    assert len(heap) == 2
    assert drain(heap) == ["b", "a"]


def test_an_item_whose_order_returns_to_what_it_was_still_comes_up_once():
    heap = heap_of(Item("a", 1), Item("b", 1))

    heap.put(Item("a", 2))
    heap.put(Item("a", 1))

    assert drain(heap) == ["b", "a"]


def test_an_item_put_in_again_in_the_same_order_keeps_its_turn_and_is_the_new_one():
    heap = heap_of(Item("a", 1), Item("b", 1))
    newer = Item("a", 1)

    heap.put(newer)

    assert heap.peek() is newer
    assert drain(heap) == ["a", "b"]


def test_items_are_listed_in_order_of_arrival():
    a, b = Item("a", 2), Item("b", 1)

    assert list(heap_of(a, b)) == [a, b]


def test_entries_of_items_that_move_do_not_pile_up_and_the_others_stay_in_order():
    heap = heap_of(*(Item(str(rank), rank) for rank in range(9, -1, -1)))

    for rank in range(1000):
        heap.put(Item("a", 100 + rank))

    assert len(heap._entries) < 100
    assert drain(heap) == [*"0123456789", "a"]


def test_entries_of_items_that_leave_do_not_pile_up():
    heap = heap_of(*(Item(str(rank), rank) for rank in range(1000)))

    for rank in range(999):
        heap.remove(str(rank))

    assert len(heap._entries) < 100
    assert drain(heap) == ["999"]


def test_an_item_that_changed_its_order_in_place_is_found_out():
    item = Item("a", 1)
    heap = heap_of(item)

    item.rank = 2

    with pytest.raises(InvariantError, match="the order of a changed"):
        heap.validate()


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdef"), st.integers(0, 3) | st.just("remove")), max_size=60
    )
)
def test_a_heap_gives_what_a_sorted_list_gives(steps):
    heap, expected, turns = heap_of(), {}, 0
    for key, step in steps:
        if step == "remove":
            heap.remove(key)
            expected.pop(key, None)
        else:
            heap.put(Item(key, step))
            if key not in expected or expected[key][0] != step:
                turns += 1
                expected[key] = (step, turns)
        heap.validate()

    assert drain(heap) == sorted(expected, key=expected.__getitem__)


def queued(name: str, priority: int, timestamp: float) -> QueuedPodInfo:
    return QueuedPodInfo(make_pod(name, priority=priority), timestamp)


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 3)), max_size=30))
def test_a_plugin_that_has_only_less_orders_as_one_with_a_sort_key(pods):
    heaps = [KeyedHeap(order_by(sort)) for sort in (ByPriority(), ByPriorityKey())]
    for number, (priority, timestamp) in enumerate(pods):
        for heap in heaps:
            heap.put(queued(f"p{number}", priority, timestamp))

    names = [[heap.pop().pod.name for _ in pods] for heap in heaps]
    assert names[0] == names[1]


@pytest.mark.parametrize("sort", [ByPriority(), ByPriorityKey()], ids=["less", "sort_key"])
def test_an_entry_that_changes_and_is_put_in_again_leaves_the_heap_in_order(sort):
    """A stale entry must not start to compare as the changed entry, which it would do if `less`
    were asked about the entry itself: it was never sorted among its neighbours as that.
    """
    heap = KeyedHeap(order_by(sort))
    entries = [queued(f"p{number}", number, 0) for number in range(20)]
    for entry in entries:
        heap.put(entry)
    for entry in entries[::2]:
        entry.pod = make_pod(entry.pod.name, priority=100 - entry.pod.priority)
        heap.put(entry)
        heap.validate()

    popped = [heap.pop().pod.priority for _ in entries]

    assert popped == sorted(popped, reverse=True)


def test_a_plugin_that_has_a_sort_key_is_not_asked_for_less():
    class Silent(ByPriorityKey):
        def less(self, a, b):
            raise AssertionError("asked")

    heap = KeyedHeap(order_by(Silent()))
    for number in range(5):
        heap.put(queued(f"p{number}", number, 0))

    assert heap.pop().pod.name == "p4"


def test_orders_by_less_are_not_hashable_since_equal_ones_would_hash_apart():
    order = order_by(ByPriority())(queued("p", 0, 0))

    with pytest.raises(TypeError):
        hash(order)
    assert order != "something else"
    assert order == copy.copy(order)
