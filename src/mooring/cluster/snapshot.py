"""The cluster as one scheduling cycle sees it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.affinity_terms import HeldTerms
from mooring.cluster.columns import Columns, Ints
from mooring.cluster.listers import Listers
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.pod_counts import PodCounts
from mooring.errors import check_kept

#: The maximum number of nodes: score and rank share one integer.
RANKS = 1 << 24


class Snapshot:
    """The nodes in order, with columns, counts and listers of the same state.

    This is a view, not a copy: one thread decides, so a cycle can read the cluster itself. Only
    `Cluster.snapshot` updates the columns.
    """

    def __init__(
        self,
        *,
        order: list[str],
        infos: dict[str, NodeInfo],
        columns: Columns,
        pod_counts: PodCounts,
        held_terms: HeldTerms,
        listers: Listers,
    ) -> None:
        #: Node names; zones take turns.
        self.order = order
        self.columns = columns
        #: How many pods a selector picks, by row.
        self.pod_counts = pod_counts
        #: The affinity terms of placed pods, by row.
        self.held_terms = held_terms
        self.listers = listers
        self._infos = infos

    def __len__(self) -> int:
        return len(self.order)

    def __iter__(self) -> Iterator[NodeInfo]:
        infos = self._infos
        return (infos[name] for name in self.order)

    def __contains__(self, name: str) -> bool:
        return name in self.columns.row_of

    def get(self, name: str) -> NodeInfo | None:
        return self._infos[name] if name in self else None

    def at(self, row: int) -> NodeInfo:
        return self._infos[self.columns.names[row]]

    def validate(self) -> None:
        """Raise InvariantError unless the derived values equal a rebuild."""
        rebuilt = Snapshot(
            order=self.order,
            infos=self._infos,
            columns=self.columns,
            pod_counts=self.pod_counts,
            held_terms=self.held_terms,
            listers=self.listers,
        )
        check_kept("the rows of the snapshot", self.rows.tolist(), rebuilt.rows.tolist())
        keys, expected = self.name_keys.tolist(), rebuilt.name_keys.tolist()
        check_kept("the ranks of names in the snapshot", keys, expected)

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        """intp[position]: the row of each node, in the order of `order`."""
        row_of = self.columns.row_of
        return np.fromiter((row_of[name] for name in self.order), np.intp, len(self.order))

    @cached_property
    def name_keys(self) -> Ints:
        """int64[row]: a rank below RANKS; the earlier the name, the higher the rank."""
        keys = np.zeros(self.columns.size, np.int64)
        row_of = self.columns.row_of
        for rank, name in enumerate(sorted(self.order)):
            keys[row_of[name]] = RANKS - 1 - rank
        return keys
