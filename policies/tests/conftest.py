"""Hypothesis runs as in mooring's own tests."""

import tests.conftest  # noqa: F401
