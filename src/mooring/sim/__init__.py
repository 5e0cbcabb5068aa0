"""Simulation: a virtual clock and an in-memory API around the very same scheduler."""
