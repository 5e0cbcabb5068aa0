"""Mooring on a real cluster: reading, deciding, writing."""
