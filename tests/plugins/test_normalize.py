import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.plugins.normalize import normalize, normalize_reversed


@pytest.mark.parametrize(
    ("raw", "normalized"),
    [
        pytest.param([10, 90], [11, 100]),
        pytest.param([5, 35, 0], [14, 100, 0]),
        pytest.param([0, 0, 0], [0, 0, 0], id="nothing to share"),
        pytest.param([1, 3], [33, 100]),
        pytest.param([-1, 3], [-33, 100], id="truncated toward zero, not down"),
        pytest.param([-1, -3], [-1, -3], id="left alone where none is above 0"),
        pytest.param([], [], id="no node at all"),
    ],
)
def test_the_highest_score_gets_100_and_the_others_their_share(raw, normalized):
    scores = np.array(raw, np.int64)

    normalize(scores)

    assert scores.tolist() == normalized


@pytest.mark.parametrize(
    ("raw", "normalized"),
    [
        pytest.param([0, 1, 3], [100, 67, 0], id="100 - 100 * 1 / 3"),
        pytest.param([2, 2], [0, 0], id="equal and above 0"),
        pytest.param([0, 0], [100, 100]),
        pytest.param([1, 2, 7], [86, 72, 0]),
        pytest.param([], [], id="no node at all"),
    ],
)
def test_in_reverse_the_highest_score_gets_0(raw, normalized):
    scores = np.array(raw, np.int64)

    normalize_reversed(scores)

    assert scores.tolist() == normalized


@given(raw=st.lists(st.integers(0, 2**50), min_size=1))
def test_shares_are_whole_and_within_0_and_100(raw):
    scores, reverse = np.array(raw, np.int64), np.array(raw, np.int64)
    normalize(scores)
    normalize_reversed(reverse)

    assert scores.tolist() == [100 * score // (max(raw) or 1) for score in raw]
    assert (scores + reverse).tolist() == [100] * len(raw)
