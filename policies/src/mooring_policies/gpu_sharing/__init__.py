"""Pods that share GPUs: which GPU of a node holds a share, and policies that choose node and GPU."""
