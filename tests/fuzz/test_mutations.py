"""The random worlds can fail: each bug that is put in on purpose is found by the seed that is known to."""

from __future__ import annotations

import pytest

from tools.fuzz.mutations import MUTATIONS, Mutation, applied
from tools.fuzz.world import run_seed


@pytest.mark.parametrize("mutation", [pytest.param(each, id=each.name) for each in MUTATIONS])
def test_a_bug_is_found(mutation: Mutation):
    with applied(mutation):
        result = run_seed(mutation.seed, mutation.mode)

    assert result.violation != ""


@pytest.mark.parametrize(
    ("mode", "seed"), sorted({(each.mode, each.seed) for each in MUTATIONS}), ids=str
)
def test_without_the_bug_nothing_is_wrong(mode, seed):
    assert run_seed(seed, mode).violation == ""
