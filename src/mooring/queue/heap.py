"""A priority queue whose items can be found, moved and removed by key.

Deletion is lazy: the heap keeps the entries of items that left or moved, and skips these stale
entries when they reach the top. To find and delete an entry would cost a scan, or a heap in Python
that is far slower than `heapq`. Among items of equal order, the one that came first goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from mooring.errors import InvariantError
from mooring.framework.interface import QueuedPod, QueueSortPlugin

#: How many more stale entries than present items the heap may hold before it is rebuilt.
_STALE_ALLOWANCE = 64


class Orderable(Protocol):
    """A value that can be ordered and compared for equality. Its order never changes."""

    def __lt__(self, other: Any, /) -> bool: ...


class Named(Protocol):
    @property
    def key(self) -> str: ...


@runtime_checkable
class SortKeyPlugin(Protocol):
    """A QueueSort that gives its order as a value, so that comparisons do not call the plugin."""

    def sort_key(self, queued: QueuedPod) -> tuple[Orderable, ...]: ...


N = TypeVar("N", bound=Named)


class KeyedHeap(Generic[N]):
    """Items by `key`, the least in `order` first.

    `put` computes the order of an item. If the order changes, call `put` again.
    """

    def __init__(self, order: Callable[[N], Orderable]) -> None:
        self._order = order
        #: key → (order, sequence number, item) for every item in the queue.
        self._present: dict[str, tuple[Orderable, int, N]] = {}
        #: The heap: (order, sequence number, key). Numbers are unique, so keys are never compared.
        #: An entry is stale unless it has the number of the present item.
        self._entries: list[tuple[Orderable, int, str]] = []
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._present)

    def __contains__(self, key: str) -> bool:
        return key in self._present

    def __iter__(self) -> Iterator[N]:
        """The items in order of arrival, not of priority."""
        return (item for _, _, item in self._present.values())

    def get(self, key: str) -> N | None:
        found = self._present.get(key)
        return None if found is None else found[2]

    def put(self, item: N) -> None:
        """Add the item, or replace the item with the same key.

        If both have the same order, the new item takes the place of the other among equals.
        """
        key, order = item.key, self._order(item)
        found = self._present.get(key)
        if found is not None and found[0] == order:
            self._present[key] = (*found[:2], item)
            return
        number = self._next_number
        self._next_number += 1
        heappush(self._entries, (order, number, key))
        self._present[key] = (order, number, item)
        self._clear_stale()

    def remove(self, key: str) -> N | None:
        found = self._present.pop(key, None)
        if found is None:
            return None
        self._clear_stale()
        return found[2]

    def peek(self) -> N | None:
        while self._entries:
            _, number, key = self._entries[0]
            found = self._present.get(key)
            if found is not None and found[1] == number:
                return found[2]
            heappop(self._entries)
        return None

    def pop(self) -> N | None:
        item = self.peek()
        if item is not None:
            _, _, key = heappop(self._entries)
            del self._present[key]
        return item

    def validate(self) -> None:
        """Raise InvariantError unless every item has its entry, and the entries are a heap."""
        entries = {(number, key): order for order, number, key in self._entries}
        for key, (order, number, item) in self._present.items():
            if item.key != key:
                raise InvariantError(f"{item.key} is kept under the key {key}")
            if (number, key) not in entries:
                raise InvariantError(f"{key} has no entry in the heap")
            if order != self._order(item):
                raise InvariantError(f"the order of {key} changed without a call of put")
            if order != entries[number, key]:
                raise InvariantError(f"the entry of {key} has another order")
            if number >= self._next_number:
                raise InvariantError(f"{key} has a number that was not assigned yet")
        if len(entries) != len(self._entries):
            raise InvariantError("an entry is in the heap twice")
        for i in range(1, len(self._entries)):
            if self._entries[i] < self._entries[(i - 1) // 2]:
                raise InvariantError(f"{self._entries[i][2]} is below an entry that it precedes")

    def _clear_stale(self) -> None:
        if len(self._entries) <= 2 * len(self._present) + _STALE_ALLOWANCE:
            return
        self._entries = [(order, number, key) for key, (order, number, _) in self._present.items()]
        heapify(self._entries)


def order_by(queue_sort: QueueSortPlugin) -> Callable[[QueuedPod], Orderable]:
    """The order that a QueueSort plugin gives, as a value: its `sort_key`, if it has one."""
    if isinstance(queue_sort, SortKeyPlugin):
        return queue_sort.sort_key
    return lambda queued: _ByLess(queue_sort.less, queued)


class _ByLess:
    """A pod's order by `less`: a copy of what `less` may read.

    The queue entry itself may change while stale heap entries still refer to it, and that would
    break the heap.
    """

    __slots__ = ("_less", "initial_attempt_timestamp", "pod", "timestamp")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, less: Callable[[QueuedPod, QueuedPod], bool], queued: QueuedPod) -> None:
        self._less = less
        self.pod = queued.pod
        self.timestamp = queued.timestamp
        self.initial_attempt_timestamp = queued.initial_attempt_timestamp

    def __lt__(self, other: _ByLess) -> bool:
        return self._less(self, other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ByLess):
            return NotImplemented
        return not (self < other or other < self)
