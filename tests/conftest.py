"""How hypothesis runs here: the same examples each time, and not against a clock.

`make test` says the same of one commit on every machine. `MOORING_EXAMPLES=1000 make test` looks ten
times as hard, with other examples on each run, to find what nobody has seen yet.
"""

import os

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
