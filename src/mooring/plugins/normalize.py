"""How raw scores become 0..100 where a plugin has no way of its own: as shares of the highest."""

from __future__ import annotations

import numpy as np

from mooring.cluster.columns import Ints
from mooring.framework.interface import MAX_SCORE


def normalize(scores: Ints) -> None:
    """Bring scores of which more is better into 0..100, in place.

    ``100 * score / highest``, truncated toward zero in int64, as the reference computes it. Where
    no score is above 0 they are left as they are.

    scores
        ``int64[feasible row]``.
    """
    highest = scores.max(initial=0)
    if highest > 0:
        _shares_of(highest, scores)


def normalize_reversed(scores: Ints) -> None:
    """Bring scores of which less is better into 0..100, in place.

    100 less the share that `normalize` gives: the highest gets 0, so where all are equal and above
    0 all get 0. Where no score is above 0, all get 100.

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
    # `//` rounds down, so it truncates only what is not negative.
    signs = np.sign(scores)
    np.abs(scores, out=scores)
    np.floor_divide(scores, highest, out=scores)
    np.multiply(scores, signs, out=scores)
