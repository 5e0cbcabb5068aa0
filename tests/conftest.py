"""How hypothesis runs here: random, repeatable from what a failure prints, and not against a clock.

`MOORING_EXAMPLES=1000 make test` looks ten times as hard as usual.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    max_examples=int(os.environ.get("MOORING_EXAMPLES", "100")),
    derandomize=False,
    print_blob=True,
    # A slow example on a busy machine says nothing about the rule it tests.
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")
