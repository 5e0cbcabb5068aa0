"""Requests that wait for their turn: the important ones first, and none of them for ever.

Binds go before evictions, evictions before nominations, nominations before conditions, conditions before
Events. Requests of one priority go in the order in which they came. One turn in fifty goes to the request
that has waited longest, whatever its priority, so that a stream of binds cannot starve the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from enum import IntEnum
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")

#: One turn in so many goes to the request that has waited longest.
_SHARED_TURN = 50


class Priority(IntEnum):
    """Whose turn it is; the lower goes first."""

    BIND = 0
    EVICTION = 1
    NOMINATION = 2
    #: Everything else, such as lists and watches.
    NORMAL = 3
    CONDITION = 4
    EVENT = 5


#: The requests of one priority: (number of arrival, resolved when it is the request's turn).
_Waiting = deque[tuple[int, asyncio.Future[T]]]


class Line(Generic[T]):
    """Futures by priority. A future that is cancelled has left the line."""

    def __init__(self) -> None:
        self._waiting: tuple[_Waiting[T], ...] = tuple(deque() for _ in Priority)
        self._arrivals = count()
        self._turns = 0

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return self._first() is not None

    def count(self, least: Priority) -> int:
        """How many wait who are at least as important as this, and perhaps a few that have left."""
        return sum(map(len, self._waiting[: least + 1]))

    def join(self, priority: Priority) -> asyncio.Future[T]:
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting[priority].append((next(self._arrivals), turn))
        return turn

    def has(self, least: Priority) -> bool:
        """Whether anybody waits who is at least as important as this."""
        return self._first(least) is not None

    def next(self, least: Priority = Priority.EVENT) -> asyncio.Future[T] | None:
        """Remove and return the next request; None if none waits that is at least as important."""
        waiting = self._first(least)
        if waiting is None:
            return None
        self._turns += 1
        if self._turns % _SHARED_TURN == 0:
            waiting = min(filter(_cleared, self._waiting), key=lambda each: each[0][0])
        return waiting.popleft()[1]

    def _first(self, least: Priority = Priority.EVENT) -> _Waiting[T] | None:
        """Those of the highest priority that any have, down to this one."""
        for waiting in self._waiting[: least + 1]:
            if waiting and _cleared(waiting):
                return waiting
        return None


def _cleared(waiting: _Waiting[T]) -> bool:
    """Take out those at the head that have left; whether anybody is left."""
    while waiting and waiting[0][1].done():
        waiting.popleft()
    return bool(waiting)
