"""The default way to normalize scores to 0..100: as shares of the highest score."""

from __future__ import annotations

import numpy as np

from mooring.plugin import MAX_SCORE, Ints


def normalize(scores: Ints) -> None:
    """Scale scores to 0..100, in place; a higher score is better.

    ``100 * score / highest``, truncated toward zero in int64, as the reference computes it. If no
    score is above 0, they do not change.

    scores
        ``int64[feasible row]``.
    """
    highest = scores.max(initial=0)
    if highest > 0:
        _shares_of(highest, scores)


def normalize_reversed(scores: Ints) -> None:
    """Scale scores to 0..100, in place; a lower score is better.

    100 minus the result of `normalize`: the highest gets 0. If all scores are equal and above 0,
    all get 0; if no score is above 0, all get 100.

    scores
        ``int64[feasible row]``.
    """
    highest = scores.max(initial=0)
    if highest > 0:
        _shares_of(highest, scores)
        np.subtract(MAX_SCORE, scores, out=scores)
    else:
        scores[:] = MAX_SCORE


def _shares_of(highest: np.int64, scores: Ints) -> None:
    np.multiply(scores, MAX_SCORE, out=scores)
    # `//` rounds down, so it truncates only numbers that are not negative.
    signs = np.sign(scores)
    np.abs(scores, out=scores)
    np.floor_divide(scores, highest, out=scores)
    np.multiply(scores, signs, out=scores)
