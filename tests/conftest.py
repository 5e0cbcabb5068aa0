"""How tests run here: with the same examples each time, not against a clock, with little garbage collection.

`make test` says the same of one commit on every machine. `MOORING_EXAMPLES=1000 make test` looks ten
times as hard, with other examples on each run, to find what nobody has seen yet.
"""

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    max_examples=int(os.environ.get("MOORING_EXAMPLES", "100")),
    derandomize="MOORING_EXAMPLES" not in os.environ,
    print_blob=True,
    # A slow example on a busy machine says nothing about the rule it tests.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Test modules are there until the end: looking for garbage among them would take a quarter of the time
    that importing them takes, and some more for each test that makes many objects.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
