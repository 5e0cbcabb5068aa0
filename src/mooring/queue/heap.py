"""A priority queue whose items can be found, moved and removed by name.

Deletion is lazy: the heap keeps the places of items that have left or moved, and skips them when
they come up. Finding a place to delete would cost a scan, or a heap of our own that is far slower
than `heapq`. Of items that are equal in order, the one that came first goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from mooring.errors import InvariantError
from mooring.framework.interface import QueuedPod, QueueSortPlugin

#: Left and moved items may outnumber those present by this many before the heap is cleared of them.
_STALE_ALLOWANCE = 64


class Orderable(Protocol):
    """A value whose order among its like does not change. It must also know its equals."""

    def __lt__(self, other: Any, /) -> bool: ...


class Named(Protocol):
    @property
    def key(self) -> str: ...


@runtime_checkable
class SortKeyPlugin(Protocol):
    """A QueueSort whose order is that of a value, which spares a call for each comparison."""

    def sort_key(self, queued: QueuedPod) -> tuple[Orderable, ...]: ...


N = TypeVar("N", bound=Named)


class KeyedHeap(Generic[N]):
    """Items by `key`, the least in `order` first.

    An item's order is taken when it is put in. If it changes, put the item in again.
    """

    def __init__(self, order: Callable[[N], Orderable]) -> None:
        self._order = order
        #: key → (order, sequence number, item) of every item that is present.
        self._present: dict[str, tuple[Orderable, int, N]] = {}
        #: (order, sequence number, key) of each place ever taken and not yet come up. Numbers are
        #: unique, so keys are never compared; a place is stale unless its number is the item's.
        self._places: list[tuple[Orderable, int, str]] = []
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._present)

    def __contains__(self, key: str) -> bool:
        return key in self._present

    def __iter__(self) -> Iterator[N]:
        """In order of arrival, not of priority."""
        return (item for _, _, item in self._present.values())

    def get(self, key: str) -> N | None:
        found = self._present.get(key)
        return None if found is None else found[2]

    def put(self, item: N) -> None:
        """Add it, or replace the one of its name.

        If the order of the two is the same, it takes the other's turn among equals.
        """
        key, order = item.key, self._order(item)
        found = self._present.get(key)
        if found is not None and found[0] == order:
            self._present[key] = (*found[:2], item)
            return
        number = self._next_number
        self._next_number += 1
        heappush(self._places, (order, number, key))
        self._present[key] = (order, number, item)
        self._clear_stale()

    def remove(self, key: str) -> N | None:
        found = self._present.pop(key, None)
        if found is None:
            return None
        self._clear_stale()
        return found[2]

    def peek(self) -> N | None:
        while self._places:
            _, number, key = self._places[0]
            found = self._present.get(key)
            if found is not None and found[1] == number:
                return found[2]
            heappop(self._places)
        return None

    def pop(self) -> N | None:
        item = self.peek()
        if item is not None:
            _, _, key = heappop(self._places)
            del self._present[key]
        return item

    def validate(self) -> None:
        """Raise InvariantError unless every item has its place, in order, and is popped in its turn."""
        places = {(number, key): order for order, number, key in self._places}
        for key, (order, number, item) in self._present.items():
            if item.key != key:
                raise InvariantError(f"{item.key} is kept under the name {key}")
            if (number, key) not in places:
                raise InvariantError(f"{key} has no place in the heap")
            if order != self._order(item):
                raise InvariantError(f"{key} changed its order and was not put in again")
            if order != places[number, key]:
                raise InvariantError(f"{key} has the place of another order in the heap")
            if number >= self._next_number:
                raise InvariantError(f"{key} has a number that is yet to be given out")
        if len(places) != len(self._places):
            raise InvariantError("a place is in the heap twice")
        for i in range(1, len(self._places)):
            if self._places[i] < self._places[(i - 1) // 2]:
                raise InvariantError(f"{self._places[i][2]} comes after one that it goes before")

    def _clear_stale(self) -> None:
        if len(self._places) <= 2 * len(self._present) + _STALE_ALLOWANCE:
            return
        self._places = [(order, number, key) for key, (order, number, _) in self._present.items()]
        heapify(self._places)


def order_by(queue_sort: QueueSortPlugin) -> Callable[[QueuedPod], Orderable]:
    """The order that a QueueSort plugin gives, as a value: its `sort_key`, if it has one."""
    if isinstance(queue_sort, SortKeyPlugin):
        return queue_sort.sort_key
    return lambda queued: _ByLess(queue_sort.less, queued)


class _ByLess:
    """A pod's order where all there is to know it by is `less`: what that may look at, as it was.

    Were it the entry itself, it would change with it while stale places of it are still in the
    heap, and a heap whose places change their order is none.
    """

    __slots__ = ("_less", "pod", "timestamp")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, less: Callable[[QueuedPod, QueuedPod], bool], queued: QueuedPod) -> None:
        self._less = less
        self.pod = queued.pod
        self.timestamp = queued.timestamp

    def __lt__(self, other: _ByLess) -> bool:
        return self._less(self, other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ByLess):
            return NotImplemented
        return not (self < other or other < self)
