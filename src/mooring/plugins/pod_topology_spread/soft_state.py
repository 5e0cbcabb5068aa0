"""The counts of soft constraints, and the scores that follow from them (PreScore, Score).

For the hostname, each node is a domain of its own, whatever its label says, and the inclusion policies
do not apply.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.objects.well_known import HOSTNAME
from mooring.plugin import MAX_SCORE, Columns, Ints, Mask, NodeInfo, Rows, Snapshot, row_count
from mooring.plugin.nodes import ABSENT, Codes, LabelColumn
from mooring.plugin.pods import by_domain, domains_among, look_up
from mooring.plugins.pod_topology_spread.constraints import Constraint
from mooring.plugins.pod_topology_spread.inclusion import Inclusion, included, other_labels

#: A table of scores may have this many, however few rows there are.
_FEW_SCORES = 256


class _Domains(NamedTuple):
    """The domains of one constraint."""

    constraint: Constraint
    column: LabelColumn
    #: int32[row]: the domain of each row.
    codes: Codes
    #: The same for the rows whose pods count; None if these are all rows with the label.
    counted: Codes | None


class _SoftSpread:
    """A constraint: a node whose domain has n pods scores ``n * weight + offset``."""

    __slots__ = ("column", "offset", "query", "weight")

    def __init__(self, domains: _Domains, number: int) -> None:
        """`number` is that of the domains with a feasible node."""
        self.column = domains.column
        self.query = domains.constraint.query
        #: The natural logarithm of the number of domains plus 2: few domains weigh less.
        self.weight = math.log(number + 2)
        #: maxSkew - 1.
        self.offset = float(domains.constraint.max_skew - 1)


class _HostSpread(_SoftSpread):
    """Each node is a domain of its own. Its counts are by row."""

    __slots__ = ()

    def count(self, snapshot: Snapshot) -> Ints:
        """int64[row]: how many pods the query picks on each row."""
        return snapshot.pod_counts.kept(self.query).counts

    def score(self, node: NodeInfo, _: Ints) -> float:
        """For a node that has the label."""
        count = sum(map(self.query.picks, node.pods.values()))
        return count * self.weight + self.offset

    def score_counts(self, counts: Ints) -> NDArray[np.float64]:
        scores: NDArray[np.float64] = np.multiply(counts, self.weight, dtype=np.float64)
        scores += self.offset
        return scores

    def score_rows(self, rows: Rows, counts: Ints) -> NDArray[np.float64]:
        """float64[row asked for]: the same for many rows; 0 for a row without the label."""
        scores = self.score_counts(counts[rows])
        absent = self.column.codes[rows] == ABSENT
        return np.where(absent, 0.0, scores) if np.count_nonzero(absent) else scores


class _DomainSpread(_SoftSpread):
    """Nodes with the same value of the label are one domain. Its counts are by domain."""

    __slots__ = ("_codes",)

    def __init__(self, domains: _Domains, number: int) -> None:
        super().__init__(domains, number)
        self._codes = domains.counted

    def count(self, snapshot: Snapshot) -> Ints:
        """int64[domain + 1]: the pods in each domain; the last element is not a domain.

        They may be the totals of a `DomainSums`, so they must not be changed.
        """
        columns = snapshot.columns
        counts = snapshot.pod_counts.kept(self.query)
        if self._codes is None:
            return counts.by_domain(self.column, columns).totals
        return by_domain(self._codes, counts.counts[columns.all_rows], len(self.column.values))

    def score(self, node: NodeInfo, totals: Ints) -> float:
        code = self.column.code_of(node.labels[self.column.key])
        return (0 if code == ABSENT else int(totals[code])) * self.weight + self.offset

    def score_domains(self, totals: Ints) -> NDArray[np.float64]:
        """float64[domain + 1]: the last element, for rows without the label, is 0."""
        by_code: NDArray[np.float64] = np.multiply(totals, self.weight, dtype=np.float64)
        by_code += self.offset
        by_code[-1] = 0.0
        return by_code

    def score_rows(self, rows: Rows, totals: Ints) -> NDArray[np.float64]:
        return look_up(self.score_domains(totals), self.column.codes[rows])


_Spread = _HostSpread | _DomainSpread


class SoftDomains:
    """The domains of soft constraints, for all pods alike, until a node changes."""

    def __init__(
        self, constraints: Sequence[Constraint], pod: Pod, columns: Columns, *, require_all: bool
    ) -> None:
        self._columns = columns
        self._nodes = columns.node_epoch, columns.size
        self._require_all = require_all
        inclusion = Inclusion(pod, columns)
        labels = [columns.label(constraint.topology_key) for constraint in constraints]
        required = labels if require_all else []
        rows = columns.all_rows
        #: The labels that nodes need, if a node lacks one of them.
        self._missed: list[LabelColumn] = []
        if required and (_lacking(required, rows) & columns.alive[rows]).any():
            self._missed = required
        self._domains = []
        for constraint, column in zip(constraints, labels, strict=True):
            has_empty_value = not require_all and column.code_of("") != ABSENT
            codes = _with_empty_value(column, columns) if has_empty_value else column.codes[rows]
            conditions = other_labels(column, required, columns) + inclusion.conditions(constraint)
            counted = included(codes, conditions)
            is_every = counted is codes and not has_empty_value
            domains = _Domains(constraint, column, codes, None if is_every else counted)
            self._domains.append(domains)
        self._latest: FeasibleDomains | None = None

    def hold_for(self, columns: Columns) -> bool:
        # A pod on an unknown node takes a row as well.
        return self._columns is columns and self._nodes == (columns.node_epoch, columns.size)

    def among(self, feasible: Rows) -> FeasibleDomains:
        """The domains that have one of these rows."""
        latest = self._latest
        if latest is not None and _are_same(feasible, latest.feasible):
            latest.keep()
            return latest
        ignored = _lacking(self._missed, feasible) if self._missed else None
        if ignored is not None and not ignored.any():
            ignored = None
        compared = feasible if ignored is None else _without(feasible, ignored)
        spreads: list[_Spread] = []
        for each in self._domains:
            if each.constraint.topology_key == HOSTNAME:
                spreads.append(_HostSpread(each, row_count(compared)))
            else:
                exist = domains_among(each.codes[compared], len(each.column.values))
                spreads.append(_DomainSpread(each, int(np.count_nonzero(exist))))
        latest = FeasibleDomains(
            spreads, feasible, ignored, self._columns, require_all=self._require_all
        )
        self._latest = latest
        return latest


class FeasibleDomains:
    """The domains of soft constraints among feasible rows. `count` gives the counts."""

    def __init__(
        self,
        spreads: Sequence[_Spread],
        feasible: Rows,
        ignored: Mask | None,
        columns: Columns,
        *,
        require_all: bool,
    ) -> None:
        self._spreads = spreads
        self._columns = columns
        self.feasible = feasible
        #: bool[feasible row]: nodes that score 0 because they lack a label. None if there are none.
        self.ignored = ignored
        #: Whether a node needs every label. If not, a missing label stands for the empty value.
        self.require_all = require_all
        self._kept = False
        self._table: _ScoreTable | None = None

    def keep(self) -> None:
        """They hold for more than one pod: what speeds up scoring is worth making."""
        if not self._kept:
            self._kept = True
            self._table = _ScoreTable.of(self._spreads, self._columns, require_all=self.require_all)

    def count(self, snapshot: Snapshot) -> SoftState:
        counts = {spread: spread.count(snapshot) for spread in self._spreads}
        return SoftState(self, counts, self._table)


class SoftState:
    """What PreScore counts for the pod's soft constraints."""

    __slots__ = ("_counts", "_domains", "_table")

    def __init__(
        self, domains: FeasibleDomains, counts: Mapping[_Spread, Ints], table: _ScoreTable | None
    ) -> None:
        self._domains = domains
        #: Each constraint, in order, with what it counts.
        self._counts = counts
        self._table = table

    def score(self, node: NodeInfo) -> int:
        """Add up the constraints whose label the node has, in their order, and round the sum."""
        total = 0.0
        for spread, counts in self._counts.items():
            if spread.column.key in node.labels:
                total += spread.score(node, counts)
            elif self._domains.require_all:
                return 0
        return math.floor(total + 0.5)

    def score_rows(self, rows: Rows) -> Ints:
        """int64[row asked for]: the same for many rows. A missing label adds 0."""
        if self._table is not None:
            scores = self._table.score_rows(rows, self._counts)
            if scores is not None:
                return scores
        by_spread = (each.score_rows(rows, counts) for each, counts in self._counts.items())
        scores = _rounded(reduce(np.add, by_spread))
        if self._domains.require_all:
            for spread in self._counts:
                absent = spread.column.codes[rows] == ABSENT
                if np.count_nonzero(absent):
                    scores[absent] = 0
        return scores

    def normalize(self, scores: Ints) -> None:
        """The lower the raw score, the higher the result; an ignored node gets 0.

        ``100 * (max + min - score) // max`` over the nodes that are not ignored; 100 if max is 0.
        """
        ignored = self._domains.ignored
        scored = scores if ignored is None else scores[~ignored]
        # The place of an extreme is found in a fraction of the time that `max` takes.
        highest = scored.item(scored.argmax()) if len(scored) else 0
        if highest == 0:
            scores[:] = MAX_SCORE
        else:
            np.subtract(highest + scored.item(scored.argmin()), scores, out=scores)
            np.multiply(scores, MAX_SCORE, out=scores)
            np.floor_divide(scores, highest, out=scores)
        if ignored is not None:
            scores[ignored] = 0


class _ScoreTable:
    """The scores for one constraint on domains, with or without one on hosts.

    They follow from the domain and the count of a row. Few combinations occur: each is scored once, and the
    rows look up theirs.
    """

    __slots__ = ("_cells", "_domains", "_host", "_host_scores", "_own", "_require_all", "_rows")

    def __init__(
        self, domains: _DomainSpread, host: _HostSpread | None, rows: int, *, require_all: bool
    ) -> None:
        self._domains = domains
        self._host = host
        self._rows = rows
        self._require_all = require_all
        size = len(domains.column.values) + 1
        #: intp[row]: the row's domain; the last one stands for rows without the label.
        self._own: NDArray[np.intp] = domains.column.codes[:rows].astype(np.intp) % size
        #: float64[count]: what the constraint on hosts adds.
        self._host_scores: NDArray[np.float64] = np.zeros(0)
        #: intp[row]: the cell of the row if it had no pods.
        self._cells = self._own

    @classmethod
    def of(cls, spreads: Sequence[_Spread], columns: Columns, *, require_all: bool) -> Self | None:
        """None for other constraints, and if there is a node without a hostname."""
        hosts = [each for each in spreads if isinstance(each, _HostSpread)]
        domains = [each for each in spreads if isinstance(each, _DomainSpread)]
        if len(domains) != 1 or len(hosts) > 1:
            return None
        rows = columns.all_rows
        for host in hosts:
            if ((host.column.codes[rows] == ABSENT) & columns.alive[rows]).any():
                return None
        return cls(domains[0], hosts[0] if hosts else None, columns.size, require_all=require_all)

    def score_rows(self, rows: Rows, counts: Mapping[_Spread, Ints]) -> Ints | None:
        """None if there are too many combinations."""
        scores = self._domains.score_domains(counts[self._domains])
        if self._host is None:
            return look_up(_rounded(scores), self._cells[rows])
        by_row = counts[self._host][rows]
        most = by_row.item(by_row.argmax()) if len(by_row) else 0
        if most >= len(self._host_scores):
            host_scores = self._host.score_counts(np.arange(2 * most + 1))
            if len(host_scores) * len(scores) > max(self._rows, _FEW_SCORES):
                return None
            self._host_scores = host_scores
            self._cells = self._own * len(host_scores)
        table = _rounded(np.add.outer(scores, self._host_scores))
        if self._require_all:
            table[-1] = 0
        return look_up(table.ravel(), self._cells[rows] + by_row)


def _rounded(scores: NDArray[np.float64]) -> Ints:
    """The reference rounds half away from zero.

    ``floor(score + 0.5)`` gives the same result: it could differ only for scores between 0 and 0.5, and a
    score is a sum of integers and of multiples of logarithms greater than 0.5.
    """
    scores += 0.5
    return np.floor(scores, out=scores).astype(np.int64)


def _are_same(a: Rows, b: Rows) -> bool:
    """Whether two selections of rows are the same array, or the same slice."""
    return a is b or (isinstance(a, slice) and isinstance(b, slice) and a == b)


def _lacking(labels: Sequence[LabelColumn], rows: Rows) -> Mask:
    """bool[row asked for]: which rows lack one of the labels."""
    lacking: Mask = reduce(np.logical_or, (column.codes[rows] == ABSENT for column in labels))
    return lacking


def _without(rows: Rows, ignored: Mask) -> Rows:
    kept = np.flatnonzero(~ignored)
    return kept if isinstance(rows, slice) else rows[kept]


def _with_empty_value(column: LabelColumn, columns: Columns) -> Codes:
    """int32[row]: each row's domain, where nodes without the label have the empty value."""
    codes, alive = column.codes[columns.all_rows], columns.alive[columns.all_rows]
    return np.where(alive & (codes == ABSENT), np.int32(column.code_of("")), codes)
