"""Nodes as columns: a row for each node, and a contiguous array for each attribute.

Strings become integer codes when a node is added, so that rules over all nodes compare integers. A
node keeps its row (slot) as long as it exists. The slot of a removed node is free (`alive` is
False) until the next node takes it. Arrays are longer than `size`: always index them with rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.node_info import HostPort, NodeInfo
from mooring.cluster.own_columns import OwnColumns
from mooring.cluster.row_states import RowStates
from mooring.errors import check_kept
from mooring.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY
from mooring.objects.taints import Taint

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]
#: A selection of rows: all as a slice, which gives views of arrays, or some by number.
Rows = slice | NDArray[np.intp]

T = TypeVar("T", bound=Hashable)


def row_count(rows: Rows) -> int:
    """The number of selected rows."""
    return int(rows.stop) if isinstance(rows, slice) else len(rows)


#: The code of a label that a node does not have.
ABSENT = -1

_FIRST_CAPACITY = 64

#: The resource columns beside allocatable and requested: two of non-zero requests, two of pods.
_BESIDE_RESOURCES = 4


class InternedColumn(Generic[T]):
    """A column with few distinct values: a code for each row, and each distinct value once."""

    def __init__(self, capacity: int, empty: T) -> None:
        #: Each distinct value; index 0 is the empty value.
        self.values: list[T] = [empty]
        #: int32[row]: the index in `values` of each row's value.
        self.codes: Codes = np.zeros(capacity, np.int32)
        self._code_of: dict[T, int] = {empty: 0}

    def write(self, row: int, value: T) -> None:
        self.codes[row] = self.code_of(value)

    def code_of(self, value: T) -> int:
        code = self._code_of.get(value)
        if code is None:
            code = len(self.values)
            self.values.append(value)
            self._code_of[value] = code
        return code

    def judge(self, verdict: Callable[[T], bool], rows: Rows) -> Mask:
        """Judge each distinct value once, then look up the answer for each row."""
        verdicts = np.fromiter(map(verdict, self.values), np.bool_, len(self.values))
        return verdicts[self.codes[rows]]

    def grow(self, capacity: int) -> None:
        self.codes = _grown(self.codes, capacity, 0)

    def at(self, row: int) -> T:
        return self.values[int(self.codes[row])]

    def validate(self, what: str) -> None:
        """Raise InvariantError unless each value is found by its code, and each code by its value."""
        check_kept(f"the codes of {what}", self._code_of, _codes_of(self.values))

    def compact(self, rows: Iterable[int]) -> None:
        """Forget values that no row has."""
        kept = {row: self.values[self.codes[row]] for row in rows}
        empty = self.values[0]
        self.values, self._code_of = [empty], {empty: 0}
        self.codes[:] = 0
        for row, value in kept.items():
            self.write(row, value)


class LabelColumn:
    """One label over all rows. Its codes are also the IDs of topology domains."""

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        #: Each distinct value.
        self.values: list[str] = []
        #: int32[row]: the index in `values`, or ABSENT.
        self.codes: Codes = np.full(capacity, ABSENT, np.int32)
        self._code_of: dict[str, int] = {}

    def write(self, row: int, value: str | None) -> None:
        if value is None:
            self.codes[row] = ABSENT
            return
        code = self._code_of.get(value)
        if code is None:
            code = len(self.values)
            self.values.append(value)
            self._code_of[value] = code
        self.codes[row] = code

    def code_of(self, value: str | None) -> int:
        """The code of a value; ABSENT if no row has ever had it."""
        return ABSENT if value is None else self._code_of.get(value, ABSENT)

    def at(self, row: int) -> str | None:
        code = self.codes[row]
        return None if code == ABSENT else self.values[code]

    def validate(self) -> None:
        """Raise InvariantError unless each value is found by its code, and each code by its value."""
        check_kept(f"the codes of label {self.key}", self._code_of, _codes_of(self.values))

    def grow(self, capacity: int) -> None:
        self.codes = _grown(self.codes, capacity, ABSENT)


class ImageState:
    """An image: its size, and the rows that have it."""

    __slots__ = ("_index", "rows", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        #: The size according to the first node that listed the image.
        self.size_bytes = size_bytes
        self.rows: set[int] = set()
        self._index: NDArray[np.intp] | None = None

    def add(self, row: int) -> None:
        self.rows.add(row)
        self._index = None

    def discard(self, row: int) -> None:
        self.rows.discard(row)
        self._index = None

    def validate(self, name: str) -> None:
        """Raise InvariantError unless the array and the set have the same rows."""
        if self._index is not None:
            check_kept(
                f"the array of image {name}", sorted(self._index.tolist()), sorted(self.rows)
            )

    @property
    def index(self) -> NDArray[np.intp]:
        """The rows as an array to index with."""
        if self._index is None:
            self._index = np.fromiter(self.rows, np.intp, len(self.rows))
        return self._index


class Columns:
    """The cluster's nodes, attribute by attribute."""

    def __init__(self) -> None:
        #: The number of slots, including free ones.
        self.size = 0
        self.capacity = capacity = _FIRST_CAPACITY
        #: Resource name → its index in the resource arrays.
        self.resources: dict[str, int] = {CPU: 0, MEMORY: 1, EPHEMERAL_STORAGE: 2}
        #: int64[…, row]: all resource columns; those below are views of it.
        self._usage: Ints = np.empty(0, np.int64)
        #: int64[resource, row]: what nodes offer, and what their pods request.
        self.allocatable: Ints
        self.requested: Ints
        #: int64[2, row]: cpu and memory as scoring counts them.
        self.non_zero: Ints
        #: int64[row].
        self.pod_count: Ints
        self.allowed_pods: Ints
        self._set_usage(np.zeros((2 * 4 + _BESIDE_RESOURCES, capacity), np.int64))
        #: bool[row]: whether the slot has a node.
        self.alive: Mask = np.zeros(capacity, np.bool_)
        self.unschedulable: Mask = np.zeros(capacity, np.bool_)
        #: int64[row]: the generation of the NodeInfo that the row was written from.
        self.generations: Ints = np.zeros(capacity, np.int64)
        self.taint_sets: InternedColumn[tuple[Taint, ...]] = InternedColumn(capacity, ())
        self.port_sets: InternedColumn[frozenset[HostPort]] = InternedColumn(capacity, frozenset())
        self.feature_sets: InternedColumn[frozenset[str]] = InternedColumn(capacity, frozenset())
        #: Image name → its state over all nodes.
        self.images: dict[str, ImageState] = {}
        #: Increases when a first node lists an image, and when the last one does no longer.
        self.image_epoch = 0
        #: Increases when the share of nodes that list an image may have changed.
        self.image_spread_epoch = 0
        #: The name of the node in each slot, "" in a free slot; and the row of each name.
        self.names: list[str] = []
        self.row_of: dict[str, int] = {}
        #: The number of nodes.
        self.count = 0
        #: Increases whenever a label, taint, image or other node attribute of a row is written.
        self.node_epoch = 0
        #: Which rows have equal resources.
        self.states = RowStates()
        #: What plugins declare.
        self.own_columns = OwnColumns()
        self._label_columns: dict[str, LabelColumn] = {}
        self._labels: list[dict[str, str]] = []
        #: The images that each row's node lists, with their sizes.
        self._listed_images: list[dict[str, int]] = []
        self._free: list[int] = []

    @property
    def all_rows(self) -> slice:
        return slice(0, self.size)

    def names_of(self, rows: Rows) -> list[str]:
        """The names of the nodes in these rows; empty for a slot without a node."""
        if isinstance(rows, slice):
            return self.names[rows]
        return [self.names[row] for row in rows.tolist()]

    def take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        if self.size == self.capacity:
            self._grow(2 * self.capacity)
        row = self.size
        self.size += 1
        self.names.append("")
        self._labels.append({})
        self._listed_images.append({})
        return row

    @property
    def free_slots(self) -> list[int]:
        """The slots without a node."""
        return list(self._free)

    def free_slot(self, row: int) -> None:
        self._free.append(row)

    def write_node(self, info: NodeInfo) -> None:
        """Write the attributes of the node object."""
        row, node = info.row, info.node
        self.states.stale.add(row)
        if node is None:
            self._clear(row)
            return
        if not self.alive[row]:
            self.alive[row] = True
            self.count += 1
            self.image_spread_epoch += 1
            self.names[row] = info.name
            self.row_of[info.name] = row
        self.node_epoch += 1
        self.allocatable[:, row] = 0
        for name, amount in info.allocatable.items():
            # Get the index first: this may replace the array by a larger one.
            index = self.resource_index(name)
            self.allocatable[index, row] = amount
        self.allowed_pods[row] = info.allowed_pods
        self.unschedulable[row] = node.spec.unschedulable
        self.taint_sets.write(row, node.taints)
        self.feature_sets.write(row, frozenset(node.status.declared_features))
        self._write_labels(row, node.labels)
        self._write_images(row, info)
        for column in self.own_columns.of_nodes:
            column.write(row, node)

    def write_usage(self, info: NodeInfo) -> None:
        """Write the attributes that depend on the node's pods."""
        row, resources = info.row, self.resources
        self.states.stale.add(row)
        self.requested[:, row] = 0
        for name, amount in info.requested.items():
            index = resources.get(name)
            if index is None:
                index = self.resource_index(name)
            self.requested[index, row] = amount
        self.non_zero[0, row] = info.non_zero_cpu
        self.non_zero[1, row] = info.non_zero_memory
        self.pod_count[row] = len(info.pods.values())
        if info.used_ports or self.port_sets.codes[row]:
            self.port_sets.write(row, frozenset(info.used_ports))
        self.generations[row] = info.generation

    def resource_index(self, name: str) -> int:
        """The index of the resource in the arrays; a new resource gets the next index."""
        index = self.resources.get(name)
        if index is None:
            index = self.resources[name] = len(self.resources)
            if index >= len(self.allocatable):
                more = np.zeros_like(self.allocatable)
                beside = self._usage[-_BESIDE_RESOURCES:]
                self._set_usage(
                    np.concatenate((self.allocatable, more, self.requested, more, beside))
                )
        return index

    def _set_usage(self, table: Ints) -> None:
        resources = (len(table) - _BESIDE_RESOURCES) // 2
        self._usage = table
        self.allocatable, self.requested = table[:resources], table[resources : 2 * resources]
        self.non_zero = table[-4:-2]
        self.pod_count, self.allowed_pods = table[-2], table[-1]

    def usage(self, row: int) -> list[int]:
        """The resource columns of a row, one after another."""
        amounts: list[int] = self._usage[:, row].tolist()
        return amounts

    def usage_key(self, row: int) -> bytes:
        """The resource columns of a row as bytes."""
        return self._usage[:, row].tobytes()

    def usage_keys(self) -> list[bytes]:
        """The resource columns of each row."""
        data = self._usage[:, : self.size].T.tobytes()
        width = len(self._usage) * self._usage.itemsize
        return [data[start : start + width] for start in range(0, len(data), width)]

    def label(self, key: str) -> LabelColumn:
        """The column of one label, built on first use and then kept up to date."""
        column = self._label_columns.get(key)
        if column is None or not self.keeps(column):
            column = self._label_columns[key] = LabelColumn(key, self.capacity)
            for row, labels in enumerate(self._labels):
                if self.alive[row]:
                    column.write(row, labels.get(key))
        return column

    def own(self, name: str) -> NDArray[Any]:
        """[row]: a column that a plugin declares. Raises PluginError.

        Its dtype is the declared one. Index it with rows, and do not change it.
        """
        return self.own_columns.get(name).values

    def keeps(self, column: LabelColumn) -> bool:
        """Whether `label` returns this column. A column with many unused values is rebuilt."""
        kept = self._label_columns.get(column.key)
        return kept is column and len(column.values) <= 2 * self.count + 1024

    def compact(self) -> None:
        """Forget interned values that no row has; codes change."""
        columns: Sequence[InternedColumn[tuple[Taint, ...]] | InternedColumn[frozenset[HostPort]]]
        columns = (self.taint_sets, self.port_sets)
        for column in columns:
            if len(column.values) > 2 * self.size + 1024:
                column.compact(range(self.size))

    def validate(self, rebuilt: Columns) -> None:
        """Raise InvariantError unless these columns have the same contents as rebuilt ones.

        Both have their nodes in the same rows. Codes may differ. The sizes of images may differ
        too: the first node that listed an image may have been removed.
        """
        for interned, what in (
            (self.taint_sets, "taints"),
            (self.port_sets, "ports"),
            (self.feature_sets, "features"),
        ):
            interned.validate(what)
        for key, column in self._label_columns.items():
            column.validate()
            rebuilt.label(key)
        for name, image in self.images.items():
            image.validate(name)
        check_kept("columns", self._contents(), rebuilt._contents())
        self.states.validate(self)
        self.own_columns.validate(rebuilt.own_columns, self.size, self.row_of)

    def _contents(self) -> dict[str, object]:
        columns = self._label_columns.values()
        return {
            "capacity": {array.shape[-1] for array in self._arrays()} | {self.capacity},
            "rows by name": self.row_of,
            "count of nodes": self.count,
            "images": {name: image.rows for name, image in self.images.items()},
            **{f"row {row}": self._row_contents(row, columns) for row in range(self.size)},
        }

    def _row_contents(self, row: int, columns: Iterable[LabelColumn]) -> dict[str, object]:
        return {
            "name": self.names[row],
            "alive": bool(self.alive[row]),
            "allocatable": self._amounts(self.allocatable, row),
            "requested": self._amounts(self.requested, row),
            "non-zero requests": self.non_zero[:, row].tolist(),
            "count of pods": int(self.pod_count[row]),
            "allowed pods": int(self.allowed_pods[row]),
            "unschedulable": bool(self.unschedulable[row]),
            "taints": self.taint_sets.at(row),
            "features": self.feature_sets.at(row),
            "labels": self._labels[row],
            "label columns": {column.key: column.at(row) for column in columns},
            "images": self._listed_images[row],
        }

    def _amounts(self, array: Ints, row: int) -> dict[str, int]:
        amounts = array[:, row].tolist()
        return {name: amounts[i] for name, i in self.resources.items() if amounts[i]}

    def _arrays(self) -> list[NDArray[Any]]:
        """All arrays with an element for each row."""
        interned = (self.taint_sets, self.port_sets, self.feature_sets)
        return [
            self.allocatable,
            self.requested,
            self.non_zero,
            self.pod_count,
            self.allowed_pods,
            self.alive,
            self.unschedulable,
            self.generations,
            *(each.codes for each in interned),
            *(column.codes for column in self._label_columns.values()),
            *(column.values for column in self.own_columns.by_name.values()),
        ]

    def _write_labels(self, row: int, labels: dict[str, str]) -> None:
        if self._labels[row] == labels:
            return
        self._labels[row] = labels
        for column in self._label_columns.values():
            column.write(row, labels.get(column.key))

    def _write_images(self, row: int, info: NodeInfo) -> None:
        listed: dict[str, int] = {}
        for image in info.node.status.images if info.node is not None else []:
            for name in image.names:
                listed.setdefault(name, image.size_bytes)
        if listed == self._listed_images[row]:
            return
        self.image_spread_epoch += 1
        self._drop_images(row)
        self._listed_images[row] = listed
        for name, size_bytes in listed.items():
            state = self.images.get(name)
            if state is None:
                state = self.images[name] = ImageState(size_bytes)
                self.image_epoch += 1
            state.add(row)

    def _drop_images(self, row: int) -> None:
        for name in self._listed_images[row]:
            state = self.images[name]
            state.discard(row)
            if not state.rows:
                del self.images[name]
                self.image_epoch += 1
        self._listed_images[row] = {}

    def _clear(self, row: int) -> None:
        if not self.alive[row]:
            return
        self.alive[row] = False
        self.count -= 1
        self.image_spread_epoch += 1
        self.node_epoch += 1
        for column in self.own_columns.of_nodes:
            column.clear(row, self.names[row])
        del self.row_of[self.names[row]]
        self.names[row] = ""
        self.allocatable[:, row] = 0
        self.allowed_pods[row] = 0
        self.unschedulable[row] = False
        self.taint_sets.write(row, ())
        self.feature_sets.write(row, frozenset())
        self._write_labels(row, {})
        self._drop_images(row)

    def _grow(self, capacity: int) -> None:
        self.capacity = capacity
        self._set_usage(_grown(self._usage, capacity, 0))
        self.generations = _grown(self.generations, capacity, 0)
        self.alive = _grown(self.alive, capacity, False)
        self.unschedulable = _grown(self.unschedulable, capacity, False)
        for interned in (self.taint_sets, self.port_sets, self.feature_sets):
            interned.grow(capacity)
        for column in self._label_columns.values():
            column.grow(capacity)
        for own in self.own_columns.by_name.values():
            own.grow(capacity)


def _codes_of(values: Sequence[T]) -> dict[T, int]:
    return {value: code for code, value in enumerate(values)}


Scalar = TypeVar("Scalar", bound=np.generic)


def _grown(array: NDArray[Scalar], capacity: int, fill: int | bool) -> NDArray[Scalar]:
    """A longer copy along the last axis (rows)."""
    longer = np.full((*array.shape[:-1], capacity), fill, array.dtype)
    longer[..., : array.shape[-1]] = array
    return longer
