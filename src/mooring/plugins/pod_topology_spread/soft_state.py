"""The counts of soft constraints, and the scores that follow from them (PreScore, Score).

For the hostname, each node is a domain of its own, whatever its label says, and the inclusion policies
do not apply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.objects.well_known import HOSTNAME
from mooring.plugin import MAX_SCORE, Columns, Ints, Mask, NodeInfo, Rows, Snapshot, row_count
from mooring.plugin.nodes import ABSENT, Codes, LabelColumn
from mooring.plugin.pods import PodQuery, by_domain, domains_among, look_up
from mooring.plugins.pod_topology_spread.constraints import Constraint
from mooring.plugins.pod_topology_spread.inclusion import Inclusion, included, other_labels


@dataclass(frozen=True, slots=True)
class _SoftSpread:
    """A node whose domain has n pods scores ``n * weight + offset``."""

    column: LabelColumn
    #: The natural logarithm of the number of domains plus 2: few domains weigh less.
    weight: float
    #: maxSkew - 1.
    offset: float


@dataclass(frozen=True, slots=True)
class _HostSpread(_SoftSpread):
    """Each node is a domain of its own."""

    query: PodQuery
    #: int64[row]: how many pods the query picks on each row.
    counts: Ints

    def score(self, node: NodeInfo) -> float:
        """For a node that has the label."""
        count = sum(map(self.query.picks, node.pods.values()))
        return count * self.weight + self.offset

    def score_rows(self, rows: Rows) -> NDArray[np.float64]:
        """float64[row asked for]: the same for many rows; 0 for a row without the label."""
        scores = self.counts[rows].astype(np.float64)
        scores *= self.weight
        scores += self.offset
        absent = self.column.codes[rows] == ABSENT
        return np.where(absent, 0.0, scores) if np.count_nonzero(absent) else scores


@dataclass(frozen=True, slots=True)
class _DomainSpread(_SoftSpread):
    """Nodes with the same value of the label are one domain."""

    #: int64[domain + 1]: the pods in each domain; the last element is not a domain. They may be the
    #: totals of a `DomainSums`, so they must not be changed.
    totals: Ints

    def score(self, node: NodeInfo) -> float:
        code = self.column.code_of(node.labels[self.column.key])
        return (0 if code == ABSENT else int(self.totals[code])) * self.weight + self.offset

    def score_rows(self, rows: Rows) -> NDArray[np.float64]:
        by_code = self.totals.astype(np.float64) * self.weight + self.offset
        by_code[-1] = 0.0
        return look_up(by_code, self.column.codes[rows])


@dataclass(frozen=True, slots=True)
class SoftState:
    """What PreScore counts for the pod's soft constraints."""

    spreads: Sequence[_HostSpread | _DomainSpread]
    #: bool[feasible row]: nodes that score 0 because they lack a label. None if there are none.
    ignored: Mask | None
    #: Whether a node needs every label. If not, a missing label stands for the empty value.
    require_all: bool

    @classmethod
    def count(
        cls,
        constraints: Sequence[Constraint],
        pod: Pod,
        snapshot: Snapshot,
        feasible: Rows,
        *,
        require_all: bool,
    ) -> SoftState:
        columns = snapshot.columns
        rows = columns.all_rows
        inclusion = Inclusion(pod, columns)
        labels = [columns.label(constraint.topology_key) for constraint in constraints]
        required = labels if require_all else []
        ignored = _lacking_any(required, feasible) if required else None
        compared = feasible if ignored is None else _without(feasible, ignored)
        spreads: list[_HostSpread | _DomainSpread] = []
        for constraint, column in zip(constraints, labels, strict=True):
            query, offset = constraint.query(pod.namespace), float(constraint.max_skew - 1)
            counts = snapshot.pod_counts.kept(query)
            if constraint.topology_key == HOSTNAME:
                weight = math.log(row_count(compared) + 2)
                spreads.append(_HostSpread(column, weight, offset, query, counts.counts))
                continue
            size = len(column.values)
            has_empty_value = not require_all and column.code_of("") != ABSENT
            codes = _with_empty_value(column, columns) if has_empty_value else column.codes[rows]
            conditions = other_labels(column, required, columns) + inclusion.conditions(constraint)
            sums = None if has_empty_value else counts.by_domain(column, columns)
            if sums is not None and isinstance(compared, slice):
                # Every slot is compared, and those without the label count as one domain.
                number = int(np.count_nonzero(sums.exists)) + bool((codes == ABSENT).any())
            else:
                number = int(np.count_nonzero(domains_among(codes[compared], size)))
            if sums is None or conditions:
                totals = by_domain(included(codes, conditions), counts.counts[rows], size)
            else:
                totals = sums.totals
            spreads.append(_DomainSpread(column, math.log(number + 2), offset, totals))
        return cls(spreads, ignored, require_all)

    def score(self, node: NodeInfo) -> int:
        """Add up the constraints whose label the node has, in their order, and round the sum."""
        total = 0.0
        for spread in self.spreads:
            if spread.column.key in node.labels:
                total += spread.score(node)
            elif self.require_all:
                return 0
        return math.floor(total + 0.5)

    def score_rows(self, rows: Rows) -> Ints:
        """int64[row asked for]: the same for many rows. A missing label adds 0.

        The reference rounds half away from zero. ``floor(total + 0.5)`` gives the same result: it
        could differ only for totals between 0 and 0.5, and a total is a sum of integers and of
        multiples of logarithms greater than 0.5.
        """
        first, *others = self.spreads
        total = first.score_rows(rows)
        for spread in others:
            total += spread.score_rows(rows)
        total += 0.5
        scores = np.floor(total, out=total).astype(np.int64)
        if self.require_all:
            for spread in self.spreads:
                absent = spread.column.codes[rows] == ABSENT
                if np.count_nonzero(absent):
                    scores[absent] = 0
        return scores

    def normalize(self, scores: Ints) -> None:
        """The lower the raw score, the higher the result; an ignored node gets 0.

        ``100 * (max + min - score) // max`` over the nodes that are not ignored; 100 if max is 0.
        """
        ignored = self.ignored
        scored = scores if ignored is None else scores[~ignored]
        highest = int(scored.max(initial=0))
        if highest == 0:
            scores[:] = MAX_SCORE
        else:
            np.subtract(highest + int(scored.min()), scores, out=scores)
            np.multiply(scores, MAX_SCORE, out=scores)
            np.floor_divide(scores, highest, out=scores)
        if ignored is not None:
            scores[ignored] = 0


def _lacking_any(labels: Sequence[LabelColumn], rows: Rows) -> Mask | None:
    """bool[row asked for]: which rows lack one of the labels; None if all rows have all labels."""
    lacking: Mask = reduce(np.logical_or, (column.codes[rows] == ABSENT for column in labels))
    return lacking if lacking.any() else None


def _without(rows: Rows, ignored: Mask) -> Rows:
    kept = np.flatnonzero(~ignored)
    return kept if isinstance(rows, slice) else rows[kept]


def _with_empty_value(column: LabelColumn, columns: Columns) -> Codes:
    """int32[row]: each row's domain, where nodes without the label have the empty value."""
    codes, alive = column.codes[columns.all_rows], columns.alive[columns.all_rows]
    return np.where(alive & (codes == ABSENT), np.int32(column.code_of("")), codes)
