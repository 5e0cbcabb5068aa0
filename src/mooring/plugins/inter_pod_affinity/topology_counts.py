"""A number for each value of each topology key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from mooring.plugin import Columns
from mooring.plugin.pods import DomainCounts, RowCounts


class TopologyCounts:
    """The numbers of several topology keys. They start at 0."""

    __slots__ = ("_columns", "_tables", "touched")

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        #: Topology key → its numbers.
        self._tables: dict[str, DomainCounts] = {}
        #: Whether a pod was counted, even with the weight 0.
        self.touched = False

    @property
    def empty(self) -> bool:
        return not any(np.count_nonzero(table.totals) for table in self._tables.values())

    def tables(self) -> Iterable[DomainCounts]:
        return self._tables.values()

    def at(self, key: str, labels: Mapping[str, str]) -> int:
        """The number of a node with these labels; 0 if the node lacks the key."""
        table = self._tables.get(key)
        return 0 if table is None else table.at(labels.get(key))

    def on_node(self, labels: Mapping[str, str]) -> Iterable[int]:
        """The numbers of a node with these labels, one for each key."""
        return (table.at(labels.get(key)) for key, table in self._tables.items())

    def add_rows(self, key: str, counts: RowCounts, weight: int = 1) -> None:
        """Add the weight of each counted pod to the domain of the pod's row."""
        table = self._tables.get(key)
        column = self._columns.label(key) if table is None else table.column
        sums = counts.by_domain(column, self._columns)
        self.touched = self.touched or sums.all != 0
        totals = sums.totals if weight == 1 else weight * sums.totals
        if table is None:
            self._tables[key] = DomainCounts(column, totals, shared=totals is sums.totals)
        else:
            table.add_totals(totals)

    def add(self, key: str, labels: Mapping[str, str], delta: int) -> None:
        """Add to the domain of a node with these labels, if the node has the key."""
        table = self._tables.get(key)
        if table is None:
            column = self._columns.label(key)
            table = DomainCounts(column, np.zeros(len(column.values) + 1, np.int64))
            self._tables[key] = table
        table.add(labels.get(key), delta)

    def clone(self) -> TopologyCounts:
        other = TopologyCounts(self._columns)
        other._tables = {key: table.clone() for key, table in self._tables.items()}
        other.touched = self.touched
        return other
