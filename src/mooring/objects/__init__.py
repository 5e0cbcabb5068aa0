"""Kubernetes objects as immutable values: decoding, quantities, selectors, request sums.

Nothing here knows about scheduling; every room to the right builds on it.
"""
