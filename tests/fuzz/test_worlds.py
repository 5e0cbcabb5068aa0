"""Random worlds: the live scheduler in virtual time, with everything broken that can be.

A few seeds of each mode on every run of the tests; `make fuzz SEEDS=10000` for many.
"""

from __future__ import annotations

import pytest

from tools.fuzz.world import Mode, run_seed

pytestmark = pytest.mark.long


@pytest.mark.parametrize("first", range(0, 18, 6))
def test_whatever_breaks_nothing_wrong_is_done(first):
    for seed in range(first, first + 6):
        result = run_seed(seed, "safety")

        assert result.violation == "", f"safety seed {seed}"


@pytest.mark.parametrize("first", range(1000, 1006, 2))
def test_when_the_faults_stop_everything_comes_to_rest_and_is_right(first):
    for seed in range(first, first + 2):
        result = run_seed(seed, "liveness")

        assert result.violation == "", f"liveness seed {seed}"


@pytest.mark.parametrize(("seed", "mode"), [(38, "safety")])
def test_a_seed_runs_the_same_way_every_time(seed: int, mode: Mode):
    first, second = run_seed(seed, mode), run_seed(seed, mode)

    assert first.steps > 500
    assert first == second
