"""How many volumes of each driver every node holds, by row.

To count the volumes of a node, its pods' claims, their volumes and the node's attachments are
looked up. The counts are kept until one of these objects or the node's pods change. Then only the
affected rows are recounted, when they are next read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from mooring.objects.storage import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from mooring.plugin import Columns, Ints, Listers, Mask, NodeInfo, Rows, row_count

#: The generation of a row that was never counted; real generations start at 0.
_NEVER = -1
#: The limit of a driver that does not report one.
_NO_LIMIT = np.iinfo(np.int64).max // 2


class Attachable(NamedTuple):
    """A volume as its driver identifies it."""

    driver: str
    handle: str
    #: The claim of the volume, if the volume has no handle yet.
    claim_key: str = ""


@dataclass(frozen=True, slots=True)
class NodeVolumes:
    """What a node holds, and the objects that this depends on."""

    #: Volumes that pods on the node use, and volumes that are attached.
    used: frozenset[Attachable]
    attached: frozenset[Attachable]
    #: Driver → the limit of the node.
    limits: Mapping[str, int]
    #: The claims and volumes that were looked up, whether or not they exist.
    claims: frozenset[str]
    volumes: frozenset[str]


class _Driver:
    """The volumes of one driver."""

    __slots__ = ("counts", "limits")

    def __init__(self, capacity: int) -> None:
        #: int64[row].
        self.counts: Ints = np.zeros(capacity, np.int64)
        self.limits: Ints = np.full(capacity, _NO_LIMIT, np.int64)


class AttachedVolumes:
    """The counts by row. Objects are looked up only to recount a row."""

    def __init__(
        self,
        listers: Listers,
        infos: Mapping[str, NodeInfo],
        count: Callable[[NodeInfo], NodeVolumes],
    ) -> None:
        self._listers = listers
        self._infos = infos
        self._count = count
        #: VolumeAttachment → its node.
        self._node_of: dict[str, str] = {}
        self._forget_all(0)
        listers.follow(PersistentVolumeClaim, self._claim_changed)
        listers.follow(PersistentVolume, self._volume_changed)
        listers.follow(CSINode, self._forget_node)
        listers.follow(StorageClass, lambda _: self._forget_all(0))
        listers.follow(VolumeAttachment, self._attachment_changed)
        for attachment in listers.all(VolumeAttachment):
            self._attachment_changed(attachment.key)

    def too_many(self, wanted: Sequence[Attachable], columns: Columns, rows: Rows) -> Mask:
        """bool[row asked for]: whether a driver would have to attach more than it can.

        A volume that pods of the node already use does not count again. Raises what counting a node
        raises.
        """
        self._refresh(columns, rows)
        refused: Mask = np.zeros(row_count(rows), np.bool_)
        numbers: dict[str, int] = {}
        for each in wanted:
            numbers[each.driver] = numbers.get(each.driver, 0) + 1
        for name, number in numbers.items():
            driver = self._drivers.get(name)
            if driver is None:
                continue
            new: Ints | int = number
            shared = [each for each in wanted if each.driver == name and each in self._rows_using]
            if shared:
                by_row = np.full(columns.size, number, np.int64)
                for each in shared:
                    by_row[list(self._rows_using[each])] -= 1
                new = by_row[rows]
            refused |= (new > 0) & (driver.counts[rows] + new > driver.limits[rows])
        return refused

    def _refresh(self, columns: Columns, rows: Rows) -> None:
        if columns.capacity != self._capacity:
            self._forget_all(columns.capacity)
        outdated = np.flatnonzero(self._generations[rows] != columns.generations[rows])
        for row in (outdated if isinstance(rows, slice) else rows[outdated]).tolist():
            self._drop(row)
            self._generations[row] = _NEVER
            if columns.alive[row]:
                self._keep(row, self._count(self._infos[columns.names[row]]))
                self._generations[row] = columns.generations[row]

    def _keep(self, row: int, found: NodeVolumes) -> None:
        self._found[row] = found
        for claim in found.claims:
            self._rows_by_claim.setdefault(claim, set()).add(row)
        for volume in found.volumes:
            self._rows_by_volume.setdefault(volume, set()).add(row)
        for each in found.used:
            self._rows_using.setdefault(each, set()).add(row)
        for name, count in Counter(each.driver for each in found.used | found.attached).items():
            self._driver(name).counts[row] = count
        for name, limit in found.limits.items():
            self._driver(name).limits[row] = limit

    def _drop(self, row: int) -> None:
        found = self._found.pop(row, None)
        if found is None:
            return
        _withdraw(self._rows_by_claim, found.claims, row)
        _withdraw(self._rows_by_volume, found.volumes, row)
        _withdraw(self._rows_using, found.used, row)
        for driver in self._drivers.values():
            driver.counts[row] = 0
            driver.limits[row] = _NO_LIMIT

    def _driver(self, name: str) -> _Driver:
        driver = self._drivers.get(name)
        if driver is None:
            driver = self._drivers[name] = _Driver(self._capacity)
        return driver

    # Invalidation

    def _claim_changed(self, key: str) -> None:
        self._forget(self._rows_by_claim.get(key, ()))

    def _volume_changed(self, name: str) -> None:
        self._forget(self._rows_by_volume.get(name, ()))

    def _attachment_changed(self, key: str) -> None:
        before = self._node_of.pop(key, None)
        if before is not None:
            self._forget_node(before)
        attachment = self._listers.get(VolumeAttachment, key)
        if attachment is not None:
            self._node_of[key] = attachment.spec.node_name
            self._forget_node(attachment.spec.node_name)

    def _forget_node(self, name: str) -> None:
        info = self._infos.get(name)
        if info is not None:
            self._forget((info.row,))

    def _forget(self, rows: Iterable[int]) -> None:
        for row in rows:
            if row < self._capacity:
                self._generations[row] = _NEVER

    def _forget_all(self, capacity: int) -> None:
        self._capacity = capacity
        #: int64[row]: the generation for which the row was counted.
        self._generations: Ints = np.full(capacity, _NEVER, np.int64)
        self._found: dict[int, NodeVolumes] = {}
        self._drivers: dict[str, _Driver] = {}
        self._rows_by_claim: dict[str, set[int]] = {}
        self._rows_by_volume: dict[str, set[int]] = {}
        self._rows_using: dict[Attachable, set[int]] = {}


_Key = TypeVar("_Key", bound=Hashable)


def _withdraw(index: dict[_Key, set[int]], keys: Iterable[_Key], row: int) -> None:
    for key in keys:
        rows = index[key]
        rows.discard(row)
        if not rows:
            del index[key]
