"""Every Score over every feasible node: raw, normalised and weighted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import index
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mooring.cluster.columns import Ints, Rows, row_count
from mooring.cluster.node_info import NodeInfo
from mooring.cluster.snapshot import Snapshot
from mooring.errors import PluginError
from mooring.framework.interface import MAX_SCORE, MIN_SCORE
from mooring.runtime.plugin_calls import NORMALIZE, SCORE, Calls, PluginFailure
from mooring.runtime.question import Question

Floats = NDArray[np.float64]

_NO_SCORES = "score_rows must return an int64 for each row it is asked for"


@dataclass(slots=True)
class ScoreMatrix:
    """The scores of the feasible nodes."""

    #: intp[feasible]: the rows that were scored.
    rows: NDArray[np.intp]
    #: The plugins that scored, in order, and their weights.
    plugins: list[str]
    weights: list[int]
    #: int64[feasible] for each plugin: as scored, and brought to 0..100.
    raw: list[Ints]
    normalized: list[Ints]
    #: int64[feasible]: the weighted sum.
    total: Ints

    @classmethod
    def empty(cls, rows: NDArray[np.intp]) -> ScoreMatrix:
        return cls(rows, [], [], [], [], np.zeros(len(rows), np.int64))

    @property
    def best(self) -> NDArray[np.intp]:
        """intp[...]: the rows with the highest total."""
        best: NDArray[np.intp] = self.rows[self.total == self.total.max()]
        return best

    def add(self, name: str, weight: int, scores: PluginScores) -> None:
        """The scores of one more plugin, or of an extender by its URL."""
        self.total += scores.normalized if weight == 1 else scores.normalized * weight
        self.plugins.append(name)
        self.weights.append(weight)
        self.raw.append(scores.raw)
        self.normalized.append(scores.normalized)


class PluginScores(NamedTuple):
    """One plugin's scores of the feasible nodes, int64[feasible]."""

    raw: Ints
    normalized: Ints


def score_plugin(call: Calls, question: Question, feasible: NDArray[np.intp]) -> PluginScores:
    raw = raw_scores(call, question, compact_rows(feasible, question.snapshot))
    return finished(call, question, raw)


def score_nodes(call: Calls, question: Question, nodes: Iterable[NodeInfo]) -> PluginScores:
    """By the form for a node. Raises PluginFailure."""
    return finished(call, question, _node_scores(call, question, nodes))


def finished(call: Calls, question: Question, raw: Ints) -> PluginScores:
    normalized = normalize(call, question, raw)
    check_range(call.name, normalized)
    return PluginScores(raw, normalized)


def compact_rows(feasible: NDArray[np.intp], snapshot: Snapshot) -> Rows:
    """A slice where every slot is feasible, so that indexing copies nothing."""
    every = snapshot.columns.all_rows
    return every if len(feasible) == every.stop else feasible


def raw_scores(call: Calls, question: Question, rows: Rows) -> Ints:
    snapshot = question.snapshot
    state, score_rows = question.state, call.score_rows
    if score_rows is not None:
        scores: object = call.run(
            SCORE, state, score_rows, state, question.pod, snapshot.columns, rows
        )
        if (
            not isinstance(scores, np.ndarray)
            or scores.dtype != np.int64
            or scores.shape != (row_count(rows),)
        ):
            raise call.failed(SCORE.doing, PluginError(_NO_SCORES))
        return scores
    numbers = np.arange(question.size)[rows].tolist()
    return _node_scores(call, question, map(snapshot.at, numbers))


def scores_of_amounts(call: Calls, question: Question) -> Ints | Floats:
    """number[row]: by a plugin that sees resources only and does not normalise. Raises PluginFailure.

    It is asked about states, if there are few; also about those of rows that are refused. If it fails, all
    has to be asked in order.
    """
    state, columns, score_states = question.state, question.snapshot.columns, call.score_states
    states = columns.states
    are_few = states.are_few(columns)
    if score_states is not None:
        amounts = states.amounts(columns) if are_few else states.amounts_by_row(columns)
        if amounts is not None:
            known = call.run(SCORE, state, score_states, state, question.pod, amounts)
            if known is not None:
                return known[: len(states.rows)] if are_few else known[: columns.size]
    scores = raw_scores(call, question, states.rows if are_few else columns.all_rows)
    check_range(call.name, scores)
    return scores


def _node_scores(call: Calls, question: Question, nodes: Iterable[NodeInfo]) -> Ints:
    score, state, pod = call.score, question.state, question.pod
    assert score is not None
    with call.guard("Score", SCORE.doing, state):
        # `index`, since NumPy would cut a fraction off without a word.
        return np.fromiter((index(score(state, pod, node)) for node in nodes), np.int64)


def score_row(call: Calls, question: Question, row: int) -> int:
    """Score one row by the form for rows. Raises PluginFailure."""
    return int(raw_scores(call, question, np.array([row], np.intp))[0])


def normalize(call: Calls, question: Question, raw: Ints) -> Ints:
    if call.normalize_scores is None:
        return raw
    normalized, state = raw.copy(), question.state
    status = call.run(NORMALIZE, state, call.normalize_scores, state, question.pod, normalized)
    call.checked(NORMALIZE, status)
    return normalized


def check_range(name: str, scores: Ints) -> None:
    """Raises PluginFailure. There must be a score."""
    # The place of an extreme is found in a fraction of the time that `max` takes.
    lowest, highest = scores.item(scores.argmin()), scores.item(scores.argmax())
    if lowest < MIN_SCORE or highest > MAX_SCORE:
        check_score(name, lowest if lowest < MIN_SCORE else highest)


def check_score(name: str, score: int) -> None:
    """Raises PluginFailure."""
    if not MIN_SCORE <= score <= MAX_SCORE:
        raise PluginFailure(
            name,
            f'applying score defaultWeights on Score plugins: plugin "{name}" returns an invalid'
            f" score {score}, it should in the range of [{MIN_SCORE}, {MAX_SCORE}]"
            " after normalizing",
        )
