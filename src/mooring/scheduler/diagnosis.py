"""Why a pod fits nowhere: node by node for plugins, in one line for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.errors import MooringError
from mooring.framework.status import Code, Status
from mooring.runtime.evaluation import Filtered
from mooring.runtime.filtering import NOT_ASKED, FilterMatrix

#: The status of a node that was not evaluated, if no plugin said why.
_UNKNOWN = Status(Code.UNRESOLVABLE)


class Diagnosis(msgspec.Struct, eq=False):
    """What was found out while looking for a node."""

    snapshot: Snapshot
    #: None if the search ended before any node was looked at.
    filtered: Filtered | None = None
    #: The status of every node that was not looked at.
    absent: Status = _UNKNOWN
    #: What PreFilter said, if it ended the search.
    pre_filter_message: str = ""
    post_filter_message: str = ""
    #: The plugins whose rejection an event may undo; those that wait for something among them.
    unschedulable_plugins: set[str] = set()
    pending_plugins: set[str] = set()
    #: Node name → what extenders said of it; this counts more than what plugins said.
    by_extenders: dict[str, Status] = {}
    #: Node name → the extender that took it away, whether or not it said why.
    removed_by: dict[str, str] = {}
    #: How many nodes the search was limited to; None if it was not.
    within: int | None = None
    #: The text of the reference, without what PostFilter adds; made when it is first asked for.
    _fit_error: str = ""

    @property
    def has_verdicts(self) -> bool:
        """Whether any node was looked at."""
        return self.filtered is not None

    @property
    def matrix(self) -> FilterMatrix:
        """Only if `has_verdicts`."""
        assert self.filtered is not None
        return self.filtered.matrix()

    def blame(self, status: Status) -> None:
        if status.plugin and status.rejected:
            self.unschedulable_plugins.add(status.plugin)
            if status.code == Code.PENDING:
                self.pending_plugins.add(status.plugin)

    def get(self, node_name: str) -> Status:
        """The status of one node. A node that an extender removed without a reason was not evaluated."""
        said = self.by_extenders.get(node_name)
        if said is not None:
            return said
        by_plugins = None if node_name in self.removed_by else self._by_plugins(node_name)
        return self.absent if by_plugins is None else by_plugins

    def _by_plugins(self, node_name: str) -> Status | None:
        """None if no plugin was asked about the node."""
        row = self.snapshot.columns.row_of.get(node_name)
        if row is None or not self.has_verdicts:
            return None
        matrix = self.matrix
        return None if matrix.refused_by[row] == NOT_ASKED else matrix.status(row)

    def nodes_with(self, *codes: int) -> Sequence[NodeInfo]:
        """The nodes whose status has one of these codes, in the snapshot's order."""
        return [self.snapshot.at(row) for row in self.rows_with(*codes).tolist()]

    def rows_with(self, *codes: int) -> NDArray[np.intp]:
        snapshot = self.snapshot
        if not self.has_verdicts:
            return snapshot.rows if self.absent.code in codes else snapshot.rows[:0]
        matrix = self.matrix
        found = matrix.rows_with(codes)
        if self.absent.code in codes:
            found |= matrix.refused_by == NOT_ASKED
        for name in self.by_extenders.keys() | self.removed_by.keys():
            row = snapshot.columns.row_of.get(name)
            if row is not None:
                found[row] = self.get(name).code in codes
        rows = snapshot.rows
        return rows[found[rows]]

    @property
    def _node_count(self) -> int:
        return len(self.snapshot) if self.within is None else self.within

    def reasons(self) -> Counter[str]:
        """How many nodes give each reason."""
        counts: Counter[str] = Counter()
        absent = self._node_count
        if self.has_verdicts:
            for status, count in self.matrix.refusals():
                for reason in status.all_reasons:
                    counts[reason] += count
            asked = self.matrix.refused_by != NOT_ASKED
            absent -= int(np.count_nonzero(asked))
        absent += sum(1 for name in self.removed_by if name not in self.by_extenders)
        for name, said in self.by_extenders.items():
            counts.update(said.all_reasons)
            by_plugins = self._by_plugins(name)
            if by_plugins is None:
                absent -= 1
            else:
                counts.subtract(by_plugins.all_reasons)
        if absent > 0:
            for reason in self.absent.all_reasons:
                counts[reason] += absent
        return +counts

    @property
    def fit_error(self) -> str:
        """The text of the reference, without what PostFilter adds."""
        if not self._fit_error:
            self._fit_error = self._make_fit_error()
        return self._fit_error

    def _make_fit_error(self) -> str:
        text = f"0/{self._node_count} nodes are available:"
        if self.pre_filter_message:
            return f"{text} {self.pre_filter_message}."
        entries = sorted(f"{count} {reason}" for reason, count in self.reasons().items())
        return f"{text} {', '.join(entries)}." if entries else text

    @property
    def message(self) -> str:
        """The text shown on the pod."""
        more = f" {self.post_filter_message}" if self.post_filter_message else ""
        return f"{self.fit_error}{more}"


class FitError(MooringError):
    """A pod that no node takes: an answer, passed on as the error of a status."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.message)
        self.diagnosis = diagnosis


class NodeRefusal(MooringError):
    """A node that was chosen and then refused by Reserve or Permit."""

    def __init__(self, status: Status) -> None:
        reasons = sorted(f"1 {reason}" for reason in status.all_reasons)
        text = "0/1 nodes are available:"
        super().__init__(f"{text} {', '.join(reasons)}." if reasons else text)
        self.status = status


def node_refusal(status: Status) -> Status:
    """A rejection by Reserve or Permit, told as one of the only node that was left."""
    return Status(status.code, (), status.plugin, NodeRefusal(status))
