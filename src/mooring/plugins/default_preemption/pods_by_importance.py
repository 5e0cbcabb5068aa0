"""The pods of every node from most to least important, in flat arrays.

The pods of a row are a run: they have consecutive places in the arrays. A higher priority comes first,
then an earlier start, then the order of the node's pods. So the pods below any priority are the end of the
run. A row that changed gets another run behind all others. The pods of a place never change, so places can be
kept with the list of pods and read later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.objects.pod import Pod, SelectorKey
from mooring.plugin import Columns, Ints, Mask, RowIndex, Snapshot

Scalar = TypeVar("Scalar", bound=np.generic)

#: The generation of a row that was never read; real generations start at 0.
_NEVER = -1
#: The lowest priority of a row without pods: no pod has a higher one.
_NO_PODS = 2**31
#: The start of a pod that has not started.
NOT_STARTED = np.inf
#: So many places that no run uses are not worth the trouble.
_FEW_PLACES = 4096


@dataclass(frozen=True, slots=True)
class Runs:
    """The places of some pods of some rows, row after row. Each row has at least one."""

    rows: RowIndex
    #: int64[place asked for].
    places: Ints
    #: int64[row asked for]: how many there are, and where they begin in `places`.
    counts: Ints
    offsets: Ints

    @property
    def owners(self) -> Ints:
        """int64[place asked for]: whose place it is, as an index into `rows`."""
        return np.repeat(np.arange(len(self.rows)), self.counts)


class PodsByImportance:
    """Runs are made when they are asked for, and again when the row has changed."""

    def __init__(self, columns: Columns) -> None:
        resources, rows = columns.requested.shape
        self._shape = columns.requested.shape
        #: By place.
        self.pods: list[Pod] = []
        #: int64[place].
        self.priorities: Ints = np.zeros(0, np.int64)
        #: float64[place], or NOT_STARTED.
        self.starts_s: NDArray[np.float64] = np.zeros(0)
        #: int64[resource, place], by the columns' resources.
        self.requested: Ints = np.zeros((resources, 0), np.int64)
        #: bool[place].
        self.holds_ports: Mask = np.zeros(0, np.bool_)
        #: int64[row]: where the row's run begins, and how many pods it has.
        self._first: Ints = np.zeros(rows, np.int64)
        self._count: Ints = np.zeros(rows, np.int64)
        #: int64[row].
        self._lowest_priority: Ints = np.full(rows, _NO_PODS, np.int64)
        #: float64[row]: when the last pod started, if the row has a pod that has not; otherwise 0.
        self._latest_start_s: NDArray[np.float64] = np.zeros(rows)
        #: int64[row]: the generation of the row when its run was made.
        self._generations: Ints = np.full(rows, _NEVER, np.int64)
        #: int32[place]: the pod's number in `label_sets`, for the places that were asked about.
        self._labels: NDArray[np.int32] = np.zeros(0, np.int32)
        self._numbers: dict[SelectorKey, int] = {}
        #: Namespace and labels of pods, each once. It only grows; another list replaces it.
        self.label_sets: list[SelectorKey] = []

    def fits(self, columns: Columns) -> bool:
        return self._shape == columns.requested.shape

    def has_lower(self, priority: int, rows: RowIndex) -> Mask:
        """bool[row asked for]: whether there is a pod of lower priority. Refresh the rows first."""
        return self._lowest_priority[rows] < priority

    def moves_with_time(self, now_s: float) -> Mask:
        """bool[row]: whether another order may hold a moment later.

        A pod that has not started counts as started now: after all that have started, before those that
        will.
        """
        mask: Mask = self._latest_start_s >= now_s
        return mask

    def lower(self, priority: int, rows: RowIndex) -> Runs:
        """The pods below a priority, of rows that have one."""
        first, counts = self._first[rows], self._count[rows]
        higher = self.priorities[ranges(first, counts)] >= priority
        if higher.any():
            keep = np.add.reduceat(higher, offsets_of(counts), dtype=np.int64)
            first, counts = first + keep, counts - keep
        return Runs(rows, ranges(first, counts), counts, offsets_of(counts))

    def labels_at(self, places: Ints) -> NDArray[np.int32]:
        """int32[place asked for]: the namespace and labels, as a number into `label_sets`."""
        known = len(self._labels)
        if known < len(self.pods):
            numbers, label_sets = self._numbers, self.label_sets
            added = []
            for pod in self.pods[known:]:
                key = pod.selector_key
                number = numbers.get(key)
                if number is None:
                    number = numbers[key] = len(label_sets)
                    label_sets.append(key)
                added.append(number)
            self._labels = np.concatenate((self._labels, np.array(added, np.int32)))
        return self._labels[places]

    def refresh(self, snapshot: Snapshot, rows: RowIndex) -> None:
        """Make the runs of rows that changed."""
        generations = snapshot.columns.generations
        stale = rows[self._generations[rows] != generations[rows]]
        if len(stale):
            self._add(snapshot, stale)
            self._generations[stale] = generations[stale]
            if len(self.pods) > 2 * int(self._count.sum()) + _FEW_PLACES:
                self._compact()

    def _add(self, snapshot: Snapshot, rows: RowIndex) -> None:
        on_nodes = [snapshot.at(row).pods.values() for row in rows.tolist()]
        counts = np.array([len(pods) for pods in on_nodes], np.int64)
        pods = [pod for each in on_nodes for pod in each]
        priorities = np.array([pod.priority for pod in pods], np.int64)
        starts_s = np.array([_start_s(pod) for pod in pods], np.float64)
        owners = np.repeat(np.arange(len(rows)), counts)
        # Stable: equally important pods stay in the order of the node.
        order = np.lexsort((starts_s, -priorities, owners))
        priorities, starts_s = priorities[order], starts_s[order]
        pods = [pods[i] for i in order.tolist()]
        offsets = offsets_of(counts)
        self._first[rows] = len(self.pods) + offsets
        self._count[rows] = counts
        self._describe(rows, counts, offsets, priorities, starts_s)
        held = [pod.held for pod in pods]
        requested = np.zeros((len(self.requested), len(pods)), np.int64)
        for name, index in snapshot.columns.resources.items():
            requested[index] = [amounts.get(name, 0) for amounts in held]
        size = len(self.pods)
        self.pods += pods
        self._make_room(len(self.pods))
        added = slice(size, len(self.pods))
        self.priorities[added] = priorities
        self.starts_s[added] = starts_s
        self.requested[:, added] = requested
        self.holds_ports[added] = [bool(pod.host_ports) for pod in pods]

    def _describe(
        self,
        rows: RowIndex,
        counts: Ints,
        offsets: Ints,
        priorities: Ints,
        starts_s: NDArray[np.float64],
    ) -> None:
        self._lowest_priority[rows] = _NO_PODS
        self._latest_start_s[rows] = 0.0
        inhabited = counts > 0
        if not inhabited.any():
            return
        rows, ends = rows[inhabited], (offsets + counts)[inhabited] - 1
        self._lowest_priority[rows] = priorities[ends]
        started = np.isfinite(starts_s)
        if not started.any():
            return
        offsets = offsets[inhabited]
        latest = np.maximum.reduceat(np.where(started, starts_s, 0.0), offsets)
        mixed = ~np.logical_and.reduceat(started, offsets)
        self._latest_start_s[rows] = np.where(mixed, latest, 0.0)

    def _make_room(self, size: int) -> None:
        if size > len(self.priorities):
            capacity = 2 * size
            self.priorities = _longer(self.priorities, capacity)
            self.starts_s = _longer(self.starts_s, capacity)
            self.requested = _longer(self.requested, capacity)
            self.holds_ports = _longer(self.holds_ports, capacity)

    def _compact(self) -> None:
        """Leave out the places that no run uses. Those who hold the list of pods keep theirs."""
        rows = np.flatnonzero(self._count)
        places = ranges(self._first[rows], self._count[rows])
        self._first[rows] = offsets_of(self._count[rows])
        pods = self.pods
        self.pods = [pods[place] for place in places.tolist()]
        self.priorities = self.priorities[places]
        self.starts_s = self.starts_s[places]
        self.requested = self.requested[:, places]
        self.holds_ports = self.holds_ports[places]
        self._labels, self._numbers, self.label_sets = np.zeros(0, np.int32), {}, []


def _start_s(pod: Pod) -> float:
    start = pod.status.start_time
    return NOT_STARTED if start is None else start.timestamp()


def offsets_of(counts: Ints) -> Ints:
    offsets: Ints = np.cumsum(counts) - counts
    return offsets


def ranges(first: Ints, counts: Ints) -> Ints:
    """``first[0], first[0] + 1, … first[0] + counts[0] - 1, first[1], …``"""
    offsets = offsets_of(counts)
    return np.repeat(first - offsets, counts) + np.arange(int(counts.sum()))


def _longer(array: NDArray[Scalar], capacity: int) -> NDArray[Scalar]:
    """A longer copy along the last axis."""
    longer = np.zeros((*array.shape[:-1], capacity), array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer
