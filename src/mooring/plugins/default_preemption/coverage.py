"""Which pods disruption budgets protect, on many nodes at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mooring.objects.pod import SelectorKey
from mooring.plugin import Ints, Mask, RowIndex
from mooring.plugins.default_preemption.budgets import Budgets
from mooring.plugins.default_preemption.pods_by_importance import (
    PodsByImportance,
    Runs,
    offsets_of,
    ranges,
)


@dataclass(frozen=True, slots=True)
class Covered:
    """How many potential victims of some rows a budget covers."""

    #: The budget's.
    key: str
    rows: RowIndex
    #: int64[row asked for].
    counts: Ints


@dataclass(frozen=True, slots=True)
class Protection:
    """As `Budgets.split`, for the pods of many rows."""

    #: bool[place asked for]: whether evicting the pod violates a budget.
    violating: Mask
    covered: list[Covered] = field(default_factory=list)


class Coverage:
    """Selectors are matched once for all pods with the same namespace and labels."""

    def __init__(self) -> None:
        self._budgets = Budgets(())
        self._label_sets: list[SelectorKey] = []
        #: int64[budget]: how many evictions a budget allows.
        self._allowed: Ints = np.zeros(0, np.int64)
        #: The numbers of the budgets that select a set of labels, one set after another; and for each set
        #: how many there are.
        self._numbers: list[int] = []
        self._counts: list[int] = []

    def protect(self, budgets: Budgets, pods: PodsByImportance, runs: Runs) -> Protection:
        """Every pod takes one disruption from each budget that covers it, the most important first."""
        violating = np.zeros(len(runs.places), np.bool_)
        if not budgets.by_key:
            return Protection(violating)
        labels = pods.labels_at(runs.places)
        self._catch_up(budgets, pods.label_sets)
        counts_of_set = np.array(self._counts, np.int64)
        counts = counts_of_set[labels]
        #: A pair for each pod and each budget that covers it: the index of its place, and the budget.
        indices = np.repeat(np.arange(len(labels)), counts)
        numbers = np.array(self._numbers, np.int64)[
            ranges(offsets_of(counts_of_set)[labels], counts)
        ]
        indices, numbers = self._without_disrupted(budgets, pods, runs, indices, numbers)
        if not len(indices):
            return Protection(violating)
        groups = runs.owners[indices] * len(self._allowed) + numbers
        # Stable: within a row and a budget, the most important pod stays first.
        order = np.argsort(groups, kind="stable")
        groups = groups[order]
        starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
        sizes = np.diff(np.append(starts, len(groups)))
        nth = np.arange(1, len(groups) + 1) - np.repeat(starts, sizes)
        exceeds = nth > self._allowed[numbers[order]]
        violating[indices[order[exceeds]]] = True
        owners, of_groups = np.divmod(groups[starts], len(self._allowed))
        return Protection(violating, self._by_budget(of_groups, runs.rows[owners], sizes))

    def _catch_up(self, budgets: Budgets, label_sets: list[SelectorKey]) -> None:
        if budgets is not self._budgets:
            selectors_differ = list(budgets.by_key) != list(self._budgets.by_key) or any(
                before is None or after is None or before.label_selector != after.label_selector
                for before, after in budgets.changed_since(self._budgets)
            )
            if selectors_differ:
                self._numbers, self._counts = [], []
            self._budgets = budgets
            self._allowed = np.array([each.allowed for each in budgets.by_key.values()], np.int64)
        if label_sets is not self._label_sets:
            self._label_sets, self._numbers, self._counts = label_sets, [], []
        if len(self._counts) < len(label_sets):
            number_of = {key: number for number, key in enumerate(budgets.by_key)}
            for namespace, labels in label_sets[len(self._counts) :]:
                selecting = budgets.selecting(namespace, dict(labels))
                numbers = [number_of[budget.key] for budget in selecting]
                self._numbers += numbers
                self._counts.append(len(numbers))

    def _without_disrupted(
        self, budgets: Budgets, pods: PodsByImportance, runs: Runs, indices: Ints, numbers: Ints
    ) -> tuple[Ints, Ints]:
        """The API server has counted these pods already."""
        disrupted = [budget.disrupted for budget in budgets.by_key.values()]
        concerned = np.flatnonzero(np.array([bool(names) for names in disrupted])[numbers])
        if not len(concerned):
            return indices, numbers
        counts = np.ones(len(indices), np.bool_)
        for pair in concerned.tolist():
            pod = pods.pods[runs.places[indices[pair]]]
            counts[pair] = pod.name not in disrupted[numbers[pair]]
        return indices[counts], numbers[counts]

    def _by_budget(self, numbers: Ints, rows: RowIndex, counts: Ints) -> list[Covered]:
        order = np.argsort(numbers, kind="stable")
        numbers, rows, counts = numbers[order], rows[order], counts[order]
        ends = np.flatnonzero(np.append(numbers[1:] != numbers[:-1], True)) + 1
        keys = list(self._budgets.by_key)
        covered, start = [], 0
        for end in ends.tolist():
            part = slice(start, end)
            covered.append(Covered(keys[numbers[start]], rows[part], counts[part]))
            start = end
        return covered
