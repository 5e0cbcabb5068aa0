"""What holds of plugins that have several forms: all rows at once, and states, say what each node says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mooring.cluster.columns import Rows
from mooring.cluster.row_states import StateAmounts, amounts_of_rows
from mooring.cluster.snapshot import Snapshot
from mooring.framework.cycle_state import CycleState
from mooring.framework.interface import (
    FilterPlugin,
    FilterRowsPlugin,
    ScorePlugin,
    ScoreRowsPlugin,
)
from mooring.framework.status import SUCCESS
from mooring.objects.pod import Pod


def assert_filters_agree(plugin: object, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
    assert isinstance(plugin, FilterPlugin)
    assert isinstance(plugin, FilterRowsPlugin)
    one_by_one = {node.row: plugin.filter(state, pod, node) or SUCCESS for node in snapshot}

    for rows, numbers in _ways_to_ask(snapshot):
        verdicts = plugin.filter_rows(state, pod, snapshot.columns, rows)
        assert verdicts.codes.shape == (len(numbers),)
        at_once = {row: verdicts.status(i) for i, row in enumerate(numbers) if row in one_by_one}
        assert at_once == {row: one_by_one[row] for row in at_once}
    states = _states(plugin, pod, snapshot) if hasattr(plugin, "passes_on_states") else None
    if states is not None and plugin.passes_on_states(state, pod, states):
        assert set(one_by_one.values()) <= {SUCCESS}


def assert_scores_agree(plugin: object, state: CycleState, pod: Pod, snapshot: Snapshot) -> None:
    assert isinstance(plugin, ScorePlugin)
    assert isinstance(plugin, ScoreRowsPlugin)
    one_by_one = {node.row: plugin.score(state, pod, node) for node in snapshot}

    for rows, numbers in _ways_to_ask(snapshot):
        scores = plugin.score_rows(state, pod, snapshot.columns, rows)
        assert scores.dtype == np.int64
        assert scores.shape == (len(numbers),)
        at_once = {row: int(scores[i]) for i, row in enumerate(numbers) if row in one_by_one}
        assert at_once == {row: one_by_one[row] for row in at_once}
    states = _states(plugin, pod, snapshot) if hasattr(plugin, "score_states") else None
    by_state = plugin.score_states(state, pod, states) if states is not None else None
    if by_state is not None:
        assert {row: by_state[row] for row in one_by_one} == one_by_one


def _states(plugin, pod: Pod, snapshot: Snapshot) -> StateAmounts | None:
    """One for each row, by its number, if the plugin may be asked about states."""
    columns = snapshot.columns
    rows = np.arange(columns.size)
    found = amounts_of_rows(columns, rows)
    if found is None or not plugin.sees_only_resources(pod):
        return None
    states = StateAmounts(columns.size)
    states.table[:, : columns.size] = found
    return states


def _ways_to_ask(snapshot: Snapshot) -> Iterator[tuple[Rows, list[int]]]:
    """Every slot, free ones too, as a slice; the nodes in reverse; one node; none."""
    columns = snapshot.columns
    yield columns.all_rows, list(range(columns.size))
    for rows in (snapshot.rows[::-1], snapshot.rows[:1], snapshot.rows[:0]):
        yield rows, rows.tolist()
