"""The story of a decision: one step for each extension point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mooring.explain.post_filter import PostFiltering
from mooring.explain.world import Look
from mooring.framework.status import Status

#: The most names in a sentence.
_MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class Step:
    """What happened at one extension point."""

    point: str
    #: passed, refused, helped or reached.
    outcome: str
    text: str


def gate_step(gate: Status | None, said: str) -> Step:
    if gate is None:
        return Step("PreEnqueue", "passed", "no plugin holds the pod back")
    return Step("PreEnqueue", "refused", said or f"{gate.plugin}: {gate.message}")


def steps_of(look: Look) -> Iterator[Step]:
    """From PreFilter to the choice of a node."""
    yield _pre_filter(look)
    if not look.pre_filter.ok:
        yield from _post_filter(look)
        return
    yield _filter(look)
    if look.chosen is None:
        yield from _post_filter(look)
        return
    yield from _scoring(look)
    yield _choice(look)


def names_in_short(names: Sequence[str]) -> str:
    """`a, b, c and 12 more`."""
    if len(names) <= _MOST_NAMES + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMES])} and {len(names) - _MOST_NAMES:,} more"


def _pre_filter(look: Look) -> Step:
    if not look.pre_filter.ok:
        by = look.pre_filter.plugin or ", ".join(look.narrowed_by)
        text = f"{by}: {look.pre_filter.message}" if by else look.pre_filter.message
        return Step("PreFilter", "refused", text)
    if look.left_by_pre_filter is None:
        return Step("PreFilter", "passed", f"all {len(look.matrix):,} nodes are considered")
    left = f"{look.left_by_pre_filter:,} of {len(look.matrix):,} nodes"
    return Step("PreFilter", "passed", f"{', '.join(look.narrowed_by)} leaves {left}")


def _filter(look: Look) -> Step:
    matrix = look.matrix
    fitting = int(np.count_nonzero(matrix.verdicts == 0))
    text = f"{fitting:,} of {len(matrix):,} nodes fit"
    refused: Counter[str] = Counter()
    for code, count in zip(*np.unique(matrix.verdicts, return_counts=True), strict=True):
        if code:
            refused[matrix.statuses[code].plugin or "PreFilter"] += int(count)
    if refused:
        parts = (f"{plugin} refuses {count:,}" for plugin, count in refused.most_common())
        text = f"{text}: {', '.join(parts)}"
    return Step("Filter", "passed" if fitting else "refused", text)


def _post_filter(look: Look) -> Iterator[Step]:
    told = look.post_filtering
    if told is None:
        return
    if told.node:
        yield Step("PostFilter", "helped", _evictions(told))
    elif told.message:
        yield Step("PostFilter", "refused", told.message)
    if told.unasked:
        text = f"{', '.join(told.unasked)}: not asked, because asking could change the cluster"
        yield Step("PostFilter", "refused", text)


def _evictions(told: PostFiltering) -> str:
    victims = [f"{pod} (priority {priority})" for pod, priority in told.victims]
    return f"preemption would make room on {told.node} by evicting {names_in_short(victims)}"


def _scoring(look: Look) -> Iterator[Step]:
    scored = look.matrix.scores
    if not scored:
        return
    text = ", ".join(f"{column.plugin} ×{column.weight}" for column in scored)
    if look.skipped_scores:
        text += f"; skipped: {', '.join(sorted(look.skipped_scores))}"
    yield Step("Score", "passed", f"{len(look.matrix.scored):,} nodes, by {text}")


def _choice(look: Look) -> Step:
    if not look.matrix.scores:
        return Step("choice", "passed", f"{look.chosen} is the only node that fits")
    assert look.chosen is not None
    chosen = look.matrix.node(look.chosen)
    text = f"{look.chosen} with {chosen.total} points"
    if look.chosen not in look.tied:
        return Step(
            "choice", "passed", f"{text}: it was nominated for the pod, so it was tried first"
        )
    if len(look.tied) > 1:
        text += f", tied with {len(look.tied) - 1:,} other nodes (the tie-break decided)"
    if look.margin is not None:
        text += f", {look.margin} more than the next score"
    return Step("choice", "passed", text)
