"""What the pods below a priority hold on every node: all that preemption could free there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns, Ints, Mask
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.objects.quantity import wrap_int64

#: Of a row that was never counted; generations start at 0.
_NEVER = -1
#: How many priorities are remembered; few clusters use as many.
_MOST_KEPT = 8


class LowerPriority:
    """Row by row, the sums over the pods of lower priority; counted again where a row changed."""

    def __init__(self, priority: int, columns: Columns) -> None:
        self.priority = priority
        resources, capacity = columns.requested.shape
        #: int64[resource, row]: what those pods request, by the columns' resources.
        self.requested: Ints = np.zeros((resources, capacity), np.int64)
        #: int64[row]: how many they are.
        self.pod_count: Ints = np.zeros(capacity, np.int64)
        #: bool[row]: whether any of them holds a host port.
        self.holds_ports: Mask = np.zeros(capacity, np.bool_)
        #: int64[row]: the generation of the row that was counted.
        self._generations: Ints = np.full(capacity, _NEVER, np.int64)

    def fits(self, columns: Columns) -> bool:
        return self.requested.shape == columns.requested.shape

    def any_in(self, snapshot: Snapshot) -> bool:
        """Whether there is a pod of lower priority on any node."""
        self.refresh(snapshot, snapshot.rows)
        return bool(np.count_nonzero(self.pod_count[snapshot.rows]))

    def refresh(self, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        """Count those of the rows that changed since they were counted."""
        columns = snapshot.columns
        for row in rows[self._generations[rows] != columns.generations[rows]].tolist():
            self._count(snapshot.at(row), columns)
        self._generations[rows] = columns.generations[rows]

    def _count(self, node: NodeInfo, columns: Columns) -> None:
        row = node.row
        pods = [pod for pod in node.pods.values() if pod.priority < self.priority]
        self.pod_count[row] = len(pods)
        self.holds_ports[row] = any(pod.host_ports for pod in pods)
        if len(pods) == len(node.pods):
            # Everybody: then it is what the row says, and nothing need be added up.
            self.requested[:, row] = columns.requested[:, row]
            return
        totals = dict.fromkeys(columns.resources, 0)
        for pod in pods:
            for name, amount in pod.held.items():
                totals[name] += amount
        for name, total in totals.items():
            self.requested[columns.resources[name], row] = wrap_int64(total)


class LowerPriorities:
    """These sums for the priorities asked about last, kept from one pod to the next."""

    def __init__(self) -> None:
        self._kept: dict[int, LowerPriority] = {}

    def than(self, priority: int, columns: Columns) -> LowerPriority:
        known = self._kept.pop(priority, None)
        if known is None or not known.fits(columns):
            known = LowerPriority(priority, columns)
        # Back in at the end, so that the first is the one not asked about for longest.
        self._kept[priority] = known
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return known
