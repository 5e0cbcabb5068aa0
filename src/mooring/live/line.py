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
    #: Everything else that somebody waits for, such as lists and watches.
    NORMAL = 3
    CONDITION = 4
    EVENT = 5


class Line(Generic[T]):
    """Futures by priority. A future that is cancelled has left the line."""

    def __init__(self) -> None:
        #: For each priority: (number of arrival, resolved when it is that request's turn).
        self._waiting: tuple[deque[tuple[int, asyncio.Future[T]]], ...] = tuple(
            deque() for _ in Priority
        )
        self._arrivals = count()
        self._turns = 0

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return any(self._head(waiting) is not None for waiting in self._waiting)

    def join(self, priority: Priority) -> asyncio.Future[T]:
        turn: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting[priority].append((next(self._arrivals), turn))
        return turn

    def next(self) -> asyncio.Future[T] | None:
        """Take out the one whose turn it is; None if nobody waits."""
        heads = [
            (head[0], waiting)
            for waiting in self._waiting
            if (head := self._head(waiting)) is not None
        ]
        if not heads:
            return None
        self._turns += 1
        longest_first = self._turns % _SHARED_TURN == 0
        _, waiting = min(heads, key=lambda head: head[0]) if longest_first else heads[0]
        return waiting.popleft()[1]

    @staticmethod
    def _head(
        waiting: deque[tuple[int, asyncio.Future[T]]],
    ) -> tuple[int, asyncio.Future[T]] | None:
        while waiting and waiting[0][1].done():
            waiting.popleft()
        return waiting[0] if waiting else None
