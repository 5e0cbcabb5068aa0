"""What would make a pod fit, as plugins suggest it.

Explanations ask every plugin of a profile. They make each suggested change, ask the scheduler again, and
keep what helps: a suggestion may be wrong, it only costs time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mooring.cluster.snapshot import Snapshot
from mooring.framework.changes import Change


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A change of adjustable size: `at(0)` is the largest, `at(steps)` almost no change.

    If it helps at some step, it helps at every lower step: the smallest change that helps is searched for.
    """

    at: Callable[[int], Change]
    steps: int = 0
    #: Whether it is worth trying together with another change, if no single change helps.
    combines: bool = True

    @classmethod
    def fixed(cls, change: Change, *, combines: bool = True) -> Suggestion:
        """A change of one size."""
        return cls(lambda _: change, combines=combines)

    @property
    def most(self) -> Change:
        return self.at(0)


@dataclass(frozen=True, slots=True)
class Refusals:
    """Where a plugin refuses a pod that fits nowhere."""

    snapshot: Snapshot
    #: The nodes that the plugin refuses, by name. It was not asked about nodes that another plugin refused,
    #: unless it judges all rows at once.
    nodes: tuple[str, ...] = ()
    #: Those of them that no other plugin refuses, as far as others were asked.
    alone: tuple[str, ...] = ()
