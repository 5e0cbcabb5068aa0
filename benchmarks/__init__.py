"""Benchmarks: each checks that the answer is right, then reports ratios to a baseline of its own run."""
