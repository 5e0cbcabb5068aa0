"""Recorded clusters: reading traces, and playing them again in virtual time."""
