"""What the dry run found on each node, in arrays by row, kept for the next pod that is alike.

A preemptor is rarely alone: the pods of one controller all need room. Between two of them, few nodes change.
So only nodes that changed are tried again, and the best node is found by passes over arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.plugin import Ints, Status
from mooring.plugins.default_preemption.budgets import Budget, Budgets
from mooring.plugins.default_preemption.candidates import Candidate, Outcome
from mooring.plugins.default_preemption.choice import Best, cost_of

RowIndex = NDArray[np.intp]
T = TypeVar("T", Candidate, Status)

_UNTRIED, _REJECTED, _CLEAN, _VIOLATING = range(4)
#: The generation of a row that was never tried; real generations start at 0.
_NEVER = -1
#: For searches that are not kept.
NOTHING_COVERED: Mapping[str, Mapping[str, int]] = {}


class Outcomes:
    """The outcome of the dry run on each row that was tried."""

    def __init__(self, size: int) -> None:
        self._outcomes: list[Outcome | None] = [None] * size
        #: By row. Names rarely change, so results share this list; it is copied before it changes.
        self._names = [""] * size
        self._names_are_lent = False
        #: int8[row]: whether the row was tried, and with what result.
        self._kinds: NDArray[np.int8] = np.zeros(size, np.int8)
        #: int64[row]: the generation of the row when it was tried.
        self._generations: Ints = np.full(size, _NEVER, np.int64)
        #: Row → the nominated pods that counted when it was tried.
        self._nominated: Mapping[int, Sequence[Pod]] = {}
        #: The budgets for which the outcomes hold; None before the first search.
        self._budgets: Budgets | None = None
        #: Row → how many of its potential victims each budget covers, by key, if the outcome depends on it.
        self._covered: dict[int, Mapping[str, int]] = {}
        #: Key of a budget → row → the same number.
        self._rows_covered: dict[str, dict[int, int]] = {}
        # The criteria of the choice, by row; see `choice.Cost`.
        self._violations: Ints = np.zeros(size, np.int64)
        self._highest_priority: Ints = np.zeros(size, np.int64)
        self._sum_of_priorities: Ints = np.zeros(size, np.int64)
        self._victims: Ints = np.zeros(size, np.int64)
        #: float64[row]; NaN if none of those victims has started: then they count as started now.
        self._earliest_start_s: NDArray[np.float64] = np.zeros(size)

    def __len__(self) -> int:
        return len(self._outcomes)

    def catch_up(
        self, generations: Ints, nominated: Mapping[int, Sequence[Pod]], budgets: Budgets
    ) -> None:
        """Forget the rows whose nodes changed, to which other pods are nominated now, or whose victims may
        be others now that a budget changed.
        """
        if self._budgets is not None and self._budgets is not budgets:
            for before, after in budgets.changed_since(self._budgets):
                self._follow(before, after)
        self._budgets = budgets
        self._kinds[self._generations != generations] = _UNTRIED
        for row in self._nominated.keys() | nominated.keys():
            if not _same(self._nominated.get(row, ()), nominated.get(row, ())):
                self._kinds[row] = _UNTRIED
        self._nominated = nominated
        self._generations[:] = generations

    def _follow(self, before: Budget | None, after: Budget | None) -> None:
        """Forget the rows whose victims may depend on the change of a budget."""
        if before is None or after is None or before.label_selector != after.label_selector:
            self._kinds[:] = _UNTRIED
            return
        others_count = before.disrupted != after.disrupted
        for row, covered in self._rows_covered.get(after.key, {}).items():
            # The budget protects those that exceed what it allows, in the order of importance.
            if others_count or _taken(before, covered) != _taken(after, covered):
                self._kinds[row] = _UNTRIED

    def forget(self, rows: RowIndex) -> None:
        self._kinds[rows] = _UNTRIED

    def search(
        self,
        rows: RowIndex,
        wanted: int,
        part_size: int,
        try_rows: Callable[[RowIndex], Iterable[tuple[str, Outcome]]],
        now: datetime,
        covered: Mapping[str, Mapping[str, int]] = NOTHING_COVERED,
    ) -> Found:
        """Read the outcomes of rows until enough candidates are found, one of them without violations.

        While all of them violate a budget, the search continues, but keeps no more candidates with
        violations. Rows that were not tried are tried when they are needed, so many at a time. After that,
        `covered` has the number of potential victims that each budget covers, by node name.
        """
        while True:
            kinds = self._kinds[rows]
            end = _end(kinds, wanted)
            untried = rows[:end][kinds[:end] == _UNTRIED][:part_size]
            if not len(untried):
                break
            for row, (name, outcome) in zip(untried.tolist(), try_rows(untried), strict=True):
                self._set(row, name, outcome, now)
                self._set_covered(row, covered.get(name, {}))
        rows, kinds = rows[:end], kinds[:end]
        clean, violating = (rows[kinds == kind][:wanted] for kind in (_CLEAN, _VIOLATING))
        return Found(self, np.concatenate((clean, violating)), rows[kinds == _REJECTED])

    def _set(self, row: int, name: str, outcome: Outcome, now: datetime) -> None:
        self._outcomes[row] = outcome
        if self._names[row] != name:
            if self._names_are_lent:
                self._names, self._names_are_lent = self._names.copy(), False
            self._names[row] = name
        if isinstance(outcome, Status):
            self._kinds[row] = _REJECTED
            return
        self._kinds[row] = _VIOLATING if outcome.violations else _CLEAN
        cost = cost_of(outcome, now)
        self._violations[row] = cost.violations
        self._highest_priority[row] = cost.highest_priority
        self._sum_of_priorities[row] = cost.sum_of_priorities
        self._victims[row] = cost.victims
        started = any(
            victim.status.start_time is not None
            for victim in outcome.victims
            if victim.priority == cost.highest_priority
        )
        self._earliest_start_s[row] = -cost.minus_earliest_start_s if started else math.nan

    def _set_covered(self, row: int, covered: Mapping[str, int]) -> None:
        for key in self._covered.pop(row, ()):
            del self._rows_covered[key][row]
        if covered:
            self._covered[row] = covered
            for key, count in covered.items():
                self._rows_covered.setdefault(key, {})[row] = count

    def best(self, rows: RowIndex, now: datetime) -> RowIndex:
        """The rows of the best candidates, which are equally good."""
        for criterion in (
            self._violations,
            self._highest_priority,
            self._sum_of_priorities,
            self._victims,
        ):
            values = criterion[rows]
            rows = rows[values == values.min()]
        starts = self._earliest_start_s[rows]
        starts[np.isnan(starts)] = now.timestamp()
        tied: RowIndex = rows[starts == starts.max()]
        return tied

    def as_they_are(self) -> tuple[list[Outcome | None], list[str]]:
        """Outcomes and node names by row, which stay as they are now."""
        self._names_are_lent = True
        return self._outcomes.copy(), self._names


class Found:
    """The result of the search over the nodes."""

    def __init__(self, outcomes: Outcomes, candidates: RowIndex, rejected: RowIndex) -> None:
        self._kept = outcomes
        # What is kept changes with the next pod.
        self._outcomes, self._names = outcomes.as_they_are()
        self._candidates = candidates
        self._rejected = rejected

    def __bool__(self) -> bool:
        """Whether there is a candidate."""
        return bool(len(self._candidates))

    def best(self, now: datetime) -> Best:
        """The best candidates. Ask before the next search."""
        rows = self._kept.best(self._candidates, now).tolist()
        names, outcomes = self._names, self._outcomes
        first = outcomes[min(rows, key=names.__getitem__)]
        assert isinstance(first, Candidate)
        return Best(first, lambda: tuple(sorted(names[row] for row in rows)))

    @property
    def candidates(self) -> Mapping[str, Candidate]:
        """Node name → the candidate, those without violations first."""
        return _ByNode(self._names, self._candidates, self._at)

    @property
    def rejected(self) -> Mapping[str, Status]:
        """Node name → why preemption does not help there."""
        return _ByNode(self._names, self._rejected, self._at)

    def _at(self, rows: RowIndex) -> list[Any]:
        outcomes = self._outcomes
        return [outcomes[row] for row in rows.tolist()]


NOWHERE = Found(Outcomes(0), np.empty(0, np.intp), np.empty(0, np.intp))


class _ByNode(Mapping[str, T]):
    """Put together when it is first read: most preemptions are not explained."""

    def __init__(
        self, names: Sequence[str], rows: RowIndex, at: Callable[[RowIndex], list[T]]
    ) -> None:
        self._names = names
        self._rows = rows
        self._at: Callable[[RowIndex], list[T]] = at

    @cached_property
    def _found(self) -> dict[str, T]:
        names = (self._names[row] for row in self._rows.tolist())
        return dict(zip(names, self._at(self._rows), strict=True))

    def __getitem__(self, name: str) -> T:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(self._found)


def _end(kinds: NDArray[np.int8], wanted: int) -> int:
    """How many outcomes are read, as far as they are known."""
    if wanted and not (kinds == _VIOLATING).any():
        # The usual case; sums over all rows cost more.
        places = np.flatnonzero(kinds == _CLEAN)
        return int(places[wanted - 1]) + 1 if len(places) >= wanted else len(kinds)
    clean = np.minimum(np.cumsum(kinds == _CLEAN), wanted)
    violating = np.minimum(np.cumsum(kinds == _VIOLATING), wanted)
    enough = (clean > 0) & (clean + violating >= wanted)
    return int(enough.argmax()) + 1 if len(enough) and enough[-1] else len(kinds)


def _taken(budget: Budget, covered: int) -> int:
    """How many of the pods that a budget covers can go before it is violated."""
    return min(max(budget.allowed, 0), covered)


def _same(some: Sequence[Pod], others: Sequence[Pod]) -> bool:
    return some is others or (
        len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
    )
