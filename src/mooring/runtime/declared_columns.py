"""The columns that a plugin declares, and how it reads and feeds them."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.cluster.cache import Cluster
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.own_columns import ColumnSpec, FedColumn, NodeColumn, Number, PodsColumn
from mooring.errors import PluginError
from mooring.framework.interface import Depends

#: What answers depend on if they also depend on a row's pods, or on what is fed to it: a fed value counts as
#: a change of the row's usage.
_WIDER = {Depends.NODE: Depends.USAGE, Depends.NODES: Depends.CLUSTER}


def columns_of(plugin: object) -> tuple[ColumnSpec, ...]:
    """`own_columns` of a plugin: an attribute, or a method without arguments. Raises PluginError."""
    declared = getattr(plugin, "own_columns", ())
    if callable(declared):
        declared = declared()
    if not isinstance(declared, Iterable):
        raise PluginError(f"own_columns is {declared!r}, and not a sequence of columns")
    specs = tuple(declared)
    for spec in specs:
        if not isinstance(spec, NodeColumn | PodsColumn | FedColumn):
            raise PluginError(
                f"own_columns has {spec!r}, which is no NodeColumn, PodsColumn or FedColumn"
            )
    if getattr(plugin, "reads_usage_columns", False) and any(
        isinstance(spec, PodsColumn) for spec in specs
    ):
        raise PluginError(
            "a plugin with a PodsColumn reads more of pods than requests and counts:"
            " it cannot have reads_usage_columns"
        )
    return specs


def widened(depends: Depends, specs: tuple[ColumnSpec, ...]) -> Depends:
    """What answers depend on, with the plugin's own columns."""
    if all(isinstance(spec, NodeColumn) for spec in specs):
        return depends
    return _WIDER.get(depends, depends)


class PluginColumn:
    """A column by its name, for one node at a time. It may be asked for before it is declared."""

    __slots__ = ("_cluster", "name")

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self.name = name

    def at(self, node: NodeInfo) -> Number:
        """The value of a node, which may be a copy with other pods. Raises PluginError."""
        column = self._cluster.columns.own_columns.get(self.name)
        if isinstance(column.spec, PodsColumn) and node is not self._cluster.infos.get(node.name):
            return sum(column.contribution(pod) for pod in node.pods.values())
        value: Number = column.values[node.row].item()
        return value

    def set(self, node_name: str, value: Number) -> None:
        """Feed the value of a node. Raises PluginError."""
        self._cluster.feed_column(self.name, node_name, value)
