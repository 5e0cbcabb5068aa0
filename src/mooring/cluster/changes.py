"""What changed and when, so that derived values are recomputed only where needed.

A cluster has one counter, its *generation*: it grows with every change of a node, a pod or an object. What is
derived remembers the generation at which it was up to date, and later asks a log what changed since. A log is
cut from time to time; if it does not reach back that far, everything may have changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable
from typing import Generic, TypeVar

_LONGEST = 65_536

T = TypeVar("T", bound=Hashable)


class Generations:
    """The counter that all changes of one cluster share."""

    def __init__(self) -> None:
        #: The generation of the latest change.
        self.latest = 0

    def next(self) -> int:
        self.latest += 1
        return self.latest


class ChangeLog(Generic[T]):
    """What changed, one after another: rows, the pools of devices, or the names of nodes."""

    def __init__(self) -> None:
        self._changed: list[T] = []
        #: The generation of each change.
        self._generations: list[int] = []
        self._cut = 0
        #: The generation of the latest change in this log.
        self.position = 0
        #: What was asked last, where the log was then, and the answer: what several ask at once is the same.
        self._asked = (-1, -1)
        self._answer: list[T] = []

    def note(self, changed: T) -> None:
        """For a log that counts by itself."""
        self.note_at(self.position + 1, changed)

    def note_at(self, generation: int, changed: T) -> None:
        self._changed.append(changed)
        self._generations.append(generation)
        self.position = generation
        if len(self._changed) > _LONGEST:
            half = _LONGEST // 2
            self._cut = self._generations[half - 1]
            del self._changed[:half], self._generations[:half]

    def since(self, generation: int) -> list[T] | None:
        """What changed since then, each once, not to be changed; None if the log does not reach back."""
        if generation >= self.position:
            return []
        if generation < self._cut:
            return None
        generations = self._generations
        if len(generations) == 1 or generations[-2] <= generation:
            return self._changed[-1:]
        asked = generation, self.position
        if asked != self._asked:
            self._asked = asked
            changed = self._changed[bisect_right(generations, generation) :]
            self._answer = list(dict.fromkeys(changed))
        return self._answer


class RowChanges:
    """The rows that changed. Each log holds those of the log below it."""

    def __init__(self, generations: Generations) -> None:
        self._generations = generations
        #: Rows whose pods or whose node changed. A newer version of a pod counts, too.
        self.pods: ChangeLog[int] = ChangeLog()
        #: Rows whose requests, pod counts or ports may have changed, or the node.
        self.sums: ChangeLog[int] = ChangeLog()
        #: Rows whose node object changed.
        self.nodes: ChangeLog[int] = ChangeLog()

    def note_pod(self, row: int) -> int:
        """A pod was replaced by a version that counts the same. Return the generation of the change."""
        generation = self._generations.next()
        self.pods.note_at(generation, row)
        return generation

    def note_sums(self, row: int) -> int:
        generation = self._generations.next()
        self.pods.note_at(generation, row)
        self.sums.note_at(generation, row)
        return generation

    def note_node(self, row: int) -> int:
        generation = self.note_sums(row)
        self.nodes.note_at(generation, row)
        return generation
