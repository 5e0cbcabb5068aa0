"""What the dry run found on each node, in arrays by row, kept for the next pod that is alike.

A preemptor is rarely alone: the pods of one controller all need room. Between two of them, few nodes change.
So only nodes that changed are tried again, and the best node is found by passes over arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.plugin import Ints, Mask, RowIndex, Status
from mooring.plugins.default_preemption.budgets import Budget, Budgets
from mooring.plugins.default_preemption.candidates import Candidate, Outcome
from mooring.plugins.default_preemption.choice import Best, cost_of
from mooring.plugins.default_preemption.coverage import Covered
from mooring.plugins.default_preemption.many_nodes import Reprieved, Tried

T = TypeVar("T", Candidate, Status)

_UNTRIED, _REJECTED, _CLEAN, _VIOLATING = range(4)
#: What an outcome depends on beside the node and its pods: that the filters which do not read columns accept
#: the row; or all that they read.
_ON_NOTHING, _ON_OTHERS, _ON_INPUTS = range(3)
#: The generation of a row that was never tried; real generations start at 0.
_NEVER = -1
#: How many parts of what a budget covers are looked through.
_MOST_PARTS = 64


class Outcomes:
    """The outcome of the dry run on each row that was tried."""

    def __init__(self, size: int) -> None:
        #: object[row]: an `Outcome`; or `Reprieved`, which has it.
        self._outcomes: NDArray[Any] = np.full(size, None, object)
        #: int8[row]: whether the row was tried, and with what result.
        self._kinds: NDArray[np.int8] = np.zeros(size, np.int8)
        #: int8[row]: what the outcome depends on, of what filters read beside the node and its pods.
        self._depends: NDArray[np.int8] = np.zeros(size, np.int8)
        #: int64[row]: the generation of the row when it was tried.
        self._generations: Ints = np.full(size, _NEVER, np.int64)
        #: Row → the nominated pods that counted when it was tried.
        self._nominated: Mapping[int, Sequence[Pod]] = {}
        #: The budgets for which the outcomes hold; None before the first search.
        self._budgets: Budgets | None = None
        #: Key of a budget → how many potential victims of rows it covers. Rows may be there twice.
        self._covered: dict[str, list[Covered]] = {}
        #: int64[row] each: what filters read of a row beside its node and pods.
        self._inputs: Mapping[str, Ints] = {}
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
        known = self._nominated
        for row in [row for row, pods in nominated.items() if known.get(row) is not pods]:
            if not _same(known.get(row, ()), nominated[row]):
                self._kinds[row] = _UNTRIED
        self._kinds[list(known.keys() - nominated.keys())] = _UNTRIED
        self._nominated = nominated
        self._generations[:] = generations

    def read_inputs(self, inputs: Mapping[str, Ints], others_accept: Mask) -> None:
        """Forget the rows for which filters that do not read columns may say something else.

        The outcome of a row that was tried together with others holds while those filters accept the row.
        If it was tried alone, it holds while all that they read stays the same.
        """
        alone = self._depends == _ON_INPUTS
        if inputs.keys() == self._inputs.keys():
            for name, values in inputs.items():
                self._kinds[alone & (values != self._inputs[name])] = _UNTRIED
        else:
            self._kinds[alone] = _UNTRIED
        self._inputs = inputs
        self._kinds[(self._depends == _ON_OTHERS) & ~others_accept] = _UNTRIED

    def _follow(self, before: Budget | None, after: Budget | None) -> None:
        """Forget the rows whose victims may depend on the change of a budget."""
        if before is None or after is None or before.label_selector != after.label_selector:
            self._kinds[:] = _UNTRIED
            self._covered.clear()
            return
        others_count = before.disrupted != after.disrupted
        for covered in self._covered.get(after.key, ()):
            # The budget protects those that exceed what it allows, in the order of importance.
            differs = _taken(before, covered.counts) != _taken(after, covered.counts)
            self._kinds[covered.rows if others_count else covered.rows[differs]] = _UNTRIED

    def forget(self, rows: RowIndex) -> None:
        self._kinds[rows] = _UNTRIED

    def search(
        self,
        rows: RowIndex,
        wanted: int,
        part_size: int,
        try_rows: Callable[[RowIndex], Tried],
        now: datetime,
        names: Sequence[str],
    ) -> Found:
        """Read the outcomes of rows until enough candidates are found, one of them without violations.

        While all of them violate a budget, the search continues, but keeps no more candidates with
        violations. Rows that were not tried are tried when they are needed, so many at a time. `names`
        has the name of the node in each row.
        """
        while True:
            kinds = self._kinds[rows]
            end = _end(kinds, wanted)
            untried = rows[:end][kinds[:end] == _UNTRIED][:part_size]
            if not len(untried):
                break
            self._set(try_rows(untried), now)
        rows, kinds = rows[:end], kinds[:end]
        clean, violating = (rows[kinds == kind][:wanted] for kind in (_CLEAN, _VIOLATING))
        return Found(self, np.concatenate((clean, violating)), rows[kinds == _REJECTED], names)

    def _set(self, tried: Tried, now: datetime) -> None:
        for rows, status in tried.refused:
            self._outcomes[rows] = status
            self._kinds[rows] = _REJECTED
            self._depends[rows] = _ON_NOTHING
        for reprieved in tried.together:
            self._set_together(reprieved)
        for row, outcome in tried.alone.items():
            self._set_alone(row, outcome, now)
        for covered in tried.covered:
            self._cover(covered)

    def _set_together(self, reprieved: Reprieved) -> None:
        rows = reprieved.rows
        self._outcomes[rows] = reprieved
        self._depends[rows] = _ON_OTHERS
        self._kinds[rows] = np.where(reprieved.violations, _VIOLATING, _CLEAN)
        self._violations[rows] = reprieved.violations
        self._highest_priority[rows] = reprieved.highest_priority
        self._sum_of_priorities[rows] = reprieved.sum_of_priorities
        self._victims[rows] = reprieved.counts
        self._earliest_start_s[rows] = reprieved.earliest_start_s

    def _set_alone(self, row: int, outcome: Outcome, now: datetime) -> None:
        self._outcomes[row] = outcome
        self._depends[row] = _ON_INPUTS
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

    def _cover(self, covered: Covered) -> None:
        parts = self._covered.setdefault(covered.key, [])
        parts.append(covered)
        if len(parts) > _MOST_PARTS:
            # The last number of a row counts.
            counts = {
                row: count
                for part in parts
                for row, count in zip(part.rows.tolist(), part.counts.tolist(), strict=True)
            }
            rows = np.array(list(counts), np.intp)
            parts[:] = [Covered(covered.key, rows, np.array(list(counts.values()), np.int64))]

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

    def copy(self) -> NDArray[Any]:
        """object[row]: what is found so far."""
        return self._outcomes.copy()


class Found:
    """The result of the search over the nodes."""

    def __init__(
        self, outcomes: Outcomes, candidates: RowIndex, rejected: RowIndex, names: Sequence[str]
    ) -> None:
        self._kept = outcomes
        # What is kept changes with the next pod, and nodes come and go.
        self._outcomes, self._names = outcomes.copy(), list(names)
        self._candidates = candidates
        self._rejected = rejected

    def __bool__(self) -> bool:
        """Whether there is a candidate."""
        return bool(len(self._candidates))

    def best(self, now: datetime) -> Best:
        """The best candidates. Ask before the next search."""
        rows = self._kept.best(self._candidates, now).tolist()
        names = self._names
        first = self._at(min(rows, key=names.__getitem__))
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

    def _at(self, row: int) -> Any:
        found = self._outcomes[row]
        return found.candidate(row) if isinstance(found, Reprieved) else found


NOWHERE = Found(Outcomes(0), np.empty(0, np.intp), np.empty(0, np.intp), ())


class _ByNode(Mapping[str, T]):
    """Put together when it is first read: most preemptions are not explained."""

    def __init__(self, names: Sequence[str], rows: RowIndex, at: Callable[[int], T]) -> None:
        self._names = names
        self._rows = rows
        self._at: Callable[[int], T] = at

    @cached_property
    def _found(self) -> dict[str, T]:
        return {self._names[row]: self._at(row) for row in self._rows.tolist()}

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


def _taken(budget: Budget, covered: Ints) -> Ints:
    """How many of the pods that a budget covers can go before it is violated."""
    return np.minimum(max(budget.allowed, 0), covered)


def _same(some: Sequence[Pod], others: Sequence[Pod]) -> bool:
    return some is others or (
        len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))
    )
