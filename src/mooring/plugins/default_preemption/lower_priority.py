"""What pods below a priority hold on every node: the most that preemption can free."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mooring.objects.quantity import wrap_int64
from mooring.plugin import Columns, Ints, Mask, NodeInfo, Snapshot

#: The generation of a row that was never counted; real generations start at 0.
_NEVER = -1
#: How many priorities are remembered; few clusters use more.
_MOST_KEPT = 8


class LowerPriority:
    """For each row, the sums over pods of lower priority; recounted when the row changed."""

    def __init__(self, priority: int, columns: Columns) -> None:
        self.priority = priority
        resources, capacity = columns.requested.shape
        #: int64[resource, row]: what those pods request, by the columns' resources.
        self.requested: Ints = np.zeros((resources, capacity), np.int64)
        #: int64[row]: the number of those pods.
        self.pod_count: Ints = np.zeros(capacity, np.int64)
        #: bool[row]: whether any of them holds a host port.
        self.holds_ports: Mask = np.zeros(capacity, np.bool_)
        #: float64[row]: when the last of them started; 0 if none has.
        self.latest_start_s: NDArray[np.float64] = np.zeros(capacity)
        #: int64[row]: the generation for which the row was counted.
        self._generations: Ints = np.full(capacity, _NEVER, np.int64)

    def fits(self, columns: Columns) -> bool:
        return self.requested.shape == columns.requested.shape

    def any_in(self, snapshot: Snapshot) -> bool:
        """Whether there is a pod of lower priority on any node."""
        self.refresh(snapshot, snapshot.rows)
        return bool(np.count_nonzero(self.pod_count[snapshot.rows]))

    def refresh(self, snapshot: Snapshot, rows: NDArray[np.intp]) -> None:
        """Recount the rows that changed."""
        columns = snapshot.columns
        for row in rows[self._generations[rows] != columns.generations[rows]].tolist():
            self._count(snapshot.at(row), columns)
        self._generations[rows] = columns.generations[rows]

    def _count(self, node: NodeInfo, columns: Columns) -> None:
        row = node.row
        pods = [pod for pod in node.pods.values() if pod.priority < self.priority]
        self.pod_count[row] = len(pods)
        self.holds_ports[row] = any(pod.host_ports for pod in pods)
        starts = [pod.status.start_time for pod in pods if pod.status.start_time is not None]
        self.latest_start_s[row] = max(starts).timestamp() if starts else 0.0
        if len(pods) == len(node.pods):
            # All pods are of lower priority: copy the sums of the row.
            self.requested[:, row] = columns.requested[:, row]
            return
        totals = dict.fromkeys(columns.resources, 0)
        for pod in pods:
            for name, amount in pod.held.items():
                totals[name] += amount
        for name, total in totals.items():
            self.requested[columns.resources[name], row] = wrap_int64(total)


class LowerPriorities:
    """The sums for recent priorities, kept from one pod to the next."""

    def __init__(self) -> None:
        self._kept: dict[int, LowerPriority] = {}

    def than(self, priority: int, columns: Columns) -> LowerPriority:
        known = self._kept.pop(priority, None)
        if known is None or not known.fits(columns):
            known = LowerPriority(priority, columns)
        # Reinsert at the end, so that the first is the least recently used.
        self._kept[priority] = known
        if len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return known
