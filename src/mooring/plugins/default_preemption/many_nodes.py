"""The dry run of preemption on many nodes at once: pods are removed from columns, not from nodes.

Some filters read the pods of a node only through columns, so changed columns can replace a changed
node. The leading filters of this kind judge all nodes without their pods of lower priority in one
pass. If no other filter stands in the way, pods are also put back on all nodes at once: the most
important of each node, then the next of each node, as long as there is room. That is exact for any
number of resources, since each node has its own turn in every pass. Pods nominated to a node are
added to its row: a filter of this kind that accepts a node with them also accepts it without them.

Other filters, such as pod anti-affinity, may say what they read of a node (`dry_run_inputs`). Such a
filter never refuses a node for having fewer pods, so where it accepts the node as it is, it does not
matter. The rest is tried node by node: host ports that change, and nodes that other filters refuse.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod
from mooring.plugin import Columns, Ints, Mask, RowIndex, RowsTrial, Status
from mooring.plugins.default_preemption.candidates import (
    NO_VICTIMS,
    Candidate,
    Outcome,
    VictimSearch,
    outcome,
)
from mooring.plugins.default_preemption.choice import PRIORITY_OFFSET
from mooring.plugins.default_preemption.coverage import Coverage, Covered
from mooring.plugins.default_preemption.pods_by_importance import (
    NOT_STARTED,
    PodsByImportance,
    Runs,
    offsets_of,
)

_LOG = logging.getLogger(__name__)

#: So many nodes are tried at a time, at least.
SMALLEST_PART = 64
#: Up to so many nodes are tried one by one: arrays take as long for one as for four.
FEW_ROWS = 3


@dataclass(slots=True)
class Tried:
    """What the dry run found on some rows; every row is in one of the three."""

    #: Row → what was found, for rows that were tried node by node.
    alone: dict[int, Outcome] = field(default_factory=dict)
    #: Rows that are no candidates, by reason.
    refused: list[tuple[RowIndex, Status]] = field(default_factory=list)
    together: list[Reprieved] = field(default_factory=list)
    #: How many potential victims budgets cover, where the outcome depends on it.
    covered: list[Covered] = field(default_factory=list)


@dataclass(frozen=True)
class Reprieved:
    """Candidates, with their victims as places: most are never read. Each row has a victim."""

    rows: RowIndex
    names: list[str]
    #: By place; see `PodsByImportance`.
    pods: Sequence[Pod]
    #: int64[row asked for]: where a row's victims begin in `victims`, and how many they are.
    offsets: Ints
    counts: Ints
    #: int64[victim]: their places, the most important first.
    victims: Ints
    #: bool[victim]: whether evicting it violates a budget.
    violating: Mask
    #: int64[victim], float64[victim].
    priorities: Ints
    starts_s: NDArray[np.float64]

    @cached_property
    def violations(self) -> Ints:
        """int64[row asked for], as everything that follows; see `choice.Cost`."""
        return np.add.reduceat(self.violating, self.offsets, dtype=np.int64)

    @property
    def highest_priority(self) -> Ints:
        return self.priorities[self.offsets]

    @property
    def sum_of_priorities(self) -> Ints:
        sums: Ints = np.add.reduceat(self.priorities + PRIORITY_OFFSET, self.offsets)
        return sums

    @property
    def earliest_start_s(self) -> NDArray[np.float64]:
        """NaN if none of the victims with the highest priority has started."""
        highest = np.repeat(self.highest_priority, self.counts)
        starts_s = np.where(self.priorities == highest, self.starts_s, NOT_STARTED)
        earliest = np.minimum.reduceat(starts_s, self.offsets)
        earliest[earliest == NOT_STARTED] = np.nan
        return earliest

    def candidate(self, row: int) -> Candidate:
        index = self._index[row]
        start = int(self.offsets[index])
        victims = range(start, start + int(self.counts[index]))
        # Equally important victims: first those that a budget protects.
        order = sorted(
            victims,
            key=lambda i: (-self.priorities[i], self.starts_s[i], not self.violating[i]),
        )
        return Candidate(
            self.names[index],
            tuple(self.pods[self.victims[i]] for i in order),
            int(self.violations[index]),
        )

    @cached_property
    def _index(self) -> dict[int, int]:
        return {row: index for index, row in enumerate(self.rows.tolist())}


@dataclass(slots=True)
class ManyNodes:
    """The dry run of one pod's preemption, many nodes at a time."""

    run: VictimSearch
    pods: PodsByImportance
    coverage: Coverage
    now: datetime
    #: See FEW_ROWS.
    few_rows: int
    #: The leading filters for this pod that can read columns.
    rows: RowsTrial = field(init=False)
    #: The columns without the removed pods.
    _without: Columns = field(init=False)

    def __post_init__(self) -> None:
        self.rows = self.run.filters.on_rows()
        self._without = self.rows.columns

    def on_rows(self, rows: RowIndex) -> Tried:
        """As `VictimSearch.on_node` for each of them, with the same results."""
        self.pods.refresh(self.run.snapshot, rows)
        if len(rows) <= self.few_rows:
            return self.on_each(rows)
        try:
            return self._try(rows)
        except Exception:
            # The search node by node shows on which node a filter fails.
            _LOG.exception("trying preemption on many nodes at once")
            return self.on_each(rows)

    def on_each(self, rows: RowIndex) -> Tried:
        """The same, node by node."""
        tried = Tried()
        self._try_alone(self.run, rows, tried)
        return tried

    def _try(self, rows: RowIndex) -> Tried:
        tried = Tried()
        inhabited = self.pods.has_lower(self.run.pod.priority, rows)
        tried.refused.append((rows[~inhabited], NO_VICTIMS))
        lower = self.pods.lower(self.run.pod.priority, rows[inhabited])
        alone = self._to_be_tried_alone(lower)
        self._try_alone(self.run, lower.rows[alone], tried)
        rows = lower.rows[~alone]
        if not len(rows):
            return tried
        lower = self.pods.lower(self.run.pod.priority, rows) if alone.any() else lower
        self._take_away(lower)
        rows, refused = self.rows.refusals(rows)
        tried.refused += refused
        if not self.rows.complete:
            settled = self.rows.others_accept(rows)
            rest = replace(self.run, filters=self.rows.rest())
            self._try_alone(rest, rows[~settled], tried)
            rows = rows[settled]
        if len(rows):
            if len(rows) < len(lower.rows):
                lower = self.pods.lower(self.run.pod.priority, rows)
            self._put_back(lower, tried)
        return tried

    def _try_alone(self, run: VictimSearch, rows: RowIndex, tried: Tried) -> None:
        for row in rows.tolist():
            node = run.snapshot.at(row)
            tried.alone[row] = run.on_node(node)
            for key, count in run.covered.pop(node.name, {}).items():
                tried.covered.append(Covered(key, np.array([row]), np.array([count])))

    def _to_be_tried_alone(self, lower: Runs) -> Mask:
        """bool[row asked for]: whether nominated pods, host ports or the time are to be considered."""
        rows = lower.rows
        alone: Mask = self.pods.moves_with_time(self.now.timestamp())[rows]
        if self.run.pod.host_ports and len(rows):
            alone |= np.logical_or.reduceat(self.pods.holds_ports[lower.places], lower.offsets)
        nominated = self._nominated()
        if nominated and not self._counts_nominated():
            alone |= np.isin(rows, list(nominated))
        return alone

    def _counts_nominated(self) -> bool:
        """Whether pods nominated to a node may be added to its row."""
        return (
            self.rows.complete
            and not self.run.filters.hears_of_pods
            and not self.run.pod.host_ports
        )

    def _nominated(self) -> Mapping[int, Sequence[Pod]]:
        """Row → the nominated pods that count for this pod."""
        return self.run.filters.nominated()

    def _take_away(self, lower: Runs) -> None:
        rows, without = lower.rows, self._without
        requested = self.pods.requested[:, lower.places]
        without.requested[:, rows] -= np.add.reduceat(requested, lower.offsets, axis=1)
        without.pod_count[rows] -= lower.counts
        nominated = self._nominated()
        if nominated and self._counts_nominated():
            self.rows.add({row: nominated[row] for row in rows.tolist() if row in nominated})

    def _put_back(self, lower: Runs, tried: Tried) -> None:
        """Put back one pod on every node, then the next, until no node has one left."""
        protection = self.coverage.protect(self.run.budgets, self.pods, lower)
        tried.covered += protection.covered
        violating = protection.violating
        # The order in which pods are put back: first those that a budget protects.
        order = np.arange(len(lower.places))
        if violating.any():
            order = np.lexsort((~violating, lower.owners))
        stays = np.ones(len(order), np.bool_)
        for turn in range(int(lower.counts.max())):
            has_one = lower.counts > turn
            indices = order[lower.offsets[has_one] + turn]
            stays[indices] = self._fit(lower.rows[has_one], lower.places[indices])
        evicted = ~stays
        counts = np.add.reduceat(evicted, lower.offsets, dtype=np.int64)
        names, rows = self._without.names, lower.rows
        for row in rows[counts == 0].tolist():
            tried.alone[row] = outcome(names[row], (), 0)
        if not evicted.any():
            return
        rows, counts = rows[counts > 0], counts[counts > 0]
        victims = lower.places[evicted]
        tried.together.append(
            Reprieved(
                rows=rows,
                names=[names[row] for row in rows.tolist()],
                pods=self.pods.pods,
                offsets=offsets_of(counts),
                counts=counts,
                victims=victims,
                violating=violating[evicted],
                priorities=self.pods.priorities[victims],
                starts_s=self.pods.starts_s[victims],
            )
        )

    def _fit(self, rows: RowIndex, places: Ints) -> Mask:
        """Put a pod back on each row if there is room. Return where there is."""
        without = self._without
        requested = self.pods.requested[:, places]
        without.requested[:, rows] += requested
        without.pod_count[rows] += 1
        fits = self.rows.accepts(rows)
        if not fits.all():
            without.requested[:, rows[~fits]] -= requested[:, ~fits]
            without.pod_count[rows[~fits]] -= 1
        return fits
