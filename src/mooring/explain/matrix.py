"""The matrix of one decision: every plugin's verdict on every node, and its scores of the nodes that fit.

It is copied from the engine's arrays at the moment of the decision, one code per cell, so later changes of
the cluster do not affect it. Texts are built on demand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Ints
from mooring.explain.frames import Frame, make_frame
from mooring.framework.status import SUCCESS, Status
from mooring.framework.verdicts import UNKNOWN
from mooring.garbage import seldom_collecting
from mooring.runtime.filtering import NOT_ASKED, FilterMatrix
from mooring.runtime.scoring import ScoreMatrix
from mooring.scheduler.decision import Decision
from mooring.scheduler.diagnosis import Diagnosis
from mooring.scheduler.extenders import EXTENDER

Codes = NDArray[np.int32]

#: In the codes of a filter: the plugin was not asked, because an earlier plugin refused the node.
UNASKED = -1


@dataclass(frozen=True, slots=True)
class FilterColumn:
    """One plugin's verdicts on all nodes."""

    plugin: str
    #: int32[node]: an index into `statuses`, or UNASKED.
    codes: Codes
    #: The first is success.
    statuses: tuple[Status, ...]

    def status(self, node: int) -> Status | None:
        """None if the plugin was not asked about the node."""
        code = int(self.codes[node])
        return None if code == UNASKED else self.statuses[code]


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """One plugin's scores of the nodes that fit."""

    plugin: str
    weight: int
    #: int64[scored node]: the plugin's raw score, and the score normalized to 0..100.
    raw: Ints
    normalized: Ints

    def cell(self, index: int) -> Score:
        normalized = int(self.normalized[index])
        return Score(
            self.plugin, self.weight, int(self.raw[index]), normalized, normalized * self.weight
        )


@dataclass(frozen=True, slots=True)
class Score:
    """One plugin's score of one node."""

    plugin: str
    weight: int
    raw: int
    normalized: int
    weighted: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The nodes that one plugin refuses for the same reasons."""

    #: "" if the status names no plugin.
    plugin: str
    #: Unschedulable where removing pods may help, UnschedulableAndUnresolvable where not.
    code: str
    reasons: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeView:
    """Everything about one node."""

    node: str
    fits: bool
    #: The verdict that counts: that of the first plugin that refuses.
    status: Status
    #: Every Filter plugin in order, and its status; None if it was not asked.
    filters: tuple[tuple[str, Status | None], ...]
    #: Empty if the node was not scored.
    scores: tuple[Score, ...] = ()
    total: int | None = None
    #: 1 for the best.
    rank: int | None = None

    def to_data(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "node": self.node,
            "fits": self.fits,
            "verdict": status_data(self.status),
            "filters": {plugin: status_data(status) for plugin, status in self.filters},
        }
        if self.total is not None:
            data["rank"], data["total"] = self.rank, self.total
            data["scores"] = {score.plugin: score_data(score) for score in self.scores}
        return data


@dataclass(frozen=True, slots=True)
class Matrix:
    """Node × plugin: verdicts, reasons and scores of one decision."""

    #: The names of the nodes, in the engine's order.
    nodes: tuple[str, ...]
    filters: tuple[FilterColumn, ...]
    #: int32[node]: the verdict on the node, as an index into `statuses`.
    verdicts: Codes
    #: The first is success.
    statuses: tuple[Status, ...]
    #: intp[scored node]: the nodes that were scored, best first; empty if scoring did not run.
    scored: NDArray[np.intp]
    scores: tuple[ScoreColumn, ...]
    #: int64[scored node]: the weighted sum.
    totals: Ints
    #: The indices of the nodes that were judged with the pods nominated to them, as if these were there.
    with_nominated: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def feasible(self) -> tuple[str, ...]:
        return tuple(self.nodes[i] for i in np.flatnonzero(self.verdicts == 0).tolist())

    def refusals(self) -> list[Refusal]:
        """The refused nodes by plugin and reasons, the largest group first."""
        groups = []
        for code, status in enumerate(self.statuses):
            if not code:
                continue
            nodes = [self.nodes[i] for i in np.flatnonzero(self.verdicts == code).tolist()]
            if nodes:
                groups.append(
                    Refusal(
                        status.plugin, status.code.title, status.all_reasons, tuple(sorted(nodes))
                    )
                )
        return sorted(groups, key=lambda each: (-len(each.nodes), each.plugin, each.reasons))

    def node(self, name: str) -> NodeView:
        """Raises KeyError."""
        try:
            return self._view(self.nodes.index(name), self._ranks())
        except ValueError:
            raise KeyError(name) from None

    def views(self) -> Iterator[NodeView]:
        """Every node, in the engine's order."""
        ranks = self._ranks()
        return (self._view(i, ranks) for i in range(len(self.nodes)))

    def best(self, count: int) -> list[NodeView]:
        """The best nodes, best first."""
        ranks = self._ranks()
        return [self._view(i, ranks) for i in self.scored[:count].tolist()]

    def to_data(self) -> list[dict[str, Any]]:
        with seldom_collecting():
            return [view.to_data() for view in self.views()]

    def to_frame(self) -> Frame:
        """A row for every node and plugin. Raises MissingFrames without pandas and polars."""
        rows = [row for view in self.views() for row in _frame_rows(view)]
        columns = ("node", "point", "plugin", "verdict", "reasons", "raw", "normalized", "weighted")
        return make_frame(columns, rows)

    def _ranks(self) -> dict[int, int]:
        return {node: rank for rank, node in enumerate(self.scored.tolist())}

    def _view(self, i: int, ranks: dict[int, int]) -> NodeView:
        status = self.statuses[self.verdicts[i]]
        filters = tuple((column.plugin, column.status(i)) for column in self.filters)
        rank = ranks.get(i)
        if rank is None:
            return NodeView(self.nodes[i], status.ok, status, filters)
        return NodeView(
            self.nodes[i],
            status.ok,
            status,
            filters,
            scores=tuple(column.cell(rank) for column in self.scores),
            total=int(self.totals[rank]),
            rank=rank + 1,
        )


def matrix_of(decision: Decision) -> Matrix:
    """Copy a decision from the engine, before the cluster changes."""
    diagnosis = decision.diagnosis
    snapshot = diagnosis.snapshot
    rows, names = snapshot.rows, snapshot.columns.names
    nodes = tuple(names[row] for row in rows.tolist())
    filters: tuple[FilterColumn, ...] = ()
    if diagnosis.filtered is not None:
        filters = tuple(_filter_columns(diagnosis.filtered.matrix(complete=True), rows))
    verdicts, statuses = _verdicts(decision, nodes, rows, filters)
    with_nominated = tuple(_judged_with_nominated(diagnosis, rows))
    filters = _as_judged(filters, verdicts, statuses, with_nominated)
    scored, scores, totals = _scores(decision.scores, nodes, rows, decision.node_name)
    return Matrix(nodes, filters, verdicts, statuses, scored, scores, totals, with_nominated)


def status_data(status: Status | None) -> dict[str, Any]:
    if status is None:
        return {"code": "NotAsked"}
    data: dict[str, Any] = {"code": status.code.title}
    if not status.ok:
        if status.plugin:
            data["plugin"] = status.plugin
        data["reasons"] = list(status.all_reasons)
    return data


def score_data(score: Score) -> dict[str, int]:
    return {
        "raw": score.raw,
        "normalized": score.normalized,
        "weight": score.weight,
        "weighted": score.weighted,
    }


def _filter_columns(matrix: FilterMatrix, rows: NDArray[np.intp]) -> Iterator[FilterColumn]:
    for plugin, verdicts in zip(matrix.plugins, matrix.verdicts, strict=True):
        distinct, first, inverse = np.unique(
            verdicts.codes[rows], return_index=True, return_inverse=True
        )
        statuses = [SUCCESS]
        code_of = np.zeros(len(distinct), np.int32)
        # In the order of the nodes. Equal verdicts can have different codes.
        for place in np.argsort(first).tolist():
            code = int(distinct[place])
            if code == UNKNOWN:
                code_of[place] = UNASKED
            elif code:
                status = verdicts.decode(code).by(plugin)
                if status not in statuses:
                    statuses.append(status)
                code_of[place] = statuses.index(status)
        codes: Codes = code_of[inverse]
        yield FilterColumn(plugin, codes, tuple(statuses))


def _verdicts(
    decision: Decision,
    nodes: Sequence[str],
    rows: NDArray[np.intp],
    filters: Sequence[FilterColumn],
) -> tuple[Codes, tuple[Status, ...]]:
    diagnosis = decision.diagnosis
    statuses: list[Status] = [SUCCESS]
    verdicts: Codes = np.zeros(len(nodes), np.int32)

    def code_for(status: Status) -> int:
        if status.ok:
            return 0
        for code, known in enumerate(statuses):
            if known == status:
                return code
        statuses.append(status)
        return len(statuses) - 1

    if not diagnosis.has_verdicts:
        verdicts[:] = code_for(_absent(decision))
        return verdicts, tuple(statuses)
    refused_by = diagnosis.matrix.refused_by[rows]
    verdicts[refused_by == NOT_ASKED] = code_for(_absent(decision))
    for index, column in enumerate(filters):
        mine = refused_by == index
        for code in np.unique(column.codes[mine]).tolist():
            verdicts[mine & (column.codes == code)] = code_for(column.statuses[code])
    for i in _judged_one_by_one(diagnosis, nodes, rows):
        status = diagnosis.get(nodes[i])
        by_extender = nodes[i] in diagnosis.removed_by or nodes[i] in diagnosis.by_extenders
        verdicts[i] = code_for(status.by(EXTENDER) if by_extender else status)
    return verdicts, tuple(statuses)


def _absent(decision: Decision) -> Status:
    """The status of nodes that PreFilter excluded, with the plugin that excluded them."""
    status, plugins = decision.diagnosis.absent, decision.pre_filter.narrowed_by
    return status if status.plugin or not plugins else status.by(", ".join(sorted(plugins)))


def _judged_one_by_one(
    diagnosis: Diagnosis, nodes: Sequence[str], rows: NDArray[np.intp]
) -> Iterator[int]:
    """The nodes that were judged one by one, because of nominated pods or by an extender."""
    matrix = diagnosis.matrix
    if not (matrix.with_nominated or diagnosis.by_extenders or diagnosis.removed_by):
        return
    named = diagnosis.by_extenders.keys() | diagnosis.removed_by.keys()
    for i, (name, row) in enumerate(zip(nodes, rows.tolist(), strict=True)):
        if row in matrix.with_nominated or name in named:
            yield i


def _judged_with_nominated(diagnosis: Diagnosis, rows: NDArray[np.intp]) -> Iterator[int]:
    if not diagnosis.has_verdicts or not diagnosis.matrix.with_nominated:
        return
    for i, row in enumerate(rows.tolist()):
        if row in diagnosis.matrix.with_nominated:
            yield i


def _as_judged(
    filters: tuple[FilterColumn, ...],
    verdicts: Codes,
    statuses: Sequence[Status],
    with_nominated: Sequence[int],
) -> tuple[FilterColumn, ...]:
    """The columns, where the plugin that refuses a node because of nominated pods says so itself."""
    for i in with_nominated:
        status = statuses[verdicts[i]]
        if not status.ok:
            filters = tuple(
                _with_cell(column, i, status) if column.plugin == status.plugin else column
                for column in filters
            )
    return filters


def _with_cell(column: FilterColumn, node: int, status: Status) -> FilterColumn:
    statuses = column.statuses if status in column.statuses else (*column.statuses, status)
    codes = column.codes.copy()
    codes[node] = statuses.index(status)
    return FilterColumn(column.plugin, codes, statuses)


def _scores(
    scores: ScoreMatrix | None, nodes: Sequence[str], rows: NDArray[np.intp], chosen: str | None
) -> tuple[NDArray[np.intp], tuple[ScoreColumn, ...], Ints]:
    """Best first. Among equal scores, the chosen node comes first, then by name."""
    if scores is None:
        return np.empty(0, np.intp), (), np.empty(0, np.int64)
    position: NDArray[np.intp] = np.zeros(int(rows.max()) + 1, np.intp)
    position[rows] = np.arange(len(rows))
    scored = position[scores.rows]
    names = [nodes[i] for i in scored.tolist()]
    totals = scores.total.tolist()
    order = np.array(
        sorted(range(len(names)), key=lambda k: (-totals[k], names[k] != chosen, names[k])),
        np.intp,
    )
    columns = tuple(
        ScoreColumn(plugin, weight, raw[order], normalized[order])
        for plugin, weight, raw, normalized in zip(
            scores.plugins, scores.weights, scores.raw, scores.normalized, strict=True
        )
    )
    return scored[order], columns, scores.total[order]


def _frame_rows(view: NodeView) -> Iterator[tuple[object, ...]]:
    for plugin, status in view.filters:
        code = "NotAsked" if status is None else status.code.title
        reasons = "" if status is None else status.message
        yield view.node, "Filter", plugin, code, reasons, None, None, None
    for score in view.scores:
        yield (
            view.node,
            "Score",
            score.plugin,
            "Success",
            "",
            score.raw,
            score.normalized,
            score.weighted,
        )
