"""The rows to which pods are nominated, kept for pods of one priority."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mooring.cluster.columns import Columns
from mooring.cluster.snapshot import Snapshot
from mooring.objects.pod import Pod
from mooring.runtime.nominator import Nominator

#: For how many priorities rows are kept; few clusters use more.
_MOST_KEPT = 8


@dataclass(slots=True)
class _Kept:
    """For one priority."""

    columns: Columns
    #: The epoch of the columns, in which nodes have their rows.
    epoch: int
    #: The position in the nominator's log of changes.
    position: int
    #: Row → the nominated pods that count.
    rows: dict[int, tuple[Pod, ...]] = field(default_factory=dict)


class NominatedRows:
    """While preemption makes room for many pods, many nodes are held, and few of them change in between."""

    def __init__(self, nominator: Nominator) -> None:
        self._nominator = nominator
        self._kept: dict[int, _Kept] = {}

    def for_pod(self, pod: Pod, snapshot: Snapshot) -> dict[int, Sequence[Pod]]:
        """Row → the pods nominated to it that count for this pod.

        The pods of a row are the same object until they change, except where the pod itself is nominated.
        """
        nominator, columns = self._nominator, snapshot.columns
        held = nominator.held_nodes()
        priority = pod.priority
        kept = self._kept.get(priority)
        names = None
        if kept is not None and kept.columns is columns and kept.epoch == columns.node_epoch:
            names = nominator.changes.since(kept.position)
        if kept is None or names is None:
            # Reinsert at the end: the first entry is the oldest.
            self._kept.pop(priority, None)
            if len(self._kept) >= _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[priority] = _Kept(columns, columns.node_epoch, 0)
            names = list(held)
        kept.position = nominator.changes.position
        rows, row_of = kept.rows, columns.row_of
        for name in names:
            row = row_of.get(name)
            if row is not None:
                counting = held[name].counting_at(priority) if name in held else ()
                if counting:
                    rows[row] = counting
                else:
                    rows.pop(row, None)
        found: dict[int, Sequence[Pod]] = dict(rows)
        own = nominator.nominated_node(pod.uid)
        if own is not None and own in row_of:
            counting = held[own].counting_for(pod)
            if counting:
                found[row_of[own]] = counting
            else:
                found.pop(row_of[own], None)
        return found
