"""Devices of Dynamic Resource Allocation: which are in use, and which ones claims get on a node."""
