"""The weight of each domain, and the scores that follow from it (PreScore, Score)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from mooring.plugin import MAX_SCORE, Ints, Rows, Snapshot, row_count
from mooring.plugin.pods import HeldTerm, PodQuery, TermKind, look_up
from mooring.plugins.inter_pod_affinity.topology_counts import TopologyCounts


def count_weights(
    preferred: Sequence[tuple[str, int, PodQuery]],
    held_terms: Iterable[HeldTerm],
    snapshot: Snapshot,
    *,
    hard_weight: int,
) -> TopologyCounts:
    """Add up the weights of the pod's preferred terms and of the placed pods' terms.

    Every node counts, feasible or not. The reference goes through all pods for a pod with preferred terms,
    and through those on listed nodes for others.
    """
    weights = TopologyCounts(snapshot.columns)
    looks_at_all = bool(preferred)
    for key, weight, query in preferred:
        weights.add_rows(key, snapshot.pod_counts.kept(query), weight)
    for held in held_terms:
        given = _weight_of(held, hard_weight) if held.listed or looks_at_all else None
        if given is not None:
            weights.add_rows(held.term.topology_key, held.rows, given)
    return weights


def score_rows(weights: TopologyCounts, rows: Rows) -> Ints:
    """int64[row asked for]: the sum of the weights of each row's domains."""
    scores: Ints | None = None
    for table in weights.tables():
        found = look_up(table.totals, table.column.codes[rows])
        scores = found if scores is None else np.add(scores, found, out=scores)
    return np.zeros(row_count(rows), np.int64) if scores is None else scores


def normalize(scores: Ints) -> None:
    """Scale the scores to 0..100: ``int(100.0 * ((score - min) / (max - min)))``.

    The quotient comes first and is rounded to a float64, so 29 of 100 becomes 28.
    """
    if not len(scores):
        return
    # The place of an extreme is found in a fraction of the time that `min` takes.
    np.subtract(scores, scores.item(scores.argmin()), out=scores)
    if (highest := float(scores.item(scores.argmax()))) > 0:
        shares = np.divide(scores, highest)
        scores[:] = np.multiply(shares, MAX_SCORE, out=shares)


def _weight_of(held: HeldTerm, hard_weight: int) -> int | None:
    """The weight of a placed pod's term that matches the incoming pod; None if it has no weight."""
    match held.kind:
        case TermKind.REQUIRED_AFFINITY if hard_weight > 0:
            return hard_weight
        case TermKind.PREFERRED_AFFINITY:
            return held.weight
        case TermKind.PREFERRED_ANTI_AFFINITY:
            return -held.weight
    return None
