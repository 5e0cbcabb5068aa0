"""Tests: `tests/` mirrors `src/mooring/`; makers of objects are in `tests.makers`."""
