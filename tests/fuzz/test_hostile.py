"""Objects and answers that make no sense: no traceback, no hang, nothing wrong is done with what does.

A few seeds on every run of the tests; `make fuzz ARGS='--hostile --mode safety'` for many.
"""

from __future__ import annotations

import pytest

from tools.fuzz.world import run_seed


@pytest.mark.parametrize("first", range(0, 12, 4))
def test_nonsense_stops_nobody(first):
    for seed in range(first, first + 4):
        result = run_seed(seed, "safety", hostile=True)

        assert result.violation == "", f"hostile safety seed {seed}"
        assert result.faults["hostile object"] + result.faults["garbled answer"] > 0
