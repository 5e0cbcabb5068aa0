"""The story of a decision: one step for each extension point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.explain.post_filter import PostFiltering
from mooring.explain.what_if import DecisionView
from mooring.framework.status import Status

#: The step in which a node is chosen.
CHOICE = "choice"
#: The most names in a sentence.
_MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class Step:
    """What happened at one extension point."""

    point: str
    #: passed, refused, helped, reached or waiting.
    outcome: str
    text: str


def given_up_step(node: str, why: str) -> Step:
    """A plugin refused the pod after its node had been chosen, or failed."""
    return Step(CHOICE, "rejected", f"{node} was given up: {why}")


def gate_step(gate: Status | None, said: str) -> Step:
    if gate is None:
        return Step("PreEnqueue", "passed", "no plugin holds the pod back")
    return Step("PreEnqueue", "rejected", said or f"{gate.plugin}: {gate.message}")


def steps_of(view: DecisionView) -> Iterator[Step]:
    """From PreFilter to the choice of a node."""
    yield _pre_filter(view)
    if not view.pre_filter.ok:
        yield from _post_filter(view)
        return
    yield _filter(view)
    if view.chosen is None:
        yield from _post_filter(view)
        return
    yield from _scoring(view)
    yield _choice(view)


def names_in_short(names: Sequence[str]) -> str:
    """`a, b, c and 12 more`."""
    if len(names) <= _MOST_NAMES + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES:,} more"


def _pre_filter(view: DecisionView) -> Step:
    if not view.pre_filter.ok:
        by = view.pre_filter.plugin or ", ".join(view.narrowed_by)
        text = f"{by}: {view.pre_filter.message}" if by else view.pre_filter.message
        return Step("PreFilter", "rejected", text)
    if view.left_by_pre_filter is None:
        few = len(view.matrix) == 1
        considered = "the only node is considered" if few else f"all {_nodes(view)} are considered"
        return Step("PreFilter", "passed", considered)
    left = f"{view.left_by_pre_filter:,} of {_nodes(view)}"
    return Step("PreFilter", "passed", f"{', '.join(view.narrowed_by)} leaves {left}")


def _filter(view: DecisionView) -> Step:
    matrix = view.matrix
    fitting = int(np.count_nonzero(matrix.verdicts == 0))
    text = f"{fitting:,} of {_nodes(view)} {'fits' if 1 in (fitting, len(matrix)) else 'fit'}"
    refused: Counter[str] = Counter()
    for code, count in zip(*np.unique(matrix.verdicts, return_counts=True), strict=True):
        if code:
            refused[matrix.statuses[code].plugin or "PreFilter"] += int(count)
    if refused:
        parts = (f"{plugin} rejects {count:,}" for plugin, count in refused.most_common())
        text = f"{text}: {', '.join(parts)}"
    return Step("Filter", "passed" if fitting else "rejected", text)


def _nodes(view: DecisionView) -> str:
    return "1 node" if len(view.matrix) == 1 else f"{len(view.matrix):,} nodes"


def _post_filter(view: DecisionView) -> Iterator[Step]:
    told = view.post_filtering
    if told is None:
        return
    if told.node:
        yield Step("PostFilter", "helped", _evictions(told))
    elif told.message:
        yield Step("PostFilter", "rejected", told.message)
    if told.unasked:
        text = f"{', '.join(told.unasked)}: not asked, because asking could change the cluster"
        yield Step("PostFilter", "rejected", text)


def _evictions(told: PostFiltering) -> str:
    victims = [f"{pod} (priority {priority})" for pod, priority in told.victims]
    return f"preemption would make room on {told.node} by evicting {names_in_short(victims)}"


def _scoring(view: DecisionView) -> Iterator[Step]:
    scored = view.matrix.scores
    if not scored:
        return
    text = ", ".join(f"{column.plugin} ×{column.weight}" for column in scored)
    if view.skipped_scores:
        text += f"; skipped: {', '.join(sorted(view.skipped_scores))}"
    yield Step("Score", "passed", f"{len(view.matrix.scored):,} nodes, by {text}")


def _choice(view: DecisionView) -> Step:
    if not view.matrix.scores:
        return Step(CHOICE, "passed", f"{view.chosen} is the only node that fits")
    assert view.chosen is not None
    chosen = view.matrix.node(view.chosen)
    text = f"{view.chosen} with {chosen.total} points"
    if view.chosen not in view.tied:
        return Step(
            CHOICE, "passed", f"{text}: it was nominated for the pod, so it was tried first"
        )
    others = len(view.tied) - 1
    if others > 0:
        nodes = "1 other node" if others == 1 else f"{others:,} other nodes"
        text += f", tied with {nodes} (the tie-break decided)"
    if view.margin is not None:
        text += f", {view.margin} more than the next score"
    return Step(CHOICE, "passed", text)
