"""A log of changes, so that derived values are recomputed only where needed.

A cache remembers a position in the log, and later asks what changed since. The log is cut
from time to time; if it does not reach back to the position, everything may have changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

_LONGEST = 65_536

T = TypeVar("T", bound=Hashable)


class ChangeLog(Generic[T]):
    """What changed: the rows whose pods or whose node did, or the pools whose devices did."""

    def __init__(self) -> None:
        self._rows: list[T] = []
        self._cut = 0
        #: The end of the log.
        self.position = 0

    def note(self, row: T) -> None:
        self._rows.append(row)
        self.position += 1
        if len(self._rows) > _LONGEST:
            half = _LONGEST // 2
            del self._rows[:half]
            self._cut += half

    def since(self, position: int) -> list[T] | None:
        """What changed since then, each once; None if the log does not reach back."""
        if position < self._cut:
            return None
        start = position - self._cut
        changed = len(self._rows) - start
        if changed <= 1:
            return self._rows[start:]
        return list(dict.fromkeys(self._rows[start:]))
