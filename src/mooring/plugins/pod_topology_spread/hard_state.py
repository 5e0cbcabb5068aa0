"""The counts of hard constraints, and the verdicts that follow from them (PreFilter, Filter)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.plugin import (
    SUCCESS,
    Columns,
    Ints,
    Mask,
    NodeInfo,
    Rows,
    RowVerdicts,
    Snapshot,
    Status,
    by_table,
    unresolvable,
    unschedulable,
)
from mooring.plugin.nodes import Codes, LabelColumn
from mooring.plugin.pods import DomainCounts, by_domain, domains_among, look_up
from mooring.plugins.pod_topology_spread.constraints import Constraint
from mooring.plugins.pod_topology_spread.inclusion import Inclusion, included, other_labels

#: Users read these texts in Events and in `kubectl describe`. They are the reference's, verbatim.
SKEWED = unschedulable("node(s) didn't match pod topology spread constraints")
MISSING_LABEL = unresolvable(
    "node(s) didn't match pod topology spread constraints (missing required label)"
)

#: The status for each code of `Spread.judge_domains`. A domain that is too full is True, which is 1.
_VERDICTS = (SUCCESS, SKEWED, MISSING_LABEL)
_MISSING_CODE = 2

#: The count of the emptiest domain if there are no domains.
_NO_DOMAIN = 2**31 - 1


@dataclass(slots=True)
class Spread:
    """How many pods a hard constraint counts in each of its domains."""

    constraint: Constraint
    counts: DomainCounts
    #: bool[domain + 1]: whether the domain has a node that counts; the last element is not a
    #: domain.
    exists: Mask
    #: 1 if the constraint would count the incoming pod too, otherwise 0.
    own: int

    @property
    def global_minimum(self) -> int:
        """The count of the emptiest domain; 0 if there are fewer domains than minDomains."""
        counted = self.counts.totals[self.exists]
        if len(counted) < self.constraint.min_domains:
            return 0
        # The place of the least is found in a fraction of the time that `min` takes.
        return counted.item(counted.argmin()) if len(counted) else _NO_DOMAIN

    def skew_at(self, value: str) -> int:
        """How much this domain would exceed the emptiest one if the pod were placed in it."""
        return self.counts.at(value) + self.own - self.global_minimum

    def judge_domains(self) -> NDArray[np.int8]:
        """int8[domain + 1]: the verdict for the nodes of each domain, and for nodes in no domain."""
        skews = self.counts.totals + (self.own - self.global_minimum)
        verdicts = (skews > self.constraint.max_skew).view(np.int8)
        verdicts[-1] = _MISSING_CODE
        return verdicts

    def inputs(self) -> dict[str, Ints]:
        """int64[domain + 1] each: what the verdict for a node follows from, if pods of the node leave."""
        totals, exists = self.counts.totals, self.exists
        counted = np.where(exists, totals, _NO_DOMAIN)
        lowest = int(counted.min())
        # The emptiest of all other domains.
        others = np.full_like(counted, lowest)
        if np.count_nonzero(counted == lowest) == 1:
            place = int(counted.argmin())
            others[place] = np.delete(counted, place).min(initial=_NO_DOMAIN)
        enough = np.count_nonzero(exists) >= self.constraint.min_domains
        return {
            "count": totals,
            "others": others,
            "exists": exists.astype(np.int64),
            "enough": np.full_like(counted, enough),
        }

    def clone(self) -> Spread:
        return Spread(self.constraint, self.counts.clone(), self.exists, self.own)


@dataclass(slots=True)
class HardState:
    """One `Spread` for each hard constraint of the pod."""

    spreads: list[Spread]
    inclusion: Inclusion

    def update(self, pod: Pod, other: Pod, node: NodeInfo, delta: int) -> None:
        """Count another pod that is added to a node (delta 1) or removed from it (delta -1).

        As upstream, this counts pods that are being deleted and pods that match an empty selector,
        though PreFilter counts neither.
        """
        labels = node.labels
        if other.namespace != pod.namespace or node.node is None:
            return
        if not all(spread.constraint.topology_key in labels for spread in self.spreads):
            return
        for spread in self.spreads:
            constraint = spread.constraint
            if constraint.selector.matches(other.labels) and self.inclusion.accepts(
                constraint, node
            ):
                spread.counts.add(labels[constraint.topology_key], delta)

    def judge(self, node: NodeInfo) -> Status:
        """The verdict of the first constraint that the node fails."""
        for spread in self.spreads:
            value = node.labels.get(spread.constraint.topology_key)
            if value is None:
                return MISSING_LABEL
            if spread.skew_at(value) > spread.constraint.max_skew:
                return SKEWED
        return SUCCESS

    def judge_rows(self, rows: Rows) -> RowVerdicts:
        """The same rule for many rows: judge each domain once, then look up each row's domain."""
        verdicts: NDArray[np.int8] | None = None
        # The loop ends with the first constraint, because the first verdict against a row decides.
        for spread in reversed(self.spreads):
            judged = look_up(spread.judge_domains(), spread.counts.column.codes[rows])
            verdicts = judged if verdicts is None else np.where(judged, judged, verdicts)
        assert verdicts is not None, "PreFilter skips a pod without hard constraints"
        return by_table(verdicts, _VERDICTS)

    def inputs(self, rows: Rows) -> dict[str, Ints]:
        """int64[row] each."""
        return {
            f"{number} {name}": look_up(values, spread.counts.column.codes[rows])
            for number, spread in enumerate(self.spreads)
            for name, values in spread.inputs().items()
        }

    def clone(self) -> HardState:
        return HardState([spread.clone() for spread in self.spreads], self.inclusion)


class HardDomains:
    """The domains of hard constraints, for all pods alike, until a node changes. `count` gives the counts."""

    def __init__(self, constraints: Sequence[Constraint], pod: Pod, columns: Columns) -> None:
        self._columns = columns
        self._nodes = columns.node_epoch, columns.size
        self._inclusion = inclusion = Inclusion(pod, columns)
        labels = [columns.label(constraint.topology_key) for constraint in constraints]
        self._spreads = []
        for constraint, column in zip(constraints, labels, strict=True):
            conditions = other_labels(column, labels, columns) + inclusion.conditions(constraint)
            self._spreads.append(_CountedDomains(constraint, column, conditions, columns))

    def hold_for(self, columns: Columns) -> bool:
        # A pod on an unknown node takes a row as well.
        return self._columns is columns and self._nodes == (columns.node_epoch, columns.size)

    def count(self, snapshot: Snapshot, owns: Sequence[int]) -> HardState:
        """`owns` has 1 for each constraint that would count the pod itself."""
        spreads = [each.count(snapshot, own) for each, own in zip(self._spreads, owns, strict=True)]
        return HardState(spreads, self._inclusion)


class _CountedDomains:
    """The domains of one hard constraint."""

    __slots__ = ("_codes", "_column", "_constraint", "_exists")

    def __init__(
        self,
        constraint: Constraint,
        column: LabelColumn,
        conditions: Sequence[Mask],
        columns: Columns,
    ) -> None:
        self._constraint = constraint
        self._column = column
        #: int32[row]: the domains of the rows that count; None if all rows do.
        self._codes: Codes | None = None
        codes = column.codes[columns.all_rows]
        counted = included(codes, conditions)
        if counted is not codes:
            self._codes = counted
            self._exists = domains_among(counted, len(column.values))
            self._exists[-1] = 0

    def count(self, snapshot: Snapshot, own: int) -> Spread:
        columns, column = snapshot.columns, self._column
        counts = snapshot.pod_counts.kept(self._constraint.query)
        if self._codes is None:
            sums = counts.by_domain(column, columns)
            totals = DomainCounts(column, sums.totals, shared=True)
            return Spread(self._constraint, totals, sums.exists, own)
        found = by_domain(self._codes, counts.counts[columns.all_rows], len(column.values))
        found[-1] = 0
        return Spread(self._constraint, DomainCounts(column, found), self._exists, own)
