"""A count a row, with its sums over topology domains kept beside it."""

from __future__ import annotations

import numpy as np

from mooring.cluster.columns import ABSENT, Codes, Columns, Ints, LabelColumn, Mask


class RowCounts:
    """Numbers by row that change one at a time and are asked for by domain."""

    __slots__ = ("_sums", "counts")

    def __init__(self, capacity: int) -> None:
        #: int64[row]. Not to be written to but by `change`.
        self.counts: Ints = np.zeros(capacity, np.int64)
        #: Topology key → the sums by its domains.
        self._sums: dict[str, DomainSums] = {}

    def change(self, row: int, delta: int) -> None:
        self.counts[row] += delta
        for sums in self._sums.values():
            # Sums of an earlier epoch may lack the row or its domain. They are never read again.
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
            codes = column.codes[rows]
            totals = by_domain(codes, self.counts[rows], len(column.values))
            totals[-1] = 0
            exists = domains_among(codes, len(column.values))
            exists[-1] = False
            sums = DomainSums(column, columns.node_epoch, totals=totals, exists=exists)
            self._sums[column.key] = sums
        return sums

    def grow(self, capacity: int) -> None:
        longer = np.zeros(capacity, np.int64)
        longer[: len(self.counts)] = self.counts
        self.counts = longer


class DomainSums:
    """The sums of a count over the domains of one label, as long as no node changes."""

    __slots__ = ("all", "column", "epoch", "exists", "totals")

    def __init__(self, column: LabelColumn, epoch: int, *, totals: Ints, exists: Mask) -> None:
        self.column = column
        #: The columns' epoch that the totals hold for.
        self.epoch = epoch
        #: int64[domain + 1]: the sum over each domain's rows. Not to be written to. The last place,
        #: which ABSENT finds, is 0: rows without the label are in no domain.
        self.totals = totals
        #: bool[domain + 1]: which domains have a node at all; the last place is not a domain.
        self.exists = exists
        #: The sum of the totals.
        self.all = int(totals.sum())


def by_domain(codes: Codes, counts: Ints, domains: int) -> Ints:
    """Add up what is counted by row, domain by domain.

    ``totals[code] = sum of counts[row] over the rows with that code``, in int64 throughout. There is
    one place more than there are domains, for the rows without the label: their code, ABSENT, is
    -1, so the result is also the table to look codes up in.

    codes
        ``int32[row]``: each row's domain, or ABSENT.
    counts
        ``int64[row]``.
    """
    totals = np.zeros(domains + 1, np.int64)
    np.add.at(totals, codes, counts)
    return totals


def domains_among(codes: Codes, domains: int) -> Mask:
    """bool[domain + 1]: which domains these rows are in; the last place is for those in none."""
    found = np.bincount(codes + 1, minlength=domains + 1) > 0
    # The bin of ABSENT comes first, and its place is the last. (A roll takes three times as long.)
    return np.concatenate((found[1:], found[:1]))
