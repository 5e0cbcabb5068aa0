"""Every Filter over every node: who refuses what, and why.

The matrix is kept as it was computed, a code a row and plugin, and turned into statuses and texts only for
those who ask. The first plugin that refuses a node counts; the answers of later plugins do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Columns, Ints, Mask, Rows, row_count
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.errors import PluginError
from mooring.faults import PLUGIN_FAULTS
from mooring.framework.cycle_state import CycleState
from mooring.framework.status import SUCCESS, Code, Status, checked_type
from mooring.framework.verdicts import UNKNOWN, RowVerdicts
from mooring.objects.pod import Pod
from mooring.runtime.plugin_calls import FILTER, Calls, PluginFailure, unexpected
from mooring.runtime.question import Question

#: In `refused_by`: no plugin refuses the row; or none was asked, since the row is not looked at.
PASSED = -1
NOT_ASKED = -2

#: Up to this many rows are asked about one by one, without NumPy: a call on one row costs as much as on
#: a hundred, and the plain rule of a node costs less than either.
FEW_ROWS = 6

#: Codes below this are counted without sorting them.
_MOST_COUNTED = 4096

NO_VERDICT = "filter_rows must return RowVerdicts with an integer code for each row it is asked for"
FILTER_CODES = (Code.SUCCESS, Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING)


#: The verdicts of a plugin that refuses no row, without their codes.
ALL_PASS = RowVerdicts(np.empty(0, np.int8), lambda _: SUCCESS)


@dataclass(slots=True)
class FilterMatrix:
    """The verdict of every Filter on every row that was looked at."""

    snapshot: Snapshot
    #: The plugins that were asked, in order.
    plugins: list[str]
    #: What each of them said, over all rows.
    verdicts: list[RowVerdicts]
    #: int16[row]: the first plugin that refuses the row, or PASSED, or NOT_ASKED.
    refused_by: NDArray[np.int16]
    #: Rows refused apart from the others: with the pods nominated to them taken to be there, or
    #: because the node was held for the pod and tried before the search.
    with_nominated: dict[int, Status] = field(default_factory=dict)

    @property
    def feasible(self) -> Mask:
        """bool[row]"""
        mask: Mask = self.refused_by == PASSED
        return mask

    def status(self, row: int) -> Status:
        """The status of a row that was looked at."""
        nominated = self.with_nominated.get(row)
        if nominated is not None:
            return nominated
        index = int(self.refused_by[row])
        if index < 0:
            return SUCCESS
        return self.verdicts[index].status(row).by(self.plugins[index])

    def refuse(self, statuses: Mapping[int, Status]) -> None:
        """Refuse rows apart from what plugins say among the others."""
        self.with_nominated |= statuses
        self.refused_by[list(statuses)] = len(self.plugins)

    def forget(self, rows: NDArray[np.intp]) -> None:
        """As if these rows had not been looked at."""
        self.refused_by[rows] = NOT_ASKED
        for row in rows.tolist():
            self.with_nominated.pop(row, None)

    def rows_with(self, codes: Collection[int]) -> Mask:
        """bool[row]: the rows looked at whose status has one of these codes."""
        found = np.zeros(len(self.refused_by), np.bool_)
        for index in self._refusing():
            verdicts, refused = self.verdicts[index], self.refused_by == index
            by_code = counted(verdicts.codes[refused])
            wanted = [code for code in by_code if verdicts.decode(code).code in codes]
            if len(wanted) == len(by_code):
                found |= refused
            else:
                for code in wanted:
                    found |= refused & (verdicts.codes == code)
        for row, status in self.with_nominated.items():
            found[row] = status.code in codes
        return found

    def _refusing(self) -> list[int]:
        """The plugins that are the first to refuse a row, by their index; mostly one or two."""
        return [index for index in counted(self.refused_by) if 0 <= index < len(self.plugins)]

    def refusals(self) -> Iterator[tuple[Status, int]]:
        """Each distinct refusal and how many nodes got it."""
        for index in self._refusing():
            plugin, verdicts = self.plugins[index], self.verdicts[index]
            for code, count in counted(verdicts.codes[self.refused_by == index]).items():
                yield verdicts.decode(code).by(plugin), count
        # Statuses are slow to hash, and many rows share one.
        objects = {id(status): status for status in self.with_nominated.values()}
        counts: Counter[Status] = Counter()
        for number, count in Counter(map(id, self.with_nominated.values())).items():
            counts[objects[number]] += count
        yield from counts.items()


def counted(codes: NDArray[np.integer]) -> dict[int, int]:
    """Each code and how often it occurs, in order. Mostly there is one: that costs no sorting."""
    if not codes.size:
        return {}
    # The place of an extreme is found in a fraction of the time that `min` takes.
    lowest, highest = int(codes[codes.argmin()]), int(codes[codes.argmax()])
    if lowest == highest:
        return {lowest: codes.size}
    if highest - lowest < _MOST_COUNTED:
        counts = np.bincount(codes - lowest)
        found = np.flatnonzero(counts)
        return dict(zip((found + lowest).tolist(), counts[found].tolist(), strict=True))
    found, counts = np.unique(codes, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def ask_all(call: Calls, question: Question) -> RowVerdicts | None:
    """Ask a plugin about all rows at once; None if it must be asked node by node. Raises PluginFailure."""
    return ask_rows(call, question, question.snapshot.columns.all_rows)


def ask_about_amounts(call: Calls, question: Question) -> RowVerdicts | None:
    """As `ask_all`, for a plugin that sees resources only: it is asked about states, if there are few."""
    state, columns = question.state, question.snapshot.columns
    states, passes = columns.states, call.passes_on_states
    are_few = states.are_few(columns)
    if passes is not None:
        amounts = states.amounts(columns) if are_few else states.amounts_by_row(columns)
        if amounts is not None and call.run(FILTER, state, passes, state, question.pod, amounts):
            return ALL_PASS
    if not are_few:
        return ask_all(call, question)
    verdicts = ask_rows(call, question, states.rows)
    assert verdicts is not None
    return RowVerdicts(verdicts.codes.take(states.codes), verdicts.decode)


def ask_rows(call: Calls, question: Question, rows: Rows) -> RowVerdicts | None:
    """Ask a plugin about some rows at once; None if it must be asked node by node. Raises PluginFailure."""
    if call.filter_rows is None:
        return None
    state, columns = question.state, question.snapshot.columns
    verdicts = call.run(FILTER, state, call.filter_rows, state, question.pod, columns, rows)
    if verdicts is None and call.filter is not None:
        return None
    try:
        return _checked(call, verdicts, row_count(rows))
    except PluginError as error:
        raise call.failed(FILTER.doing, error) from error


def _checked(call: Calls, verdicts: object, count: int) -> RowVerdicts:
    """The verdicts, if they are what the contract says; what their codes stand for is checked when asked."""
    if isinstance(verdicts, RowVerdicts):
        codes: object = verdicts.codes
        if isinstance(codes, np.ndarray) and codes.shape == (count,) and codes.dtype.kind in "biu":
            # A bool is not less than 0.
            # (The place of an extreme is found in a fraction of the time that `min` takes.)
            if count and codes.dtype.kind == "i" and codes.item(codes.argmin()) < 0:
                raise PluginError("filter_rows must not return negative codes")
            return RowVerdicts(codes, _checking(call, verdicts.decode))
    raise PluginError(NO_VERDICT)


def _checking(call: Calls, decode: Callable[[int], Status]) -> Callable[[int], Status]:
    def checked(code: int) -> Status:
        try:
            status = checked_type(decode(code))
            if status.ok:
                raise PluginError(f"code {code} of filter_rows stands for Success; only 0 may")
            if status.code not in FILTER_CODES:
                raise unexpected(status)
        except PLUGIN_FAULTS as error:
            raise call.failed(FILTER.doing, error) from error
        return status

    return checked


def ask_nodes(call: Calls, question: Question, rows: NDArray[np.intp]) -> list[Status]:
    """Ask a plugin about some rows, node by node. Raises PluginFailure."""
    state, pod, snapshot = question.state, question.pod, question.snapshot
    with call.guard("Filter", FILTER.doing, state):
        return [_ask(call, state, pod, snapshot.at(row), snapshot) for row in rows.tolist()]


def ask_open(call: Calls, question: Question, open_rows: Mask) -> RowVerdicts:
    """The verdicts of a plugin whose answers are not kept. Raises PluginFailure.

    A plugin that judges node by node is asked about the open rows only, as the reference does not ask it
    about nodes that another plugin refuses.
    """
    rows = np.flatnonzero(open_rows)
    codes: Ints = np.where(open_rows, 0, UNKNOWN)
    try:
        verdicts = ask_all(call, question)
    except PluginFailure:
        # It may fail only on rows that it need not be asked about.
        verdicts = (
            ask_rows(call, question, rows) if len(rows) else RowVerdicts(codes[rows], _passed)
        )
        if verdicts is not None:
            codes[rows] = verdicts.codes
            return RowVerdicts(codes, verdicts.decode)
    if verdicts is not None:
        return verdicts
    distinct: list[Status] = [SUCCESS]
    code_of: dict[Status, int] = {}
    for row, status in zip(rows.tolist(), ask_nodes(call, question, rows), strict=True):
        if not status.ok:
            code = code_of.setdefault(status, len(distinct))
            if code == len(distinct):
                distinct.append(status)
            codes[row] = code
    return RowVerdicts(codes, distinct.__getitem__)


def _passed(code: int) -> Status:
    return SUCCESS


def refused_rows(
    calls: Sequence[Calls], question: Question, columns: Columns, rows: Sequence[int]
) -> dict[int, Status]:
    """Row → why it is refused, by plugins that see no more of a node's pods than these columns show.

    Raises PluginFailure.
    """
    refused: dict[int, Status] = {}
    left = np.array(rows, np.intp)
    for call in calls:
        with call.guard("Filter", FILTER.doing, question.state):
            verdicts = ask_columns(call, question, columns, left)
        refuses = np.flatnonzero(verdicts.codes)
        codes = verdicts.codes[refuses].tolist()
        statuses = {code: verdicts.decode(code).by(call.name) for code in set(codes)}
        for row, code in zip(left[refuses].tolist(), codes, strict=True):
            refused[row] = statuses[code]
        left = left[verdicts.codes == 0]
    return refused


def ask_columns(
    call: Calls, question: Question, columns: Columns, rows: NDArray[np.intp]
) -> RowVerdicts:
    """Ask a plugin about rows of columns that may be changed ones."""
    assert call.filter_rows is not None
    state, pod, snapshot = question.state, question.pod, question.snapshot
    verdicts = call.filter_rows(state, pod, columns, rows)
    if verdicts is not None:
        return _checked(call, verdicts, len(rows))
    # It wants to be asked node by node. It looks at nodes alone, so it does not mind what was changed.
    statuses = [_ask(call, state, pod, snapshot.at(row), snapshot) for row in rows.tolist()]
    codes = np.array([0 if status.ok else i + 1 for i, status in enumerate(statuses)], np.int64)
    return RowVerdicts(codes, lambda code: statuses[code - 1])


def filter_node(
    calls: Sequence[Calls], state: CycleState, pod: Pod, node: NodeInfo, snapshot: Snapshot
) -> Status:
    """Ask the plugins about one node, which may be a copy that was changed. Raises PluginFailure."""
    for call in calls:
        if call.name in state.skip_filter:
            continue
        # Dry runs come here for every node and victim: a bare try costs nothing, a guard would.
        try:
            status = _ask(call, state, pod, node, snapshot)
        except PLUGIN_FAULTS as error:
            raise call.failed(FILTER.doing, error) from error
        if not status.ok:
            return status.by(call.name)
    return SUCCESS


def filter_row(call: Calls, question: Question, row: int) -> Status:
    """Ask a plugin about one row. Raises PluginFailure."""
    snapshot = question.snapshot
    try:
        return _ask(call, question.state, question.pod, snapshot.at(row), snapshot)
    except PLUGIN_FAULTS as error:
        raise call.failed(FILTER.doing, error) from error


def _ask(call: Calls, state: CycleState, pod: Pod, node: NodeInfo, snapshot: Snapshot) -> Status:
    if call.filter is not None:
        status = checked_type(call.filter(state, pod, node))
    else:
        assert call.filter_rows is not None
        only = np.array([node.row], np.intp)
        verdicts = call.filter_rows(state, pod, snapshot.columns, only)
        status = checked_type(_checked(call, verdicts, 1).status(0))
    if status.code not in FILTER_CODES:
        raise unexpected(status)
    return status
