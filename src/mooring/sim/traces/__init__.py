"""Recorded clusters: read traces, and replay them in virtual time."""
