"""The random worlds can fail: each bug that is put in on purpose is found.

Any change of the code shifts what a seed does. So the seed that found a bug last is tried first, then others.
"""

from __future__ import annotations

import pytest

from tools.fuzz.mutations import MUTATIONS, Mutation, applied
from tools.fuzz.world import run_seed

pytestmark = pytest.mark.long

MOST_SEEDS = 200


@pytest.mark.parametrize("mutation", [pytest.param(each, id=each.name) for each in MUTATIONS])
def test_a_bug_is_found(mutation: Mutation):
    seeds = (mutation.seed, *range(MOST_SEEDS))
    with applied(mutation):
        assert any(run_seed(seed, mutation.mode).violation for seed in seeds)


@pytest.mark.parametrize(
    ("mode", "seed"), sorted({(each.mode, each.seed) for each in MUTATIONS}), ids=str
)
def test_without_the_bug_nothing_is_wrong(mode, seed):
    assert run_seed(seed, mode).violation == ""
