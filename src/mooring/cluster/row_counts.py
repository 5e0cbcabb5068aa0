"""A count for each row, and the sums of such counts over topology domains."""

from __future__ import annotations

import numpy as np

from mooring.cluster.columns import ABSENT, Codes, Columns, Ints, LabelColumn, Mask
from mooring.errors import check_kept


class RowCounts:
    """A number for each row. The rows change one at a time; the sums by domain are kept up to date."""

    __slots__ = ("_sums", "counts")

    def __init__(self, capacity: int) -> None:
        #: int64[row]. Only `change` writes to it.
        self.counts: Ints = np.zeros(capacity, np.int64)
        #: Topology key → the sums by its domains.
        self._sums: dict[str, DomainSums] = {}

    def change(self, row: int, delta: int) -> None:
        self.counts[row] += delta
        for sums in self._sums.values():
            # Sums of an earlier epoch may lack the row or its domain. They are never read.
            codes = sums.column.codes
            code = codes[row] if row < len(codes) else ABSENT
            if ABSENT < code < len(sums.totals) - 1:
                sums.totals[code] += delta
                sums.all += delta

    def by_domain(self, column: LabelColumn, columns: Columns) -> DomainSums:
        sums = self._sums.get(column.key)
        if sums is None or sums.column is not column or sums.epoch != columns.node_epoch:
            # A node's labels changed, so rows may have moved from one domain to another.
            rows = columns.all_rows
            codes, domains = column.codes[rows], len(column.values)
            totals = by_domain(codes, self.counts[rows], domains)
            exists = domains_among(codes, domains)
            totals[-1] = exists[-1] = 0
            sums = DomainSums(column, columns.node_epoch, totals=totals, exists=exists)
            self._sums[column.key] = sums
        return sums

    def validate(self, what: str, rebuilt: RowCounts, columns: Columns) -> None:
        """Raise InvariantError unless counts and sums equal a rebuild."""
        if not np.array_equal(self.counts, rebuilt.counts):
            counts, recounted = (dict(enumerate(each.counts.tolist())) for each in (self, rebuilt))
            check_kept(f"{what}, row", counts, recounted)
        for key, sums in self._sums.items():
            if sums.epoch != columns.node_epoch or not columns.keeps(sums.column):
                # Summed again before they are read.
                continue
            expected = rebuilt.by_domain(sums.column, columns)
            check_kept(f"{what}, sums by {key}", sums.contents(), expected.contents())

    def grow(self, capacity: int) -> None:
        longer = np.zeros(capacity, np.int64)
        longer[: len(self.counts)] = self.counts
        self.counts = longer


class DomainSums:
    """The sums of a count over the domains of one label. They are valid until a node changes."""

    __slots__ = ("all", "column", "epoch", "exists", "totals")

    def __init__(self, column: LabelColumn, epoch: int, *, totals: Ints, exists: Mask) -> None:
        self.column = column
        #: The epoch of the columns for which the totals are valid.
        self.epoch = epoch
        #: int64[domain + 1]: the sum over each domain's rows. Only `RowCounts.change` writes to it.
        #: The last element, for ABSENT, is 0: rows without the label are in no domain.
        self.totals = totals
        #: bool[domain + 1]: which domains have a node; the last element is not a domain.
        self.exists = exists
        #: The sum of the totals.
        self.all = int(totals.sum())

    def contents(self) -> dict[str, object]:
        values = self.column.values
        return {
            "total": self.all,
            "number of domains": len(self.totals),
            "domains": dict(zip((*values, None), self.totals.tolist(), strict=False)),
            "domains with nodes": dict(zip((*values, None), self.exists.tolist(), strict=False)),
        }


class DomainCounts:
    """A number for each domain of one label, which a plugin may change.

    Totals may be shared with a `DomainSums`, and are copied before the first change. Most are never
    changed, and with one domain for each node they are long.
    """

    __slots__ = ("_shared", "column", "totals")

    def __init__(self, column: LabelColumn, totals: Ints, *, shared: bool = False) -> None:
        self.column = column
        #: int64[domain + 1]: by the column's code. The last element, for ABSENT, is 0.
        self.totals = totals
        #: Whether the totals belong to a `DomainSums`.
        self._shared = shared

    def at(self, value: str | None) -> int:
        """The number of the domain with this value; 0 if there is no such domain."""
        return int(self.totals[self.column.code_of(value)])

    def add(self, value: str | None, delta: int) -> None:
        code = self.column.code_of(value)
        if code == ABSENT:
            return
        if self._shared:
            self.totals, self._shared = self.totals.copy(), False
        self.totals[code] += delta

    def add_totals(self, totals: Ints) -> None:
        self.totals, self._shared = self.totals + totals, False

    def clone(self) -> DomainCounts:
        return DomainCounts(self.column, self.totals.copy())


def by_domain(codes: Codes, counts: Ints, domains: int) -> Ints:
    """Add up the counts of the rows of each domain.

    ``totals[code] = sum of counts[row] over the rows with that code``, in int64 throughout. There
    is one element more than there are domains, for rows without the label: their code, ABSENT, is
    -1, so codes can be looked up in the result.

    codes
        ``int32[row]``: each row's domain, or ABSENT.
    counts
        ``int64[row]``.
    """
    totals = np.zeros(domains + 1, np.int64)
    np.add.at(totals, codes, counts)
    return totals


def domains_among(codes: Codes, domains: int) -> Mask:
    """bool[domain + 1]: the domains that have one of these rows; the last element is no domain."""
    found = np.bincount(codes + 1, minlength=domains + 1) > 0
    # Move the bin of ABSENT from the start to the end. (`np.roll` takes three times as long.)
    return np.concatenate((found[1:], found[:1]))
