"""Columns that plugins declare, kept up to date like the others.

A plugin says where the value of a row comes from:

    NodeColumn("rack", of=lambda node: int(node.labels.get("rack", 0)))     the node object
    PodsColumn("batch", of=lambda pod: pod.labels.get("kind") == "batch")   the pods: the sum over them
    FedColumn("load", dtype=np.float64)                                     the plugin itself feeds it

`of` depends on its argument alone. If it raises, whoever reads the column fails until the node or pod is gone
or changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.errors import PluginError, check_kept
from mooring.faults import PLUGIN_FAULTS
from mooring.objects.node import Node
from mooring.objects.pod import Pod

Number = int | float
DType = type[np.int64] | type[np.float64]


@dataclass(frozen=True, slots=True)
class NodeColumn:
    """A value that follows from the node object."""

    name: str
    of: Callable[[Node], Number]
    dtype: DType = np.int64


@dataclass(frozen=True, slots=True)
class PodsColumn:
    """The sum of an integer over the pods on the node, with those whose binding is under way."""

    name: str
    of: Callable[[Pod], int]

    @property
    def dtype(self) -> DType:
        return np.int64


@dataclass(frozen=True, slots=True)
class FedColumn:
    """A value that the plugin sets, node by node. A node without one has the default."""

    name: str
    dtype: DType = np.int64
    default: Number = 0


ColumnSpec = NodeColumn | PodsColumn | FedColumn


class OwnColumn:
    """A declared column and its values."""

    def __init__(self, spec: ColumnSpec, plugin: str, capacity: int) -> None:
        self.spec = spec
        self.plugin = plugin
        #: [row]: the value of each row.
        self.values: NDArray[Any] = np.full(capacity, self._empty, spec.dtype)
        #: Name of a node or UID of a pod → why it has no value.
        self.failed: dict[str, str] = {}
        #: Node name → what the plugin fed, also for nodes that are not known yet.
        self.fed: dict[str, Number] = {}

    @property
    def _empty(self) -> Number:
        return self.spec.default if isinstance(self.spec, FedColumn) else 0

    def write(self, row: int, node: Node) -> None:
        """Write the value of a node that was added or changed."""
        if isinstance(self.spec, NodeColumn):
            self.values[row] = self.value_of(node)
        elif isinstance(self.spec, FedColumn):
            self.values[row] = self.fed.get(node.name, self.spec.default)

    def clear(self, row: int, name: str) -> None:
        """The node is gone. Its pods may still be there."""
        if not isinstance(self.spec, PodsColumn):
            self.values[row] = self._empty
            self.failed.pop(name, None)

    def value_of(self, node: Node) -> Number:
        """What a node column says of this version of a node; 0 if it fails."""
        assert isinstance(self.spec, NodeColumn)
        return self._asked(self.spec.of, node, node.name)

    def contribution(self, pod: Pod) -> Number:
        """What a pod adds to a pods column; 0 if it fails."""
        assert isinstance(self.spec, PodsColumn)
        return self._asked(self.spec.of, pod, pod.uid)

    def add(self, row: int, pod: Pod) -> None:
        self.values[row] += self.contribution(pod)

    def remove(self, row: int, pod: Pod) -> None:
        self.values[row] -= self.contribution(pod)
        self.failed.pop(pod.uid, None)

    def checked(self, value: Number) -> Number:
        """The value, if it fits the column. Raises PluginError."""
        try:
            if self.spec.dtype is np.float64:
                number: Number = float(value)
            else:
                number = int(np.int64(index(value)))  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError) as error:
            kind = "a number" if self.spec.dtype is np.float64 else "an integer of 64 bits"
            raise PluginError(f"column {self.spec.name!r}: {value!r} is not {kind}") from error
        if math.isnan(number):
            raise PluginError(f"column {self.spec.name!r}: {value!r} is not a number")
        return number

    def grow(self, capacity: int) -> None:
        longer = np.full(capacity, self._empty, self.spec.dtype)
        longer[: len(self.values)] = self.values
        self.values = longer

    def _asked(self, of: Callable[[Any], Number], obj: Node | Pod, key: str) -> Number:
        try:
            value = self.checked(of(obj))
        except PLUGIN_FAULTS as error:
            what = f"{type(obj).__name__.lower()} {obj.key}"
            text = str(error) if isinstance(error, PluginError) else repr(error)
            self.failed[key] = f"column {self.spec.name!r} of {self.plugin}, {what}: {text}"
            return 0
        self.failed.pop(key, None)
        return value


class OwnColumns:
    """The columns of all plugins, by name."""

    def __init__(self) -> None:
        self.by_name: dict[str, OwnColumn] = {}
        #: The columns of each kind; most clusters have none.
        self.of_nodes: list[OwnColumn] = []
        self.of_pods: list[OwnColumn] = []

    def declare(self, spec: ColumnSpec, plugin: str, capacity: int) -> OwnColumn | None:
        """Add a column; None if it is there already. Raises PluginError if another has its name."""
        known = self.by_name.get(spec.name)
        if known is not None:
            if known.spec == spec:
                return None
            raise PluginError(
                f"column {spec.name!r} is declared in different ways, by {known.plugin} and {plugin};"
                " choose another name for one of them"
            )
        column = self.by_name[spec.name] = OwnColumn(spec, plugin, capacity)
        if isinstance(spec, PodsColumn):
            self.of_pods.append(column)
        else:
            self.of_nodes.append(column)
        return column

    def get(self, name: str) -> OwnColumn:
        """Raises PluginError if no plugin declares it, or if a value cannot be computed."""
        column = self.by_name.get(name)
        if column is None:
            declared = ", ".join(sorted(self.by_name)) or "none"
            raise PluginError(f"no plugin declares a column {name!r}; declared: {declared}")
        if column.failed:
            raise PluginError(next(iter(column.failed.values())))
        return column

    def changed(self, row: int, node: Node) -> bool:
        """Whether a column has another value for this version of the node."""
        return any(
            bool(column.values[row] != column.value_of(node))
            for column in self.of_nodes
            if isinstance(column.spec, NodeColumn)
        )

    def take_over(self, other: OwnColumns) -> None:
        """Go on with what was fed to columns of the same name and kind."""
        for name, column in self.by_name.items():
            before = other.by_name.get(name)
            if before is not None and isinstance(column.spec, FedColumn):
                column.fed.update(before.fed)

    def validate(self, rebuilt: OwnColumns, size: int, rows: Mapping[str, int]) -> None:
        """Raise InvariantError unless every value equals a rebuild, or what was fed."""
        for name, column in self.by_name.items():
            values = column.values[:size].tolist()
            if isinstance(column.spec, FedColumn):
                expected = [column.spec.default] * size
                for node, row in rows.items():
                    expected[row] = column.fed.get(node, column.spec.default)
            else:
                expected = rebuilt.by_name[name].values[:size].tolist()
                check_kept(
                    f"failures of column {name}", column.failed, rebuilt.by_name[name].failed
                )
            check_kept(f"column {name}", values, expected)

    def specs(self) -> Iterable[tuple[ColumnSpec, str]]:
        return [(column.spec, column.plugin) for column in self.by_name.values()]
