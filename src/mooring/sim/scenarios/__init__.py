"""Scenarios: things that happen to a cluster, one after another, and what must be true of it then."""
