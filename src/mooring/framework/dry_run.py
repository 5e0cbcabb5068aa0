"""Dry runs: what the filters would say if pods left or came. Nothing in the cluster changes.

A PostFilter plugin starts from `Handle.dry_run`:

    trial = handle.dry_run(state, pod).on_node(node)
    trial.remove(victim)
    if trial.filter().ok: ...

The filters of all plugins are asked, in their order, and pods that are nominated to the node count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns, Ints, Mask
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.errors import MooringError
from mooring.framework.status import Status, failure
from mooring.objects.meta import KubeObject
from mooring.objects.pod import Pod

#: Some rows, by number.
RowIndex = NDArray[np.intp]


class PluginFailure(MooringError):
    """A plugin raised, or said what it may not say at that point."""

    def __init__(self, plugin: str, text: str) -> None:
        super().__init__(text)
        self.plugin = plugin

    def as_status(self) -> Status:
        return failure(self).by(self.plugin)


class NodeTrial(Protocol):
    """A copy of one node, from which pods are removed and to which pods are added."""

    @property
    def node(self) -> NodeInfo:
        """The copy, as it is now."""
        ...

    def remove(self, pod: Pod) -> None:
        """Raises PluginFailure, if a plugin cannot follow the change."""
        ...

    def add(self, pod: Pod) -> None:
        """Raises PluginFailure, if a plugin cannot follow the change."""
        ...

    def filter(self) -> Status:
        """What the filters say. A filter that fails refuses the node, like any other status."""
        ...


class RowsTrial(Protocol):
    """Many nodes at once, for the leading filters that see no more of a node's pods than columns show.

    Change the requests and pod counts of `columns`, then ask about the changed rows.
    """

    @property
    def columns(self) -> Columns:
        """The columns; `requested` and `pod_count` are this trial's own."""
        ...

    @property
    def complete(self) -> bool:
        """Whether these are all filters for this pod."""
        ...

    @property
    def looks_at_nodes_alone(self) -> bool:
        """Whether what they say of a row depends on nothing but its node and pods."""
        ...

    @property
    def can_be_kept(self) -> bool:
        """Whether what all filters say of a row depends on nothing but its node, its pods and `inputs`."""
        ...

    @property
    def kinds(self) -> Sequence[type[KubeObject]]:
        """The kinds of other objects that they look at."""
        ...

    def inputs(self) -> Mapping[str, Ints]:
        """int64[row] each: what the other filters read of a row beside its node and pods."""
        ...

    def others_accept(self, rows: RowIndex) -> Mask:
        """bool[row asked for]: whether the other filters accept the row, whichever of its pods leave."""
        ...

    def add(self, pods_by_row: Mapping[int, Sequence[Pod]]) -> None:
        """Add pods to rows."""
        ...

    def refuse(self, rows: RowIndex, refused: dict[int, Status]) -> RowIndex:
        """Write down why rows are refused, and return the others."""
        ...

    def refusals(self, rows: RowIndex) -> tuple[RowIndex, list[tuple[RowIndex, Status]]]:
        """The rows that are not refused; and those that are, by reason."""
        ...

    def accepts(self, rows: RowIndex) -> Mask:
        """bool[row asked for]: whether a row that was not refused still passes after pods were added."""
        ...

    def rest(self) -> DryRun:
        """For the rows that were not refused: without the filters that ignore pods."""
        ...


class DryRun(Protocol):
    """The filters of one attempt, to be asked about nodes with other pods on them."""

    @property
    def pod(self) -> Pod: ...
    @property
    def snapshot(self) -> Snapshot: ...

    @property
    def skipped(self) -> frozenset[str]:
        """The filters that have nothing to say about this pod."""
        ...

    @property
    def hears_of_pods(self) -> bool:
        """Whether a filter counts pods itself, so that it is called for each pod that is removed or added."""
        ...

    def nominated(self) -> Mapping[int, Sequence[Pod]]:
        """Row → the pods nominated to it that count for this pod."""
        ...

    def on_node(self, node: NodeInfo) -> NodeTrial: ...
    def on_rows(self) -> RowsTrial: ...


class ClusterTrial(Protocol):
    """The whole cluster without some pods. Those that are still out at the end are put back."""

    def take_out(self, pods: Sequence[Pod]) -> None: ...
    def put_back(self, pods: Sequence[Pod]) -> None: ...
